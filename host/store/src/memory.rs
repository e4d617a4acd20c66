//! The store in memory, for tests: the same semantics as the files, and faults on demand.
//!
//! Synced data is kept apart from data that was only written, so that a test can simulate a power loss at any time and
//! check what is left. See [`MemoryStore::crash`].

mod faults;
mod state;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

pub use self::faults::{Fault, Tail};
use self::state::{Change, MemoryState};
use crate::{
    AppendError, Batch, Durability, Expect, Hold, Key, Position, Revision, Store, StoreError, SwapError, Versioned,
    Watch, backend,
};

/// A store in memory. Clones are the same store, as two processes would see it.
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// A std mutex: nothing is awaited while it is held.
    state: Mutex<MemoryState>,
    /// Counts changes, so that watches wake.
    changes: watch::Sender<u64>,
    /// Whether each call yields to other tasks first.
    gives_way: AtomicBool,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// Injects a fault at the nth write from now on, counted from 1. Writes are appends of at least one entry, swaps
    /// that would have happened, and syncs of unsynced data. One fault is pending at a time.
    pub fn fail_at(&self, nth: u64, fault: Fault) {
        self.state().plan(nth, fault);
    }

    /// The number of writes so far. A test runs once to learn this, and then makes each write fail in turn.
    pub fn writes(&self) -> u64 {
        self.state().writes()
    }

    /// The store as a power loss now would leave it: the synced data, and as much of the unsynced data as `tail` says.
    /// This store is unchanged.
    #[must_use]
    pub fn crash(&self, tail: Tail) -> MemoryStore {
        let state = self.state().crashed(tail);
        MemoryStore { shared: Arc::new(Shared { state: Mutex::new(state), ..Shared::default() }) }
    }

    /// From now on every call yields to other tasks first, as a disk or a server would: tasks that a test starts
    /// together then interleave instead of running one after the other.
    pub fn give_way(&self) {
        self.shared.gives_way.store(true, Ordering::Relaxed);
    }

    async fn in_turn(&self) {
        if self.shared.gives_way.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        // Every method leaves the state consistent before anything can panic.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.shared.changes.send_modify(|count| *count += 1);
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn append(
        &self,
        log: &Key,
        entries: &[Vec<u8>],
        expect: Expect,
        durability: Durability,
    ) -> Result<Position, AppendError> {
        for entry in entries {
            backend::check_entry(entry)?;
        }
        self.in_turn().await;
        let appended = self.state().append(log, entries, expect, durability);
        // Reported also after a failure, because some faults write before they fail.
        self.tell();
        appended
    }

    async fn sync(&self, log: &Key, before: Position) -> Result<(), StoreError> {
        self.state().sync(log, before)
    }

    async fn read(&self, log: &Key, from: Position, limit: usize) -> Result<Batch, StoreError> {
        self.in_turn().await;
        Ok(self.state().read(log, from, limit))
    }

    async fn end(&self, log: &Key) -> Result<Position, StoreError> {
        self.in_turn().await;
        Ok(self.state().end(log))
    }

    async fn retire(&self, log: &Key, before: Position) -> Result<usize, StoreError> {
        Ok(self.state().retire(log, before))
    }

    async fn remove(&self, log: &Key) -> Result<(), StoreError> {
        self.state().retire(log, Position(u64::MAX));
        self.tell();
        Ok(())
    }

    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.in_turn().await;
        Ok(self.state().get(key))
    }

    async fn swap(
        &self,
        key: &Key,
        expected: Option<Revision>,
        next: Option<&[u8]>,
        durability: Durability,
    ) -> Result<Option<Revision>, SwapError> {
        if let Some(value) = next {
            backend::check_value(value)?;
        }
        self.in_turn().await;
        let change = Change { expected, next: next.map(<[u8]>::to_vec), durability };
        let swapped = self.state().swap(key, change);
        self.tell();
        swapped
    }

    async fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError> {
        self.in_turn().await;
        Ok(self.state().list(prefix))
    }

    async fn watch(&self, under: &[Key]) -> Result<Box<dyn Watch>, StoreError> {
        let seen = self.state().stamps(under);
        let changes = self.shared.changes.subscribe();
        Ok(Box::new(MemoryWatch { store: self.clone(), under: under.to_vec(), seen, changes }))
    }

    async fn hold(&self, key: &Key) -> Result<Option<Box<dyn Hold>>, StoreError> {
        let taken = self.state().take(key);
        Ok(taken.then(|| Box::new(MemoryHold { store: self.clone(), key: key.clone() }) as Box<dyn Hold>))
    }

    fn file_of(&self, _log: &Key) -> Option<PathBuf> {
        None
    }
}

/// Wakes at each change of the store and compares what it watches.
struct MemoryWatch {
    store: MemoryStore,
    under: Vec<Key>,
    /// For each watched log and value, its count of changes at the last check.
    seen: Vec<(Key, u64)>,
    changes: watch::Receiver<u64>,
}

#[async_trait]
impl Watch for MemoryWatch {
    async fn changed(&mut self) -> Result<(), StoreError> {
        loop {
            // Marked before the check, so that a change after it wakes.
            self.changes.mark_unchanged();
            let now = self.store.state().stamps(&self.under);
            if now != self.seen {
                self.seen = now;
                return Ok(());
            }
            // The sender is in the store, which this watch keeps alive; so this cannot fail.
            if self.changes.changed().await.is_err() {
                return Err(StoreError::Injected("the store is gone"));
            }
        }
    }
}

/// A held key of this store.
struct MemoryHold {
    store: MemoryStore,
    key: Key,
}

impl Hold for MemoryHold {
    fn key(&self) -> &Key {
        &self.key
    }
}

impl Drop for MemoryHold {
    fn drop(&mut self) {
        self.store.state().give_back(&self.key);
    }
}
