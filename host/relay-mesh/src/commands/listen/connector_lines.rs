//! The lines between `listen` and a connector, in both directions.

use std::collections::BTreeSet;
use std::str::FromStr;

use mesh::names::{AgentName, MessageId};
use mesh::sessions::Ticket;
use serde::{Deserialize, Serialize};

use crate::shapes::commands::CommandShape;
use crate::shapes::mail::MessageShape;

/// A line out.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum Output<'a> {
    /// Mail for this target is watched from now on.
    Watching {
        /// The session, if the target is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<&'a str>,
        /// The agent, if one is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<&'a AgentName>,
        /// Proof for tools/call that the connector knows the session, to be put into `_relay`.
        #[serde(skip_serializing_if = "Option::is_none")]
        ticket: Option<&'a Ticket>,
    },
    /// An agent was bound to a watched session.
    Bound { session: &'a str, agent: &'a AgentName },
    /// A message, leased for the reader of this line.
    Message {
        /// The session, if the target is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<&'a str>,
        /// The agent whose mail it is.
        agent: &'a AgentName,
        #[serde(flatten)]
        message: Box<MessageShape>,
        /// What a model may be shown: the body inside an envelope.
        text: String,
    },
    /// An invitation to join, for a watched session that has no agent: leased for the reader of this line.
    Invitation {
        session: &'a str,
        /// The invitation's id, for receipts.
        id: MessageId,
        /// The inviting agent.
        from: &'a AgentName,
        /// When it was sent.
        at: String,
        lapses: String,
        /// What a model may be shown: who invites, their text inside an envelope, and the protocol.
        text: &'a str,
    },
    /// A command, taken for the reader of this line. The next comes when it has ended.
    Command {
        /// The session that is to run it by itself, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<&'a str>,
        #[serde(flatten)]
        taken: Box<CommandShape>,
    },
    /// The answer to a hook.
    Answer {
        /// The number that the call had.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<u64>,
        /// The adapter's output: JSON if it is JSON, else text.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<serde_json::Value>,
        /// The messages in it, leased for the reader of this line.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        mail: Vec<MessageId>,
        /// Why there is no answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// An error that does not end `listen`.
    Error { error: &'a str },
}

/// A line in.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Input {
    /// Watch one more session.
    Watch(String),
    /// Watch a session no longer.
    Unwatch(String),
    /// Watch a session whose connector runs these commands of the harness's own.
    Runs {
        session: String,
        /// The names, without their slash.
        commands: BTreeSet<String>,
    },
    /// What became of a message.
    Receipt {
        id: MessageId,
        /// The session, if several were given the same message.
        session: Option<String>,
        news: News,
        /// Evidence in the connector's own terms.
        evidence: Option<serde_json::Value>,
    },
    /// How a command ended.
    Ended {
        id: MessageId,
        ended: Ending,
        result: String,
        /// Evidence in the connector's own terms.
        evidence: Option<serde_json::Value>,
    },
    /// One of the harness's own events, for its adapter.
    Hook {
        /// The event, in the harness's own spelling.
        name: String,
        payload: serde_json::Value,
        /// A number that the answer repeats.
        call: Option<u64>,
    },
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ending {
    /// It did what it was asked.
    #[serde(alias = "succeeded")]
    Done,
    /// It did not do what it was asked.
    Failed,
    /// It was not begun, and may come again.
    Refused,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum News {
    /// The harness was asked to take it.
    #[serde(alias = "offered")]
    Notified,
    /// The harness said that it took it.
    Accepted,
    /// Its text is in the model's context.
    Shown,
    /// The agent said that it had it.
    Acknowledged,
    /// The harness did not take it.
    Refused,
}

/// Why a line was not understood.
#[derive(Debug, thiserror::Error)]
pub(super) enum Misheard {
    /// It is not JSON, or has a field of another kind.
    #[error("a line was not understood: {0}")]
    Json(#[from] serde_json::Error),
    /// It has none of the expected combinations of fields.
    #[error(
        "a line was not understood: it must hold `id` and `status`, or `watch`, or `unwatch`, or `hook`, or `command` and `ended`"
    )]
    Nothing,
}

impl FromStr for Input {
    type Err = Misheard;

    fn from_str(line: &str) -> Result<Input, Misheard> {
        let fields: Fields = serde_json::from_str(line)?;
        match fields {
            Fields {
                command: Some(id),
                ended: Some(ended),
                watch: None,
                unwatch: None,
                hook: None,
                id: None,
                result,
                evidence,
                ..
            } => Ok(Input::Ended { id, ended, result, evidence }),
            Fields { command: Some(_), .. } => Err(Misheard::Nothing),
            Fields { watch: Some(session), unwatch: None, hook: None, id: None, commands: Some(commands), .. } => {
                Ok(Input::Runs { session, commands })
            }
            Fields { watch: Some(session), unwatch: None, hook: None, id: None, .. } => Ok(Input::Watch(session)),
            Fields { watch: None, unwatch: Some(session), hook: None, id: None, .. } => Ok(Input::Unwatch(session)),
            Fields {
                watch: None,
                unwatch: None,
                hook: None,
                id: Some(id),
                status: Some(news),
                session,
                evidence,
                ..
            } => Ok(Input::Receipt { id, session, news, evidence }),
            Fields { watch: None, unwatch: None, hook: Some(name), id: None, payload, call, .. } => {
                Ok(Input::Hook { name, payload, call })
            }
            Fields { .. } => Err(Misheard::Nothing),
        }
    }
}

/// Every field that a line may have. Others are ignored, so that a connector may be newer.
#[derive(Deserialize)]
struct Fields {
    watch: Option<String>,
    unwatch: Option<String>,
    id: Option<MessageId>,
    #[serde(alias = "rung")]
    status: Option<News>,
    session: Option<String>,
    evidence: Option<serde_json::Value>,
    hook: Option<String>,
    #[serde(default)]
    payload: serde_json::Value,
    call: Option<u64>,
    command: Option<MessageId>,
    ended: Option<Ending>,
    #[serde(default)]
    result: String,
    commands: Option<BTreeSet<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let outcome = match line.parse::<Input>() {
            Ok(heard) => format!("{heard:?}"),
            Err(error) => error.to_string(),
        };
        assert!(outcome.contains(expected), "{line}: {outcome}");
    }

    #[test]
    fn lines_of_connectors_are_understood_or_complained_of() {
        let id = "01JD8Z3K5V0000000000000000";
        check(r#"{"watch":"ses_1"}"#, r#"Watch("ses_1")"#);
        check(r#"{"unwatch":"ses_1"}"#, r#"Unwatch("ses_1")"#);
        check(r#"{"watch":"s","commands":["review"]}"#, r#"Runs { session: "s", commands: {"review"} }"#);
        check(
            &format!(r#"{{"id":"{id}","status":"shown","evidence":{{"turn":3}}}}"#),
            "news: Shown, evidence: Some(Object",
        );
        check(
            &format!(r#"{{"id":"{id}","status":"refused","session":"s","more":1}}"#),
            r#"session: Some("s"), news: Refused"#,
        );
        // A connector from before 0.1 uses the field and the word of that time.
        check(&format!(r#"{{"id":"{id}","rung":"offered"}}"#), "news: Notified");
        check(
            r#"{"hook":"session.idle","payload":{"session":"s"},"call":7}"#,
            r#"Hook { name: "session.idle", payload: Object {"session": String("s")}, call: Some(7) }"#,
        );
        check(
            &format!(r#"{{"command":"{id}","ended":"failed","result":"3 of 40"}}"#),
            r#"ended: Failed, result: "3 of 40", evidence: None }"#,
        );
        check(&format!(r#"{{"command":"{id}"}}"#), "must hold");
        check(&format!(r#"{{"command":"{id}","ended":"over"}}"#), "unknown variant `over`");
        check(r#"{"hook":"session.idle","watch":"s"}"#, "must hold");
        check(&format!(r#"{{"id":"{id}"}}"#), "must hold `id` and `status`");
        check(&format!(r#"{{"id":"{id}","status":"read"}}"#), "unknown variant `read`");
        check(r#"{"id":"7","status":"shown"}"#, "is not an id");
        check(r#"{"watch":"a","unwatch":"a"}"#, "must hold");
        check("{}", "must hold");
        check("garbage", "was not understood");
        check("[1]", "was not understood");
    }
}
