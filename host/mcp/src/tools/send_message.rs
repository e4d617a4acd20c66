//! `send_message`: to one agent or to several, by exact name.

use mesh::message::Draft;
use mesh::names::MessageId;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Done, Effect, List, Tool, Visit};
use crate::refusal::Refusal;
use crate::twins::{PriorityTwin, SentTwin};

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// exact names
    to: List,
    body: String,
    subject: Option<String>,
    /// id of the message you answer; acknowledges it
    reply_to: Option<String>,
    thread: Option<String>,
    /// low waits; urgent may interrupt
    priority: Option<PriorityTwin>,
    tags: Option<List>,
    /// the same key is stored once
    idempotency_key: Option<String>,
}

/// The tool.
pub(super) struct SendMessage;

impl Tool for SendMessage {
    const NAME: &'static str = "send_message";
    const TITLE: &'static str = "Send a message";
    const DESCRIPTION: &'static str =
        "Send a message to agents by exact name; it wakes them if idle. Stored is not read: see message_status.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Input;
    type Output = SentTwin;

    async fn run(visit: Visit, input: Input) -> Result<Done<SentTwin>, Refusal> {
        let draft = Draft {
            body: input.body,
            subject: input.subject,
            thread: input.thread,
            reply_to: message_id(input.reply_to.as_deref())?,
            priority: input.priority.map(Into::into).unwrap_or_default(),
            tags: input.tags.unwrap_or_default().0,
            idempotency_key: input.idempotency_key,
        };
        let sent: SentTwin = visit.mesh.send(&visit.caller, &input.to.0, draft).await?.into();
        let text = sent.text();
        Ok(Done::new(sent, text))
    }
}

/// The id of a message, where one was given.
pub(super) fn message_id(text: Option<&str>) -> Result<Option<MessageId>, Refusal> {
    match text {
        Some(text) => text
            .parse()
            .map(Some)
            .map_err(|error: mesh::names::InvalidMessageId| Refusal::new(error.to_string(), "Copy it from a message.")),
        None => Ok(None),
    }
}
