//! Waiting with an optional timeout, for commands that have one.

use std::time::Duration;

use tokio::time::Instant;

use crate::errors::{CommandError, StreamError};
use crate::signals::Stop;

/// A deadline; without one the wait lasts for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    until: Option<Instant>,
}

pub(crate) enum Waited<T> {
    /// What was waited for has come.
    For(T),
    /// The time is over.
    InVain,
    /// A signal asked to stop.
    UntilStopped,
}

impl Patience {
    pub(crate) fn from_now(span: Option<Duration>) -> Patience {
        Patience { until: span.and_then(|span| Instant::now().checked_add(span)) }
    }

    /// Waits for `what`, the deadline, or a signal to stop.
    pub(crate) async fn wait<T>(self, what: impl Future<Output = T>) -> Result<Waited<T>, CommandError> {
        let mut stop = Stop::listen().map_err(StreamError::Input)?;
        Ok(self.wait_unless(&mut stop, what).await)
    }

    /// The same, with a `stop` that the caller has listened to since before there was anything to wait for.
    pub(crate) async fn wait_unless<T>(self, stop: &mut Stop, what: impl Future<Output = T>) -> Waited<T> {
        let end = async {
            match self.until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // A result that is there already wins, however short the timeout is.
            biased;
            found = what => Waited::For(found),
            () = stop.asked() => Waited::UntilStopped,
            () = end => Waited::InVain,
        }
    }
}
