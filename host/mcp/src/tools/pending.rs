//! `relay_pending`: how much mail waits, and from whom. It reads nothing.

use std::collections::BTreeMap;

use mesh::Fetch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::tool_error::ToolError;

/// The most messages whose senders are counted.
const MOST: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    count: usize,
    /// how many of each sender
    senders: BTreeMap<String, usize>,
}

/// Counts the caller's mail without marking anything.
pub(super) async fn count(call: &ToolCall) -> Result<ToolOutput<Output>, ToolError> {
    let agent = call.agent()?;
    let ask = Fetch { limit: MOST, max_length: 0, peek: true, ..Fetch::default() };
    let fetched = call.mesh.fetch(&agent, &ask).await?;
    let mut senders = BTreeMap::new();
    for message in &fetched.messages {
        *senders.entry(message.message.from.to_string()).or_insert(0) += 1;
    }
    let count = fetched.messages.len() + fetched.waiting;
    let from = senders.iter().map(|(sender, count)| format!("{count} from {sender}")).collect::<Vec<_>>().join(", ");
    let text = if count == 0 { "no mail waits".to_owned() } else { format!("{count} wait: {from}") };
    Ok(ToolOutput::new(Output { count, senders }, text))
}

pub(super) struct RelayPending;

impl Tool for RelayPending {
    const NAME: &'static str = "relay_pending";
    const TITLE: &'static str = "Count waiting mail";
    const DESCRIPTION: &'static str = "How many messages wait for you, and from whom. Reads none.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, _: Input) -> Result<ToolOutput<Output>, ToolError> {
        count(&call).await
    }
}
