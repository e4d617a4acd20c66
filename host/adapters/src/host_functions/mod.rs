//! Host functions: one file per interface that components import, each with its settings.

pub mod channels;
pub mod clock;
pub mod files;
pub mod http;
pub mod log;
pub mod notices;
pub mod programs;
pub mod rates;
pub mod state;
pub(crate) mod wasi;

use std::future::Future;
use std::time::Duration;

use crate::bindings::relay::adapter::types;
use crate::grants::Denied;
use crate::template::FillError;

/// The result that a host function returns to a guest.
pub(crate) type HostResult<T> = Result<T, types::Error>;

/// Limits of each host function. `relay-mesh` uses the defaults; tests shorten them.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The longest that one call may take in all, waiting included: longer than each host function's own wait, so that
    /// those end first, and short enough that a hook does not block its harness for ever.
    pub longest_call: Duration,
    pub files: files::Settings,
    pub http: http::Settings,
    pub programs: programs::Settings,
    pub channels: channels::Settings,
    pub notices: notices::Settings,
    /// How often a guest may call each of them.
    pub rates: rates::Settings,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            longest_call: Duration::from_secs(30),
            files: files::Settings::default(),
            http: http::Settings::default(),
            programs: programs::Settings::default(),
            channels: channels::Settings::default(),
            notices: notices::Settings::default(),
            rates: rates::Settings::default(),
        }
    }
}

impl From<Denied> for types::Error {
    fn from(denied: Denied) -> types::Error {
        types::Error::Denied(denied.to_string())
    }
}

impl From<FillError> for types::Error {
    fn from(error: FillError) -> types::Error {
        match error {
            FillError::Unset(_) => types::Error::NotFound(error.to_string()),
            FillError::Count { .. } | FillError::Unfit { .. } | FillError::Relative(_) => {
                types::Error::Denied(error.to_string())
            }
        }
    }
}

/// A failure, described in one sentence.
pub(crate) fn failed(what: impl std::fmt::Display) -> types::Error {
    types::Error::Failed(what.to_string())
}

/// A refusal that names its grant, so that the log tells which grant the adapter tried to exceed.
pub(crate) fn about(grant: &str, error: types::Error) -> types::Error {
    match error {
        types::Error::Denied(what) if !what.contains(grant) => {
            types::Error::Denied(format!("{what} (grant `{grant}`)"))
        }
        other => other,
    }
}

/// Bounds a wait in the host. It does not count as the guest's own time.
pub(crate) async fn within<T>(limit: Duration, what: &str, wait: impl Future<Output = HostResult<T>>) -> HostResult<T> {
    match tokio::time::timeout(limit, wait).await {
        Ok(outcome) => outcome,
        Err(_) => Err(failed(format!("{what} took longer than {} ms", limit.as_millis()))),
    }
}

/// Runs blocking work on a separate thread, bounded: a dead network share blocks one call only.
pub(crate) async fn blocking<T: Send + 'static>(
    limit: Duration,
    what: &str,
    work: impl FnOnce() -> HostResult<T> + Send + 'static,
) -> HostResult<T> {
    within(limit, what, async {
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or_else(|error| Err(failed(format!("{what} broke off: {error}"))))
    })
    .await
}

impl types::Host for crate::guest::Guest {}
