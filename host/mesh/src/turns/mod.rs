//! What agents do in their turns, as events of the event log: a turn begins and ends, an item begins, files change,
//! commands run, the user is needed. Driven agents tell it by their drivers, all others by their harness's own hooks.
//!
//! The log holds no text of any length: what is said and run is cut, and a turn has at most [`MOST_IN_TURN`] events.

pub(crate) mod sessions;
mod watch;

use serde_json::{Value, json};

use crate::Mesh;
use crate::asks::AskedBy;
use crate::core::Core;
use crate::names::AgentName;
use crate::sessions::{SessionRef, record};

pub use watch::{MOST_IN_TURN, TurnWatch};

/// The longest text of an event, in characters.
pub const LONGEST_TEXT: usize = 200;
/// The longest path of an event, in bytes: the longest that a system takes. A longer one is left out.
const LONGEST_PATH: usize = 4_096;

/// Whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Its agent, if its session has joined.
    pub agent: Option<AgentName>,
    /// Its session. A question of a script has none: then its id is empty.
    pub session: SessionRef,
    /// The folder that it works in; empty if that is not known.
    pub folder: String,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEvent {
    /// A turn began.
    TurnStarted,
    /// A turn ended by itself.
    TurnCompleted {
        /// The agent's last words, if they are known.
        text: Option<String>,
        /// How many events of the turn are not in the log.
        left_out: u32,
    },
    /// A turn ended otherwise.
    TurnFailed {
        why: String,
        /// How many events of the turn are not in the log.
        left_out: u32,
    },
    /// The agent began something.
    ItemStarted {
        /// One word: command, files, tool or other.
        item: &'static str,
        text: String,
    },
    /// A file was changed.
    FileChanged {
        /// Its absolute path.
        path: String,
    },
    /// The harness has run a shell command.
    ShellCommand {
        command: String,
        /// Whether it succeeded.
        succeeded: bool,
    },
    /// The agent waits for its user.
    NeedsInput {
        /// For what, if that is known.
        text: Option<String>,
    },
    /// The user started the agent.
    Spawned,
    /// The agent, or its session, is over.
    Ended { why: String },
}

impl TurnEvent {
    /// Its kind in the event log. A shell command of a harness has a word of its own there: `command-run` is a command of
    /// the mesh.
    pub fn kind(&self) -> &'static str {
        match self {
            TurnEvent::TurnStarted => "turn-started",
            TurnEvent::TurnCompleted { .. } => "turn-completed",
            TurnEvent::TurnFailed { .. } => "turn-failed",
            TurnEvent::ItemStarted { .. } => "item-started",
            TurnEvent::FileChanged { .. } => "file-changed",
            TurnEvent::ShellCommand { .. } => "shell-command",
            TurnEvent::NeedsInput { .. } => "needs-input",
            TurnEvent::Spawned => "spawned",
            TurnEvent::Ended { .. } => "ended",
        }
    }

    /// Its fields beside those of the actor; none if it has to be left out.
    fn fields(&self) -> Option<Value> {
        Some(match self {
            TurnEvent::TurnStarted | TurnEvent::Spawned => json!({}),
            TurnEvent::TurnCompleted { text, left_out } => {
                json!({ "text": text.as_deref().map(short), "left_out": some(*left_out) })
            }
            TurnEvent::TurnFailed { why, left_out } => json!({ "because": short(why), "left_out": some(*left_out) }),
            TurnEvent::ItemStarted { item, text } => json!({ "item": item, "text": short(text) }),
            TurnEvent::FileChanged { path } if path.len() > LONGEST_PATH => return None,
            TurnEvent::FileChanged { path } => json!({ "path": path }),
            TurnEvent::ShellCommand { command, succeeded } => {
                json!({ "command": short(command), "succeeded": succeeded })
            }
            TurnEvent::NeedsInput { text } => json!({ "text": text.as_deref().map(short) }),
            TurnEvent::Ended { why } => json!({ "because": short(why) }),
        })
    }
}

fn some(count: u32) -> Option<u32> {
    (count > 0).then_some(count)
}

/// The beginning of a text.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Mesh {
    /// Adds what an agent did to the event log.
    pub async fn note_turn_event(&self, actor: &Actor, event: &TurnEvent) {
        note(&self.core, actor, event).await;
    }
}

/// Adds to the event log that somebody has put a question to the user: an agent, its harness, or the mesh for an agent.
pub(crate) async fn note_need(core: &Core, by: &AskedBy, text: String) {
    let known = match &by.session {
        Some(session) => record::session_record(core, session).await.ok().flatten(),
        None => None,
    };
    let nameless = SessionRef { harness: by.harness.clone().unwrap_or_default(), id: String::new() };
    let actor = Actor {
        agent: by.agent.clone(),
        session: by.session.clone().unwrap_or(nameless),
        folder: known.map(|record| record.workdir).unwrap_or_default(),
    };
    note(core, &actor, &TurnEvent::NeedsInput { text: Some(text) }).await;
}

pub(crate) async fn note(core: &Core, actor: &Actor, event: &TurnEvent) {
    let Some(mut details) = event.fields() else { return };
    if let Some(fields) = details.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
        if let Some(agent) = &actor.agent {
            fields.insert("agent".to_owned(), agent.as_str().into());
        }
        for (field, value) in
            [("harness", &actor.session.harness), ("session", &actor.session.id), ("folder", &actor.folder)]
        {
            if !value.is_empty() && value.len() <= LONGEST_PATH {
                fields.insert(field.to_owned(), value.as_str().into());
            }
        }
        // Hooks are carried out on the machine where something happens.
        if core.topology.has_other_machines() {
            fields.insert("machine".to_owned(), core.machine.name().into());
        }
    }
    core.event_log.note(event.kind(), details).await;
}
