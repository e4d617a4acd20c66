//! `bind_session`: binds an agent to a session of a harness.

use mesh::sessions::SessionRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    session_id: Option<String>,
    harness: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    harness: String,
    session_id: String,
    /// The session's agent, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The agent's former session, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_from: Option<String>,
}

pub(super) struct BindSession;

impl Tool for BindSession {
    const NAME: &'static str = "bind_session";
    const TITLE: &'static str = "Bind to a session";
    const DESCRIPTION: &'static str = "Bind your agent to your session, so that mail wakes it. Usually automatic.";
    const EFFECT: Effect = Effect::Settles;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let known = call.caller.session().or(call.ticket.as_ref().map(|ticket| &ticket.session));
        let named = match (input.session_id, input.harness, known) {
            (Some(id), Some(harness), _) => Some(SessionRef { harness, id }),
            (Some(id), None, Some(known)) => Some(SessionRef { harness: known.harness.clone(), id }),
            (Some(id), None, None) => {
                let what = format!("session `{id}` was named without its harness");
                return Err(ToolError::new(what, "Name the harness too, or leave both out."));
            }
            (None, Some(harness), Some(known)) if harness != known.harness => {
                let what = format!("this call comes from {}, not from `{harness}`", known.harness);
                return Err(ToolError::new(what, "Leave harness out."));
            }
            (None, Some(_) | None, _) => None,
        };
        let bound = call.mesh.bind(&call.caller, named, call.ticket).await?;
        let mut text = match &bound.agent {
            Some(agent) => format!("`{agent}` is bound to {} session {}", bound.session.harness, bound.session.id),
            None => format!(
                "{} session {} is detected, and has no agent: register_agent",
                bound.session.harness, bound.session.id
            ),
        };
        if let Some(before) = &bound.moved_from {
            text.push_str(&format!("; before it was {}", before.id));
        }
        let output = Output {
            harness: bound.session.harness,
            session_id: bound.session.id,
            agent: bound.agent.map(|agent| agent.to_string()),
            moved_from: bound.moved_from.map(|before| before.id),
        };
        Ok(ToolOutput::new(output, text))
    }
}
