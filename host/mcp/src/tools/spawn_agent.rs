//! `spawn_agent`: have another agent started, which takes mail until it is dismissed.

use mesh::driven::WantedAgent;
use mesh::names::AgentName;
use mesh::ports::runner::{InvalidReach, Reach};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::spawn_host::SpawnAnswer;
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// claude, codex, gemini, opencode
    harness: String,
    /// its first prompt
    task: String,
    name: Option<String>,
    /// default yours
    cwd: Option<String>,
    /// in a new git worktree
    #[serde(default)]
    worktree: bool,
    /// look (default), edit, work or unguarded
    reach: Option<String>,
    model: Option<String>,
    /// what it is there for
    role: Option<String>,
    max_turns: Option<u32>,
    max_tokens: Option<u64>,
    /// how long it lives
    minutes: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// its name
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// started, starting, or waits for the user
    state: &'static str,
    /// the question to the user
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

pub(super) struct SpawnAgent;

impl Tool for SpawnAgent {
    const NAME: &'static str = "spawn_agent";
    const TITLE: &'static str = "Start an agent";
    const DESCRIPTION: &'static str = "Have an agent started that you and others write to. Its first result comes to \
                                       you by mail. Dismiss it by release_agent.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        call.agent()?;
        let reach = input.reach.as_deref().map(str::parse::<Reach>).transpose();
        let reach = reach.map_err(|error: InvalidReach| ToolError::new(error.to_string(), "Leave it out to look."))?;
        let name = input.name.map(|name| name.parse::<AgentName>()).transpose();
        let name = name.map_err(|error| ToolError::new(error.to_string(), "Leave it out to get one."))?;
        let zero = [input.max_turns.map(u64::from), input.max_tokens, input.minutes].contains(&Some(0));
        if input.task.trim().is_empty() || zero {
            let what = if zero { "a limit is zero" } else { "the agent has no task" };
            return Err(ToolError::new(what, "Say what it is to do, and leave out what is not limited."));
        }
        let wanted = WantedAgent {
            harness: input.harness,
            name,
            text: input.task,
            worktree: input.worktree,
            reach: reach.unwrap_or_default(),
            model: input.model,
            role: input.role,
            turns: input.max_turns,
            tokens: input.max_tokens,
            lives: input.minutes.map(|minutes| minutes.saturating_mul(60_000)),
            ..WantedAgent::default()
        };
        let answer =
            call.spawns()?.spawn(&call.caller, wanted, input.cwd.as_deref(), call.hold(Some(u64::MAX))).await?;
        Ok(told(answer))
    }
}

fn told(answer: SpawnAnswer) -> ToolOutput<Output> {
    let (output, text) = match answer {
        SpawnAnswer::Started { agent, notes } => {
            let text = std::iter::once(format!("{agent} is here.")).chain(notes.iter().cloned());
            let text = text.collect::<Vec<_>>().join("\n");
            (Output { agent: Some(agent), state: "started", question: None, notes }, text)
        }
        SpawnAnswer::Starting { agent } => {
            let text = format!("{agent} is being started.");
            (Output { agent: Some(agent), state: "starting", question: None, notes: Vec::new() }, text)
        }
        SpawnAnswer::Waits { question } => {
            let text = "Your user is asked first; what comes of it is told by mail.".to_owned();
            (Output { agent: None, state: "waits", question: Some(question), notes: Vec::new() }, text)
        }
    };
    ToolOutput::new(output, text)
}
