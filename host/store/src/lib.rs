//! The narrow waist of relay-mesh: a log, a map and a hold, over bytes and keys.
//!
//! Everything that the mesh means is written once, above this crate, in terms of the [`Store`]
//! trait. A backend knows nothing of agents or messages; it keeps bytes in order, keeps values
//! by revision, and says when something may have changed. [`files::FilesStore`] is the backend
//! that people run; [`memory::MemoryStore`] is the one that tests run.

pub mod backend;
mod children;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod error;
pub mod files;
mod key;
pub mod memory;
mod ownership;
mod reasons;

use std::path::PathBuf;

use async_trait::async_trait;

pub use children::{Beside, Child, Leaf, Taker};
pub use error::{AppendError, ServerTrouble, StoreError, SwapError};
pub use key::{InvalidKey, Key};
pub use ownership::{Homes, Part};
pub use reasons::{causes, reasons};

/// The old path of two names, until their callers have moved.
pub mod nats {
    pub use crate::ownership::{Homes, Part};
}

/// A place in a log, between two entries. Positions of one log are ordered; their numbers mean
/// nothing else, and differ between backends.
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

/// When an append or a swap is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After the bytes are on disk: what was answered survives a loss of power.
    Synced,
    /// After the operating system has the bytes: what was answered survives the process alone.
    Process,
}

/// What must hold of a log for an append to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Append in any case.
    Any,
    /// Append only if nothing was appended after this position. This is how a decision that was
    /// made from a log's entries (a claim, an idempotency check) is written back without a lock.
    End(Position),
}

/// One entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where the entry starts.
    pub at: Position,
    /// Where the entry ends; reading from here gives the next one.
    pub next: Position,
    /// What was appended, without the backend's framing.
    pub bytes: Vec<u8>,
}

/// What one read of a log gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Entries in the order in which they were appended.
    pub entries: Vec<Entry>,
    /// Where the next read should start. Equals the position asked for when nothing was there, but
    /// for a position before retired entries: then it is past them.
    pub next: Position,
    /// Whether `next` was the log's end when it was read.
    pub at_end: bool,
    /// Damaged stretches that were passed over. Each costs itself alone.
    pub damage: Vec<Damage>,
}

/// A stretch of a log that is not an entry: a torn line, foreign bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where the stretch starts.
    pub at: Position,
    /// How many bytes it spans.
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

/// Exclusive possession of a key, until it is dropped or the process ends, however it ends.
pub trait Hold: Send + Sync {
    /// The key that is held.
    fn key(&self) -> &Key;
}

/// Says when something under the watched keys may have changed.
#[async_trait]
pub trait Watch: Send {
    /// Returns after a change that happened since the watch was made or since the last return.
    /// May return without a change; never misses one. Cancelling it loses nothing.
    async fn changed(&mut self) -> Result<(), StoreError>;
}

/// A home that is to become this host's: what lies under one key, in a store that keeps hosts apart.
#[derive(Clone, Copy, Debug)]
pub struct Moving<'a> {
    /// The home.
    pub home: &'a Key,
    /// Values in it that mean nothing elsewhere.
    pub left: &'a [Key],
    /// The log by whose end a host decides what it may do.
    pub decides: &'a Key,
    /// An entry for that log which changes nothing but where it ends.
    pub fence: &'a [u8],
}

/// What came of a move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// The host that had the home. None where it is this one's already, or the store keeps no hosts apart.
    pub from: Option<String>,
    /// Entries of logs that were written once more.
    pub entries: usize,
    /// Values that were.
    pub values: usize,
}

/// A log, a map and a hold. Any number of processes may use one store at once.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Appends entries, one after the other with nothing in between, creating the log if need be.
    /// Gives the position after the last. Entries are JSON text without line breaks.
    async fn append(
        &self,
        log: &Key,
        entries: &[Vec<u8>],
        expect: Expect,
        durability: Durability,
    ) -> Result<Position, AppendError>;

    /// Waits until everything before a position is on disk, whoever appended it and with whatever
    /// durability: for an answer that rests on an entry whose own append may have failed. Fails for as
    /// long as that cannot be known.
    async fn sync(&self, log: &Key, before: Position) -> Result<(), StoreError>;

    /// Reads entries from a position on, at least one where there is one, up to about `limit`
    /// bytes. A position before retired segments reads from the first entry that is kept; an
    /// absent log reads as empty.
    async fn read(&self, log: &Key, from: Position, limit: usize) -> Result<Batch, StoreError>;

    /// The position after the last entry; [`Position::START`] of a log that never was.
    async fn end(&self, log: &Key) -> Result<Position, StoreError>;

    /// Drops whole segments that end at or before a position. Gives their number.
    async fn retire(&self, log: &Key, before: Position) -> Result<usize, StoreError>;

    /// Removes a log and everything in it.
    async fn remove(&self, log: &Key) -> Result<(), StoreError>;

    /// The value of a key, as stored. Whether it is valid JSON shows only when the caller parses it.
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError>;

    /// Where a value lies, in words for people.
    fn place(&self, key: &Key) -> String {
        key.to_string()
    }

    /// Sets a key to `next` (removes it if `next` is none) if it still is at `expected` (absent if that is none). Gives
    /// the new revision; none if the key was removed.
    async fn swap(
        &self,
        key: &Key,
        expected: Option<Revision>,
        next: Option<&[u8]>,
        durability: Durability,
    ) -> Result<Option<Revision>, SwapError>;

    /// The keys of the map that lie under a prefix, at any depth, in order.
    async fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError>;

    /// The keys one segment below a prefix that have a value `leaf` below them, in order, each with that
    /// value and with what a glance shows of other leaves of theirs: `agents/*/meta`, and beside each whether
    /// there is an inbox. For whoever wants to see a crowd: what a store can find out in one go costs a
    /// fraction of asking for one key after the other.
    ///
    /// There are two takers because a store may have two threads look, and then the work of both is shared as
    /// well. What the first one takes comes before what the second one takes; it may be all of them. Where this
    /// fails, some may have been taken.
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

    /// Takes a key exclusively; none while it is held. Does not wait.
    async fn hold(&self, key: &Key) -> Result<Option<Box<dyn Hold>>, StoreError>;

    /// Moves a home to this host, with everything that counts in it, from the host that has it. None if there is
    /// nothing. An interrupted move goes on if it is repeated. A store without hosts has nothing to move.
    async fn move_home(&self, moving: &Moving<'_>) -> Result<Option<Moved>, StoreError> {
        backend::nothing_to_move(self, moving.home).await
    }

    /// The file that grows when a log is appended to, if this store has files.
    fn file_of(&self, log: &Key) -> Option<PathBuf>;
}
