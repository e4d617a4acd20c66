//! The store as plain files that `cat` and `jq` can read, shared by any number of processes without a daemon.
//!
//! The log `agents/bob/inbox` is `agents/bob/inbox.jsonl`, one entry per line; older segments are `inbox.jsonl.0`,
//! `inbox.jsonl.1` and so on. The value `agents/bob/meta` is `agents/bob/meta.json`, with its revision inside. Names
//! that start with a dot are the store's own: locks, which the store never removes (retention may, with the lock taken),
//! marks, and the indexes of sealed segments.

mod children;
mod commit;
mod disk;
mod executor;
mod hold;
mod hub;
mod index;
mod indexing;
mod layout;
mod lines;
mod locked;
mod log;
mod lookup;
mod mark;
mod measuring;
mod polling;
mod reading;
mod recent;
mod segments;
mod shared;
mod value;
mod watch;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

pub use self::disk::{Disk, RealDisk};
pub use self::hold::is_held;
use self::layout::{LogPaths, ValuePaths, value_path};
use self::log::Log;
pub use self::measuring::{SegmentsBefore, segments_before};
use self::recent::Recent;
use self::shared::Shared;
pub use self::watch::Watching;
pub use crate::unix::has_name;
use crate::{
    AppendError, Batch, Durability, Entry, Expect, Hold, IndexRule, Key, Leaf, Position, Revision, Seek, Store,
    StoreError, SwapError, Taker, Term, Versioned, Watch, backend,
};

/// Options of a files store.
#[derive(Clone)]
pub struct FilesOptions {
    /// The highest durability of any call. With [`Durability::Process`] nothing is synced, whatever a call requests;
    /// with [`Durability::Synced`] each call gets the durability that it requests.
    pub durability: Durability,
    /// The length in bytes at which a new segment of a log begins. A log of small entries that must keep its file stays
    /// far below it.
    pub rotate_at: u64,
    /// Which entries are found without reading the log. Without a rule, every lookup reads it.
    pub rule: Option<Arc<dyn IndexRule>>,
    /// How changes are noticed.
    pub watching: Watching,
}

impl Default for FilesOptions {
    fn default() -> FilesOptions {
        FilesOptions { durability: Durability::Synced, rotate_at: 1 << 20, rule: None, watching: Watching::Notified }
    }
}

/// The number of logs whose files stay open between calls. Each has up to four.
const LOGS_KEPT_OPEN: usize = 100;

/// A store in a folder.
pub struct FilesStore {
    shared: Arc<Shared>,
    watching: Watching,
    /// Logs whose files are open, with the lookup count of their last use. A std mutex: nothing is awaited while it is
    /// held.
    logs: Mutex<OpenLogs>,
    recent: Recent,
}

#[derive(Default)]
struct OpenLogs {
    by_key: HashMap<Key, (u64, Arc<Log>)>,
    lookups: u64,
}

impl FilesStore {
    /// Opens a store, creating its folder if it is missing. Reads nothing in it.
    pub fn open(folder: impl Into<PathBuf>, options: FilesOptions) -> Result<FilesStore, StoreError> {
        FilesStore::open_on(Arc::new(RealDisk), folder, options)
    }

    /// Opens a store on the caller's own [`Disk`].
    pub fn open_on(
        disk: Arc<dyn Disk>,
        folder: impl Into<PathBuf>,
        options: FilesOptions,
    ) -> Result<FilesStore, StoreError> {
        let folder = folder.into();
        let root = std::path::absolute(&folder).map_err(StoreError::io("could not open the store in", &folder))?;
        disk::open_root(&*disk, &root).map_err(StoreError::io("could not open the store in", &root))?;
        let rotate_at = options.rotate_at.min(layout::LONGEST_SEGMENT);
        let FilesOptions { durability, rule, watching, rotate_at: _ } = options;
        let shared = Arc::new(Shared { root, disk, durability, rotate_at, rule, named: Mutex::default() });
        Ok(FilesStore { shared, watching, logs: Mutex::default(), recent: Recent::default() })
    }

    /// The folder, as an absolute path.
    pub fn folder(&self) -> &Path {
        &self.shared.root
    }

    /// The log of a key, with its files still open if they were used lately.
    fn log(&self, key: &Key) -> Arc<Log> {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.lookups += 1;
        let lookups = logs.lookups;
        if let Some((used, log)) = logs.by_key.get_mut(key) {
            *used = lookups;
            return Arc::clone(log);
        }
        if logs.by_key.len() >= LOGS_KEPT_OPEN {
            // A log in use must stay: a second set of its files in this process would lock it out.
            let idle = logs.by_key.iter().filter(|(_, (_, log))| Arc::strong_count(log) == 1);
            if let Some(oldest) = idle.min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone()) {
                logs.by_key.remove(&oldest);
            }
        }
        let log = Arc::new(Log::new(Arc::clone(&self.shared), key));
        logs.by_key.insert(key.clone(), (lookups, Arc::clone(&log)));
        log
    }

    fn effective(&self, asked: Durability) -> Durability {
        match self.shared.durability {
            Durability::Process => Durability::Process,
            Durability::Synced => asked,
        }
    }
}

#[async_trait]
impl Store for FilesStore {
    async fn append(
        &self,
        log: &Key,
        entries: &[Vec<u8>],
        expect: Expect,
        durability: Durability,
    ) -> Result<Position, AppendError> {
        self.log(log).append(entries, expect, self.effective(durability)).await
    }

    async fn sync(&self, log: &Key, before: Position) -> Result<(), StoreError> {
        match self.shared.durability {
            Durability::Synced => self.log(log).sync(before).await,
            Durability::Process => Ok(()),
        }
    }

    async fn read(&self, log: &Key, from: Position, limit: usize) -> Result<Batch, StoreError> {
        self.log(log).read(from, limit).await
    }

    fn is_indexed(&self) -> bool {
        self.shared.rule.is_some()
    }

    async fn find(&self, log: &Key, terms: &[Term]) -> Result<Vec<Entry>, StoreError> {
        self.log(log).find(terms).await
    }

    async fn read_back(&self, log: &Key, before: Position, limit: usize) -> Result<Batch, StoreError> {
        self.log(log).read_back(before, limit).await
    }

    async fn seek(&self, log: &Key, to: Seek<'_>) -> Result<Option<Position>, StoreError> {
        self.log(log).seek(to).await
    }

    async fn lowest_term(&self, log: &Key, from: Position) -> Result<Option<String>, StoreError> {
        self.log(log).lowest_term(from).await
    }

    async fn end(&self, log: &Key) -> Result<Position, StoreError> {
        self.log(log).end().await
    }

    async fn retire(&self, log: &Key, before: Position) -> Result<usize, StoreError> {
        self.log(log).retire(before).await
    }

    async fn remove(&self, log: &Key) -> Result<(), StoreError> {
        self.log(log).remove().await
    }

    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        value::get_recent(&self.recent, &value_path(&self.shared.root, key))
    }

    fn place(&self, key: &Key) -> String {
        value_path(&self.shared.root, key).display().to_string()
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
        let paths = ValuePaths::of(&self.shared.root, key);
        let change = value::Swap { paths, expected, next, durability: self.effective(durability) };
        value::swap_alone(&self.shared, &change)
    }

    async fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError> {
        value::list(&self.shared.root, prefix)
    }

    async fn children(
        &self,
        prefix: &Key,
        leaf: &str,
        beside: &[Leaf<'_>],
        takers: [Taker<'_>; 2],
    ) -> Result<(), StoreError> {
        executor::may_block(|| children::look(&self.shared, prefix, leaf, beside, takers))
    }

    async fn watch(&self, under: &[Key]) -> Result<Box<dyn Watch>, StoreError> {
        Ok(watch::watch(&self.shared.root, under, self.watching))
    }

    async fn hold(&self, key: &Key) -> Result<Option<Box<dyn Hold>>, StoreError> {
        hold::take(&self.shared, key)
    }

    fn file_of(&self, log: &Key) -> Option<PathBuf> {
        Some(LogPaths::of(&self.shared.root, log).active)
    }
}
