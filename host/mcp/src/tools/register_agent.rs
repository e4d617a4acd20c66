//! `register_agent`: joins, or returns the agent that the session already has.

use mesh::Registration;
use mesh::agents::Profile;
use mesh::names::AgentName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use view::{RegisteredView, SessionRefView};

use super::{Effect, List, Tool, ToolCall, ToolOutput};
use crate::text::Text;
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// a-z, 0-9, -; optional
    name: Option<String>,
    team: Option<String>,
    role: Option<String>,
    /// what you do now
    task: Option<String>,
    skills: Option<List>,
    model: Option<String>,
    project: Option<String>,
    program: Option<String>,
    #[serde(alias = "bead")]
    issue: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    #[serde(flatten)]
    registered: RegisteredView,
    /// The session of your harness that you are bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionRefView>,
    /// Pass this with every further call: nothing else says who you are.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_key: Option<String>,
}

pub(super) struct RegisterAgent;

impl Tool for RegisterAgent {
    const NAME: &'static str = "register_agent";
    const TITLE: &'static str = "Join the mesh";
    const DESCRIPTION: &'static str = "Join the mesh under a short name. Call it once, first.";
    const EFFECT: Effect = Effect::Settles;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let name = match input.name {
            Some(name) => Some(name.parse::<AgentName>().map_err(|error| {
                ToolError::new(error.to_string(), "Choose another one, or leave name out to be given one.")
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
            issue: input.issue,
            skills: input.skills.unwrap_or_default().0,
        };
        let registered = call.mesh.register(&call.caller, Registration { name, team: input.team, profile }).await?;
        let view = RegisteredView::from(&registered);
        let mut text = view.text();
        if let Some(key) = &registered.key {
            text.push_str(&format!(
                "\nagent_key: {key}\nPass it with every further call: nothing else says who you are."
            ));
        }
        let output = Output {
            registered: view,
            session: call.caller.session().cloned().map(SessionRefView::from),
            agent_key: registered.key,
        };
        Ok(ToolOutput::new(output, text))
    }
}
