//! `find_agents`: a fuzzy search, which finds and never routes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Done, Effect, Tool, Visit};
use crate::refusal::Refusal;
use crate::twins::{AgentTwin, quoted};

/// How many agents are found where the caller does not say.
const USUAL: usize = 10;

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    query: String,
    limit: Option<usize>,
}

/// What it gives.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Best match first.
    agents: Vec<AgentTwin>,
}

/// More bytes than any field that is searched has.
const LONGEST_QUERY: usize = 200;

/// The tool.
pub(super) struct FindAgents;

impl Tool for FindAgents {
    const NAME: &'static str = "find_agents";
    const TITLE: &'static str = "Find agents";
    const DESCRIPTION: &'static str =
        "Search agents by name, role, task, project, harness, model or skills; fuzzy, best first.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = Output;

    async fn run(visit: Visit, input: Input) -> Result<Done<Output>, Refusal> {
        if input.query.len() > LONGEST_QUERY {
            let what = format!("`query` has {} bytes and may have {LONGEST_QUERY}", input.query.len());
            return Err(Refusal::new(what, "Make it shorter."));
        }
        let found = visit.mesh.find(&input.query, input.limit.unwrap_or(USUAL)).await?;
        let agents: Vec<AgentTwin> =
            found.iter().map(|found| AgentTwin::of(&found.seen, visit.caller.agent())).collect();
        let text = if agents.is_empty() {
            format!("nobody matches {}; list_agents shows who is here", quoted(&input.query))
        } else {
            agents.iter().map(AgentTwin::line).collect::<Vec<_>>().join("\n")
        };
        Ok(Done::new(Output { agents }, text))
    }
}
