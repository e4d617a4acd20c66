//! The contents of a store in memory, and the operations on it. Positions are counts of entries.

use std::collections::{BTreeMap, BTreeSet};

use super::faults::{Fault, Tail};
use crate::{
    AppendError, Batch, Damage, Durability, Entry, Expect, Key, Position, Revision, StoreError, SwapError, Versioned,
};

/// Entries per segment: few, so that tests soon reach the ends of segments.
const SEGMENT: usize = 4;

/// Everything in a store.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryState {
    logs: BTreeMap<Key, Log>,
    values: BTreeMap<Key, Value>,
    held: BTreeSet<Key>,
    writes: u64,
    /// The write that fails, counted like `writes`, and its fault.
    planned: Option<(u64, Fault)>,
}

#[derive(Clone, Debug, Default)]
struct Log {
    lines: Vec<LogLine>,
    /// Number of lines retired before the first of `lines`.
    retired: usize,
    /// Number of lines on disk, retired ones included.
    synced: usize,
    /// Counts changes, for watches.
    stamp: u64,
}

/// One line of a log.
#[derive(Clone, Debug)]
enum LogLine {
    Whole(Vec<u8>),
    /// The start of an entry whose writer ended half-way.
    Torn(u64),
    /// Whole, and reported as synced by a disk that lied.
    Forgotten(Vec<u8>),
}

/// One value, present or removed.
#[derive(Clone, Debug, Default)]
struct Value {
    /// The highest revision so far. It continues after the key is removed.
    revision: u64,
    bytes: Option<Vec<u8>>,
    /// The state after a power loss.
    durable: (u64, Option<Vec<u8>>),
    stamp: u64,
}

/// A change to one value.
pub(super) struct Change {
    pub(super) expected: Option<Revision>,
    pub(super) next: Option<Vec<u8>>,
    pub(super) durability: Durability,
}

impl MemoryState {
    pub(super) fn plan(&mut self, nth: u64, fault: Fault) {
        self.planned = Some((self.writes + nth, fault));
    }

    pub(super) fn writes(&self) -> u64 {
        self.writes
    }

    /// Counts a write; returns its fault, if one is planned.
    fn count(&mut self) -> Option<Fault> {
        self.writes += 1;
        match self.planned {
            Some((at, fault)) if at == self.writes => {
                self.planned = None;
                Some(fault)
            }
            Some(_) | None => None,
        }
    }

    pub(super) fn append(
        &mut self,
        key: &Key,
        entries: &[Vec<u8>],
        expect: Expect,
        durability: Durability,
    ) -> Result<Position, AppendError> {
        let end = self.end(key);
        let moved = match expect {
            Expect::Any => false,
            Expect::End(seen) => seen != end,
        };
        if moved {
            return Err(AppendError::Moved);
        }
        if entries.is_empty() {
            return Ok(end);
        }
        let fault = self.count();
        if let Some(Fault::Fail) = fault {
            return Err(StoreError::Injected("the append failed").into());
        }
        let log = self.logs.entry(key.clone()).or_default();
        log.stamp += 1;
        // The disk writes an append in order, so everything before is synced too.
        log.lines.extend(entries.iter().cloned().map(LogLine::Whole));
        let failed = match fault {
            Some(Fault::Tear) => {
                if let Some(LogLine::Whole(last)) = log.lines.pop() {
                    log.lines.push(LogLine::Torn(last.len() as u64));
                }
                Some("the process ended half-way through an append")
            }
            Some(Fault::FailToSync) => Some("the append was written and could not be synced"),
            Some(Fault::Forget) => {
                let from = log.lines.len() - entries.len();
                for line in &mut log.lines[from..] {
                    if let LogLine::Whole(bytes) = line {
                        *line = LogLine::Forgotten(std::mem::take(bytes));
                    }
                }
                None
            }
            Some(Fault::Fail) | None => {
                match durability {
                    Durability::Synced => log.synced = log.retired + log.lines.len(),
                    Durability::Process => {}
                }
                None
            }
        };
        match failed {
            Some(reason) => Err(StoreError::Injected(reason).into()),
            None => Ok(log.end()),
        }
    }

    pub(super) fn sync(&mut self, key: &Key, before: Position) -> Result<(), StoreError> {
        let behind = |log: &Log| Position(log.synced as u64) < before.min(log.end());
        if !self.logs.get(key).is_some_and(behind) {
            return Ok(());
        }
        let fault = self.count();
        let Some(log) = self.logs.get_mut(key) else { return Ok(()) };
        match fault {
            Some(Fault::Fail | Fault::FailToSync | Fault::Tear) => Err(StoreError::Injected("the sync failed")),
            // The disk reports success without syncing.
            Some(Fault::Forget) => Ok(()),
            None => {
                log.synced = log.retired + log.lines.len();
                Ok(())
            }
        }
    }

    pub(super) fn read(&self, key: &Key, from: Position, limit: usize) -> Batch {
        let mut batch = Batch { next: from, at_end: true, ..Batch::default() };
        let Some(log) = self.logs.get(key) else { return batch };
        let mut room = limit;
        let start = log.index_of(from);
        batch.next = from.max(log.position(0));
        for (index, line) in log.lines.iter().enumerate().skip(start) {
            let (at, next) = (log.position(index), log.position(index + 1));
            match line {
                LogLine::Whole(bytes) | LogLine::Forgotten(bytes) => {
                    if !batch.entries.is_empty() && bytes.len() > room {
                        batch.at_end = false;
                        break;
                    }
                    room = room.saturating_sub(bytes.len());
                    batch.entries.push(Entry { at, next, bytes: bytes.clone() });
                }
                LogLine::Torn(bytes) => batch.damage.push(Damage { at, bytes: *bytes }),
            }
            batch.next = next;
        }
        batch
    }

    pub(super) fn end(&self, key: &Key) -> Position {
        self.logs.get(key).map_or(Position::START, Log::end)
    }

    pub(super) fn retire(&mut self, key: &Key, before: Position) -> usize {
        let Some(log) = self.logs.get_mut(key) else { return 0 };
        let mut gone = 0;
        while !log.lines.is_empty() {
            let segment = SEGMENT.min(log.lines.len());
            if log.position(segment) > before {
                break;
            }
            log.lines.drain(..segment);
            log.retired += segment;
            log.synced = log.synced.max(log.retired);
            log.stamp += 1;
            gone += 1;
        }
        gone
    }

    pub(super) fn get(&self, key: &Key) -> Option<Versioned> {
        let value = self.values.get(key)?;
        let bytes = value.bytes.clone()?;
        Some(Versioned { revision: Revision(value.revision), bytes })
    }

    pub(super) fn swap(&mut self, key: &Key, change: Change) -> Result<Option<Revision>, SwapError> {
        let current = self.get(key).map(|value| value.revision);
        if current != change.expected {
            return Err(SwapError::Changed { current });
        }
        if current.is_none() && change.next.is_none() {
            return Ok(None);
        }
        let fault = self.count();
        if let Some(Fault::Fail | Fault::Tear) = fault {
            return Err(StoreError::Injected("the swap failed").into());
        }
        let value = self.values.entry(key.clone()).or_default();
        value.stamp += 1;
        if change.next.is_some() {
            value.revision += 1;
        }
        value.bytes = change.next;
        match (fault, change.durability) {
            (Some(Fault::FailToSync), _) => {
                return Err(StoreError::Injected("the swap was written and could not be synced").into());
            }
            (None, Durability::Synced) => value.durable = (value.revision, value.bytes.clone()),
            (None, Durability::Process) | (Some(Fault::Forget | Fault::Fail | Fault::Tear), _) => {}
        }
        Ok(value.bytes.is_some().then_some(Revision(value.revision)))
    }

    pub(super) fn list(&self, prefix: &Key) -> Vec<Key> {
        let present = self.values.iter().filter(|(_, value)| value.bytes.is_some());
        present.map(|(key, _)| key).filter(|key| key.is_under(prefix)).cloned().collect()
    }

    /// The change counts of everything under some keys.
    pub(super) fn stamps(&self, under: &[Key]) -> Vec<(Key, u64)> {
        let logs = self.logs.iter().map(|(key, log)| (key, log.stamp));
        let values = self.values.iter().map(|(key, value)| (key, value.stamp));
        let watched = logs.chain(values).filter(|(key, _)| under.iter().any(|prefix| key.is_under(prefix)));
        watched.map(|(key, stamp)| (key.clone(), stamp)).collect()
    }

    pub(super) fn take(&mut self, key: &Key) -> bool {
        self.held.insert(key.clone())
    }

    pub(super) fn give_back(&mut self, key: &Key) {
        self.held.remove(key);
    }

    /// The state after a power loss.
    pub(super) fn crashed(&self, tail: Tail) -> MemoryState {
        let mut left = MemoryState::default();
        for (key, log) in &self.logs {
            left.logs.insert(key.clone(), log.crashed(tail));
        }
        for (key, value) in &self.values {
            let (revision, bytes) = match tail {
                Tail::Kept => (value.revision, value.bytes.clone()),
                // A value is replaced as a whole, so it is never torn.
                Tail::Lost | Tail::Torn => value.durable.clone(),
            };
            let durable = (revision, bytes.clone());
            left.values.insert(key.clone(), Value { revision, bytes, durable, stamp: 0 });
        }
        left
    }
}

impl Log {
    fn position(&self, index: usize) -> Position {
        Position((self.retired + index) as u64)
    }

    fn index_of(&self, position: Position) -> usize {
        usize::try_from(position.0).unwrap_or(usize::MAX).saturating_sub(self.retired)
    }

    fn end(&self) -> Position {
        self.position(self.lines.len())
    }

    fn crashed(&self, tail: Tail) -> Log {
        let synced = self.synced.saturating_sub(self.retired).min(self.lines.len());
        let mut lines: Vec<LogLine> = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let last = index + 1 == self.lines.len();
            let unsynced = index >= synced;
            match (line, tail) {
                (LogLine::Forgotten(_), Tail::Lost | Tail::Torn) => {}
                (LogLine::Whole(_) | LogLine::Torn(_), Tail::Lost) if unsynced => {}
                (LogLine::Whole(bytes), Tail::Torn) if unsynced && last => {
                    lines.push(LogLine::Torn(bytes.len() as u64))
                }
                (LogLine::Whole(_) | LogLine::Torn(_), Tail::Lost | Tail::Torn) | (_, Tail::Kept) => {
                    lines.push(line.clone())
                }
            }
        }
        Log { retired: self.retired, synced: self.retired + lines.len(), lines, stamp: 0 }
    }
}
