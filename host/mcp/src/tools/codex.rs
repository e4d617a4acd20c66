//! `codex` and `codex-reply`: a conversation with Codex, by the arguments and the result that `codex mcp-server` had until
//! Codex 0.153.

use mesh::ports::driver::Approvals;
use mesh::ports::runner::Reach;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::turn::{TurnOutput, answered};
use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::thread_host::{NewThread, ThreadReply};
use crate::tool_error::ToolError;

/// The harness that these tools are for.
const CODEX: &str = "codex";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Input {
    prompt: String,
    /// default yours
    cwd: Option<String>,
    model: Option<String>,
    /// default read-only
    sandbox: Option<Sandbox>,
    #[serde(alias = "approval_policy")]
    approval_policy: Option<ApprovalPolicy>,
    /// in place of Codex's own
    #[serde(alias = "base_instructions")]
    base_instructions: Option<String>,
    #[serde(alias = "developer_instructions")]
    developer_instructions: Option<String>,
    #[serde(alias = "compact_prompt")]
    compact_prompt: Option<String>,
    config: Option<Map<String, Value>>,
    /// one of your user's settings
    role: Option<String>,
    /// a name of yours for the thread
    tag: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Sandbox {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

impl Sandbox {
    fn reach(self) -> Reach {
        match self {
            Sandbox::ReadOnly => Reach::Look,
            Sandbox::WorkspaceWrite => Reach::Edit,
            Sandbox::DangerFullAccess => Reach::Unguarded,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum ApprovalPolicy {
    OnRequest,
    Never,
}

pub(super) struct Codex;

impl Tool for Codex {
    const NAME: &'static str = "codex";
    const TITLE: &'static str = "Codex";
    const DESCRIPTION: &'static str = "Run a Codex session. Gives its threadId, for codex-reply.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Input;
    type Output = TurnOutput;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<TurnOutput>, ToolError> {
        call.agent()?;
        let new = NewThread {
            tool: Self::NAME,
            harness: CODEX.to_owned(),
            prompt: input.prompt,
            folder: input.cwd,
            model: input.model,
            effort: None,
            reach: input.sandbox.map(Sandbox::reach),
            approvals: input.approval_policy.map(|policy| match policy {
                ApprovalPolicy::OnRequest => Approvals::Ask,
                ApprovalPolicy::Never => Approvals::Refuse,
            }),
            base: input.base_instructions,
            instructions: input.developer_instructions,
            compaction: input.compact_prompt,
            settings: input.config.unwrap_or_default(),
            role: input.role,
            tag: input.tag,
        };
        let begun = call.threads()?.begin(&call.caller, new).await?;
        answered(&call, begun).await
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReplyInput {
    thread_id: Option<String>,
    /// its old name
    conversation_id: Option<String>,
    /// empty to wait for the turn that runs
    prompt: String,
}

pub(super) struct CodexReply;

impl Tool for CodexReply {
    const NAME: &'static str = "codex-reply";
    const TITLE: &'static str = "Codex Reply";
    const DESCRIPTION: &'static str = "Continue a Codex conversation.";
    const EFFECT: Effect = Effect::Adds;
    type Input = ReplyInput;
    type Output = TurnOutput;

    async fn run(call: ToolCall, input: ReplyInput) -> Result<ToolOutput<TurnOutput>, ToolError> {
        call.agent()?;
        let Some(thread) = input.thread_id.or(input.conversation_id) else {
            return Err(ToolError::new("`threadId` is missing", "Take it from what codex gave you."));
        };
        let reply = ThreadReply { tool: Self::NAME, harness: Some(CODEX), thread, prompt: input.prompt };
        let begun = call.threads()?.reply(&call.caller, reply).await?;
        answered(&call, begun).await
    }
}
