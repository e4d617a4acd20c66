//! Waiting, for commands that may be told for how long.

use std::time::Duration;

use tokio::time::Instant;

use crate::errors::{CommandError, StreamError};
use crate::signals::Stop;

/// Until when somebody waits; for ever, where nothing is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    until: Option<Instant>,
}

/// How a wait ended.
pub(crate) enum Waited<T> {
    /// With what was waited for.
    For(T),
    /// With the end of timeout.
    InVain,
    /// With somebody who asked to stop.
    UntilStopped,
}

impl Patience {
    /// For so long from now on.
    pub(crate) fn from_now(span: Option<Duration>) -> Patience {
        Patience { until: span.and_then(|span| Instant::now().checked_add(span)) }
    }

    /// Waits.
    pub(crate) async fn wait<T>(self, what: impl Future<Output = T>) -> Result<Waited<T>, CommandError> {
        let mut stop = Stop::listen().map_err(StreamError::Input)?;
        Ok(self.wait_unless(&mut stop, what).await)
    }

    /// The same, for one that has listened since before there was anything to wait for.
    pub(crate) async fn wait_unless<T>(self, stop: &mut Stop, what: impl Future<Output = T>) -> Waited<T> {
        let end = async {
            match self.until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // What is there already is taken, however little timeout there is.
            biased;
            found = what => Waited::For(found),
            () = stop.asked() => Waited::UntilStopped,
            () = end => Waited::InVain,
        }
    }
}

/// A span of time, as people type it.
pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "write it as `30s`, `5m` or `2h`".to_owned())
}
