//! `list_agents`: the agents on the mesh.

use mesh::agents::Presence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use view::AgentView;

use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::text::lines;
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    team: Option<String>,
    harness: Option<String>,
    #[serde(alias = "include_gone")]
    include_offline: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// By name.
    agents: Vec<AgentView>,
    /// How many agents are left out because they are offline.
    offline: usize,
}

pub(super) struct ListAgents;

impl Tool for ListAgents {
    const NAME: &'static str = "list_agents";
    const TITLE: &'static str = "List agents";
    const DESCRIPTION: &'static str = "List the agents on the mesh, their presence, and how much mail waits for them.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let all = call.mesh.agents().await?;
        let in_team =
            all.iter().filter(|seen| input.team.as_deref().is_none_or(|team| seen.agent.name.team() == Some(team)));
        let mut offline = 0;
        let mut agents = Vec::new();
        for seen in in_team {
            let agent = AgentView::of(seen, call.caller.agent());
            if input.harness.is_some() && input.harness != agent.harness {
                continue;
            }
            if seen.presence == Presence::Offline && input.include_offline != Some(true) {
                offline += 1;
            } else {
                agents.push(agent);
            }
        }
        let mut text = lines(&agents, "no agent is here");
        if offline > 0 {
            text.push_str(&format!("\n{offline} offline and not listed (include_offline)"));
        }
        Ok(ToolOutput::new(Output { agents, offline }, text))
    }
}
