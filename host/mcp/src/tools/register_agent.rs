//! `register_agent`: joining, or being given back the agent that one is already.

use mesh::agent::Profile;
use mesh::names::AgentName;
use mesh::{Outcome, Registration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Done, Effect, List, Tool, Visit};
use crate::refusal::Refusal;
use crate::twins::SessionTwin;

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// a-z, 0-9, -; made up if left out
    name: Option<String>,
    team: Option<String>,
    /// what you are for
    role: Option<String>,
    /// what you do now
    task: Option<String>,
    skills: Option<List>,
    model: Option<String>,
    project: Option<String>,
    program: Option<String>,
    /// issue you work on
    bead: Option<String>,
}

/// What it gives.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Your address.
    name: String,
    /// How you came to it: new; same, for you had joined before; numbered, for the name was taken;
    /// reclaimed, for its holder is gone.
    outcome: OutcomeTwin,
    /// The name that you had asked for, where it was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted: Option<String>,
    /// Messages that already wait for you.
    waiting: usize,
    /// The session of your harness that you are bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionTwin>,
    /// Pass this with every further call: nothing else says who you are.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_key: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum OutcomeTwin {
    New,
    Same,
    Numbered,
    Reclaimed,
}

/// The tool.
pub(super) struct RegisterAgent;

impl Tool for RegisterAgent {
    const NAME: &'static str = "register_agent";
    const TITLE: &'static str = "Join the mesh";
    const DESCRIPTION: &'static str =
        "Join the mesh under a short name. Call it once, first; again from the same session gives the same agent.";
    const EFFECT: Effect = Effect::Settles;
    type Input = Input;
    type Output = Output;

    async fn run(visit: Visit, input: Input) -> Result<Done<Output>, Refusal> {
        let name = match input.name {
            Some(name) => Some(name.parse::<AgentName>().map_err(|error| {
                Refusal::new(error.to_string(), "Choose another one, or leave name out to be given one.")
            })?),
            None => None,
        };
        let profile = Profile {
            harness: None,
            program: input.program,
            model: input.model,
            project: input.project,
            role: input.role,
            task: input.task,
            bead: input.bead,
            skills: input.skills.unwrap_or_default().0,
        };
        let registered = visit.mesh.register(&visit.caller, Registration { name, team: input.team, profile }).await?;
        let name = registered.agent.name.to_string();
        let (outcome, wanted, mut text) = match &registered.outcome {
            Outcome::New => (OutcomeTwin::New, None, format!("you are `{name}`")),
            Outcome::Same => (OutcomeTwin::Same, None, format!("you are `{name}`, as before")),
            Outcome::Numbered { wanted } => (
                OutcomeTwin::Numbered,
                Some(wanted.to_string()),
                format!("you are `{name}`, for `{wanted}` belongs to somebody else"),
            ),
            Outcome::Reclaimed => {
                (OutcomeTwin::Reclaimed, None, format!("you are `{name}`, whose former holder is gone"))
            }
        };
        match registered.waiting {
            0 => {}
            1 => text.push_str("; 1 message waits: fetch_messages"),
            waiting => text.push_str(&format!("; {waiting} messages wait: fetch_messages")),
        }
        if let Some(key) = &registered.key {
            text.push_str(&format!(
                "\nagent_key: {key}\nPass it with every further call: nothing else says who you are."
            ));
        }
        let output = Output {
            name,
            outcome,
            wanted,
            waiting: registered.waiting,
            session: visit.caller.session().cloned().map(SessionTwin::from),
            agent_key: registered.key,
        };
        Ok(Done::new(output, text))
    }
}
