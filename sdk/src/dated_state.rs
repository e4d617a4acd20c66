//! Values of [`state`] with the time of their last write, so that old ones can be deleted.
//!
//! ```
//! use relay_mesh_sdk::{dated_state, testing::Fakes};
//!
//! let host = Fakes::default().start();
//! dated_state::write("call/1", &"s1")?;
//! host.advance(2_000);
//! dated_state::write("call/2", &"s2")?;
//! dated_state::remove_older_than("call/", 1_000)?;
//! assert_eq!(dated_state::read::<String>("call/1")?, None);
//! assert_eq!(dated_state::take::<String>("call/2")?.as_deref(), Some("s2"));
//! assert_eq!(dated_state::take::<String>("call/2")?, None);
//! # Ok::<(), relay_mesh_sdk::Error>(())
//! ```

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Error, clock, state};

#[derive(Debug, Serialize, Deserialize)]
struct DatedValue<T> {
    /// When it was written, in milliseconds since the Unix epoch.
    at: u64,
    what: T,
}

/// Writes a value and replaces an earlier one.
pub fn write<T: Serialize>(key: &str, what: &T) -> Result<(), Error> {
    state::write(key, &DatedValue { at: clock::now(), what })
}

/// The value under a key.
pub fn read<T: DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    Ok(state::read::<DatedValue<T>>(key)?.map(|value| value.what))
}

/// The value under a key, and when it was written.
pub fn read_dated<T: DeserializeOwned>(key: &str) -> Result<Option<(u64, T)>, Error> {
    Ok(state::read::<DatedValue<T>>(key)?.map(|value| (value.at, value.what)))
}

/// Removes a value and returns it. If several processes ask at once, one of them gets it.
pub fn take<T: DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    Ok(state::take::<DatedValue<T>>(key)?.map(|value| value.what))
}

/// Replaces a value by what `change` makes of it; none removes it. Safe if several processes do this at once.
pub fn update<T: Serialize + DeserializeOwned>(
    key: &str,
    mut change: impl FnMut(Option<T>) -> Option<T>,
) -> Result<(), Error> {
    let at = clock::now();
    state::update(key, |old: Option<DatedValue<T>>| {
        change(old.map(|value| value.what)).map(|what| DatedValue { at, what })
    })
    .map(|_| ())
}

/// Removes a value.
pub fn forget(key: &str) -> Result<(), Error> {
    state::update(key, |_: Option<serde_json::Value>| None).map(|_| ())
}

/// Whether a value is stored under a key.
pub fn exists(key: &str) -> Result<bool, Error> {
    Ok(state::get(key)?.is_some())
}

/// Removes the values under keys with this prefix that are older than `age` milliseconds. Call it where
/// that is rare, such as at a session's start: it reads every such key.
pub fn remove_older_than(prefix: &str, age: u64) -> Result<(), Error> {
    let now = clock::now();
    let is_old = |value: &DatedValue<serde_json::Value>| now.saturating_sub(value.at) > age;
    for key in state::keys(prefix)? {
        state::update(&key, |value: Option<DatedValue<serde_json::Value>>| value.filter(|value| !is_old(value)))?;
    }
    Ok(())
}
