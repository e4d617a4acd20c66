//! Small durable values, private to one adapter, in this machine's own store under `adapters/NAME/state/KEY`. They are
//! never in the store that machines share.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use store::{Durability, Key, Revision, StoreError, SwapError};

use super::rates::Use;
use super::{HostResult, failed, within};
use crate::bindings::relay::adapter::state::Host;
use crate::bindings::relay::adapter::types::Error;
use crate::guest::{Guest, HostSide};

/// The longest key, in bytes.
const LONGEST_KEY: usize = 128;
/// The longest value, in bytes.
const LONGEST_VALUE: usize = 64 * 1024;
/// The most keys of one adapter.
const MOST_KEYS: usize = 256;
/// The longest wait for the store.
const PATIENCE: Duration = Duration::from_secs(5);

/// A value as it is stored: values of the store are JSON.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StateValue {
    /// Bytes that are text, kept readable.
    Text(String),
    /// Any other bytes.
    Base64(String),
}

impl Host for Guest {
    async fn get(&mut self, key: String) -> wasmtime::Result<HostResult<Option<Vec<u8>>>> {
        let host_side = &self.host_side;
        Ok(within(PATIENCE, "the store", async { Ok(read(host_side, &key).await?.map(|(_, bytes)| bytes)) }).await)
    }

    async fn swap(
        &mut self,
        key: String,
        expected: Option<Vec<u8>>,
        next: Option<Vec<u8>>,
    ) -> wasmtime::Result<HostResult<bool>> {
        if let Err(error) = self.spend(Use::Note) {
            return Ok(Err(error));
        }
        let host_side = &self.host_side;
        Ok(within(PATIENCE, "the store", swap(host_side, &key, expected, next)).await)
    }

    async fn keys(&mut self, prefix: String) -> wasmtime::Result<HostResult<Vec<String>>> {
        let host_side = &self.host_side;
        let listed = within(PATIENCE, "the store", async {
            host_side.grants.state()?;
            list(host_side).await
        });
        Ok(listed.await.map(|keys| keys.into_iter().filter(|key| key.starts_with(&prefix)).collect()))
    }
}

/// The key above everything that the store holds for an adapter.
pub(crate) fn home_of(adapter: &str) -> Result<Key, Error> {
    Ok(all_homes()?.child(adapter))
}

/// The key above everything that the store holds for adapters.
pub(crate) fn all_homes() -> Result<Key, Error> {
    "adapters".parse().map_err(failed)
}

fn key_of(host_side: &HostSide, key: &str) -> HostResult<Key> {
    host_side.grants.state()?;
    if key.is_empty() || key.len() > LONGEST_KEY {
        return Err(failed(format!("a key has 1 to {LONGEST_KEY} bytes, and this one has {}", key.len())));
    }
    Ok(home_of(&host_side.name)?.child("state").child(key))
}

async fn read(host_side: &HostSide, key: &str) -> HostResult<Option<(Revision, Vec<u8>)>> {
    let Some(versioned) = host_side.store.get(&key_of(host_side, key)?).await.map_err(told)? else {
        return Ok(None);
    };
    let bytes = match serde_json::from_slice(&versioned.bytes) {
        Ok(StateValue::Text(text)) => text.into_bytes(),
        Ok(StateValue::Base64(text)) => STANDARD.decode(text).map_err(failed)?,
        Err(error) => return Err(failed(format!("the state `{key}` is damaged: {error}"))),
    };
    Ok(Some((versioned.revision, bytes)))
}

async fn swap(host_side: &HostSide, key: &str, expected: Option<Vec<u8>>, next: Option<Vec<u8>>) -> HostResult<bool> {
    let at = key_of(host_side, key)?;
    if let Some(bytes) = next.as_ref().filter(|bytes| bytes.len() > LONGEST_VALUE) {
        return Err(failed(format!("a state of {} bytes is too long: {LONGEST_VALUE} fit", bytes.len())));
    }
    let current = read(host_side, key).await?;
    if current.as_ref().map(|(_, bytes)| bytes) != expected.as_ref() {
        return Ok(false);
    }
    if current.is_none() && next.is_some() && list(host_side).await?.len() >= MOST_KEYS {
        return Err(failed(format!("an adapter keeps at most {MOST_KEYS} states")));
    }
    let next = next.map(|bytes| match String::from_utf8(bytes) {
        Ok(text) => StateValue::Text(text),
        Err(error) => StateValue::Base64(STANDARD.encode(error.as_bytes())),
    });
    let next = next.map(|kept| serde_json::to_vec(&kept)).transpose().map_err(failed)?;
    let revision = current.map(|(revision, _)| revision);
    match host_side.store.swap(&at, revision, next.as_deref(), Durability::Process).await {
        Ok(_) => Ok(true),
        Err(SwapError::Changed { .. }) => Ok(false),
        Err(SwapError::Store(error)) => Err(told(error)),
    }
}

async fn list(host_side: &HostSide) -> HostResult<Vec<String>> {
    let under = home_of(&host_side.name)?.child("state");
    Ok(host_side.store.list(&under).await.map_err(told)?.iter().map(Key::leaf).collect())
}

fn told(error: StoreError) -> Error {
    failed(format!("the store failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_says_what_the_host_keeps() {
        let wit = include_str!("../../wit/host.wit");
        let said = format!("Keys have at most {LONGEST_KEY} bytes, values at most {} KiB", LONGEST_VALUE / 1024);
        assert!(wit.contains(&said), "{said}");
    }
}
