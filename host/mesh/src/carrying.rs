//! Moving a mesh from one store to another: everything that machines share, in the order in which it was
//! written. What is there already is not written twice, so that a move which broke off goes on where it was.

use std::collections::{BTreeMap, BTreeSet};

use store::{AppendError, Durability, Expect, Key, Position, Store, StoreError, SwapError};

use crate::inbox::Header;
use crate::keys;
use crate::names::AgentName;

/// How much is read of a log at a time.
const STEP: usize = 1 << 20;
/// How much is appended at a time: less than any server takes at once.
const AT_ONCE: usize = 200 * 1024;
/// How many entries.
const MOST_AT_ONCE: usize = 500;

/// What happens where the target holds something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupied {
    /// Nothing is written at all.
    Refuse,
    /// It stays, and what is missing is added.
    Add,
}

/// What was moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Entries of logs that were written.
    pub entries: usize,
    /// Values that were written.
    pub values: usize,
    /// Entries and values that were there already.
    pub already: usize,
    /// Values that stayed what they were, because the target held others.
    pub kept: usize,
    /// Damaged stretches of the source, which stay behind.
    pub damaged: usize,
}

/// Why a move broke off. What was written by then stays, and the same move goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum CarryError {
    /// The target belongs to another mesh.
    #[error("the target holds something else under `{0}`")]
    Differs(Key),
    /// Somebody wrote there at the same time.
    #[error("somebody writes to `{0}` of the target")]
    Busy(Key),
    /// The source failed.
    #[error("what is to be moved could not be read")]
    From(#[source] StoreError),
    /// The target failed.
    #[error("the target could not be read or written")]
    To(#[source] StoreError),
}

/// Everything of a mesh that machines share, by its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Values, agents' records first.
    pub values: Vec<Key>,
    /// Logs, what was sent before what was received.
    pub logs: Vec<Key>,
}

/// What lies in a store. Cursors are left out: they are hints, and mean nothing in another store.
pub async fn contents(store: &dyn Store) -> Result<Contents, StoreError> {
    let mut contents = Contents::default();
    let mut names: BTreeSet<AgentName> = [AgentName::shell()].into();
    for under in [keys::agents(), keys::reservations(), keys::commands()] {
        for key in store.list(&under).await? {
            names.extend(key.is_under(&keys::agents()).then(|| owner(&key)).flatten());
            if key.leaf() != "cursor" {
                contents.values.push(key);
            }
        }
    }
    // A record says who an agent is, and everything else of it counts only with that.
    contents.values.sort_by_key(|key| key.leaf() != "meta");
    contents.logs.push(keys::global());
    for log in [keys::sent, keys::receipts, keys::inbox] {
        contents.logs.extend(names.iter().map(log));
    }
    Ok(contents)
}

/// Every entry of a log, in order, and how many damaged stretches were passed over.
pub async fn entries(store: &dyn Store, log: &Key) -> Result<(Vec<Vec<u8>>, usize), StoreError> {
    let mut entries = Vec::new();
    let mut damaged = 0;
    let mut from = Position::START;
    loop {
        let batch = store.read(log, from, STEP).await?;
        damaged += batch.damage.len();
        entries.extend(batch.entries.into_iter().map(|entry| entry.bytes));
        if batch.at_end || batch.next == from {
            return Ok((entries, damaged));
        }
        from = batch.next;
    }
}

/// Moves a mesh. Nothing goes from the source.
pub async fn carry(from: &dyn Store, to: &dyn Store, occupied: Occupied) -> Result<Carried, CarryError> {
    let contents = contents(from).await.map_err(CarryError::From)?;
    let mut carried = Carried::default();
    if occupied == Occupied::Refuse {
        for key in &contents.values {
            let (source, target) = both(from, to, key).await?;
            if let (Some(source), Some(target)) = (source, target)
                && !is_fleeting(key)
                && !same(&source, &target)
            {
                return Err(CarryError::Differs(key.clone()));
            }
        }
        for log in &contents.logs {
            let (source, target) = both_logs(from, to, log).await?;
            if !begins_with(&source.0, &target.0) {
                return Err(CarryError::Differs(log.clone()));
            }
        }
    }
    for key in &contents.values {
        let (source, target) = both(from, to, key).await?;
        match (source, target) {
            (None, _) => {}
            (Some(source), Some(target)) if same(&source, &target) => carried.already += 1,
            (Some(_), Some(_)) => carried.kept += 1,
            (Some(source), None) => {
                put(to, key, &source).await?;
                carried.values += 1;
            }
        }
    }
    for log in &contents.logs {
        let ((source, damaged), (target, _)) = both_logs(from, to, log).await?;
        carried.damaged += damaged;
        if log.leaf() == "inbox" {
            introduce(to, &source).await?;
        }
        let mut there: BTreeMap<&[u8], usize> = BTreeMap::new();
        for entry in &target {
            *there.entry(entry).or_default() += 1;
        }
        let missing: Vec<Vec<u8>> = source
            .iter()
            .filter(|entry| match there.get_mut(entry.as_slice()) {
                Some(times) if *times > 0 => {
                    *times -= 1;
                    false
                }
                Some(_) | None => true,
            })
            .cloned()
            .collect();
        carried.already += source.len() - missing.len();
        carried.entries += missing.len();
        append(to, log, missing).await?;
    }
    Ok(carried)
}

/// Makes whoever sent a message known to the target, also where nothing else is left of them: there a
/// message counts only with its sender.
async fn introduce(to: &dyn Store, inbox: &[Vec<u8>]) -> Result<(), CarryError> {
    let senders: BTreeSet<AgentName> = inbox
        .iter()
        .filter_map(|entry| serde_json::from_slice::<Header>(entry).ok())
        .map(|header| header.from)
        .collect();
    for sender in senders.iter().filter(|sender| !sender.is_shell()) {
        let key = keys::known(sender);
        if to.get(&key).await.map_err(CarryError::To)?.is_none() {
            put(to, &key, b"{}").await?;
        }
    }
    Ok(())
}

async fn put(to: &dyn Store, key: &Key, value: &[u8]) -> Result<(), CarryError> {
    match to.swap(key, None, Some(value), Durability::Synced).await {
        Ok(_) => Ok(()),
        Err(SwapError::Changed { .. }) => Err(CarryError::Busy(key.clone())),
        Err(SwapError::Store(error)) => Err(CarryError::To(error)),
    }
}

async fn append(to: &dyn Store, log: &Key, missing: Vec<Vec<u8>>) -> Result<(), CarryError> {
    let mut end = to.end(log).await.map_err(CarryError::To)?;
    let mut rest = missing.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |entry: &&Vec<u8>| {
            bytes += entry.len();
            bytes <= AT_ONCE
        };
        let count = rest.iter().take(MOST_AT_ONCE).take_while(fits).count().max(1);
        let (now, later) = rest.split_at(count);
        end = match to.append(log, now, Expect::End(end), Durability::Synced).await {
            Ok(end) => end,
            Err(AppendError::Moved) => return Err(CarryError::Busy(log.clone())),
            Err(AppendError::Store(error)) => return Err(CarryError::To(error)),
        };
        rest = later;
    }
    Ok(())
}

type Value = Option<Vec<u8>>;

async fn both(from: &dyn Store, to: &dyn Store, key: &Key) -> Result<(Value, Value), CarryError> {
    let source = from.get(key).await.map_err(CarryError::From)?.map(|value| value.bytes);
    let target = to.get(key).await.map_err(CarryError::To)?.map(|value| value.bytes);
    Ok((source, target))
}

type Log = (Vec<Vec<u8>>, usize);

async fn both_logs(from: &dyn Store, to: &dyn Store, log: &Key) -> Result<(Log, Log), CarryError> {
    let source = entries(from, log).await.map_err(CarryError::From)?;
    Ok((source, entries(to, log).await.map_err(CarryError::To)?))
}

/// Whether what is there is the beginning of what is to come.
fn begins_with(whole: &[Vec<u8>], beginning: &[Vec<u8>]) -> bool {
    whole.len() >= beginning.len() && whole.iter().zip(beginning).all(|(one, other)| same(one, other))
}

fn same(one: &[u8], other: &[u8]) -> bool {
    let parsed = |bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    one == other || parsed(one).is_some_and(|value| Some(value) == parsed(other))
}

/// Whether a value is written again and again while its agent lives.
fn is_fleeting(key: &Key) -> bool {
    matches!(key.leaf().as_str(), "heartbeat" | "work")
}

fn owner(key: &Key) -> Option<AgentName> {
    Key::decode(key.segments().nth(1)?).parse().ok()
}

#[cfg(test)]
mod tests {
    use store::memory::{Fault, MemoryStore, Tail};

    use super::*;

    /// A mesh with an agent, a sender of whom nothing else is left, a claim and a hint.
    async fn mesh() -> MemoryStore {
        let store = MemoryStore::new();
        let value = |text: &str| text.as_bytes().to_vec();
        for (key, text) in [
            ("agents/bob/meta", r#"{"name":"bob"}"#),
            ("agents/bob/heartbeat", r#"{"at":1}"#),
            ("agents/bob/cursor", r#"{"inbox":7,"receipts":7}"#),
            ("reservations/r", r#"{"repository":"/r","reservations":[]}"#),
        ] {
            let key: Key = key.parse().expect("a key");
            store.swap(&key, None, Some(&value(text)), Durability::Synced).await.expect("swapped");
        }
        for (log, entry) in [("global", r#"{"event":"sent","at":1}"#), ("agents/shell/sent", r#"{"id":"x"}"#)] {
            let log: Key = log.parse().expect("a key");
            store.append(&log, &[value(entry)], Expect::Any, Durability::Synced).await.expect("appended");
        }
        for number in 0..1_200 {
            let entry = format!(
                r#"{{"id":"01JD8Z3K5V000000000000{number:04}","at":1,"from":"alice","thread":"t","trace":{{"root":"01JD8Z3K5V0000000000000000","hops":0}}}}"#
            );
            let inbox = keys::inbox(&"bob".parse().expect("a name"));
            store.append(&inbox, &[value(&entry)], Expect::Any, Durability::Synced).await.expect("appended");
        }
        store
    }

    #[tokio::test]
    async fn a_mesh_moves_whole_and_once() {
        let (from, to) = (mesh().await, MemoryStore::new());
        let first = carry(&from, &to, Occupied::Refuse).await.expect("moved");
        assert_eq!(first, Carried { entries: 1_202, values: 3, ..Carried::default() });
        let again = carry(&from, &to, Occupied::Refuse).await.expect("nothing to do");
        assert_eq!(again, Carried { already: 1_205, ..Carried::default() });
        let inbox = keys::inbox(&"bob".parse().expect("a name"));
        assert_eq!(entries(&to, &inbox).await.expect("read"), entries(&from, &inbox).await.expect("read"));
        assert!(to.get(&"agents/bob/cursor".parse().expect("a key")).await.expect("read").is_none());
        assert!(to.get(&"agents/alice/known".parse().expect("a key")).await.expect("read").is_some());
    }

    #[tokio::test]
    async fn a_move_that_broke_off_anywhere_goes_on() {
        let from = mesh().await;
        let whole = MemoryStore::new();
        carry(&from, &whole, Occupied::Refuse).await.expect("moved");
        for nth in 1..=whole.writes() {
            let to = MemoryStore::new();
            to.fail_at(nth, Fault::Tear);
            carry(&from, &to, Occupied::Refuse).await.expect_err("it broke off");
            let left = to.crash(Tail::Lost);
            let here = async |key: &str| left.get(&key.parse().expect("a key")).await.expect("read").is_some();
            let in_order = here("agents/bob/meta").await || !here("agents/bob/heartbeat").await;
            assert!(in_order, "broken off at write {nth}: who an agent is comes before all else of it");
            carry(&from, &left, Occupied::Refuse).await.expect("it went on");
            let inbox = keys::inbox(&"bob".parse().expect("a name"));
            assert_eq!(entries(&left, &inbox).await.expect("read").0.len(), 1_200, "broken off at write {nth}");
        }
    }

    #[tokio::test]
    async fn a_value_that_the_target_has_otherwise_stays_and_one_that_changes_anyway_stops_nothing() {
        for (key, refused) in [("agents/bob/meta", true), ("agents/bob/heartbeat", false)] {
            let (from, to) = (mesh().await, MemoryStore::new());
            let at: Key = key.parse().expect("a key");
            to.swap(&at, None, Some(b"{\"another\":1}"), Durability::Synced).await.expect("swapped");
            let outcome = carry(&from, &to, Occupied::Refuse).await;
            assert_eq!(matches!(outcome, Err(CarryError::Differs(of)) if of == at), refused, "{key}");
            let carried = carry(&from, &to, Occupied::Add).await.expect("added");
            assert_eq!(carried.kept, 1, "{key}");
            let there = to.get(&at).await.expect("read").expect("it stayed");
            assert_eq!(there.bytes, b"{\"another\":1}", "{key}");
        }
    }

    #[tokio::test]
    async fn a_target_that_holds_another_mesh_stays_as_it_is_unless_told() {
        let (from, to) = (mesh().await, MemoryStore::new());
        let inbox = keys::inbox(&"bob".parse().expect("a name"));
        to.append(&inbox, &[b"{\"another\":1}".to_vec()], Expect::Any, Durability::Synced).await.expect("appended");
        let writes = to.writes();
        let refused = carry(&from, &to, Occupied::Refuse).await.expect_err("it is refused");
        assert_eq!(refused.to_string(), "the target holds something else under `agents/bob/inbox`");
        assert_eq!(to.writes(), writes, "nothing was written");
        let carried = carry(&from, &to, Occupied::Add).await.expect("added");
        assert_eq!(carried.entries, 1_202);
        assert_eq!(entries(&to, &inbox).await.expect("read").0.len(), 1_201);
    }
}
