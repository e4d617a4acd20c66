//! `message_status`: how far a message got.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use view::{RecipientView, Timestamp};

use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::text::{Text, quoted};
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    id: String,
    from: String,
    subject: String,
    thread: String,
    /// When it was sent.
    at: Timestamp,
    recipients: Vec<RecipientView>,
}

pub(super) struct Status;

impl Tool for Status {
    const NAME: &'static str = "message_status";
    const TITLE: &'static str = "Message status";
    const DESCRIPTION: &'static str = "How far a message got with each recipient.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        call.agent()?;
        let id = call.id(&input.id).await?;
        let status = call.mesh.message_status(&call.caller, id).await?;
        let recipients: Vec<RecipientView> = status.recipients.iter().map(RecipientView::from).collect();
        let message = status.message;
        let mut lines = vec![format!("{} from {} about {}", message.id, message.from, quoted(&message.subject))];
        lines.extend(recipients.iter().map(Text::text));
        let output = Output {
            id: message.id.to_string(),
            from: message.from.to_string(),
            subject: message.subject,
            thread: message.thread,
            at: Timestamp(message.at),
            recipients,
        };
        Ok(ToolOutput::new(output, lines.join("\n")))
    }
}
