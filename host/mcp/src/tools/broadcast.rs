//! `broadcast`: to everybody who is not gone.

use mesh::Audience;
use mesh::message::Draft;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Done, Effect, List, Tool, Visit};
use crate::refusal::Refusal;
use crate::twins::{PriorityTwin, SentTwin};

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    body: String,
    subject: Option<String>,
    team: Option<String>,
    harness: Option<String>,
    thread: Option<String>,
    priority: Option<PriorityTwin>,
    tags: Option<List>,
    idempotency_key: Option<String>,
}

/// The tool.
pub(super) struct Broadcast;

impl Tool for Broadcast {
    const NAME: &'static str = "broadcast";
    const TITLE: &'static str = "Send to everybody";
    const DESCRIPTION: &'static str = "Send a message to every agent that is not gone, or to one team or harness.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Input;
    type Output = SentTwin;

    async fn run(visit: Visit, input: Input) -> Result<Done<SentTwin>, Refusal> {
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
        let sent: SentTwin = visit.mesh.broadcast(&visit.caller, &audience, draft).await?.into();
        let text = sent.text();
        Ok(Done::new(sent, text))
    }
}
