//! What ends a command early: SIGINT, SIGTERM and SIGHUP, or a token within this process.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Registered when created; no later signal is missed.
pub(crate) struct Stop(Source);

enum Source {
    Signals {
        interrupt: tokio::signal::unix::Signal,
        terminate: tokio::signal::unix::Signal,
        hang_up: tokio::signal::unix::Signal,
    },
    Token(CancellationToken),
}

impl Stop {
    pub(crate) fn listen() -> io::Result<Stop> {
        Ok(Stop(Source::Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        }))
    }

    /// By a token, for one of many works of a process.
    pub(crate) fn by(token: CancellationToken) -> Stop {
        Stop(Source::Token(token))
    }

    /// Returns on the first signal. Cancelling loses nothing.
    pub(crate) async fn asked(&mut self) {
        match &mut self.0 {
            Source::Token(token) => token.cancelled().await,
            Source::Signals { interrupt, terminate, hang_up } => tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            },
        }
    }
}
