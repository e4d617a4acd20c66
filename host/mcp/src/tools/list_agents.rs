//! `list_agents`: who is here.

use mesh::agent::Presence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Done, Effect, Tool, Visit};
use crate::refusal::Refusal;
use crate::twins::AgentTwin;

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    team: Option<String>,
    harness: Option<String>,
    include_gone: Option<bool>,
}

/// What it gives.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// By name.
    agents: Vec<AgentTwin>,
    /// How many agents are left out because they are gone.
    gone: usize,
}

/// The tool.
pub(super) struct ListAgents;

impl Tool for ListAgents {
    const NAME: &'static str = "list_agents";
    const TITLE: &'static str = "List agents";
    const DESCRIPTION: &'static str = "List who is on the mesh, how present, and how much mail waits for them.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = Output;

    async fn run(visit: Visit, input: Input) -> Result<Done<Output>, Refusal> {
        let all = visit.mesh.agents().await?;
        let meant = all.iter().filter(|seen| {
            input.team.as_deref().is_none_or(|team| seen.agent.name.team() == Some(team))
                && input.harness.as_ref().is_none_or(|harness| seen.agent.profile.harness.as_ref() == Some(harness))
        });
        let mut gone = 0;
        let mut agents = Vec::new();
        for seen in meant {
            if seen.presence == Presence::Gone && input.include_gone != Some(true) {
                gone += 1;
            } else {
                agents.push(AgentTwin::of(seen, visit.caller.agent()));
            }
        }
        let mut lines: Vec<String> = agents.iter().map(AgentTwin::line).collect();
        if agents.is_empty() {
            lines.push("nobody is here".to_owned());
        }
        if gone > 0 {
            lines.push(format!("{gone} gone and not listed (include_gone)"));
        }
        Ok(Done::new(Output { agents, gone }, lines.join("\n")))
    }
}
