//! The lines of the event socket: subscriptions in, events out.

use std::fmt;
use std::str::FromStr;

use mesh::messages::receipt::Receipt;
use mesh::names::AgentName;
use mesh::{Event, Mesh, ReceiptsOf};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::cursor::{Cursor, InvalidCursor};
use super::delivery;
use super::deltas::DeltaLine;
use super::topic::{Topic, activity};
use crate::errors::{Explain, WHO_IS_HERE};
use crate::exit::Exit;
use crate::shapes::events::details;
use crate::shapes::mail::MessageShape;
use crate::shapes::rfc3339;

/// What one follower subscribed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subscription {
    pub(crate) topics: Vec<Topic>,
    /// Whose mail, if a topic of mail is among the topics.
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
    #[error("`{0}` wants an `agent` whose mail it is")]
    WhoseMail(&'static str),
    #[error("{}", mesh::names::no_such_agent(.0))]
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
            | Unwanted::WhoseMail(_)
            | Unwanted::Name(_)
            | Unwanted::Cursor(_) => Exit::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Unwanted::Unknown(_) => WHO_IS_HERE,
            Unwanted::WhoseMail(_) => "say `--agent NAME`, or leave that topic out",
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
            return Err(Unwanted::WhoseMail(Topic::Inbox.as_str()));
        }
        Ok(Subscription { topics, agent, cursor })
    }

    /// The topics under which an event is sent: one line for each.
    pub(crate) fn wants(&self, event: &Event) -> Vec<Topic> {
        let is_wanted = |topic: &Topic| match topic {
            // What an agent follows is its own mail.
            Topic::Messages => self.agent.as_ref().is_none_or(|agent| event.concerns(agent)),
            Topic::Activity => activity(event).is_some(),
            Topic::Inbox
            | Topic::Reservations
            | Topic::Commands
            | Topic::Turns
            | Topic::Deltas
            | Topic::Agents
            | Topic::Delivery
            | Topic::Asks
            | Topic::Runs => true,
        };
        let topics = Topic::of(event).iter().copied();
        topics.filter(|topic| self.topics.contains(topic) && is_wanted(topic)).collect()
    }

    /// Checks that the agent exists.
    pub(crate) async fn check(&self, mesh: &Mesh) -> Result<(), CheckError> {
        let of_one = self.agent.as_ref().filter(|_| self.inbox().is_some() || self.receipts().is_some());
        match of_one {
            Some(agent) if mesh.agent(agent).await?.is_none() => Err(Unwanted::Unknown(agent.clone()).into()),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether something of it is in the event log.
    pub(crate) fn is_of_event_log(&self) -> bool {
        self.topics.iter().any(|topic| topic.is_of_event_log())
    }

    /// Whose receipts are followed, if any are.
    pub(crate) fn receipts(&self) -> Option<ReceiptsOf<'_>> {
        let whose = self.agent.as_ref().map_or(ReceiptsOf::All, ReceiptsOf::One);
        Some(whose).filter(|_| self.topics.contains(&Topic::Delivery))
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
        let topics: Vec<Topic> = asked.subscribe.into_iter().map(topic).collect::<Result<_, _>>()?;
        let agent = asked.agent.map(|name| name.parse::<AgentName>()).transpose()?;
        let cursor = asked.cursor.map(|cursor| cursor.parse::<Cursor>()).transpose()?;
        // Who is behind a connection is not known, so nobody gets the whole mesh's mail there.
        let of_all = [Topic::Messages, Topic::Delivery].into_iter().find(|topic| topics.contains(topic));
        if let (Some(topic), None) = (of_all, &agent) {
            return Err(Unwanted::WhoseMail(topic.as_str()));
        }
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
        /// `inbox` or `messages`.
        topic: Topic,
        /// Always `message`.
        event: &'static str,
        #[serde(flatten)]
        message: Box<MessageShape>,
        /// Everybody who was sent it, as far as the follower may know; of `messages` alone.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        recipients: Vec<String>,
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
    pub(crate) fn subscribed(subscription: &Subscription, cursor: &Cursor) -> EventLine {
        EventLine::Subscribed { event: "subscribed", topics: subscription.topics.clone(), cursor: cursor.to_string() }
    }

    pub(crate) fn event(topic: Topic, event: &Event, cursor: &Cursor) -> EventLine {
        if let (Topic::Activity, Some(presence)) = (topic, activity(event)) {
            let mut details = Map::new();
            for field in ["agent", "harness", "session"] {
                details.extend(event.details.get(field).map(|value| (field.to_owned(), value.clone())));
            }
            details.insert("because".to_owned(), event.kind.clone().into());
            let (event, at) = (presence.as_str().to_owned(), rfc3339(event.at));
            return EventLine::Event { topic, event, at, details, cursor: cursor.to_string() };
        }
        EventLine::Event {
            topic,
            event: event.kind.clone(),
            at: rfc3339(event.at),
            details: details(event),
            cursor: cursor.to_string(),
        }
    }

    /// How far a message got; none for what says nothing to people.
    pub(crate) fn receipt(receipt: &Receipt, to: &AgentName, cursor: &Cursor) -> Option<EventLine> {
        let (event, details) = delivery::line(receipt, to)?;
        let at = rfc3339(receipt.at);
        Some(EventLine::Event { topic: Topic::Delivery, event, at, details, cursor: cursor.to_string() })
    }

    /// A message of the whole mesh, or of one agent's mail.
    pub(crate) fn sent(message: &mesh::messages::Message, to: Vec<String>, cursor: &Cursor) -> EventLine {
        EventLine::of_message(Topic::Messages, message, to, cursor)
    }

    pub(crate) fn message(message: &mesh::messages::Message, cursor: &Cursor) -> EventLine {
        EventLine::of_message(Topic::Inbox, message, Vec::new(), cursor)
    }

    fn of_message(
        topic: Topic,
        message: &mesh::messages::Message,
        recipients: Vec<String>,
        cursor: &Cursor,
    ) -> EventLine {
        let text = mesh::envelope(std::slice::from_ref(message), usize::MAX).text;
        EventLine::Message {
            topic,
            event: "message",
            message: Box::new(MessageShape::from(message)),
            recipients,
            text,
            cursor: cursor.to_string(),
        }
    }

    pub(crate) fn alive(cursor: &Cursor) -> EventLine {
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
    fn a_line_says_what_is_wanted_or_what_is_wrong_with_it() {
        check(r#"{"subscribe":["reservations","commands"]}"#, "reservations+commands of nobody from now");
        check(r#"{"subscribe":["inbox"],"agent":"bob","cursor":"17-4"}"#, "inbox of bob from 17-4");
        check(r#"{"subscribe":["agents"],"cursor":"start","newer":true}"#, "agents of nobody from 0-0");
        check(r#"{"subscribe":["inbox"]}"#, "`inbox` wants an `agent`");
        check(
            r#"{"subscribe":["mail"]}"#,
            "`mail` cannot be followed, only inbox, reservations, commands, turns, agents, deltas, messages, delivery, \
             activity, asks, runs",
        );
        check(r#"{"subscribe":["messages"]}"#, "`messages` wants an `agent`");
        check(r#"{"subscribe":["delivery"]}"#, "`delivery` wants an `agent`");
        check(r#"{"subscribe":["delivery"],"agent":"bob","cursor":"17-4-9"}"#, "delivery of bob from 17-4-9");
        check(r#"{"subscribe":[]}"#, "must name one or more");
        check(r#"{"subscribe":"inbox"}"#, "was not understood");
        check(r#"{"subscribe":["inbox"],"agent":"Bob!"}"#, "is not a name");
        check(r#"{"subscribe":["agents"],"cursor":"17"}"#, "`17` is not a cursor");
        check("{}", "must name one or more");
        check("garbage", "was not understood");
        check(r#"[["agents"]]"#, "was not understood: invalid type: sequence, expected a map");
    }
}
