//! `broadcast`: a message to every agent that is not offline.

use mesh::Audience;
use mesh::messages::Draft;
use schemars::JsonSchema;
use serde::Deserialize;
use view::{PriorityView, SentView};

use super::{Effect, List, Tool, ToolCall, ToolOutput};
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    body: String,
    subject: Option<String>,
    team: Option<String>,
    harness: Option<String>,
    // Taken like those of send_message, and not listed: each costs every session that never broadcasts.
    #[schemars(skip)]
    thread: Option<String>,
    priority: Option<PriorityView>,
    #[schemars(skip)]
    tags: Option<List>,
    #[schemars(skip)]
    idempotency_key: Option<String>,
}

pub(super) struct Broadcast;

impl Tool for Broadcast {
    const NAME: &'static str = "broadcast";
    const TITLE: &'static str = "Send to everybody";
    const DESCRIPTION: &'static str = "Send to every agent that is not offline, or to one team or harness.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Input;
    type Output = SentView;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<SentView>, ToolError> {
        let draft = Draft {
            body: input.body,
            subject: input.subject,
            thread: input.thread,
            reply_to: None,
            priority: input.priority.map(Into::into).unwrap_or_default(),
            tags: input.tags.unwrap_or_default().0,
            idempotency_key: input.idempotency_key,
        };
        let audience = Audience { team: input.team, harness: input.harness };
        call.has_read().await;
        let sent = call.mesh.broadcast(&call.caller, &audience, draft).await?;
        Ok(SentView::of(&sent, call.agent()?.to_string()).into())
    }
}
