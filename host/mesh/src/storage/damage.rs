//! Finds values that are not the records that their keys are for, and takes them away.

use futures::{StreamExt as _, TryStreamExt as _};
use serde::de::DeserializeOwned;
use store::{Durability, Key, Revision, StoreError};

use crate::agents::Agent;
use crate::agents::presence::Heartbeat;
use crate::commands::Command;
use crate::core::Core;
use crate::messages::channel::ChannelName;
use crate::messages::checkpoint::Cursor;
use crate::reservations::ledger::Ledger;
use crate::storage::{keys, records};

/// How many values are read at a time: over a network each takes its way there and back.
const AT_ONCE: usize = 32;

/// A value that cannot be read as its record.
#[derive(Clone, Debug)]
pub struct DamagedRecord {
    pub key: Key,
    /// What is wrong with it.
    pub why: String,
    /// What is there now.
    pub bytes: Vec<u8>,
    revision: Revision,
}

/// The damaged records that all machines of the mesh share. Those that the store itself cannot read are not among them.
pub(crate) async fn damaged_records(core: &Core) -> Result<Vec<DamagedRecord>, StoreError> {
    let mut all = Vec::new();
    for prefix in [keys::agents(), keys::reservations(), keys::commands()] {
        all.extend(core.shared.list(&prefix).await?);
    }
    let looks = all.into_iter().map(|key| look(core, key));
    let found: Vec<Option<DamagedRecord>> = futures::stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

async fn look(core: &Core, key: Key) -> Result<Option<DamagedRecord>, StoreError> {
    let value = match core.shared.get(&key).await {
        Ok(Some(value)) => value,
        Ok(None) | Err(StoreError::Damaged { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let why = fault(&key, &value.bytes);
    Ok(why.map(|why| DamagedRecord { key, why, revision: value.revision, bytes: value.bytes }))
}

/// Why these bytes are not the record that the key is for.
fn fault(key: &Key, bytes: &[u8]) -> Option<String> {
    fn of<T: DeserializeOwned>(key: &Key, bytes: &[u8]) -> Option<String> {
        match records::parse::<T>(key, bytes) {
            Err(StoreError::Damaged { why, .. }) => Some(why),
            Err(error) => Some(error.to_string()),
            Ok(_) => None,
        }
    }
    let segments: Vec<&str> = key.segments().collect();
    match *segments.as_slice() {
        ["agents", _, keys::META] => of::<Agent>(key, bytes),
        ["agents", _, keys::HEARTBEAT] => of::<Heartbeat>(key, bytes),
        ["agents", _, keys::CURSOR] => of::<Cursor>(key, bytes),
        ["agents", _, keys::CHANNELS] => of::<Vec<ChannelName>>(key, bytes),
        ["reservations", ..] => of::<Ledger>(key, bytes),
        ["commands", _] => of::<Command>(key, bytes),
        _ => of::<serde_json::Value>(key, bytes),
    }
}

/// Takes a damaged record away, unless it was changed meanwhile. Another machine's is its own to take away.
pub(crate) async fn remove(core: &Core, record: &DamagedRecord) -> Result<(), StoreError> {
    records::remove_if(core.shared.as_ref(), &record.key, record.revision, Durability::Synced).await.map(drop)
}
