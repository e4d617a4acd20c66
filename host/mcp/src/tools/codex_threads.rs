//! `codex_threads` and `codex_status`: what the tools that talk with other agents have.

use mesh::tool_threads::ThreadRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use view::rfc3339;

use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::thread_host::LiveThread;
use crate::tool_error::ToolError;

/// How many threads are listed if nothing else is asked for.
const USUAL: usize = 20;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// of this repository, by name or folder
    repo: Option<String>,
    tag: Option<String>,
    /// default 20
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ThreadOutput {
    #[serde(rename = "threadId")]
    thread_id: String,
    harness: String,
    agent: String,
    identity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    team: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repo_root: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repo_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    cwd: String,
    started_at: String,
    last_active: String,
    /// active, idle, closed or interrupted; all but active can be continued
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
}

impl ThreadOutput {
    fn of(row: &ThreadRow) -> ThreadOutput {
        ThreadOutput {
            thread_id: row.thread.clone(),
            harness: row.harness.clone(),
            agent: row.agent.to_string(),
            identity: row.identity.clone(),
            team: row.team.clone(),
            repo_root: row.repository.clone(),
            repo_name: row.repository_name.clone(),
            branch: row.branch.clone(),
            cwd: row.cwd.display().to_string(),
            started_at: rfc3339(row.started),
            last_active: rfc3339(row.last_active),
            status: row.status.as_str(),
            tag: row.tag.clone(),
            role: row.role.clone(),
        }
    }

    fn text(&self) -> String {
        let tag = self.tag.as_ref().map(|tag| format!(" [{tag}]")).unwrap_or_default();
        format!("{} {} {}{tag} {}", self.thread_id, self.agent, self.status, self.cwd)
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    threads: Vec<ThreadOutput>,
    /// beyond the limit
    more: usize,
}

pub(super) struct CodexThreads;

impl Tool for CodexThreads {
    const NAME: &'static str = "codex_threads";
    const TITLE: &'static str = "List threads";
    const DESCRIPTION: &'static str = "List the threads that you have begun, the last active first.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        call.agent()?;
        let rows = call.threads()?.threads(&call.caller).await?;
        let wanted: Vec<&ThreadRow> = rows.iter().filter(|row| is_wanted(row, &input)).collect();
        let limit = input.limit.unwrap_or(USUAL);
        let threads: Vec<ThreadOutput> = wanted.iter().take(limit).map(|row| ThreadOutput::of(row)).collect();
        let text = match threads.as_slice() {
            [] => "no thread".to_owned(),
            threads => threads.iter().map(ThreadOutput::text).collect::<Vec<_>>().join("\n"),
        };
        Ok(ToolOutput::new(Output { more: wanted.len() - threads.len(), threads }, mesh::harmless(&text)))
    }
}

fn is_wanted(row: &ThreadRow, input: &Input) -> bool {
    input.tag.as_ref().is_none_or(|tag| row.tag.as_ref() == Some(tag))
        && input.repo.as_deref().is_none_or(|repo| row.is_in(repo))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusInput {}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StatusOutput {
    /// the name that new threads get
    identity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    team: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// whether a program of one of your threads runs
    child_alive: bool,
    /// of Codex, if it is installed
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// of this server
    uptime_s: u64,
    active_threads: usize,
    /// those that have an agent now
    threads: Vec<LiveOutput>,
    /// messages that wait for you
    pending_mail: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LiveOutput {
    #[serde(rename = "threadId")]
    thread_id: String,
    agent: String,
    working: bool,
    alive: bool,
    pending_mail: usize,
}

impl From<LiveThread> for LiveOutput {
    fn from(live: LiveThread) -> LiveOutput {
        let LiveThread { thread, agent, works, alive, pending } = live;
        LiveOutput { thread_id: thread, agent, working: works, alive, pending_mail: pending }
    }
}

pub(super) struct CodexStatus;

impl Tool for CodexStatus {
    const NAME: &'static str = "codex_status";
    const TITLE: &'static str = "How Codex stands";
    const DESCRIPTION: &'static str = "Whether Codex runs for you, as whom, since when, and with which threads.";
    const EFFECT: Effect = Effect::Reads;
    type Input = StatusInput;
    type Output = StatusOutput;

    async fn run(call: ToolCall, _: StatusInput) -> Result<ToolOutput<StatusOutput>, ToolError> {
        call.agent()?;
        let status = call.threads()?.status(&call.caller).await?;
        let live: Vec<LiveOutput> = status.live.into_iter().map(LiveOutput::from).collect();
        let active = live.iter().filter(|thread| thread.working).count();
        let output = StatusOutput {
            identity: status.identity,
            team: status.team,
            role: status.role,
            child_alive: live.iter().any(|thread| thread.alive),
            version: status.version,
            uptime_s: status.uptime,
            active_threads: active,
            threads: live,
            pending_mail: status.pending,
        };
        let text = format!(
            "{}: {} threads with an agent, {active} of them working; {} messages wait for you",
            output.identity,
            output.threads.len(),
            output.pending_mail
        );
        Ok(ToolOutput::new(output, text))
    }
}
