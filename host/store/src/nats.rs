//! The store on NATS JetStream, for teams whose agents sit on several machines.
//!
//! Logs lie in the stream `PREFIX_MESSAGES` and values in `KV_PREFIX_MAP`, which is a key-value bucket
//! to every tool of NATS. Both are made when they are first needed, and taken as they are where an
//! operator made them. What was answered is what the server acknowledged: on disk as its own
//! settings say, on a majority of the servers where there are several.
//!
//! Nothing is asked of the server before the first call, so that making a store costs nothing.

mod access;
mod clock;
mod connection;
mod crowds;
mod direct;
mod examining;
mod fitting;
mod holds;
mod homes;
mod login;
mod logs;
mod moving;
mod options;
mod reading;
mod sending;
mod subjects;
mod trouble;
mod values;
mod watching;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

pub use self::access::Access;
pub use self::clock::Timekeeper;
pub use self::examining::{Seen, StreamSeen};
pub use self::fitting::Doubt;
pub use self::homes::{Homes, Part};
pub use self::options::{InvalidName, NatsAuth, NatsOptions};

use self::connection::Connection;
use crate::children::{by_key, hand_on};
use crate::files::{lines, value};
use crate::{
    AppendError, Batch, Durability, Expect, Hold, Key, Leaf, Moved, Moving, Position, Revision, Store, StoreError,
    SwapError, Taker, Versioned, Watch, nothing_to_move,
};

/// A store on a NATS server. Clones share one connection.
#[derive(Clone)]
pub struct NatsStore {
    connection: Arc<Connection>,
}

impl NatsStore {
    /// A store on the servers that the options name. Connects when it is first asked for something.
    pub fn new(options: NatsOptions) -> NatsStore {
        NatsStore { connection: Arc::new(Connection::new(options, None)) }
    }

    /// The same, where somebody knows whose keys are: then no host passes for another.
    pub fn with_homes(options: NatsOptions, homes: Arc<dyn Homes>) -> NatsStore {
        NatsStore { connection: Arc::new(Connection::new(options, Some(homes))) }
    }
}

impl NatsStore {
    /// Looks at the servers, one thing after the other. Makes the streams where they are missing. The
    /// nonce is a word that nothing else contains.
    pub async fn examine(&self, nonce: &str) -> Vec<Seen> {
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
            lines::check_fits(entry)?;
        }
        logs::append(&self.connection, log, entries, expect).await
    }

    async fn sync(&self, log: &Key, _before: Position) -> Result<(), StoreError> {
        // The server keeps what it holds as safe as it ever will; that it answers is what can be known.
        logs::end(&self.connection, log).await.map(drop)
    }

    async fn read(&self, log: &Key, from: Position, limit: usize) -> Result<Batch, StoreError> {
        reading::read(&self.connection, log, from, limit).await
    }

    async fn end(&self, log: &Key) -> Result<Position, StoreError> {
        logs::end(&self.connection, log).await
    }

    async fn retire(&self, log: &Key, before: Position) -> Result<usize, StoreError> {
        logs::retire(&self.connection, log, before).await
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
            value::check_fits(value)?;
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
        let children = match crowds::children(&self.connection, prefix, leaf, beside).await? {
            Some(children) => children,
            None => by_key(self, prefix, leaf, beside).await?,
        };
        hand_on(children, takers);
        Ok(())
    }

    async fn watch(&self, under: &[Key]) -> Result<Box<dyn Watch>, StoreError> {
        watching::watch(&self.connection, under).await
    }

    async fn hold(&self, key: &Key) -> Result<Option<Box<dyn Hold>>, StoreError> {
        holds::take(&self.connection, key).await
    }

    /// The servers let an operator do that alone, where they keep hosts apart. Takes some seconds: every host has to
    /// hear of it.
    async fn move_home(&self, moving: &Moving<'_>) -> Result<Option<Moved>, StoreError> {
        match &self.connection.homes {
            Some(_) => moving::move_home(&self.connection, moving).await,
            None => nothing_to_move(self, moving.home).await,
        }
    }

    fn file_of(&self, _log: &Key) -> Option<PathBuf> {
        None
    }
}
