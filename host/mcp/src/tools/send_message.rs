//! `send_message`: sends to one or more agents, by exact name.

use mesh::messages::Draft;
use schemars::JsonSchema;
use serde::Deserialize;
use view::{PriorityView, SentView};

use super::{Effect, List, Tool, ToolCall, ToolOutput};
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    to: List,
    body: String,
    subject: Option<String>,
    /// id of the message you answer; acknowledges it
    reply_to: Option<String>,
    thread: Option<String>,
    /// low waits; urgent may interrupt
    priority: Option<PriorityView>,
    tags: Option<List>,
    /// the same key is stored once
    idempotency_key: Option<String>,
}

pub(super) struct SendMessage;

impl Tool for SendMessage {
    const NAME: &'static str = "send_message";
    const TITLE: &'static str = "Send a message";
    const DESCRIPTION: &'static str =
        "Send a message to agents by exact name; it wakes them if idle. Stored is not read: see message_status.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Input;
    type Output = SentView;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<SentView>, ToolError> {
        let reply_to = match &input.reply_to {
            Some(id) => Some(call.id(id).await?),
            None => None,
        };
        let draft = Draft {
            body: input.body,
            subject: input.subject,
            thread: input.thread,
            reply_to,
            priority: input.priority.map(Into::into).unwrap_or_default(),
            tags: input.tags.unwrap_or_default().0,
            idempotency_key: input.idempotency_key,
        };
        call.has_read().await;
        let sent = call.mesh.send(&call.caller, &input.to.0, draft).await?;
        Ok(SentView::of(&sent, call.agent()?.to_string()).into())
    }
}
