//! Values of [`state`] that know when they were written, so that what nobody will ask for any more
//! can be cleared away.
//!
//! ```
//! use relay_mesh_sdk::{kept, testing::Fakes};
//!
//! let lent = Fakes::default().lend();
//! kept::write("call/1", &"s1")?;
//! lent.advance(2_000);
//! kept::write("call/2", &"s2")?;
//! kept::clear_away("call/", 1_000)?;
//! assert_eq!(kept::read::<String>("call/1")?, None);
//! assert_eq!(kept::take::<String>("call/2")?.as_deref(), Some("s2"));
//! assert_eq!(kept::take::<String>("call/2")?, None);
//! # Ok::<(), relay_mesh_sdk::Error>(())
//! ```

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{clock, state};
use crate::Error;

#[derive(Debug, Serialize, Deserialize)]
struct Kept<T> {
    /// When it was written.
    at: u64,
    what: T,
}

/// Writes a value, whatever was there.
pub fn write<T: Serialize>(key: &str, what: &T) -> Result<(), Error> {
    state::write(key, &Kept { at: clock::now(), what })
}

/// The value under a key.
pub fn read<T: DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    Ok(state::read::<Kept<T>>(key)?.map(|kept| kept.what))
}

/// The value under a key, and when it was written.
pub fn read_dated<T: DeserializeOwned>(key: &str) -> Result<Option<(u64, T)>, Error> {
    Ok(state::read::<Kept<T>>(key)?.map(|kept| (kept.at, kept.what)))
}

/// Takes a value out: of several processes that ask at once, one gets it.
pub fn take<T: DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    Ok(state::take::<Kept<T>>(key)?.map(|kept| kept.what))
}

/// Changes a value by a function of what is there, however many processes do so at once. None removes it.
pub fn update<T: Serialize + DeserializeOwned>(
    key: &str,
    mut change: impl FnMut(Option<T>) -> Option<T>,
) -> Result<(), Error> {
    let at = clock::now();
    state::update(key, |kept: Option<Kept<T>>| change(kept.map(|kept| kept.what)).map(|what| Kept { at, what }))
        .map(|_| ())
}

/// Removes a value.
pub fn forget(key: &str) -> Result<(), Error> {
    state::update(key, |_: Option<serde_json::Value>| None).map(|_| ())
}

/// Whether there is anything under a key.
pub fn is_kept(key: &str) -> Result<bool, Error> {
    Ok(state::get(key)?.is_some())
}

/// Removes what is older than `lasts` milliseconds among the keys that begin with `prefix`. To be
/// called where it is rare, such as at a session's start.
pub fn clear_away(prefix: &str, lasts: u64) -> Result<(), Error> {
    let now = clock::now();
    let old = |kept: &Kept<serde_json::Value>| now.saturating_sub(kept.at) > lasts;
    for key in state::keys(prefix)? {
        state::update(&key, |kept: Option<Kept<serde_json::Value>>| kept.filter(|kept| !old(kept)))?;
    }
    Ok(())
}
