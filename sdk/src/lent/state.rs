//! Small durable values, private to the adapter, kept between calls on this machine.

use crate::Error;
#[cfg(target_arch = "wasm32")]
use crate::bindings::relay::adapter::state as host;

/// How often [`update`] tries again when another process was quicker.
const TRIES: usize = 16;

/// The bytes under a key.
pub fn get(key: &str) -> Result<Option<Vec<u8>>, Error> {
    #[cfg(target_arch = "wasm32")]
    return host::get(key);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::fakes::with(|fakes| Ok(fakes.state.get(key).cloned()));
}

/// Writes `next` (none removes) only if the value is still `expected`; true when it was.
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

/// The value under a key, read as JSON. One that does not parse, such as an older version's, counts
/// as absent: state is a convenience, never the only copy of anything.
pub fn read<T: serde::de::DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    Ok(get(key)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// Changes a value by a function of what is there now, however many processes do so at once.
/// None removes it. Answers what was written.
///
/// ```
/// use relay_mesh_sdk::state;
/// # relay_mesh_sdk::testing::Fakes::default().lend();
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

/// Writes a value, whatever was there.
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

/// Takes a value out: of several processes that ask at once, one gets it.
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
    serde_json::to_vec(value).map_err(|error| Error::Failed(format!("a value cannot be kept: {error}")))
}
