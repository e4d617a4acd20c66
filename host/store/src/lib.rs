//! The narrow waist of relay-mesh: a log, a map and a hold, over bytes and keys.
//!
//! The mesh's meaning is written once, above this crate, in terms of the [`Store`] trait. A backend knows nothing of
//! agents or messages; it keeps bytes in order, keeps values by revision, and reports when something may have changed.
//! [`files::FilesStore`] is the default backend of users; [`memory::MemoryStore`] is for tests.

pub mod backend;
mod children;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod error;
pub mod files;
mod index;
mod key;
pub mod memory;
mod ownership;
mod private;
mod reasons;
mod unix;

use std::path::PathBuf;

use async_trait::async_trait;

pub use children::{Child, ChildLeaf, Leaf, Taker};
pub use error::{AppendError, ServerTrouble, StoreError, SwapError};
pub use index::{IndexRule, Indexed, Seek, Term, TermOrder};
pub use key::{InvalidKey, Key};
pub use ownership::{MachinePart, Ownership};
pub use private::{create_private_file, make_private_folder};
pub use reasons::{causes, reasons};

/// A place in a log, between two entries. Positions of one log are ordered; their numbers mean nothing else, and differ
/// between backends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Position(pub u64);

impl Position {
    /// Before the first entry that any log ever held.
    pub const START: Position = Position(0);
}

/// The version of a map's value. Grows with each swap of a key, and is never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Revision(pub u64);

/// When an append or a swap returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After the bytes are on disk: the change survives a power loss.
    Synced,
    /// After the operating system has the bytes: the change survives only the process.
    Process,
}

/// The condition for an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No condition.
    Any,
    /// Append only if nothing was appended after this position. This is how a decision made from a log's entries (a
    /// reservation, an idempotency check) is written back without a lock.
    End(Position),
}

/// One entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where the entry starts.
    pub at: Position,
    /// Where the entry ends; reading from here gives the next one.
    pub next: Position,
    /// The appended bytes, without the backend's framing.
    pub bytes: Vec<u8>,
}

/// The result of one read of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Entries in the order in which they were appended.
    pub entries: Vec<Entry>,
    /// Where the next read should start. Equals the requested position if there was nothing to read, except for a
    /// position before retired entries: then it is past them.
    pub next: Position,
    /// Whether `next` was the log's end when it was read.
    pub at_end: bool,
    /// Damaged parts that were skipped. They do not affect other entries.
    pub damage: Vec<Damage>,
}

/// A part of a log that is not an entry: a torn line, foreign bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it starts.
    pub at: Position,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A map's value and its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// Grows with each swap.
    pub revision: Revision,
    /// The value: JSON text.
    pub bytes: Vec<u8>,
}

/// Exclusive possession of a key, until this is dropped or the process ends, however it ends.
pub trait Hold: Send + Sync {
    /// The held key.
    fn key(&self) -> &Key;
}

/// Reports when something under the watched keys may have changed.
#[async_trait]
pub trait Watch: Send {
    /// Returns after a change that happened since the watch was made or since the last return.
    /// May return without a change; never misses one. Cancelling it loses nothing.
    async fn changed(&mut self) -> Result<(), StoreError>;
}

/// A home to move to this machine: everything under one key, in a store that keeps machines apart.
#[derive(Clone, Copy, Debug)]
pub struct Moving<'a> {
    /// The key of the home.
    pub home: &'a Key,
    /// Values in it that are meaningless on another machine, and are not moved.
    pub left: &'a [Key],
    /// The log from whose end a machine decides what it may do.
    pub decides: &'a Key,
    /// An entry for that log with no effect but to move its end.
    pub fence: &'a [u8],
}

/// A part of a store that could come back empty, or as another one, while its name stays the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreIdentity {
    /// Where it is: servers and stream.
    pub place: String,
    /// When it was made there, in milliseconds since 1970. A store that is made anew has another time.
    pub made: u64,
}

/// The result of a move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// The machine that had the home. None if this machine has it already, or the store does not keep machines apart.
    pub from: Option<String>,
    /// Number of copied log entries.
    pub entries: usize,
    /// Number of copied values.
    pub values: usize,
}

/// A log, a map and a hold. Any number of processes may use one store at once.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Appends entries contiguously, creating the log if necessary. Returns the position after the last. Entries are
    /// JSON text without line breaks.
    async fn append(
        &self,
        log: &Key,
        entries: &[Vec<u8>],
        expect: Expect,
        durability: Durability,
    ) -> Result<Position, AppendError>;

    /// Waits until everything before a position is on disk, whichever process appended it and with whatever durability:
    /// for an answer based on an entry whose own append may have failed. Fails as long as that cannot be known.
    async fn sync(&self, log: &Key, before: Position) -> Result<(), StoreError>;

    /// Reads entries from a position on, at least one if there is one, up to about `limit` bytes. A position before
    /// retired segments reads from the first kept entry; an absent log reads as empty.
    async fn read(&self, log: &Key, from: Position, limit: usize) -> Result<Batch, StoreError>;

    /// The entries at these positions, in the order of the log. One that is gone or damaged is left out.
    async fn entries_at(&self, log: &Key, at: &[Position]) -> Result<Vec<Entry>, StoreError> {
        backend::entries_one_by_one(self, log, at).await
    }

    /// The identities of what this process has opened. Empty for a store that is a folder: what remembers it is in it.
    fn identities(&self) -> Vec<StoreIdentity> {
        Vec::new()
    }

    /// Whether lookups cost the same however long the log is. Without an index each reads the whole log.
    fn is_indexed(&self) -> bool {
        false
    }

    /// The entries that have one of these terms, in the order of the log. Entries that only contain a term's text may be
    /// among them.
    async fn find(&self, log: &Key, terms: &[Term]) -> Result<Vec<Entry>, StoreError> {
        backend::find_by_reading(self, log, terms).await
    }

    /// Reads the last entries that end at or before a position, at least one if there is one, up to about `limit` bytes,
    /// in the order of the log. `next` is where the next read back should end; `at_end` says that nothing precedes it.
    async fn read_back(&self, log: &Key, before: Position, limit: usize) -> Result<Batch, StoreError> {
        backend::read_back_by_reading(self, log, before, limit).await
    }

    /// A position before which no entry is what is sought; none if this store cannot tell without reading the log.
    async fn seek(&self, log: &Key, to: Seek<'_>) -> Result<Option<Position>, StoreError> {
        let _ = (log, to);
        Ok(None)
    }

    /// A text that is not above any growing term of the entries from a position on; none if there is none, or if this
    /// store cannot tell. It may also be that of entries shortly before the position.
    async fn lowest_term(&self, log: &Key, from: Position) -> Result<Option<String>, StoreError> {
        let _ = (log, from);
        Ok(None)
    }

    /// Brings up to date what lookups in a log need, for the daily cleanup. A store that does so as it writes has nothing
    /// to do.
    async fn index(&self, log: &Key) -> Result<(), StoreError> {
        let _ = log;
        Ok(())
    }

    /// Whether this machine wrote the entry that ends at a position; not if it is gone. A store that does not keep machines
    /// apart takes every entry for this one's.
    async fn is_written_by(&self, log: &Key, before: Position, machine: &str) -> Result<bool, StoreError> {
        let _ = (log, before, machine);
        Ok(true)
    }

    /// The position after the last entry; [`Position::START`] if the log never existed.
    async fn end(&self, log: &Key) -> Result<Position, StoreError>;

    /// Deletes whole segments that end at or before a position. Returns their number.
    async fn retire(&self, log: &Key, before: Position) -> Result<usize, StoreError>;

    /// Removes a log and everything in it.
    async fn remove(&self, log: &Key) -> Result<(), StoreError>;

    /// The value of a key, as stored. Only parsing it tells whether it is valid JSON.
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError>;

    /// Where a value is stored, for display.
    fn place(&self, key: &Key) -> String {
        key.to_string()
    }

    /// Sets a key to `next` (removes it if `next` is none) if it still is at `expected` (absent if that is none).
    /// Returns the new revision; none if the key was removed.
    async fn swap(
        &self,
        key: &Key,
        expected: Option<Revision>,
        next: Option<&[u8]>,
        durability: Durability,
    ) -> Result<Option<Revision>, SwapError>;

    /// The keys of the map under a prefix, at any depth, in order.
    async fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError>;

    /// The keys one segment below a prefix that have a value `leaf` below them, in order, each with that value and with
    /// what is cheaply known of other leaves: `agents/*/meta`, and for each whether there is an inbox. For callers that
    /// need all of them: one bulk read costs a fraction of one read per key.
    ///
    /// There are two takers because a store may use two threads, which then share the callers' work as well. The
    /// children of the first taker precede those of the second; the first may get all of them. If this fails, some
    /// children may already have been passed on.
    async fn children(
        &self,
        prefix: &Key,
        leaf: &str,
        beside: &[Leaf<'_>],
        takers: [Taker<'_>; 2],
    ) -> Result<(), StoreError> {
        backend::children_by_key(self, prefix, leaf, beside).await.map(|children| backend::hand_on(children, takers))
    }

    /// Watches logs and values at or under these keys, from now on.
    async fn watch(&self, under: &[Key]) -> Result<Box<dyn Watch>, StoreError>;

    /// Takes a key exclusively; none while another holder has it. Does not wait.
    async fn hold(&self, key: &Key) -> Result<Option<Box<dyn Hold>>, StoreError>;

    /// Moves a home and its data to this machine, from the machine that has it. None if there is nothing. Calling it
    /// again continues an interrupted move. A store that does not keep machines apart has nothing to move.
    async fn move_home(&self, moving: &Moving<'_>) -> Result<Option<Moved>, StoreError> {
        backend::nothing_to_move(self, moving.home).await
    }

    /// The file that grows when a log is appended to, if this store has files.
    fn file_of(&self, log: &Key) -> Option<PathBuf>;
}
