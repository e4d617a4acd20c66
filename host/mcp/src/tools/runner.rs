//! `claude_run`, `codex_exec` and `gemini_run`: one harness, one task, the whole result. The call ends with the run, and
//! the run with the call.

use std::time::Duration;

use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::running::Waited;
use super::{Effect, TaskTool, Tool, ToolCall, ToolOutput};
use crate::run_host::{NewRun, Tie};
use crate::tool_error::ToolError;

/// How long these tools wait if the caller does not say, in seconds.
const TIMEOUT: u64 = 120;
/// The longest that a caller may ask for: a week.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

fn timeout() -> u64 {
    TIMEOUT
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaudeInput {
    prompt: String,
    cwd: Option<String>,
    #[serde(default)]
    output_format: OutputFormat,
    #[serde(default = "timeout")]
    timeout_s: u64,
}

// What the text of an answer is; the structured content is always the whole result.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OutputFormat {
    #[default]
    Json,
    Text,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CodexInput {
    task: String,
    cwd: Option<String>,
    #[serde(default)]
    json_events: bool,
    #[serde(default = "timeout")]
    timeout_s: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GeminiInput {
    prompt: String,
    cwd: Option<String>,
    #[serde(default = "timeout")]
    timeout_s: u64,
}

/// The result as the binary has put it together, whose shape is that of `view::RunView`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct WholeResult(Value);

impl JsonSchema for WholeResult {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RunResult".into()
    }

    /// What is never null; docs/run-result.schema.json has the rest. Claude Code refuses an answer that does not fit.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let text = json_schema!({"type": "string"});
        let object = json_schema!({"type": "object"});
        json_schema!({
            "type": "object",
            "properties": {
                "agent": text, "mode": text, "cwd": text, "ok": {"type": "boolean"}, "ended": text, "run": text,
                "structured": object, "artifacts": object, "usage": object
            },
            "required": ["agent", "mode", "cwd", "ok", "ended", "structured", "artifacts", "usage", "run"]
        })
    }
}

pub(super) struct ClaudeRun;

impl Tool for ClaudeRun {
    const NAME: &'static str = "claude_run";
    const TITLE: &'static str = "Run Claude Code";
    const DESCRIPTION: &'static str = "Run Claude Code on one task, to its end. It changes nothing.";
    const EFFECT: Effect = Effect::Adds;
    type Input = ClaudeInput;
    type Output = WholeResult;

    async fn run(call: ToolCall, input: ClaudeInput) -> Result<ToolOutput<WholeResult>, ToolError> {
        let format = input.output_format;
        let result = to_its_end(&call, input.new_run()).await?;
        let text = match format {
            OutputFormat::Json => result.to_string(),
            OutputFormat::Text => answer(&result),
        };
        Ok(ToolOutput::new(WholeResult(result), text))
    }
}

pub(super) struct CodexExec;

impl Tool for CodexExec {
    const NAME: &'static str = "codex_exec";
    const TITLE: &'static str = "Run Codex";
    const DESCRIPTION: &'static str = "Run Codex on one task, to its end. It changes nothing.";
    const EFFECT: Effect = Effect::Adds;
    type Input = CodexInput;
    type Output = WholeResult;

    async fn run(call: ToolCall, input: CodexInput) -> Result<ToolOutput<WholeResult>, ToolError> {
        let with_events = input.json_events;
        let mut result = to_its_end(&call, input.new_run()).await?;
        if !with_events && let Some(events) = result.pointer_mut("/structured/events") {
            *events = Value::Array(Vec::new());
        }
        let text = result.to_string();
        Ok(ToolOutput::new(WholeResult(result), text))
    }
}

pub(super) struct GeminiRun;

impl Tool for GeminiRun {
    const NAME: &'static str = "gemini_run";
    const TITLE: &'static str = "Run Gemini CLI";
    const DESCRIPTION: &'static str = "Run Gemini CLI on one task, to its end. It changes nothing.";
    const EFFECT: Effect = Effect::Adds;
    type Input = GeminiInput;
    type Output = WholeResult;

    async fn run(call: ToolCall, input: GeminiInput) -> Result<ToolOutput<WholeResult>, ToolError> {
        let result = to_its_end(&call, input.new_run()).await?;
        let text = result.to_string();
        Ok(ToolOutput::new(WholeResult(result), text))
    }
}

impl ClaudeInput {
    fn new_run(self) -> NewRun {
        new_run("claude-code", self.prompt, self.cwd, self.timeout_s)
    }
}

impl CodexInput {
    fn new_run(self) -> NewRun {
        new_run("codex", self.task, self.cwd, self.timeout_s)
    }
}

impl GeminiInput {
    fn new_run(self) -> NewRun {
        new_run("gemini-cli", self.prompt, self.cwd, self.timeout_s)
    }
}

impl TaskTool for ClaudeRun {
    async fn begin(call: &ToolCall, input: ClaudeInput) -> Result<String, ToolError> {
        begin(call, input.new_run()).await
    }
}

impl TaskTool for CodexExec {
    async fn begin(call: &ToolCall, input: CodexInput) -> Result<String, ToolError> {
        begin(call, input.new_run()).await
    }
}

impl TaskTool for GeminiRun {
    async fn begin(call: &ToolCall, input: GeminiInput) -> Result<String, ToolError> {
        begin(call, input.new_run()).await
    }
}

fn new_run(harness: &str, task: String, folder: Option<String>, timeout: u64) -> NewRun {
    NewRun {
        harness: harness.to_owned(),
        task,
        folder,
        timeout: Some(Duration::from_secs(timeout)),
        tie: Tie::Server,
        ..NewRun::default()
    }
}

async fn begin(call: &ToolCall, run: NewRun) -> Result<String, ToolError> {
    match run.timeout {
        Some(Duration::ZERO) => {
            return Err(ToolError::new("`timeout_s` is 0, and a run needs time", "Leave it out for 120."));
        }
        Some(timeout) if timeout > LONGEST => {
            let most = LONGEST.as_secs();
            return Err(ToolError::new(format!("`timeout_s` is more than {most}"), "Ask for less, or leave it out."));
        }
        Some(_) | None => {}
    }
    Ok(call.runs()?.start(&call.caller, run).await?)
}

/// Runs a task to its end. If the client cancels the call or leaves, the run is ended with it.
async fn to_its_end(call: &ToolCall, run: NewRun) -> Result<Value, ToolError> {
    // The run keeps its own time; this is only so that a call never hangs.
    let most = run.timeout.unwrap_or_default().saturating_add(Duration::from_secs(60));
    let id = begin(call, run).await?;
    match call.wait_for_end(&id, most).await? {
        Waited::Ended(result) => Ok(result),
        Waited::StillRuns(_) | Waited::Left => {
            let host = call.runs()?;
            host.stop(&call.caller, &id).await?;
            match host.look(&call.caller, &id).await?.result {
                Some(result) => Ok(result),
                None => Err(ToolError::new(format!("run {id} was stopped and left no result"), "Try again.")),
            }
        }
    }
}

/// What the model said last, or why there is nothing of it.
fn answer(result: &Value) -> String {
    let said = result.pointer("/structured/response").and_then(Value::as_str);
    let why = result.get("why").and_then(Value::as_str);
    said.or(why).unwrap_or("it said nothing").to_owned()
}
