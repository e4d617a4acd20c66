//! Migration of a mesh from one store to another: all shared data, in the order in which it was written. Nothing is
//! written twice, so an interrupted migration can be resumed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use store::{AppendError, Durability, Entry, Expect, Key, Position, Store, StoreError, SwapError};

use crate::messages::checkpoint::Cursor;
use crate::messages::inbox::Header;
use crate::names::AgentName;
use crate::storage::{keys, records};

/// How many bytes of a log to read at a time.
const STEP: usize = 1 << 20;
/// How many bytes to append at a time: less than the limit of any server.
const AT_ONCE: usize = 200 * 1024;
/// How many entries to append at a time.
const MOST_AT_ONCE: usize = 500;

/// What to do if the target holds other data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupied {
    /// Write nothing at all.
    Refuse,
    /// Keep the target's data, and add what is missing.
    Add,
}

/// The result of a migration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationReport {
    /// Log entries written.
    pub entries: usize,
    /// Values written.
    pub values: usize,
    /// Entries and values that the target already had.
    pub already: usize,
    /// Values not written because the target has a different one.
    pub kept: usize,
    /// Damaged stretches of the source, which were not migrated.
    pub damaged: usize,
}

/// Why a migration stopped. What was written so far stays, and the same migration resumes from there.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The target belongs to another mesh.
    #[error("the target holds different data under `{0}`")]
    Differs(Key),
    /// Another process writes to the target at the same time.
    #[error("another process writes to `{0}` in the target")]
    Busy(Key),
    /// The source failed.
    #[error("the source could not be read")]
    From(#[source] StoreError),
    /// The target failed.
    #[error("the target could not be read or written")]
    To(#[source] StoreError),
}

/// The keys of all shared data of a mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Values, agents' records first.
    pub values: Vec<Key>,
    /// Logs, in the order in which they must be written: sent messages and receipts before inboxes.
    pub logs: Vec<Key>,
}

/// Lists a store's contents. Leaves out cursors: they are hints, and mean nothing in another store.
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
    // An agent's other values count only once its record exists.
    contents.values.sort_by_key(|key| key.leaf() != "meta");
    contents.logs.push(keys::global());
    for log in [keys::sent, keys::receipts, keys::inbox] {
        contents.logs.extend(names.iter().map(log));
    }
    Ok(contents)
}

/// Some entries of a log from a position on, without what is damaged, and where to read on; none at its end.
pub async fn some_entries(
    store: &dyn Store,
    log: &Key,
    from: Position,
) -> Result<Option<(Vec<Entry>, Position)>, StoreError> {
    let batch = store.read(log, from, STEP).await?;
    let is_done = batch.entries.is_empty() && (batch.at_end || batch.next == from);
    Ok((!is_done).then_some((batch.entries, batch.next)))
}

/// Copies a mesh to another store. Deletes nothing from the source.
pub async fn carry(from: &dyn Store, to: &dyn Store, occupied: Occupied) -> Result<MigrationReport, MigrateError> {
    let contents = contents(from).await.map_err(MigrateError::From)?;
    let mut carried = MigrationReport::default();
    // The common prefix of each log, so that nothing is read twice.
    let mut met: BTreeMap<Key, CommonPrefix> = BTreeMap::new();
    if occupied == Occupied::Refuse {
        for key in &contents.values {
            let (source, target) = both(from, to, key).await?;
            if let (Some(source), Some(target)) = (source, target)
                && !is_fleeting(key)
                && !same(&source, &target)
            {
                return Err(MigrateError::Differs(key.clone()));
            }
        }
        for log in &contents.logs {
            let meeting = meeting(from, to, log).await?;
            if meeting.target_goes_on {
                return Err(MigrateError::Differs(log.clone()));
            }
            met.insert(log.clone(), meeting);
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
        let meeting = match met.remove(log) {
            Some(meeting) => meeting,
            None => meeting(from, to, log).await?,
        };
        carry_on(from, to, log, &meeting, &mut carried).await?;
    }
    Ok(carried)
}

/// The common prefix of two logs.
struct CommonPrefix {
    /// Its end in the source.
    source: Position,
    /// Its end in the target.
    target: Position,
    /// Whether the target has other entries after it.
    target_goes_on: bool,
    /// How many entries it has.
    entries: usize,
    /// Damaged stretches of the source before its end.
    damaged: usize,
}

/// Reads two logs in parallel while their entries are equal.
async fn meeting(from: &dyn Store, to: &dyn Store, log: &Key) -> Result<CommonPrefix, MigrateError> {
    let mut source = Reader::new(from, log, Position::START);
    let mut target = Reader::new(to, log, Position::START);
    let mut meeting = CommonPrefix {
        source: Position::START,
        target: Position::START,
        target_goes_on: false,
        entries: 0,
        damaged: 0,
    };
    while let Some(there) = target.next().await.map_err(MigrateError::To)? {
        match source.next().await.map_err(MigrateError::From)? {
            Some(here) if same(&here.bytes, &there.bytes) => {
                (meeting.source, meeting.target) = (here.next, there.next);
                meeting.entries += 1;
                meeting.damaged = source.passed;
            }
            Some(_) | None => {
                meeting.target_goes_on = true;
                break;
            }
        }
    }
    Ok(meeting)
}

/// Copies the entries of a log after the common prefix, except those that the target has too.
async fn carry_on(
    from: &dyn Store,
    to: &dyn Store,
    log: &Key,
    meeting: &CommonPrefix,
    carried: &mut MigrationReport,
) -> Result<(), MigrateError> {
    // Taken before reading the rest, so that a concurrent append is detected.
    let mut end = to.end(log).await.map_err(MigrateError::To)?;
    let mut there: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut target = Reader::new(to, log, meeting.target);
    while let Some(entry) = target.next().await.map_err(MigrateError::To)? {
        *there.entry(entry.bytes).or_default() += 1;
    }
    let mut source = Reader::new(from, log, meeting.source);
    let mut known = BTreeSet::new();
    let mut missing: Vec<Vec<u8>> = Vec::new();
    let mut bytes = 0;
    carried.already += meeting.entries;
    loop {
        let next = source.next().await.map_err(MigrateError::From)?;
        let is_full = next.as_ref().is_none_or(|next| bytes + next.bytes.len() > AT_ONCE);
        if (is_full || missing.len() == MOST_AT_ONCE) && !missing.is_empty() {
            if log.leaf() == "inbox" {
                introduce(to, &missing, &mut known).await?;
                if missing.len() > 1 {
                    note_to_read(to, log).await?;
                }
            }
            end = append(to, log, &missing, end).await?;
            carried.entries += missing.len();
            missing.clear();
            bytes = 0;
        }
        let Some(next) = next else { break };
        match there.get_mut(&next.bytes) {
            Some(times) if *times > 0 => {
                *times -= 1;
                carried.already += 1;
            }
            Some(_) | None => {
                bytes += next.bytes.len();
                missing.push(next.bytes);
            }
        }
    }
    carried.damaged += meeting.damaged + source.damaged;
    Ok(())
}

/// Reads a log from a position on, in steps.
struct Reader<'a> {
    store: &'a dyn Store,
    log: &'a Key,
    from: Position,
    at_end: bool,
    ahead: VecDeque<Entry>,
    /// Damaged stretches that were read, including those in `ahead`.
    damage: VecDeque<Position>,
    damaged: usize,
    /// Damaged stretches before the last returned entry.
    passed: usize,
}

impl Reader<'_> {
    fn new<'a>(store: &'a dyn Store, log: &'a Key, from: Position) -> Reader<'a> {
        let (ahead, damage) = (VecDeque::new(), VecDeque::new());
        Reader { store, log, from, at_end: false, ahead, damage, damaged: 0, passed: 0 }
    }

    async fn next(&mut self) -> Result<Option<Entry>, StoreError> {
        while self.ahead.is_empty() && !self.at_end {
            let batch = self.store.read(self.log, self.from, STEP).await?;
            self.at_end = batch.at_end || batch.next == self.from;
            self.from = batch.next;
            self.damaged += batch.damage.len();
            self.damage.extend(batch.damage.into_iter().map(|damage| damage.at));
            self.ahead.extend(batch.entries);
        }
        let next = self.ahead.pop_front();
        if let Some(entry) = &next {
            while self.damage.front().is_some_and(|damage| *damage < entry.at) {
                self.damage.pop_front();
                self.passed += 1;
            }
        }
        Ok(next)
    }
}

/// Writes a cursor at the beginning of an inbox that gets several messages by one append: if there is a cursor, readers
/// do not take the number of appends for the number of messages.
async fn note_to_read(to: &dyn Store, inbox: &Key) -> Result<(), MigrateError> {
    let Some(cursor) = owner(inbox).map(|name| keys::cursor(&name)) else { return Ok(()) };
    match to.get(&cursor).await.map_err(MigrateError::To)? {
        Some(_) => Ok(()),
        None => put(to, &cursor, &records::json(&Cursor::default())).await,
    }
}

/// Makes the sender of a message known to the target, even if nothing else is left of that agent: the target accepts
/// only messages of known senders.
async fn introduce(to: &dyn Store, inbox: &[Vec<u8>], known: &mut BTreeSet<AgentName>) -> Result<(), MigrateError> {
    let headers = inbox.iter().filter_map(|entry| serde_json::from_slice::<Header>(entry).ok());
    for sender in headers.map(|header| header.from).filter(|sender| !sender.is_shell()) {
        if !known.insert(sender.clone()) {
            continue;
        }
        let key = keys::known(&sender);
        if to.get(&key).await.map_err(MigrateError::To)?.is_none() {
            put(to, &key, b"{}").await?;
        }
    }
    Ok(())
}

async fn put(to: &dyn Store, key: &Key, value: &[u8]) -> Result<(), MigrateError> {
    match to.swap(key, None, Some(value), Durability::Synced).await {
        Ok(_) => Ok(()),
        Err(SwapError::Changed { .. }) => Err(MigrateError::Busy(key.clone())),
        Err(SwapError::Store(error)) => Err(MigrateError::To(error)),
    }
}

/// Appends to a log if it still ends at `end`. Returns its new end.
async fn append(to: &dyn Store, log: &Key, missing: &[Vec<u8>], end: Position) -> Result<Position, MigrateError> {
    match to.append(log, missing, Expect::End(end), Durability::Synced).await {
        Ok(end) => Ok(end),
        Err(AppendError::Moved) => Err(MigrateError::Busy(log.clone())),
        Err(AppendError::Store(error)) => Err(MigrateError::To(error)),
    }
}

type Value = Option<Vec<u8>>;

async fn both(from: &dyn Store, to: &dyn Store, key: &Key) -> Result<(Value, Value), MigrateError> {
    let source = from.get(key).await.map_err(MigrateError::From)?.map(|value| value.bytes);
    let target = to.get(key).await.map_err(MigrateError::To)?.map(|value| value.bytes);
    Ok((source, target))
}

fn same(one: &[u8], other: &[u8]) -> bool {
    let parsed = |bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    one == other || parsed(one).is_some_and(|value| Some(value) == parsed(other))
}

/// Whether an agent rewrites a value all the time while it lives.
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

    async fn entries(store: &dyn Store, log: &Key) -> Result<(Vec<Vec<u8>>, usize), StoreError> {
        let mut reader = Reader::new(store, log, Position::START);
        let mut entries = Vec::new();
        while let Some(entry) = reader.next().await? {
            entries.push(entry.bytes);
        }
        Ok((entries, reader.damaged))
    }

    /// A mesh with an agent, a sender with no other data, a reservation and a cursor.
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
        assert_eq!(first, MigrationReport { entries: 1_202, values: 3, ..MigrationReport::default() });
        let again = carry(&from, &to, Occupied::Refuse).await.expect("nothing to do");
        assert_eq!(again, MigrationReport { already: 1_205, ..MigrationReport::default() });
        let inbox = keys::inbox(&"bob".parse().expect("a name"));
        assert_eq!(entries(&to, &inbox).await.expect("read"), entries(&from, &inbox).await.expect("read"));
        // The source's cursor means nothing here; the new one starts at the beginning.
        let cursor = to.get(&"agents/bob/cursor".parse().expect("a key")).await.expect("read").expect("a cursor");
        assert_eq!(String::from_utf8_lossy(&cursor.bytes), r#"{"inbox":0,"receipts":0}"#);
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
            assert_eq!(matches!(outcome, Err(MigrateError::Differs(of)) if of == at), refused, "{key}");
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
        assert_eq!(refused.to_string(), "the target holds different data under `agents/bob/inbox`");
        assert_eq!(to.writes(), writes, "nothing was written");
        let carried = carry(&from, &to, Occupied::Add).await.expect("added");
        assert_eq!(carried.entries, 1_202);
        assert_eq!(entries(&to, &inbox).await.expect("read").0.len(), 1_201);
    }

    #[tokio::test]
    async fn a_log_of_many_readings_moves_in_order_and_what_the_target_has_otherwise_is_only_added_to() {
        let log = keys::receipts(&"bob".parse().expect("a name"));
        let entry = |number: usize| format!("{{\"n\":{number},\"text\":\"{}\"}}", "x".repeat(9_000)).into_bytes();
        let numbered: Vec<Vec<u8>> = (0..300).map(entry).collect();
        assert!(numbered.iter().map(Vec::len).sum::<usize>() > 2 * STEP, "it takes several readings");
        let own = b"{\"own\":1}".to_vec();
        // The target's entries, whether they make a migration refuse, and the entries after adding everything.
        for (there, is_refused, then) in [
            (vec![], false, numbered.clone()),
            (numbered[..200].to_vec(), false, numbered.clone()),
            (numbered.clone(), false, numbered.clone()),
            (
                [&numbered[..130], std::slice::from_ref(&own)].concat(),
                true,
                [&numbered[..130], std::slice::from_ref(&own), &numbered[130..]].concat(),
            ),
            (
                [std::slice::from_ref(&own), &numbered[250..], &numbered[250..251]].concat(),
                true,
                [std::slice::from_ref(&own), &numbered[250..], &numbered[250..251], &numbered[..250]].concat(),
            ),
            (
                [numbered.as_slice(), std::slice::from_ref(&own)].concat(),
                true,
                [numbered.as_slice(), std::slice::from_ref(&own)].concat(),
            ),
        ] {
            let case = format!("{} there, refused: {is_refused}", there.len());
            let (from, to) = (mesh().await, MemoryStore::new());
            from.append(&log, &numbered, Expect::Any, Durability::Synced).await.expect("appended");
            to.append(&log, &there, Expect::Any, Durability::Synced).await.expect("appended");
            let (before, writes) = (there.len(), to.writes());
            let outcome = carry(&from, &to, Occupied::Refuse).await;
            assert_eq!(
                matches!(&outcome, Err(MigrateError::Differs(of)) if *of == log),
                is_refused,
                "{case}: {outcome:?}"
            );
            assert_eq!(to.writes() == writes, is_refused, "{case}: either nothing is written, or all of it");
            let carried = match outcome {
                Ok(carried) => carried,
                Err(_) => carry(&from, &to, Occupied::Add).await.expect("added"),
            };
            assert_eq!(carried.entries, 1_202 + then.len() - before, "{case}");
            assert!(entries(&to, &log).await.expect("read").0 == then, "{case}");
            let again = carry(&from, &to, Occupied::Add).await.expect("nothing to do");
            assert_eq!((again.entries, again.already), (0, 1_205 + 300), "{case}");
        }
    }
}
