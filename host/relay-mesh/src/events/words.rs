//! The lines of the event socket: subscriptions in, events out, and the cursor.

use std::fmt;
use std::str::FromStr;

use mesh::names::AgentName;
use mesh::{Event, Mesh};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::Position;

use super::deltas::DeltaLine;
use crate::errors::{Explain, WHO_IS_HERE};
use crate::exit::Exit;
use crate::shapes::events::details;
use crate::shapes::mail::MessageShape;
use crate::shapes::rfc3339;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Topic {
    /// The mail that is stored for one agent
    Inbox,
    /// What is reserved, taken and released, and edits that met it
    Reservations,
    /// Commands: asked for, taken, ended
    Commands,
    /// What agents do: turns, items, files, commands of their harnesses, who needs their user, who starts and ends
    Turns,
    /// What driven agents say, while they say it; kept nowhere
    Deltas,
    /// Who registers, goes offline, comes back, is adopted, is invited, is woken, is held back, asks the user or is deleted
    Agents,
}

impl Topic {
    pub(crate) const ALL: [Topic; 6] =
        [Topic::Inbox, Topic::Reservations, Topic::Commands, Topic::Turns, Topic::Agents, Topic::Deltas];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Topic::Inbox => "inbox",
            Topic::Reservations => "reservations",
            Topic::Commands => "commands",
            Topic::Turns => "turns",
            Topic::Agents => "agents",
            Topic::Deltas => "deltas",
        }
    }

    /// The topic of an event in the event log. Mail is not there: it is read from the inbox.
    pub(crate) fn of(event: &Event) -> Option<Topic> {
        match event.kind.as_str() {
            "reserved" | "reservation-taken" | "released" | "edit-refused" | "edit-advised" => {
                Some(Topic::Reservations)
            }
            "commanded" | "command-waits" | "command-run" | "command-taken" | "command-done" => Some(Topic::Commands),
            "turn-started" | "turn-completed" | "turn-failed" | "item-started" | "file-changed" | "shell-command"
            | "needs-input" | "spawned" | "ended" => Some(Topic::Turns),
            "registered" | "agent-offline" | "agent-online" | "adopted" | "invited" | "woke" | "wake-failed"
            | "held" | "deleted" | "store-replaced" | "asked" | "ask-answered" | "ask-settled" | "paused"
            | "resumed" => Some(Topic::Agents),
            _ => None,
        }
    }
}

/// A position in the event log and in one inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// Next position in the event log.
    pub(crate) event_log: Position,
    /// Next position in the inbox.
    pub(crate) inbox: Position,
}

impl Cursor {
    /// Before the oldest entry.
    pub(crate) const START: Cursor = Cursor { event_log: Position::START, inbox: Position::START };
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.event_log.0, self.inbox.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a cursor: copy one from an event line, or write `start`")]
pub(crate) struct InvalidCursor(String);

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Cursor, InvalidCursor> {
        if text == "start" {
            return Ok(Cursor::START);
        }
        let place = |digits: &str| digits.parse().ok().map(Position);
        let places = text.split_once('-').and_then(|(event_log, inbox)| Some((place(event_log)?, place(inbox)?)));
        let invalid = || InvalidCursor(text.chars().filter(|character| !character.is_control()).take(40).collect());
        places.map(|(event_log, inbox)| Cursor { event_log, inbox }).ok_or_else(invalid)
    }
}

/// What one follower subscribed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subscription {
    pub(crate) topics: Vec<Topic>,
    /// Whose mail, if [`Topic::Inbox`] is among the topics.
    pub(crate) agent: Option<AgentName>,
    /// Where to start; now if none.
    pub(crate) cursor: Option<Cursor>,
}

/// Why a subscription is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unwanted {
    #[error("a line was not understood: {0}")]
    Json(#[from] serde_json::Error),
    #[error("a line was not understood: `subscribe` must name one or more of {}", topics())]
    Nothing,
    #[error("`{word}` cannot be followed, only {}", topics())]
    Topic { word: String },
    #[error("`inbox` wants an `agent` whose mail it is")]
    WhoseMail,
    #[error("no agent named `{0}` has joined")]
    Unknown(AgentName),
    #[error(transparent)]
    Name(#[from] mesh::names::InvalidName),
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
}

impl Explain for Unwanted {
    fn exit(&self) -> Exit {
        match self {
            Unwanted::Unknown(_) => Exit::NotFound,
            Unwanted::Json(_)
            | Unwanted::Nothing
            | Unwanted::Topic { .. }
            | Unwanted::WhoseMail
            | Unwanted::Name(_)
            | Unwanted::Cursor(_) => Exit::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Unwanted::Unknown(_) => WHO_IS_HERE,
            Unwanted::WhoseMail => "say `--agent NAME`, or leave `inbox` out",
            Unwanted::Json(_)
            | Unwanted::Nothing
            | Unwanted::Topic { .. }
            | Unwanted::Name(_)
            | Unwanted::Cursor(_) => "see `relay-mesh help events`",
        };
        Some(hint.to_owned())
    }
}

/// Why a subscription was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error(transparent)]
    Unwanted(#[from] Unwanted),
    #[error(transparent)]
    Find(#[from] mesh::FindError),
}

impl Explain for CheckError {
    fn exit(&self) -> Exit {
        match self {
            CheckError::Unwanted(error) => error.exit(),
            CheckError::Find(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            CheckError::Unwanted(error) => error.hint(),
            CheckError::Find(error) => error.hint(),
        }
    }
}

fn topics() -> String {
    Topic::ALL.map(Topic::as_str).join(", ")
}

impl Subscription {
    /// Checks that the parts go together.
    pub(crate) fn new(
        topics: Vec<Topic>,
        agent: Option<AgentName>,
        cursor: Option<Cursor>,
    ) -> Result<Subscription, Unwanted> {
        if topics.is_empty() {
            return Err(Unwanted::Nothing);
        }
        if topics.contains(&Topic::Inbox) && agent.is_none() {
            return Err(Unwanted::WhoseMail);
        }
        Ok(Subscription { topics, agent, cursor })
    }

    /// The topic under which an event is sent; none if it is not subscribed.
    pub(crate) fn wants(&self, event: &Event) -> Option<Topic> {
        Topic::of(event).filter(|topic| self.topics.contains(topic))
    }

    /// Checks that the agent exists.
    pub(crate) async fn check(&self, mesh: &Mesh) -> Result<(), CheckError> {
        match self.inbox() {
            Some(agent) if mesh.agent(agent).await?.is_none() => Err(Unwanted::Unknown(agent.clone()).into()),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether something of it is in the event log.
    pub(crate) fn is_of_event_log(&self) -> bool {
        self.topics.iter().any(|topic| !matches!(topic, Topic::Inbox | Topic::Deltas))
    }

    pub(crate) fn inbox(&self) -> Option<&AgentName> {
        self.agent.as_ref().filter(|_| self.topics.contains(&Topic::Inbox))
    }
}

impl FromStr for Subscription {
    type Err = Unwanted;

    fn from_str(line: &str) -> Result<Subscription, Unwanted> {
        // Parsed as a map first: serde would accept a JSON list as the fields in order.
        let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line)?;
        let asked = SubscribeLine::deserialize(serde_json::Value::Object(fields))?;
        let topic = |word: String| {
            let known = Topic::ALL.into_iter().find(|topic| topic.as_str() == word);
            known.ok_or_else(|| Unwanted::Topic { word: word.chars().take(40).collect() })
        };
        let topics = asked.subscribe.into_iter().map(topic).collect::<Result<_, _>>()?;
        let agent = asked.agent.map(|name| name.parse::<AgentName>()).transpose()?;
        let cursor = asked.cursor.map(|cursor| cursor.parse::<Cursor>()).transpose()?;
        Subscription::new(topics, agent, cursor)
    }
}

/// A line from a follower. Unknown fields are ignored, so that a follower may be newer than the server.
#[derive(Deserialize)]
struct SubscribeLine {
    #[serde(default)]
    subscribe: Vec<String>,
    agent: Option<String>,
    cursor: Option<String>,
}

/// A line to a follower.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum EventLine {
    /// The subscription was accepted.
    Subscribed {
        /// Always `subscribed`.
        event: &'static str,
        topics: Vec<Topic>,
        /// Where the events start.
        cursor: String,
    },
    Event {
        topic: Topic,
        /// The kind, one word.
        event: String,
        at: String,
        /// The event's other fields.
        #[serde(flatten)]
        details: Map<String, Value>,
        /// The position after it.
        cursor: String,
    },
    Message {
        /// Always `inbox`.
        topic: Topic,
        /// Always `message`.
        event: &'static str,
        #[serde(flatten)]
        message: Box<MessageShape>,
        /// The body in the envelope that a model may see.
        text: String,
        /// The position after it.
        cursor: String,
    },
    /// What a driven agent says.
    Delta(DeltaLine),
    /// No event; the server is still there.
    Alive {
        /// Always `alive`.
        event: &'static str,
        /// The position up to which everything was sent.
        cursor: String,
    },
    /// A line from the follower was wrong.
    Error {
        /// Always `error`.
        event: &'static str,
        /// One sentence.
        error: String,
    },
    /// The last line of the connection.
    Cut {
        /// Always `cut`.
        event: &'static str,
        error: String,
        /// Where a new connection can continue, if anything was followed.
        #[serde(skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    },
}

impl EventLine {
    pub(crate) fn subscribed(subscription: &Subscription, cursor: Cursor) -> EventLine {
        EventLine::Subscribed { event: "subscribed", topics: subscription.topics.clone(), cursor: cursor.to_string() }
    }

    pub(crate) fn event(topic: Topic, event: &Event, cursor: Cursor) -> EventLine {
        EventLine::Event {
            topic,
            event: event.kind.clone(),
            at: rfc3339(event.at),
            details: details(event),
            cursor: cursor.to_string(),
        }
    }

    pub(crate) fn message(message: &mesh::messages::Message, cursor: Cursor) -> EventLine {
        let text = mesh::envelope(std::slice::from_ref(message), usize::MAX).text;
        EventLine::Message {
            topic: Topic::Inbox,
            event: "message",
            message: Box::new(MessageShape::from(message)),
            text,
            cursor: cursor.to_string(),
        }
    }

    pub(crate) fn alive(cursor: Cursor) -> EventLine {
        EventLine::Alive { event: "alive", cursor: cursor.to_string() }
    }

    pub(crate) fn error(words: impl fmt::Display) -> EventLine {
        EventLine::Error { event: "error", error: words.to_string() }
    }

    pub(crate) fn cut(why: impl fmt::Display, cursor: Option<Cursor>) -> EventLine {
        EventLine::Cut { event: "cut", error: why.to_string(), cursor: cursor.map(|cursor| cursor.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let outcome = match line.parse::<Subscription>() {
            Ok(subscription) => {
                let Subscription { topics, agent, cursor } = subscription;
                let topics: Vec<_> = topics.into_iter().map(Topic::as_str).collect();
                let agent = agent.map_or_else(|| "nobody".to_owned(), |agent| agent.to_string());
                let cursor = cursor.map_or_else(|| "now".to_owned(), |cursor| cursor.to_string());
                format!("{} of {agent} from {cursor}", topics.join("+"))
            }
            Err(error) => error.to_string(),
        };
        assert!(outcome.contains(expected), "{line}: {outcome}");
    }

    #[test]
    fn each_kind_of_event_has_its_topic() {
        for (topic, kinds) in [
            (
                Some(Topic::Reservations),
                &["reserved", "reservation-taken", "released", "edit-refused", "edit-advised"] as &[&str],
            ),
            (Some(Topic::Commands), &["commanded", "command-waits", "command-run", "command-taken", "command-done"]),
            (
                Some(Topic::Turns),
                &[
                    "turn-started",
                    "turn-completed",
                    "turn-failed",
                    "item-started",
                    "file-changed",
                    "shell-command",
                    "needs-input",
                    "spawned",
                    "ended",
                ],
            ),
            (
                Some(Topic::Agents),
                &[
                    "registered",
                    "agent-offline",
                    "agent-online",
                    "adopted",
                    "invited",
                    "woke",
                    "wake-failed",
                    "held",
                    "deleted",
                    "store-replaced",
                    "asked",
                    "ask-answered",
                    "ask-settled",
                    "paused",
                    "resumed",
                ],
            ),
            // Mail is sent from the inbox instead.
            (None, &["sent", "of-a-newer-version"]),
        ] {
            for kind in kinds {
                let at = mesh::ports::machine::Instant(0);
                let event = Event { at, kind: (*kind).to_owned(), details: Map::new(), next: Position::START };
                assert_eq!(Topic::of(&event), topic, "{kind}");
            }
        }
    }

    #[test]
    fn a_line_says_what_is_wanted_or_what_is_wrong_with_it() {
        check(r#"{"subscribe":["reservations","commands"]}"#, "reservations+commands of nobody from now");
        check(r#"{"subscribe":["inbox"],"agent":"bob","cursor":"17-4"}"#, "inbox of bob from 17-4");
        check(r#"{"subscribe":["agents"],"cursor":"start","newer":true}"#, "agents of nobody from 0-0");
        check(r#"{"subscribe":["inbox"]}"#, "`inbox` wants an `agent`");
        check(
            r#"{"subscribe":["mail"]}"#,
            "`mail` cannot be followed, only inbox, reservations, commands, turns, agents, deltas",
        );
        check(r#"{"subscribe":[]}"#, "must name one or more");
        check(r#"{"subscribe":"inbox"}"#, "was not understood");
        check(r#"{"subscribe":["inbox"],"agent":"Bob!"}"#, "is not a name");
        check(r#"{"subscribe":["agents"],"cursor":"17"}"#, "`17` is not a cursor");
        check(r#"{"subscribe":["agents"],"cursor":"-1-2"}"#, "is not a cursor");
        check("{}", "must name one or more");
        check("garbage", "was not understood");
        check(r#"[["agents"]]"#, "was not understood: invalid type: sequence, expected a map");
    }
}
