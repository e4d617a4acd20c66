//! Ids that a person or a model shortened: the first characters of one, as far as they are unique.
//!
//! An id begins with the time at which it was made, so its first characters say where in the event log it stands. No
//! more of the log is read than the time that they span.

use std::collections::BTreeSet;

use store::StoreError;

use crate::conversations::MailReader;
use crate::core::Core;
use crate::names::{InvalidMessageId, MessageId, shorten};
use crate::ports::machine::Instant;
use crate::sessions::Principal;
use crate::storage::event_log::{self, Event};

/// How many characters an id has.
const LENGTH: usize = 26;
/// The fewest that say when an id was made, to 17 minutes.
pub const SHORTEST_PREFIX: usize = 6;
/// How long after an id was made its event may be noted, in milliseconds.
const NOTED_WITHIN: u64 = 60_000;
/// How many ids an error names.
const MOST_NAMED: usize = 5;

/// Why text names no message and no command.
#[derive(Debug, thiserror::Error)]
pub enum IdError {
    /// It is neither an id nor the beginning of one.
    #[error(transparent)]
    Invalid(#[from] InvalidMessageId),
    /// No id that the asker may know begins so.
    #[error("no message or command that you know of begins with `{0}`")]
    Unknown(String),
    /// Several do.
    #[error("`{typed}` may mean {}", named(.candidates))]
    Ambiguous {
        /// What was typed.
        typed: String,
        /// The ids that it may mean, oldest first.
        candidates: Vec<MessageId>,
    },
    /// The store failed.
    #[error("the event log could not be read")]
    Store(#[from] StoreError),
}

fn named(candidates: &[MessageId]) -> String {
    let mut names: Vec<String> = candidates.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    if candidates.len() > MOST_NAMED {
        names.push(format!("{} more", candidates.len() - MOST_NAMED));
    }
    names.join(", ")
}

/// The id that begins with what was typed, among those of events that concern the asker. A person may know all.
pub(crate) async fn id_of(core: &Core, asker: &Principal, typed: &str) -> Result<MessageId, IdError> {
    let knows = |event: &Event| asker.is_person() || asker.agent().is_some_and(|agent| event.concerns(agent));
    id_in_events(core, knows, typed).await
}

/// The same for a reader of mail.
pub(crate) async fn id_known_to(core: &Core, reader: &MailReader, typed: &str) -> Result<MessageId, IdError> {
    id_in_events(core, |event| reader.knows(event), typed).await
}

async fn id_in_events(core: &Core, knows: impl Fn(&Event) -> bool, typed: &str) -> Result<MessageId, IdError> {
    let typed = check(typed)?;
    if typed.len() == LENGTH {
        return Ok(typed.parse()?);
    }
    let (earliest, latest) = span(&typed).ok_or_else(|| InvalidMessageId::Beginning(typed.clone()))?;
    let mut found: BTreeSet<MessageId> = BTreeSet::new();
    let mut from = core.event_log.since(earliest).await?;
    'log: loop {
        let stretch = core.event_log.read(from, event_log::STEP).await?;
        for event in &stretch.events {
            if event.at.0 > latest.0.saturating_add(NOTED_WITHIN) {
                break 'log;
            }
            let id = event.details.get("id").and_then(|id| id.as_str()).filter(|id| id.starts_with(&typed));
            if knows(event)
                && let Some(Ok(id)) = id.map(str::parse)
            {
                found.insert(id);
            }
        }
        if stretch.at_end {
            break;
        }
        from = stretch.next;
    }
    let candidates: Vec<MessageId> = found.into_iter().collect();
    match candidates.as_slice() {
        [] => Err(IdError::Unknown(typed)),
        [only] => Ok(*only),
        _ => Err(IdError::Ambiguous { typed, candidates }),
    }
}

/// An id, or the beginning of one, in the letters in which ids are written. A table ends what it cuts with `…`, which
/// people copy along.
pub fn check(typed: &str) -> Result<String, InvalidMessageId> {
    let id = uncut(typed).to_ascii_uppercase();
    let is_one = match id.len() {
        LENGTH => id.parse::<MessageId>().is_ok(),
        SHORTEST_PREFIX..LENGTH => span(&id).is_some(),
        _ => false,
    };
    // The first of 26 characters has three bits.
    if is_one && id.starts_with(|first: char| ('0'..='7').contains(&first)) {
        return Ok(id);
    }
    Err(InvalidMessageId::Beginning(shorten(typed)))
}

/// What was typed, without the `…` that ends a text which a table cut.
pub(crate) fn uncut(typed: &str) -> &str {
    typed.trim().trim_end_matches('…')
}

/// The times at which an id that begins so can have been made. None if none can.
fn span(beginning: &str) -> Option<(Instant, Instant)> {
    let filled = |with: &str| {
        let whole = format!("{beginning}{}", with.repeat(LENGTH.checked_sub(beginning.len())?));
        whole.parse::<MessageId>().ok().map(|id| Instant(id.0.timestamp_ms()))
    };
    Some((filled("0")?, filled("Z")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_id_says_when_it_was_made() {
        let (earliest, latest) = span("01JD8Z3K5V").expect("a beginning");
        assert_eq!(earliest, latest, "ten characters are a millisecond");
        let (earliest, latest) = span("01JD8Z").expect("a beginning");
        assert_eq!(latest.0 - earliest.0, (1 << 20) - 1, "six are 17 minutes");
    }

    #[test]
    fn what_cannot_be_an_id_is_told_from_what_can() {
        for right in ["01JD8Z", "01jd8z3k5v", " 01JD8Z3K5V0000000000000000 ", "01JD8Z3K5V…"] {
            assert!(check(right).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "01",
            "01JD8",
            "01JD8!",
            "01JD8…",
            "U1JD8Z",
            "\u{fc}1JD8Z",
            "9ZZZZZ",
            "yesterday",
            "01JD8Z3K5V00000000000000001",
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        assert_eq!(check("01jd8z3k5v0000…").as_deref(), Ok("01JD8Z3K5V0000"), "as a table cut it");
        let long = check(&"x".repeat(1_000_000)).expect_err("no id").to_string();
        assert!(long.len() < 300, "what is quoted is short: {}", long.len());
    }
}
