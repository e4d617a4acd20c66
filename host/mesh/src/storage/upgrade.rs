//! Upgrades a data folder from before 0.1: rewrites its records with the current names, once (docs/adr/0018).
//!
//! Serde aliases also read every record in its old spelling, so no process has to wait for the upgrade, and a process
//! that is killed half-way loses nothing: the next one continues. Logs are never rewritten, because cursors and
//! followers hold positions in them. Their old lines are read as they are until retention deletes them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{Durability, Key, Revision, Store, StoreError, SwapError};

use crate::agents::agent::Agent;
use crate::commands::record::Command;
use crate::sessions::session::SessionRecord;
use crate::storage::{keys, records};

/// The result of an upgrade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upgraded {
    /// Records rewritten with the current names.
    pub records: usize,
    /// Keys renamed.
    pub renamed: usize,
}

/// Names of keys before 0.1.
mod old {
    pub(super) const WAKE_FILES: &str = "bells";
    pub(super) const OFFLINE: &str = "silences";
    pub(super) const OFFLINE_NOTICES: &str = "wishes";
}

/// Upgrades a data folder from before 0.1. Idempotent.
pub async fn upgrade(store: &dyn Store) -> Result<Upgraded, StoreError> {
    let mut upgraded = Upgraded::default();
    for key in store.list(&keys::agents()).await? {
        if key.leaf() == keys::META {
            upgraded.records += rewrite::<Agent>(store, &key).await?;
        }
    }
    for key in store.list(&keys::commands()).await? {
        upgraded.records += rewrite::<Command>(store, &key).await?;
    }
    for key in store.list(&keys::sessions()).await? {
        upgraded.records += rewrite::<SessionRecord>(store, &key).await?;
        // A client that watches its old wake file learns of the new one at its next start. Until then its record says
        // that it watches none, so that no message counts as notified.
        let log = under(&keys::sessions(), &constant(old::WAKE_FILES), &key);
        if store.end(&log).await? != store::Position::START {
            store.remove(&log).await?;
            upgraded.renamed += 1;
        }
    }
    for key in store.list(&constant(old::OFFLINE_NOTICES)).await? {
        let renamed = under(&constant(old::OFFLINE_NOTICES), &keys::offline_notices(), &key);
        upgraded.renamed += rename(store, &key, &renamed).await?;
    }
    upgraded.renamed += rename(store, &constant(old::OFFLINE), &keys::offline()).await?;
    Ok(upgraded)
}

fn constant(text: &'static str) -> Key {
    text.parse().expect("a constant of this file is a key")
}

/// Replaces the prefix `from` of a key by `to`.
fn under(from: &Key, to: &Key, key: &Key) -> Key {
    let below = key.as_str().strip_prefix(from.as_str()).unwrap_or_default();
    format!("{to}{below}").parse().expect("what lies below one key may lie below another")
}

/// Rewrites a record with the current names. Leaves an unreadable record in place, for a later command to report, and
/// one that another process changed meanwhile.
async fn rewrite<T: Serialize + DeserializeOwned>(store: &dyn Store, key: &Key) -> Result<usize, StoreError> {
    let Some(value) = store.get(key).await? else { return Ok(0) };
    let Ok(record) = serde_json::from_slice::<T>(&value.bytes) else { return Ok(0) };
    let next = records::json(&record);
    if next == value.bytes {
        return Ok(0);
    }
    swap(store, key, Some(value.revision), Some(&next)).await
}

/// Moves a value to another key. If killed in between, both keys exist, and the next try removes the old one.
async fn rename(store: &dyn Store, from: &Key, to: &Key) -> Result<usize, StoreError> {
    let Some(value) = store.get(from).await? else { return Ok(0) };
    swap(store, to, None, Some(&value.bytes)).await?;
    swap(store, from, Some(value.revision), None).await
}

/// Writes a value if it is still as it was read. Returns the number of changes: 0 if another process was faster.
async fn swap(
    store: &dyn Store,
    key: &Key,
    expected: Option<Revision>,
    next: Option<&[u8]>,
) -> Result<usize, StoreError> {
    match store.swap(key, expected, next, Durability::Synced).await {
        Ok(_) => Ok(1),
        Err(SwapError::Changed { .. }) => Ok(0),
        Err(SwapError::Store(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use store::memory::{Fault, MemoryStore};

    use super::*;

    /// A store with these values.
    async fn holding(values: &[(&str, Value)]) -> MemoryStore {
        let store = MemoryStore::new();
        for (key, value) in values {
            let bytes = value.to_string().into_bytes();
            store.swap(&key.parse().expect("a key"), None, Some(&bytes), Durability::Synced).await.expect("stored");
        }
        store
    }

    async fn at(store: &MemoryStore, key: &str) -> Value {
        let value = store.get(&key.parse().expect("a key")).await.expect("read").expect("it is there");
        serde_json::from_slice(&value.bytes).expect("JSON")
    }

    fn old_folder() -> Vec<(&'static str, Value)> {
        vec![
            (
                "agents/carol/meta",
                json!({
                    "name": "carol", "profile": {"bead": "RM-2"}, "origin": "session", "host": "here",
                    "registered": 1, "bound": 1,
                }),
            ),
            (
                "sessions/claude-code/s1",
                json!({
                    "session": {"harness": "claude-code", "id": "s1"}, "workdir": "/w", "activity": "awaiting-human",
                    "heard": 1, "first_seen": 1, "hears_bell": true,
                }),
            ),
            (
                "commands/01M828QNE9YHQ46507ZW9P7FN1",
                json!({
                    "id": "01M828QNE9YHQ46507ZW9P7FN1", "from": "alice", "to": "bob", "command": "/build", "created": 1,
                    "expires": 2, "stage": {"is": "consumed", "at": 2},
                }),
            ),
            ("agents/torn/meta", json!({"name": 7})),
            ("wishes/carol", json!([1])),
            ("silences", json!({"from": 3})),
        ]
    }

    async fn check_upgraded(store: &MemoryStore) {
        let carol = at(store, "agents/carol/meta").await;
        assert_eq!((&carol["machine"], &carol["profile"]["issue"]), (&json!("here"), &json!("RM-2")), "{carol}");
        let session = at(store, "sessions/claude-code/s1").await;
        assert_eq!(session["activity"], "needs-input", "{session}");
        assert_eq!(session.get("watches_wake_file"), None, "nobody watches the new file yet: {session}");
        assert_eq!(at(store, "commands/01M828QNE9YHQ46507ZW9P7FN1").await["stage"]["is"], "running");
        assert_eq!(at(store, "agents/torn/meta").await, json!({"name": 7}), "what cannot be read stays");
        assert_eq!(at(store, "offline-notices/carol").await, json!([1]));
        assert_eq!(at(store, "offline").await, json!({"from": 3}));
        assert_eq!(store.get(&constant("wishes/carol")).await.expect("read"), None);
        assert_eq!(upgrade(store).await.expect("again"), Upgraded::default(), "once is enough");
    }

    #[tokio::test]
    async fn records_are_rewritten_once_and_what_cannot_be_read_stays() {
        let store = holding(&old_folder()).await;
        assert_eq!(upgrade(&store).await.expect("upgraded"), Upgraded { records: 3, renamed: 2 });
        check_upgraded(&store).await;
    }

    #[tokio::test]
    async fn an_upgrade_that_breaks_off_at_any_write_goes_on_where_it_was() {
        for nth in 1.. {
            let store = holding(&old_folder()).await;
            store.fail_at(nth, Fault::Fail);
            if upgrade(&store).await.is_ok() {
                assert!(nth > 5, "only {nth} writes");
                break;
            }
            upgrade(&store).await.expect("the second try");
            check_upgraded(&store).await;
        }
    }
}
