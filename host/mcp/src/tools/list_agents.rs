//! `list_agents`: the agents on the mesh.

use mesh::agents::Presence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use view::AgentView;

use super::{Effect, Tool, ToolCall, ToolOutput, is_zero};
use crate::text::lines;
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    team: Option<String>,
    harness: Option<String>,
    project: Option<String>,
    #[serde(alias = "include_gone")]
    include_offline: Option<bool>,
    /// default 30
    limit: Option<usize>,
}

/// The default limit. An agent costs some hundred tokens at most.
const USUAL: usize = 30;

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// By name.
    agents: Vec<AgentView>,
    /// How many agents are left out because they are offline.
    offline: usize,
    /// How many more there are, beyond the limit.
    #[serde(skip_serializing_if = "is_zero")]
    more: usize,
}

/// Whether a team or harness is the one that a model asks for.
fn is_named(name: Option<&str>, asked: &str) -> bool {
    name.is_some_and(|name| name.eq_ignore_ascii_case(asked))
}

/// Whether an agent works on a project: the one of that name, or the one in a folder of that name.
fn is_of(project: &str, agent: &AgentView) -> bool {
    let wanted = project.trim_end_matches('/');
    agent.project.as_deref().is_some_and(|theirs| {
        let theirs = theirs.trim_end_matches('/');
        theirs == wanted || theirs.rsplit('/').next() == Some(wanted)
    })
}

pub(super) struct ListAgents;

impl Tool for ListAgents {
    const NAME: &'static str = "list_agents";
    const TITLE: &'static str = "List agents";
    const DESCRIPTION: &'static str = "List agents, their presence and waiting mail.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let all = call.mesh.agents().await?;
        let in_team =
            all.iter().filter(|seen| input.team.as_deref().is_none_or(|team| is_named(seen.agent.name.team(), team)));
        let limit = input.limit.unwrap_or(USUAL);
        let (mut offline, mut more) = (0, 0);
        let mut agents = Vec::new();
        for seen in in_team {
            let agent = AgentView::of(seen, call.caller.agent());
            if input.harness.as_deref().is_some_and(|harness| !is_named(agent.harness.as_deref(), harness))
                || input.project.as_deref().is_some_and(|project| !is_of(project, &agent))
            {
                continue;
            }
            if seen.presence == Presence::Offline && input.include_offline != Some(true) {
                offline += 1;
            } else if agents.len() >= limit {
                more += 1;
            } else {
                agents.push(agent);
            }
        }
        let mut text = lines(&agents, "no agent is here");
        if more > 0 {
            text.push_str(&format!("\n{more} more: choose by team, harness or project, raise limit, or find_agents"));
        }
        if offline > 0 {
            text.push_str(&format!("\n{offline} offline and not listed (include_offline)"));
        }
        Ok(ToolOutput::new(Output { agents, offline, more }, text))
    }
}
