//! The names under which other projects know the mail tools: `atm_send`, `atm_read`, `atm_broadcast`, `atm_pending_count`.
//! The sender is always the caller, by evidence.

use mesh::messages::{Draft, LONGEST_BODY};
use mesh::{Audience, Fetch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use view::{SentView, rfc3339};

use super::pending::{self, Output as PendingOutput};
use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::lease_tracker::{Leased, OnArrival, PendingLease};
use crate::tool_error::ToolError;

/// The most messages of one call.
const MOST: usize = 100;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendInput {
    /// agent or agent@team
    to: String,
    message: String,
    summary: Option<String>,
}

pub(super) struct AtmSend;

impl Tool for AtmSend {
    const NAME: &'static str = "atm_send";
    const TITLE: &'static str = "Send a message";
    const DESCRIPTION: &'static str = "Send a message to an agent.";
    const EFFECT: Effect = Effect::Adds;
    type Input = SendInput;
    type Output = SentView;

    async fn run(call: ToolCall, input: SendInput) -> Result<ToolOutput<SentView>, ToolError> {
        let draft = Draft { body: input.message, subject: input.summary, ..Draft::default() };
        call.has_read().await;
        let sent = call.mesh.send(&call.caller, &[input.to], draft).await?;
        Ok(SentView::of(&sent, call.agent()?.to_string()).into())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BroadcastInput {
    message: String,
    summary: Option<String>,
    team: Option<String>,
}

pub(super) struct AtmBroadcast;

impl Tool for AtmBroadcast {
    const NAME: &'static str = "atm_broadcast";
    const TITLE: &'static str = "Send to everybody";
    const DESCRIPTION: &'static str = "Send to every agent that is not offline, or to one team.";
    const EFFECT: Effect = Effect::Adds;
    type Input = BroadcastInput;
    type Output = SentView;

    async fn run(call: ToolCall, input: BroadcastInput) -> Result<ToolOutput<SentView>, ToolError> {
        let draft = Draft { body: input.message, subject: input.summary, ..Draft::default() };
        call.has_read().await;
        let sent = call.mesh.broadcast(&call.caller, &Audience { team: input.team, harness: None }, draft).await?;
        Ok(SentView::of(&sent, call.agent()?.to_string()).into())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadInput {
    #[serde(default = "yes")]
    mark_read: bool,
    #[serde(default = "ten")]
    max_messages: usize,
    /// bytes
    #[serde(default = "four_kib")]
    max_message_length: usize,
}

fn yes() -> bool {
    true
}

fn ten() -> usize {
    10
}

fn four_kib() -> usize {
    4_096
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReadOutput {
    messages: Vec<ReadMessage>,
    /// how many more wait
    waiting: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReadMessage {
    from: String,
    message: String,
    timestamp: String,
    message_id: String,
}

pub(super) struct AtmRead;

impl Tool for AtmRead {
    const NAME: &'static str = "atm_read";
    const TITLE: &'static str = "Read mail";
    const DESCRIPTION: &'static str = "Take your unread messages.";
    const EFFECT: Effect = Effect::Adds;
    type Input = ReadInput;
    type Output = ReadOutput;

    async fn run(call: ToolCall, input: ReadInput) -> Result<ToolOutput<ReadOutput>, ToolError> {
        let agent = call.agent()?;
        if input.max_messages > MOST || input.max_message_length > LONGEST_BODY {
            let what = format!("at most {MOST} messages of {LONGEST_BODY} bytes come at once");
            return Err(ToolError::new(what, "Ask again with less."));
        }
        call.has_read().await;
        let ask = Fetch {
            limit: input.max_messages,
            max_length: input.max_message_length,
            peek: !input.mark_read,
            ..Fetch::default()
        };
        let fetched = call.mesh.fetch(&agent, &ask).await?;
        let text = match fetched.messages.as_slice() {
            [] => "no unread messages".to_owned(),
            messages => mesh::envelope(messages, usize::MAX).text,
        };
        let messages = fetched.messages.iter().map(|fetched| ReadMessage {
            from: fetched.message.from.to_string(),
            message: fetched.message.body.clone(),
            timestamp: rfc3339(fetched.message.at),
            message_id: fetched.message.id.to_string(),
        });
        let output = ReadOutput { messages: messages.collect(), waiting: fetched.waiting };
        let lease = fetched.lease.map(|lease| {
            PendingLease::from(Leased::Mail {
                lease: Box::new(lease),
                by: call.caller.session().cloned(),
                on_arrival: OnArrival::MarkRead,
                on_its_way: call.mail.begin(&agent),
            })
        });
        Ok(ToolOutput { output, text, lease })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PendingInput {}

pub(super) struct AtmPendingCount;

impl Tool for AtmPendingCount {
    const NAME: &'static str = "atm_pending_count";
    const TITLE: &'static str = "Count waiting mail";
    const DESCRIPTION: &'static str = "How many messages wait for you, and from whom. Marks nothing.";
    const EFFECT: Effect = Effect::Reads;
    type Input = PendingInput;
    type Output = PendingOutput;

    async fn run(call: ToolCall, _: PendingInput) -> Result<ToolOutput<PendingOutput>, ToolError> {
        pending::count(&call).await
    }
}
