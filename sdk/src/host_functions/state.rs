//! Small durable values, private to the adapter, kept between calls on this machine.

use crate::Error;
#[cfg(target_arch = "wasm32")]
use crate::bindings::relay::adapter::state as host;

/// How many times [`update`] tries if other processes keep changing the value.
const TRIES: usize = 16;

/// The bytes under a key.
pub fn get(key: &str) -> Result<Option<Vec<u8>>, Error> {
    #[cfg(target_arch = "wasm32")]
    return host::get(key);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::fakes::with(|fakes| Ok(fakes.state.get(key).cloned()));
}

/// Writes `next` (none removes) only if the value is still `expected`; returns whether it was.
pub fn swap(key: &str, expected: Option<&[u8]>, next: Option<&[u8]>) -> Result<bool, Error> {
    #[cfg(target_arch = "wasm32")]
    return host::swap(key, expected, next);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::fakes::with(|fakes| Ok(fakes.swap_state(key, expected, next)));
}

/// The keys that begin with `prefix`, in order.
pub fn keys(prefix: &str) -> Result<Vec<String>, Error> {
    #[cfg(target_arch = "wasm32")]
    return host::keys(prefix);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::fakes::with(|fakes| {
        Ok(fakes.state.keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    });
}

/// The value under a key, parsed from JSON. A value that does not parse, such as an older version's,
/// counts as absent, so never keep the only copy of anything here.
pub fn read<T: serde::de::DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    Ok(get(key)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// Replaces a value by what `change` makes of it; none removes it. Safe if several processes do this at
/// once. Returns what was written.
///
/// ```
/// use relay_mesh_sdk::state;
/// # relay_mesh_sdk::testing::Fakes::default().start();
/// state::update("visits", |visits: Option<u32>| Some(visits.unwrap_or(0) + 1))?;
/// assert_eq!(state::update("visits", |visits: Option<u32>| Some(visits.unwrap_or(0) + 1))?, Some(2));
/// # Ok::<(), relay_mesh_sdk::Error>(())
/// ```
pub fn update<T>(key: &str, mut change: impl FnMut(Option<T>) -> Option<T>) -> Result<Option<T>, Error>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    for _ in 0..TRIES {
        let bytes = get(key)?;
        let next = change(bytes.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok()));
        let written = next.as_ref().map(to_bytes).transpose()?;
        if written == bytes || swap(key, bytes.as_deref(), written.as_deref())? {
            return Ok(next);
        }
    }
    Err(Error::Busy(20))
}

/// Writes a value and replaces an earlier one.
pub fn write<T: serde::Serialize>(key: &str, value: &T) -> Result<(), Error> {
    let written = to_bytes(value)?;
    for _ in 0..TRIES {
        let bytes = get(key)?;
        if bytes.as_deref() == Some(written.as_slice()) || swap(key, bytes.as_deref(), Some(&written))? {
            return Ok(());
        }
    }
    Err(Error::Busy(20))
}

/// Removes a value and returns it. If several processes ask at once, one of them gets it.
pub fn take<T: serde::de::DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    for _ in 0..TRIES {
        let Some(bytes) = get(key)? else { return Ok(None) };
        if swap(key, Some(&bytes), None)? {
            return Ok(serde_json::from_slice(&bytes).ok());
        }
    }
    Err(Error::Busy(20))
}

pub(crate) fn to_bytes<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value)
        .map_err(|error| Error::Failed(format!("a value for the adapter's state cannot be written as JSON: {error}")))
}
