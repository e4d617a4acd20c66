//! A repository's reservations as they are written, for those who ask of a few paths: a hook stands in the way
//! of every edit, and of a thousand claims hardly one concerns it.

use std::borrow::Cow;

use serde::Deserialize;

use super::Ledger;
use crate::glob::Glob;
use crate::machine::Instant;
use crate::names::{AgentName, InvalidMessageId, InvalidName, MessageId};
use crate::repository::Repository;
use crate::reservation::{Mode, Reservation, Taken};
use crate::session::SessionRef;

/// Why what is written is no ledger.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Id(#[from] InvalidMessageId),
    #[error(transparent)]
    Owner(#[from] InvalidName),
    #[error(transparent)]
    Pattern(#[from] crate::glob::InvalidGlob),
}

/// Reads a ledger with those reservations alone that could meet one of these patterns. The others are passed over
/// as text.
pub(super) fn near(bytes: &[u8], patterns: &[Glob]) -> Result<Ledger, Unreadable> {
    let Written { repository, reservations } = serde_json::from_slice(bytes)?;
    let could_meet = |one: &One<'_>| patterns.iter().any(|pattern| pattern.could_meet(&one.pattern));
    let near = reservations.into_iter().filter(could_meet).map(Reservation::try_from);
    Ok(Ledger { repository, reservations: near.collect::<Result<_, _>>()? })
}

/// [`Ledger`], borrowed from its text.
#[derive(Deserialize)]
struct Written<'a> {
    repository: Repository,
    #[serde(borrow)]
    reservations: Vec<One<'a>>,
}

/// [`Reservation`], borrowed from its text.
#[derive(Deserialize)]
struct One<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    owner: Cow<'a, str>,
    #[serde(borrow)]
    pattern: Cow<'a, str>,
    mode: Mode,
    #[serde(borrow, default)]
    reason: Option<Cow<'a, str>>,
    granted: Instant,
    expires: Instant,
    #[serde(borrow, default)]
    session: Option<Session<'a>>,
    #[serde(default)]
    taken: Option<Taken>,
}

/// [`SessionRef`], borrowed from its text.
#[derive(Deserialize)]
struct Session<'a> {
    #[serde(borrow)]
    harness: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
}

impl TryFrom<One<'_>> for Reservation {
    type Error = Unreadable;

    fn try_from(one: One<'_>) -> Result<Reservation, Unreadable> {
        let session = one.session.map(|of| SessionRef { harness: of.harness.into_owned(), id: of.id.into_owned() });
        Ok(Reservation {
            id: one.id.parse::<MessageId>()?,
            owner: AgentName::try_from(one.owner.into_owned())?,
            pattern: Glob::try_from(one.pattern.into_owned())?,
            mode: one.mode,
            reason: one.reason.map(Cow::into_owned),
            granted: one.granted,
            expires: one.expires,
            session,
            taken: one.taken,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records;

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
