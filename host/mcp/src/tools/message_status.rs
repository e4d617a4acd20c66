//! `message_status`: how far a message went.

use mesh::timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::send_message::message_id;
use super::{Done, Effect, Tool, Visit};
use crate::refusal::Refusal;
use crate::twins::{RecipientTwin, quoted};

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    id: String,
}

/// What it gives.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    id: String,
    from: String,
    subject: String,
    thread: String,
    /// When it was sent.
    at: String,
    recipients: Vec<RecipientTwin>,
}

/// The tool.
pub(super) struct Status;

impl Tool for Status {
    const NAME: &'static str = "message_status";
    const TITLE: &'static str = "How far a message went";
    const DESCRIPTION: &'static str = "How far a message went with each recipient: stored, offered, accepted, shown, \
                                       fetched, acknowledged; or held, expired, undeliverable.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = Output;

    async fn run(visit: Visit, input: Input) -> Result<Done<Output>, Refusal> {
        visit.agent()?;
        let Some(id) = message_id(Some(&input.id))? else { return Err(Refusal::not_registered()) };
        let status = visit.mesh.message_status(&visit.caller, id).await?;
        let recipients: Vec<RecipientTwin> = status.recipients.iter().map(RecipientTwin::from).collect();
        let message = status.message;
        let mut lines = vec![format!("{} from {} about {}", message.id, message.from, quoted(&message.subject))];
        lines.extend(recipients.iter().map(RecipientTwin::text));
        let output = Output {
            id: message.id.to_string(),
            from: message.from.to_string(),
            subject: message.subject,
            thread: message.thread,
            at: timestamp(message.at),
            recipients,
        };
        Ok(Done::new(output, lines.join("\n")))
    }
}
