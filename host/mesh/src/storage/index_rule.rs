//! What the stores index of the mesh's logs: ids, idempotency keys, threads and times.

use std::borrow::Cow;

use serde::Deserialize;
use store::{IndexRule, Indexed, Key, Position, Seek, Store, StoreError, Term};
use ulid::Ulid;

use crate::names::MessageId;
use crate::ports::machine::Instant;
use crate::storage::keys::{self, INBOX, RECEIPTS, SENT};

/// Grows whenever [`MeshIndexRule`] gives other terms.
const VERSION: u32 = 2;

/// The rule by which a store that has indexes finds messages, receipts and events.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeshIndexRule;

/// The indexed fields of all records that are kept in logs.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    idempotency_key: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thread: Option<Cow<'a, str>>,
    #[serde(default)]
    at: Option<u64>,
}

/// The fields of an event, whose other fields may have any shape.
#[derive(Deserialize)]
struct EventFields {
    #[serde(default)]
    at: Option<u64>,
}

impl IndexRule for MeshIndexRule {
    fn version(&self) -> u32 {
        VERSION
    }

    fn of(&self, log: &Key, entry: &[u8]) -> Indexed {
        if *log == keys::global() {
            let at = serde_json::from_slice::<EventFields>(entry).ok().and_then(|event| event.at);
            return Indexed { terms: Vec::new(), at };
        }
        let Ok(fields) = serde_json::from_slice::<Fields<'_>>(entry) else { return Indexed::default() };
        let mut terms = Vec::new();
        match log.leaf().as_str() {
            INBOX => {
                // The first message of a thread that has no name is found by its id.
                let thread = fields.thread.filter(|thread| fields.id.as_ref() != Some(thread));
                terms.extend(fields.id.map(Term::growing));
                terms.extend(fields.idempotency_key.map(|key| of_idempotency_key(&key)));
                terms.extend(thread.map(|thread| of_thread(&thread)));
            }
            RECEIPTS => terms.extend(fields.message.map(Term::growing)),
            SENT => terms.extend(fields.id.map(Term::growing)),
            _ => {}
        }
        Indexed { terms, at: fields.at }
    }
}

/// The term of everything about a message.
pub(crate) fn of_message(id: MessageId) -> Term {
    Term::growing(id.to_string()).since(id.0.timestamp_ms())
}

/// The term of the messages with an idempotency key, from any sender: the key as it is written.
pub(crate) fn of_idempotency_key(key: &str) -> Term {
    Term::scattered(format!("\"idempotency_key\":{}", serde_json::Value::from(key)))
}

/// The term of the messages of a thread, but for the one whose id is the thread's name.
pub(crate) fn of_thread(thread: &str) -> Term {
    Term::scattered(format!("\"thread\":{}", serde_json::Value::from(thread)))
}

/// A position before which no entry is of that time or later; the beginning if the store cannot tell.
pub(crate) async fn first_since(store: &dyn Store, log: &Key, since: Option<Instant>) -> Result<Position, StoreError> {
    match since {
        Some(since) => Ok(store.seek(log, Seek::Time(since.0)).await?.unwrap_or(Position::START)),
        None => Ok(Position::START),
    }
}

/// A position before which no message has an id of that time or later, in an inbox. A message may be younger than its id: a
/// sending that broke off is completed under the id that its first recipients have.
///
/// Where ids are indexed this is the entry, in a segment that is full; a time leads to the segment alone.
pub(crate) async fn first_id_since(
    store: &dyn Store,
    inbox: &Key,
    since: Option<Instant>,
) -> Result<Position, StoreError> {
    let Some(at) = since else { return Ok(Position::START) };
    match store.seek(inbox, Seek::Term(&lowest_id(at))).await? {
        Some(from) => Ok(from),
        None => first_since(store, inbox, since).await,
    }
}

/// The lowest id of a time, as a term.
pub(crate) fn lowest_id(Instant(at): Instant) -> String {
    Ulid::from_parts(at.min((1 << 48) - 1), 0).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The terms of an entry of a log, each of which it must contain.
    fn check(log: &str, entry: &serde_json::Value, terms: &[Term], at: Option<u64>) {
        let text = entry.to_string();
        let found = MeshIndexRule.of(&log.parse().expect("a key"), text.as_bytes());
        assert_eq!(found, Indexed { terms: terms.to_vec(), at }, "{log}: {entry}");
        assert!(found.terms.iter().all(|term| text.contains(&term.text)), "{text}: {:?}", found.terms);
    }

    #[test]
    fn each_log_has_its_terms() {
        let id = "01JD8Z3K5V0000000000000000";
        let message = json!({"id": id, "at": 7, "from": "bob", "body": "x", "idempotency_key": "a \"b\"\n\u{fc}"});
        check("agents/bob/inbox", &message, &[Term::growing(id), of_idempotency_key("a \"b\"\n\u{fc}")], Some(7));
        let in_thread = |thread: &str| json!({"id": id, "at": 7, "thread": thread});
        check("agents/bob/inbox", &in_thread(id), &[Term::growing(id)], Some(7));
        check("agents/bob/inbox", &in_thread("a \"b\""), &[Term::growing(id), of_thread("a \"b\"")], Some(7));
        check("agents/bob/sent", &json!({"id": id, "at": 7, "thread": "t"}), &[Term::growing(id)], Some(7));
        check("agents/bob/receipts", &json!({"message": id, "at": 8, "event": "freed"}), &[Term::growing(id)], Some(8));
        check("global", &json!({"event": "sent", "id": 5, "message": [], "at": 9}), &[], Some(9));
        check("wakes/claude-code/s1", &json!({"message": id, "at": 3}), &[], Some(3));
        check("agents/bob/inbox", &json!([1]), &[], None);
    }
}
