//! Observing what driven agents say, while they say it: from the socket of the process that drives them.

use std::path::PathBuf;
use std::time::Duration;

use mesh::names::AgentName;
use mesh::ports::machine::Instant;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::topic::Topic;
use crate::line_reader::{Lines, NextLine};
use crate::shapes::rfc3339;
use crate::unix::UnixStream;

/// How often to look whether agents are driven.
const LOOK: Duration = Duration::from_millis(500);
/// The longest line, in bytes.
const LONGEST: usize = 1 << 20;

/// A piece of what an agent says, or all of a message. There is no cursor: it is kept nowhere.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct DeltaLine {
    topic: Topic,
    /// `delta` for a piece, `said` for a whole message, `cut` if the observer was too slow.
    event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<AgentName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl DeltaLine {
    pub(crate) fn of(at: Instant, agent: &AgentName, event: &str, text: &str) -> DeltaLine {
        DeltaLine {
            topic: Topic::Deltas,
            event: event.to_owned(),
            at: Some(rfc3339(at)),
            agent: Some(agent.clone()),
            text: Some(text.to_owned()),
        }
    }

    pub(crate) fn cut() -> DeltaLine {
        DeltaLine { topic: Topic::Deltas, event: "cut".to_owned(), at: None, agent: None, text: None }
    }

    /// Whether the observer was too slow.
    pub(super) fn is_cut(&self) -> bool {
        self.event == "cut"
    }
}

/// What an observer reads. It waits while no agent is driven.
pub(super) struct DeltaReader {
    /// None if they are not wanted.
    socket: Option<PathBuf>,
    lines: Option<Lines<UnixStream>>,
    agent: Option<AgentName>,
}

impl DeltaReader {
    pub(super) fn of(socket: Option<PathBuf>, agent: Option<AgentName>) -> DeltaReader {
        DeltaReader { socket, lines: None, agent }
    }

    /// The next line of an agent that is wanted. Waits for ever if none are. Cancelling it loses nothing.
    pub(super) async fn next(&mut self) -> DeltaLine {
        let Some(socket) = self.socket.clone() else { return std::future::pending().await };
        loop {
            let Some(lines) = &mut self.lines else {
                match UnixStream::connect(&socket).await {
                    Ok(stream) => self.lines = Some(Lines::of(Some(stream), LONGEST)),
                    Err(_) => sleep(LOOK).await,
                }
                continue;
            };
            let Ok(NextLine::Text(text)) = lines.next().await else {
                self.lines = None;
                sleep(LOOK).await;
                continue;
            };
            let Ok(line) = serde_json::from_str::<DeltaLine>(&text) else { continue };
            if line.is_cut() || self.agent.is_none() || line.agent == self.agent {
                return line;
            }
        }
    }
}
