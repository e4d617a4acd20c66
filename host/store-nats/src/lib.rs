//! The store on NATS JetStream, for teams whose agents run on several machines.
//!
//! Logs are stored in the stream `PREFIX_MESSAGES` and values in `KV_PREFIX_MAP`, which NATS tools see as a key-value
//! bucket. The store creates both at first use, or uses those that an operator created. An operation returns once the
//! server has acknowledged it: on disk as the server's settings say, and on a majority of the servers of a cluster.
//!
//! The store connects at the first call, so creating one costs nothing.

mod access;
mod beginning;
mod catalog;
mod catalog_cleanup;
mod cataloguing;
mod children;
mod clock;
mod connection;
mod direct;
mod errors;
mod examining;
mod finding;
mod holds;
mod login;
mod logs;
mod moving;
mod options;
mod ownership;
mod reading;
mod seeking;
mod sending;
mod sizes;
mod stream_cell;
mod stream_check;
mod subjects;
mod values;
mod watching;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use store::{
    AppendError, Batch, Durability, Entry, Expect, Hold, IndexRule, Key, Leaf, Moved, Moving, Ownership, Position,
    Revision, Seek, Store, StoreError, StoreIdentity, SwapError, Taker, Term, Versioned, Watch, backend,
};

pub use crate::access::Access;
pub use crate::clock::Timekeeper;
pub use crate::examining::{ServerCheck, StreamReport};
pub use crate::options::{InvalidName, NatsAuth, NatsOptions};
pub use crate::sizes::StreamSize;
pub use crate::stream_check::StreamWarning;

use crate::connection::Connection;
/// A store on a NATS server. Clones share one connection.
#[derive(Clone)]
pub struct NatsStore {
    connection: Arc<Connection>,
}

impl NatsStore {
    /// A store on the servers that the options name. Connects at the first call.
    pub fn new(options: NatsOptions) -> NatsStore {
        NatsStore { connection: Arc::new(Connection::new(options, None, None)) }
    }

    /// The same with an ownership rule, so that no machine can impersonate another.
    pub fn with_homes(options: NatsOptions, homes: Arc<dyn Ownership>) -> NatsStore {
        NatsStore { connection: Arc::new(Connection::new(options, Some(homes), None)) }
    }

    /// The same with a rule for what is looked up, so that a lookup does not read a log from its beginning.
    pub fn with_rules(options: NatsOptions, homes: Option<Arc<dyn Ownership>>, rule: Arc<dyn IndexRule>) -> NatsStore {
        NatsStore { connection: Arc::new(Connection::new(options, homes, Some(rule))) }
    }
}

impl NatsStore {
    /// The sizes of the log stream and the value stream.
    pub async fn sizes(&self) -> Result<[StreamSize; 2], StoreError> {
        sizes::sizes(&self.connection).await
    }

    /// Checks the servers step by step, and creates streams that are missing. `nonce` must be a word that no other
    /// entry contains.
    pub async fn examine(&self, nonce: &str) -> Vec<ServerCheck> {
        examining::examine(&self.connection, nonce).await
    }
}

#[async_trait]
impl Store for NatsStore {
    async fn append(
        &self,
        log: &Key,
        entries: &[Vec<u8>],
        expect: Expect,
        _durability: Durability,
    ) -> Result<Position, AppendError> {
        for entry in entries {
            backend::check_entry(entry)?;
        }
        logs::append(&self.connection, log, entries, expect).await
    }

    fn identities(&self) -> Vec<StoreIdentity> {
        self.connection.identities()
    }

    async fn sync(&self, log: &Key, _before: Position) -> Result<(), StoreError> {
        // Acknowledged data is already as safe as the server makes it, so this only checks that it answers.
        logs::end(&self.connection, log).await.map(drop)
    }

    async fn read(&self, log: &Key, from: Position, limit: usize) -> Result<Batch, StoreError> {
        reading::read(&self.connection, log, from, limit).await
    }

    async fn entries_at(&self, log: &Key, at: &[Position]) -> Result<Vec<Entry>, StoreError> {
        reading::entries_at(&self.connection, log, at).await
    }

    async fn find(&self, log: &Key, terms: &[Term]) -> Result<Vec<Entry>, StoreError> {
        finding::find(&self.connection, log, terms).await
    }

    async fn seek(&self, log: &Key, to: Seek<'_>) -> Result<Option<Position>, StoreError> {
        match to {
            Seek::Time(at) => seeking::first_at(&self.connection, log, at).await.map(Some),
            Seek::Term(term) => seeking::first_with(&self.connection, log, term).await,
        }
    }

    async fn lowest_term(&self, log: &Key, from: Position) -> Result<Option<String>, StoreError> {
        seeking::lowest_term(&self.connection, log, from).await
    }

    async fn index(&self, log: &Key) -> Result<(), StoreError> {
        seeking::index(&self.connection, log).await
    }

    async fn is_written_by(&self, log: &Key, before: Position, machine: &str) -> Result<bool, StoreError> {
        reading::is_written_by(&self.connection, log, before, machine).await
    }

    async fn end(&self, log: &Key) -> Result<Position, StoreError> {
        logs::end(&self.connection, log).await
    }

    async fn retire(&self, log: &Key, before: Position) -> Result<usize, StoreError> {
        logs::retire(&self.connection, log, before).await
    }

    async fn read_back(&self, log: &Key, before: Position, limit: usize) -> Result<Batch, StoreError> {
        reading::read_back(&self.connection, log, before, limit).await
    }

    async fn remove(&self, log: &Key) -> Result<(), StoreError> {
        logs::remove(&self.connection, log).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        values::get(&self.connection, key).await
    }

    async fn swap(
        &self,
        key: &Key,
        expected: Option<Revision>,
        next: Option<&[u8]>,
        _durability: Durability,
    ) -> Result<Option<Revision>, SwapError> {
        if let Some(value) = next {
            backend::check_value(value)?;
        }
        values::swap(&self.connection, key, expected, next).await
    }

    async fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError> {
        values::list(&self.connection, prefix).await
    }

    async fn children(
        &self,
        prefix: &Key,
        leaf: &str,
        beside: &[Leaf<'_>],
        takers: [Taker<'_>; 2],
    ) -> Result<(), StoreError> {
        let children = match children::children(&self.connection, prefix, leaf, beside).await? {
            Some(children) => children,
            None => backend::children_by_key(self, prefix, leaf, beside).await?,
        };
        backend::hand_on(children, takers);
        Ok(())
    }

    async fn watch(&self, under: &[Key]) -> Result<Box<dyn Watch>, StoreError> {
        watching::watch(&self.connection, under).await
    }

    async fn hold(&self, key: &Key) -> Result<Option<Box<dyn Hold>>, StoreError> {
        holds::take(&self.connection, key).await
    }

    /// If the servers keep machines apart, only an operator's login may do this. Takes some seconds, until every
    /// machine knows.
    async fn move_home(&self, moving: &Moving<'_>) -> Result<Option<Moved>, StoreError> {
        match &self.connection.homes {
            Some(_) => moving::move_home(&self.connection, moving).await,
            None => backend::nothing_to_move(self, moving.home).await,
        }
    }

    fn file_of(&self, _log: &Key) -> Option<PathBuf> {
        None
    }
}
