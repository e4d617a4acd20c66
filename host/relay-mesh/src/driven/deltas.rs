//! What driven agents say, as they say it: live, to whoever observes, and kept nowhere.
//!
//! The process that drives them offers it at a Unix socket of the data folder. An agent never waits for an observer: what
//! one has not read in time is gone for it, and it is cut.

use std::sync::Arc;
use std::time::Duration;

use mesh::names::AgentName;
use mesh::ports::machine::Instant;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::events::{DeltaLine, Socket};
use crate::unix::UnixStream;

/// How many pieces an observer may be behind.
const BEHIND: usize = 1_024;
/// How long an observer may read nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most observers at once.
const MOST: usize = 64;
/// Pause after a failed `accept`.
const AFTER_A_FAULT: Duration = Duration::from_millis(200);

/// Where agents say what they say.
#[derive(Clone, Debug)]
pub(crate) struct Deltas(broadcast::Sender<Arc<str>>);

impl Deltas {
    pub(super) fn new() -> Deltas {
        Deltas(broadcast::Sender::new(BEHIND))
    }

    /// Tells every observer. Costs nothing where there is none, and never waits.
    pub(super) fn say(&self, at: Instant, agent: &AgentName, event: &'static str, text: &str) {
        if self.0.receiver_count() == 0 {
            return;
        }
        if let Ok(line) = serde_json::to_string(&DeltaLine::of(at, agent, event, text)) {
            let _nobody = self.0.send(format!("{line}\n").into());
        }
    }

    /// Lets observers in until `stop`. Without the socket agents go on all the same.
    pub(super) async fn offer(self, context: Context, stop: CancellationToken) {
        let bound = match Socket::path_of_deltas(&context.settings.dir.value, &context.environment) {
            Ok(path) => Socket::bind(&path).await,
            Err(error) => Err(error),
        };
        let socket = match bound {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(error = %mesh::reasons(&error), "no process can observe what driven agents say");
                return;
            }
        };
        let mut observers: JoinSet<()> = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = observers.join_next(), if !observers.is_empty() => continue,
                accepted = socket.accept() => accepted,
            };
            match accepted {
                Ok(Some(stream)) if observers.len() < MOST => {
                    observers.spawn(tell(stream, self.0.subscribe()));
                }
                // Another user's process, or one too many.
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "an observer could not be let in");
                    tokio::time::sleep(AFTER_A_FAULT).await;
                }
            }
        }
        observers.shutdown().await;
    }
}

/// Tells one observer until it goes or is too slow.
async fn tell(mut stream: UnixStream, mut said: broadcast::Receiver<Arc<str>>) {
    loop {
        let line = match said.recv().await {
            Ok(line) => line,
            Err(RecvError::Lagged(_)) => {
                let cut = serde_json::to_string(&DeltaLine::cut()).unwrap_or_default();
                let _gone = tokio::time::timeout(PATIENCE, stream.write_all(format!("{cut}\n").as_bytes())).await;
                return;
            }
            Err(RecvError::Closed) => return,
        };
        match tokio::time::timeout(PATIENCE, stream.write_all(line.as_bytes())).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn an_observer_that_does_not_read_is_cut_and_the_agent_never_waits() {
        let deltas = Deltas::new();
        let agent: AgentName = "alice".parse().expect("a name");
        deltas.say(Instant(0), &agent, "delta", "to nobody");
        let (slow, kept_open) = UnixStream::pair().expect("a pair");
        let (quick, mut reader) = UnixStream::pair().expect("a pair");
        let slow = tokio::spawn(tell(slow, deltas.0.subscribe()));
        let quick = tokio::spawn(tell(quick, deltas.0.subscribe()));
        let reading = tokio::spawn(async move {
            let mut text = String::new();
            reader.read_to_string(&mut text).await.map(|_| text)
        });
        for number in 0..4 * BEHIND {
            // It returns at once, whoever reads.
            deltas.say(Instant(0), &agent, "delta", &"x".repeat(1_000));
            if number % 64 == 0 {
                tokio::task::yield_now().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        drop(deltas);
        quick.await.expect("it ends");
        let text = reading.await.expect("it reads").expect("text");
        let lines: Vec<&str> = text.lines().collect();
        let cut = lines.iter().any(|line| line.contains("\"cut\""));
        assert!(lines.len() == 4 * BEHIND || cut, "{} lines", lines.len());
        assert!(!text.contains("to nobody"));
        // Its reader has taken nothing at all: once it does, the last line says that it was cut.
        let mut late = String::new();
        let mut kept_open = kept_open;
        kept_open.read_to_string(&mut late).await.expect("text");
        slow.await.expect("it ends");
        assert!(late.lines().last().is_some_and(|line| line.contains("\"cut\"")), "{} bytes", late.len());
        assert!(late.lines().count() < 4 * BEHIND);
    }
}
