//! A store that counts what is read of its logs: what grows with the past shows in numbers, on any machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use store::{
    AppendError, Batch, Durability, Entry, Expect, Hold, Key, Position, Revision, Seek, Store, StoreError, SwapError,
    Term, Versioned, Watch,
};

/// A store, with counters.
pub(crate) struct Counted {
    store: Arc<dyn Store>,
    /// Whether it says of itself what its store says.
    is_indexed: bool,
    /// Whether no log ends where an append expects it.
    ends_elsewhere: AtomicBool,
    /// Entries of logs that were handed out.
    entries: AtomicUsize,
    /// Appends, also of several entries.
    appends: AtomicUsize,
    /// Bytes of values that were written.
    values: AtomicUsize,
}

/// What was done with a store.
pub(crate) struct Work {
    /// Entries of logs that were read.
    pub(crate) entries: usize,
    /// Appends, also of several entries.
    pub(crate) appends: usize,
    /// Bytes of values that were written.
    pub(crate) values: usize,
}

impl Counted {
    pub(crate) fn new(store: Arc<dyn Store>) -> Arc<Counted> {
        let is_indexed = store.is_indexed();
        Counted::of(store, is_indexed)
    }

    /// As a server, which answers what an index answers and leaves it open what that costs.
    pub(crate) fn as_server(store: Arc<dyn Store>) -> Arc<Counted> {
        Counted::of(store, false)
    }

    fn of(store: Arc<dyn Store>, is_indexed: bool) -> Arc<Counted> {
        let (entries, appends, values) = Default::default();
        let ends_elsewhere = AtomicBool::new(false);
        Arc::new(Counted { store, is_indexed, ends_elsewhere, entries, appends, values })
    }

    /// From now on, whether no log ends where an append expects it.
    pub(crate) fn end_elsewhere(&self, elsewhere: bool) {
        self.ends_elsewhere.store(elsewhere, Ordering::Relaxed);
    }

    /// What was done since the last call.
    pub(crate) fn take(&self) -> Work {
        let take = |counter: &AtomicUsize| counter.swap(0, Ordering::Relaxed);
        Work { entries: take(&self.entries), appends: take(&self.appends), values: take(&self.values) }
    }

    fn read(&self, entries: &[Entry]) {
        self.entries.fetch_add(entries.len(), Ordering::Relaxed);
    }
}

#[async_trait]
impl Store for Counted {
    async fn append(
        &self,
        log: &Key,
        entries: &[Vec<u8>],
        expect: Expect,
        durability: Durability,
    ) -> Result<Position, AppendError> {
        self.appends.fetch_add(1, Ordering::Relaxed);
        if self.ends_elsewhere.load(Ordering::Relaxed) && expect != Expect::Any {
            return Err(AppendError::Moved);
        }
        self.store.append(log, entries, expect, durability).await
    }

    async fn sync(&self, log: &Key, before: Position) -> Result<(), StoreError> {
        self.store.sync(log, before).await
    }

    async fn read(&self, log: &Key, from: Position, limit: usize) -> Result<Batch, StoreError> {
        let batch = self.store.read(log, from, limit).await?;
        self.read(&batch.entries);
        Ok(batch)
    }

    fn is_indexed(&self) -> bool {
        self.is_indexed
    }

    async fn find(&self, log: &Key, terms: &[Term]) -> Result<Vec<Entry>, StoreError> {
        // Without an index, the default reads the log.
        if !self.store.is_indexed() {
            return store::backend::find_by_reading(self, log, terms).await;
        }
        let found = self.store.find(log, terms).await?;
        self.read(&found);
        Ok(found)
    }

    async fn read_back(&self, log: &Key, before: Position, limit: usize) -> Result<Batch, StoreError> {
        self.store.read_back(log, before, limit).await
    }

    async fn seek(&self, log: &Key, to: Seek<'_>) -> Result<Option<Position>, StoreError> {
        self.store.seek(log, to).await
    }

    async fn lowest_term(&self, log: &Key, from: Position) -> Result<Option<String>, StoreError> {
        self.store.lowest_term(log, from).await
    }

    async fn index(&self, log: &Key) -> Result<(), StoreError> {
        self.store.index(log).await
    }

    async fn end(&self, log: &Key) -> Result<Position, StoreError> {
        self.store.end(log).await
    }

    async fn retire(&self, log: &Key, before: Position) -> Result<usize, StoreError> {
        self.store.retire(log, before).await
    }

    async fn remove(&self, log: &Key) -> Result<(), StoreError> {
        self.store.remove(log).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.store.get(key).await
    }

    async fn swap(
        &self,
        key: &Key,
        expected: Option<Revision>,
        next: Option<&[u8]>,
        durability: Durability,
    ) -> Result<Option<Revision>, SwapError> {
        self.values.fetch_add(next.map_or(0, <[u8]>::len), Ordering::Relaxed);
        self.store.swap(key, expected, next, durability).await
    }

    async fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError> {
        self.store.list(prefix).await
    }

    async fn watch(&self, under: &[Key]) -> Result<Box<dyn Watch>, StoreError> {
        self.store.watch(under).await
    }

    async fn hold(&self, key: &Key) -> Result<Option<Box<dyn Hold>>, StoreError> {
        self.store.hold(key).await
    }

    fn file_of(&self, log: &Key) -> Option<PathBuf> {
        self.store.file_of(log)
    }
}
