//! Reservations to be shown or counted: of each repository one text, from which everything is borrowed.

use std::borrow::Cow;

use store::{Key, StoreError};

use crate::core::Core;
use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::reservations::reading;
use crate::reservations::repository::Repository;
use crate::reservations::written::{Unreadable, Written};
use crate::storage::keys;

/// About how short a reservation is as text, so that there is room for all of them at once.
const SHORTEST: usize = 120;

/// Which reservations are wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only of this repository.
    pub repository: Option<Repository>,
    /// Only of this agent.
    pub owner: Option<AgentName>,
    /// Also those that have lapsed or were taken, for as long as they are remembered.
    pub also_over: bool,
}

/// What was read of reservations: [`Listing::read`] tells them.
#[derive(Clone, Debug)]
pub struct Listing {
    wanted: Wanted,
    /// When it was read.
    at: Instant,
    texts: Vec<Text>,
}

/// The reservations of a repository as they lie there.
#[derive(Clone, Debug)]
struct Text {
    key: Key,
    bytes: Vec<u8>,
    /// Where they lie, for people.
    place: String,
}

/// The reservations of a repository, in the order in which they were first granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// Which repository.
    pub repository: Cow<'a, str>,
    /// One at least.
    pub reservations: Vec<Written<'a>>,
}

pub(crate) async fn reservations(core: &Core, wanted: &Wanted) -> Result<Listing, StoreError> {
    let keys = match &wanted.repository {
        Some(only) => vec![keys::reservations_of(only)],
        None => core.shared.list(&keys::reservations()).await?,
    };
    let mut texts = Vec::with_capacity(keys.len());
    for key in keys {
        if let Some(value) = core.shared.get(&key).await? {
            texts.push(Text { place: core.shared.place(&key), key, bytes: value.bytes });
        }
    }
    Ok(Listing { wanted: wanted.clone(), at: core.machine.now(), texts })
}

impl Listing {
    /// The reservations that were wanted. A repository of which none was is left out.
    pub fn read(&self) -> Result<Vec<Listed<'_>>, StoreError> {
        let mut all = Vec::with_capacity(self.texts.len());
        for text in &self.texts {
            match self.read_one(&text.bytes) {
                Ok(listed) if listed.reservations.is_empty() => {}
                Ok(listed) => all.push(listed),
                Err(why) => {
                    let damaged = StoreError::Damaged { what: text.place.clone(), why: why.to_string() };
                    if self.wanted.repository.is_some() {
                        return Err(damaged);
                    }
                    // One damaged value hides one repository from the list; whoever reserves there is told.
                    tracing::warn!(key = %text.key, error = %damaged, "a repository's reservations are passed over");
                }
            }
        }
        Ok(all)
    }

    fn read_one<'a>(&self, bytes: &'a [u8]) -> Result<Listed<'a>, Unreadable> {
        let owner = self.wanted.owner.as_ref().map(AgentName::as_str);
        let fits = |one: &Written<'_>| {
            owner.is_none_or(|owner| one.owner == owner) && (self.wanted.also_over || one.holds(self.at))
        };
        let mut reservations = Vec::with_capacity(bytes.len() / SHORTEST);
        let mut flaw = None;
        let repository = reading::each(bytes, |one| match one.check() {
            Ok(()) if fits(&one) => reservations.push(one),
            Ok(()) => {}
            Err(why) => drop(flaw.get_or_insert(why)),
        })?;
        match flaw {
            None => Ok(Listed { repository, reservations }),
            Some(why) => Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = r#"{"id":"01JD8Z3K5V0000000000000000","owner":"alice","pattern":"src/\"a\"/**","mode":"shared","granted":1,"expires":9,"reason":"a\tb"}"#;

    /// Reads a repository's text at a moment, beside the sound one of another repository.
    fn check(ledger: &str, wanted: &Wanted, at: u64, expected: &[&str]) {
        let text = |key: &str, bytes: &str| Text {
            key: key.parse().expect("a key"),
            bytes: bytes.as_bytes().to_vec(),
            place: format!("/there/{key}.json"),
        };
        let beside = format!(r#"{{"reservations":[{SOUND}],"repository":"/b\\c"}}"#);
        let mut texts = vec![text("reservations/a", ledger), text("reservations/b", &beside)];
        if wanted.repository.is_some() {
            texts.truncate(1);
        }
        let listing = Listing { wanted: wanted.clone(), at: Instant(at), texts };
        let told: Vec<String> = match listing.read() {
            Ok(all) => {
                let each = all.iter().flat_map(|listed| listed.reservations.iter().map(move |one| (listed, one)));
                each.map(|(listed, one)| format!("{} {} {}", listed.repository, one.owner, one.pattern)).collect()
            }
            Err(error) => vec![error.to_string()],
        };
        // The library's own words go on with where in the text it is.
        assert_eq!(told.len(), expected.len(), "{ledger}: {told:?}");
        assert!(told.iter().zip(expected).all(|(told, expected)| told.starts_with(expected)), "{ledger}: {told:?}");
    }

    fn ledger(reservations: &[&str]) -> String {
        format!(r#"{{"repository":"/a","reservations":[{}]}}"#, reservations.join(","))
    }

    #[test]
    fn what_was_wanted_is_listed_as_it_is_written() {
        let all = Wanted::default();
        let bob = SOUND.replace("alice", "bob").replace("/**", "");
        let both = ledger(&[SOUND, &bob]);
        let beside = r#"/b\c alice src/"a"/**"#;
        check(&both, &all, 5, &[r#"/a alice src/"a"/**"#, r#"/a bob src/"a""#, beside]);
        check(&both, &Wanted { owner: Some("bob".parse().expect("a name")), ..all.clone() }, 5, &[r#"/a bob src/"a""#]);
        check(&both, &all, 9, &[]);
        check(&ledger(&[&bob]), &Wanted { also_over: true, ..all }, 9, &[r#"/a bob src/"a""#, beside]);
    }

    #[test]
    fn what_is_damaged_hides_its_own_repository_alone_and_is_told_to_whoever_asks_for_that_one() {
        let only = Wanted { repository: Some(Repository::named("/a")), ..Wanted::default() };
        for (damaged, why) in [
            (SOUND.replace("01JD8Z3K5V0000000000000000", "7"), "`7` is not an id: one is 26 characters long"),
            (SOUND.replace("alice", "Alice"), "`Alice` is not a name"),
            (SOUND.replace("src/", "{src/"), r#"`{src/"a"/**` is not a pattern: this `{` is never closed"#),
            (SOUND.replace("src/", "/src/"), r#"`/src/"a"/**` is not a pattern: it begins with a `/`"#),
            (SOUND.replace("shared", "mine"), "unknown variant `mine`"),
            (SOUND.replace(r#","mode""#, ""), "expected `,` or `}`"),
        ] {
            let text = ledger(&[SOUND, &damaged]);
            check(&text, &Wanted::default(), 5, &[r#"/b\c alice src/"a"/**"#]);
            check(&text, &only, 5, &[&format!("`/there/reservations/a.json` is damaged: {why}")]);
        }
    }
}
