//! `find_agents`: a fuzzy search. It never chooses a recipient.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use view::AgentView;

use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::text::{lines, quoted};
use crate::tool_error::ToolError;

/// The default limit.
const USUAL: usize = 10;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    query: String,
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Best match first.
    agents: Vec<AgentView>,
}

/// Longest query in bytes: longer than any field that is searched.
const LONGEST_QUERY: usize = 200;

pub(super) struct FindAgents;

impl Tool for FindAgents {
    const NAME: &'static str = "find_agents";
    const TITLE: &'static str = "Find agents";
    const DESCRIPTION: &'static str = "Search agents by name, role, task, project, harness, model or skills.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        if input.query.len() > LONGEST_QUERY {
            let what = format!("`query` has {} bytes and may have {LONGEST_QUERY}", input.query.len());
            return Err(ToolError::new(what, "Make it shorter."));
        }
        let found = call.mesh.find(&input.query, input.limit.unwrap_or(USUAL)).await?;
        let agents: Vec<AgentView> =
            found.iter().map(|found| AgentView::of(&found.seen, call.caller.agent())).collect();
        let text = lines(&agents, &format!("no agent matches {}; list_agents shows who is here", quoted(&input.query)));
        Ok(ToolOutput::new(Output { agents }, text))
    }
}
