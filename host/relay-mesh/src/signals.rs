//! What ends a command early: SIGINT, SIGTERM and SIGHUP, or a token within this process.

use std::io;

use tokio_util::sync::CancellationToken;

use crate::unix::process::{self, Signal};

/// Registered when created; no later signal is missed.
pub(crate) struct Stop(Source);

enum Source {
    Signals { interrupt: Signal, terminate: Signal, hang_up: Signal },
    Token(CancellationToken),
}

impl Stop {
    pub(crate) fn listen() -> io::Result<Stop> {
        Ok(Stop(Source::Signals {
            interrupt: process::interrupts()?,
            terminate: process::terminations()?,
            hang_up: process::hang_ups()?,
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
