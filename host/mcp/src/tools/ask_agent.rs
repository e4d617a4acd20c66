//! `ask_agent` and `ask_agent_reply`: a conversation with an agent of any harness that can be driven.

use mesh::ports::runner::{InvalidReach, Reach};
use schemars::JsonSchema;
use serde::Deserialize;

use super::turn::{TurnOutput, answered};
use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::thread_host::{NewThread, ThreadReply};
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// claude, codex, gemini, opencode
    harness: Option<String>,
    prompt: String,
    /// default yours
    cwd: Option<String>,
    model: Option<String>,
    effort: Option<String>,
    /// look (default), edit, work or unguarded
    reach: Option<String>,
    instructions: Option<String>,
    /// one of your user's settings
    role: Option<String>,
    /// a name of yours for the thread
    tag: Option<String>,
}

pub(super) struct AskAgent;

impl Tool for AskAgent {
    const NAME: &'static str = "ask_agent";
    const TITLE: &'static str = "Ask another agent";
    const DESCRIPTION: &'static str =
        "Talk with an agent of another client. Gives its answer and its threadId, for ask_agent_reply.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Input;
    type Output = TurnOutput;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<TurnOutput>, ToolError> {
        call.agent()?;
        let reach = input.reach.as_deref().map(str::parse::<Reach>).transpose();
        let reach = reach.map_err(|error: InvalidReach| ToolError::new(error.to_string(), "Leave it out to look."))?;
        if input.harness.is_none() && input.role.is_none() {
            return Err(ToolError::new("`harness` is missing", "Name one, or a role that has one."));
        }
        let new = NewThread {
            tool: Self::NAME,
            harness: input.harness.unwrap_or_default(),
            prompt: input.prompt,
            folder: input.cwd,
            model: input.model,
            effort: input.effort,
            reach,
            instructions: input.instructions,
            role: input.role,
            tag: input.tag,
            ..NewThread::default()
        };
        let begun = call.threads()?.begin(&call.caller, new).await?;
        answered(&call, begun).await
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplyInput {
    #[serde(rename = "threadId", alias = "thread_id")]
    thread_id: String,
    /// empty to wait for the turn that runs
    prompt: String,
}

pub(super) struct AskAgentReply;

impl Tool for AskAgentReply {
    const NAME: &'static str = "ask_agent_reply";
    const TITLE: &'static str = "Go on with another agent";
    const DESCRIPTION: &'static str = "Continue what ask_agent began.";
    const EFFECT: Effect = Effect::Adds;
    type Input = ReplyInput;
    type Output = TurnOutput;

    async fn run(call: ToolCall, input: ReplyInput) -> Result<ToolOutput<TurnOutput>, ToolError> {
        call.agent()?;
        let reply = ThreadReply { tool: Self::NAME, harness: None, thread: input.thread_id, prompt: input.prompt };
        let begun = call.threads()?.reply(&call.caller, reply).await?;
        answered(&call, begun).await
    }
}
