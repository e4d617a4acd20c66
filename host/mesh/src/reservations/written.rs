//! A repository's reservations as they are written, for those who pass over most of them or only show them: a hook
//! stands in the way of every edit, and of a thousand reservations hardly one concerns it; a list of a thousand is read
//! once and printed.

use std::borrow::Cow;

use serde::Deserialize;

use crate::names::{AgentName, InvalidMessageId, InvalidName, MessageId};
use crate::ports::machine::Instant;
use crate::reservations::glob::Glob;
use crate::reservations::ledger::Ledger;
use crate::reservations::repository::Repository;
use crate::reservations::{self, Mode, Reservation, Taken, reading};
use crate::sessions::SessionRef;

/// Why what is written is no ledger.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(transparent)]
    Text(#[from] std::str::Utf8Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Id(#[from] InvalidMessageId),
    #[error(transparent)]
    Owner(#[from] InvalidName),
    #[error(transparent)]
    Pattern(#[from] crate::reservations::glob::InvalidGlob),
}

/// Reads a ledger with those reservations alone that could meet one of these patterns. The others are passed over
/// as text.
pub(super) fn near(bytes: &[u8], patterns: &[Glob]) -> Result<Ledger, Unreadable> {
    let mut near = Vec::new();
    let repository = reading::each(bytes, |one| {
        if patterns.iter().any(|pattern| pattern.could_meet(&one.pattern)) {
            near.push(one.into_reservation());
        }
    })?;
    let reservations = near.into_iter().collect::<Result<_, _>>()?;
    Ok(Ledger { repository: Repository::named(&repository), reservations })
}

/// A [`Reservation`], borrowed from its text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Written<'a> {
    /// Its id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Who holds it.
    #[serde(borrow)]
    pub owner: Cow<'a, str>,
    /// Of which paths, from the top of the repository.
    #[serde(borrow)]
    pub pattern: Cow<'a, str>,
    /// Whether others may.
    pub mode: Mode,
    /// What for, in the owner's words.
    #[serde(borrow, default)]
    pub reason: Option<Cow<'a, str>>,
    /// When it was granted or last renewed.
    pub granted: Instant,
    /// When it lapses by itself.
    pub expires: Instant,
    #[serde(borrow, default)]
    session: Option<Session<'a>>,
    /// Who took it by force.
    #[serde(default)]
    pub taken: Option<Taken>,
}

impl<'a> Written<'a> {
    /// A reservation as it would be read back.
    pub fn of(one: &'a Reservation) -> Written<'a> {
        let session = |of: &'a SessionRef| Session {
            harness: Cow::Borrowed(of.harness.as_str()),
            id: Cow::Borrowed(of.id.as_str()),
        };
        Written {
            id: Cow::Owned(one.id.to_string()),
            owner: Cow::Borrowed(one.owner.as_str()),
            pattern: Cow::Borrowed(one.pattern.as_str()),
            mode: one.mode,
            reason: one.reason.as_deref().map(Cow::Borrowed),
            granted: one.granted,
            expires: one.expires,
            session: one.session.as_ref().map(session),
            taken: one.taken.clone(),
        }
    }

    /// Whether it holds at a time.
    pub fn holds(&self, now: Instant) -> bool {
        reservations::holds(self.taken.as_ref(), self.expires, now)
    }

    /// How long it still lasts, in milliseconds.
    pub fn left(&self, now: Instant) -> u64 {
        self.expires.since(now)
    }

    /// Whether it is a reservation, without making one of it.
    pub(super) fn check(&self) -> Result<(), Unreadable> {
        self.id.parse::<MessageId>()?;
        AgentName::check_kept(&self.owner)?;
        Glob::check_kept(&self.pattern)?;
        Ok(())
    }

    /// Makes a reservation of it.
    pub(crate) fn into_reservation(self) -> Result<Reservation, Unreadable> {
        let session = self.session.map(|of| SessionRef { harness: of.harness.into_owned(), id: of.id.into_owned() });
        Ok(Reservation {
            id: self.id.parse::<MessageId>()?,
            owner: AgentName::try_from(self.owner.into_owned())?,
            pattern: Glob::try_from(self.pattern.into_owned())?,
            mode: self.mode,
            reason: self.reason.map(Cow::into_owned),
            granted: self.granted,
            expires: self.expires,
            session,
            taken: self.taken,
        })
    }
}

/// [`SessionRef`], borrowed from its text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Session<'a> {
    #[serde(borrow)]
    harness: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::records;

    /// Writes a ledger of these patterns, and reads what is near to some.
    fn check(written: &[&str], asked: &[&str], expected: &[&str]) {
        let of = |(number, pattern): (usize, &&str)| Reservation {
            id: MessageId(ulid::Ulid::from(number as u128)),
            owner: "alice@team".parse().expect("a name"),
            pattern: pattern.parse().expect("a pattern"),
            mode: Mode::Shared,
            reason: (number % 2 == 0).then(|| "a \"reason\" of\ttwo words".to_owned()),
            granted: Instant(number as u64),
            expires: Instant(7),
            session: (number % 3 == 0).then(|| SessionRef { harness: "h".to_owned(), id: "a\\b\u{1}".to_owned() }),
            taken: (number % 5 == 0).then(|| Taken { by: "bob".parse().expect("a name"), at: Instant(9), told: true }),
        };
        let ledger = Ledger {
            repository: Repository::named("/w \"x\""),
            reservations: written.iter().enumerate().map(of).collect(),
        };
        let asked: Vec<Glob> = asked.iter().map(|pattern| pattern.parse().expect("a pattern")).collect();
        let near = near(&records::json(&ledger), &asked).expect("read");
        assert_eq!(near.repository, ledger.repository);
        let kept: Vec<&Reservation> =
            ledger.reservations.iter().filter(|one| expected.contains(&one.pattern.as_str())).collect();
        assert_eq!(near.reservations.iter().collect::<Vec<_>>(), kept, "{asked:?}");
    }

    #[test]
    fn what_could_meet_is_read_whole_and_the_rest_is_passed_over() {
        let all = ["src/a/**", "src/b/**", "docs/\\[x\\]", "**/*.rs", "[d]ocs/y", "src/a/b.md", "{src,docs}/z"];
        check(&all, &["src/a/b.md"], &["src/a/**", "[d]ocs/y", "src/a/b.md", "{src,docs}/z"]);
        check(&all, &["src/b/c.rs"], &["src/b/**", "**/*.rs", "[d]ocs/y", "{src,docs}/z"]);
        check(&all, &["nowhere/x"], &["[d]ocs/y", "{src,docs}/z"]);
        check(&all, &["**"], &all);
        check(&[], &["**"], &[]);
    }

    #[test]
    fn what_is_no_ledger_is_not_taken_for_an_empty_one() {
        let all = ["**".parse().expect("a pattern")];
        for text in [
            "",
            "{}",
            "[]",
            r#"{"repository":"/w","reservations":[{}]}"#,
            r#"{"repository":"/w","reservations":[{"id":"x","owner":"a","pattern":"b","mode":"shared","granted":1,"expires":2}]}"#,
        ] {
            assert!(near(text.as_bytes(), &all).is_err(), "{text}");
        }
    }
}
