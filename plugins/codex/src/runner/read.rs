//! The lines of a run.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::runner::reading::{LastSaid, Line, at, count, deny, lines, list, short, status, text};
use relay_mesh_sdk::optional::runner::{OutputLine, OutputReading, Retry, RunEvent, ToolCall, Usage};
use serde::{Deserialize, Serialize};

/// What is remembered of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RunMemory {
    pub(super) session: Option<String>,
    pub(super) said: LastSaid,
    pub(super) denials: Vec<(String, String)>,
    /// What the last turn ended with. None while a turn goes on.
    pub(super) last_word: Option<LastWord>,
    pub(super) used: Option<Used>,
    /// The HTTP status of the last failed request, if nothing came after it.
    pub(super) failing: Option<Option<u16>>,
    pub(super) turns: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum LastWord {
    Completed,
    Failed(String),
}

/// Tokens of the whole thread.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Used {
    input: u64,
    cached: u64,
    output: u64,
    reasoning: u64,
}

pub(super) fn read(memory: Option<&str>, given: &[OutputLine]) -> Result<OutputReading, Error> {
    lines(memory, given, step)
}

fn step(seen: &mut RunMemory, line: &Line<'_>, events: &mut Vec<RunEvent>) {
    match text(line, "/type") {
        "thread.started" => {
            let thread = text(line, "/thread_id");
            seen.session = Some(thread.to_owned());
            events.push(RunEvent::Session(thread.to_owned()));
        }
        "turn.started" => seen.last_word = None,
        "turn.completed" => {
            seen.last_word = Some(LastWord::Completed);
            seen.turns += 1;
            let used = at(line, "/usage").map(used).unwrap_or_default();
            seen.used = Some(used);
            events.push(RunEvent::Used(used.usage(false)));
        }
        "turn.failed" => seen.last_word = Some(LastWord::Failed(short(text(line, "/error/message")))),
        "error" => retries(seen, text(line, "/message"), events),
        "item.started" => at(line, "/item").into_iter().for_each(|item| begins(item, events)),
        "item.completed" => {
            seen.failing = None;
            at(line, "/item").into_iter().for_each(|item| completes(seen, item, events));
        }
        _ => {}
    }
}

/// `Reconnecting... 2/5 (unexpected status 500 …)`. Other errors come once more with the end of the turn.
fn retries(seen: &mut RunMemory, message: &str, events: &mut Vec<RunEvent>) {
    let Some(rest) = message.strip_prefix("Reconnecting...") else { return };
    let attempt = rest.trim_start().split('/').next().and_then(|number| number.parse().ok()).unwrap_or(1);
    seen.failing = Some(status(message));
    events.push(RunEvent::Retries(Retry { attempt, status: status(message), wait_ms: 0 }));
}

fn begins(item: &Line<'_>, events: &mut Vec<RunEvent>) {
    if let Some((name, about)) = tool(item) {
        let id = text(item, "/id").to_owned();
        events.push(RunEvent::Tool(ToolCall { id, name, about, succeeded: None }));
    }
}

fn completes(seen: &mut RunMemory, item: &Line<'_>, events: &mut Vec<RunEvent>) {
    match text(item, "/type") {
        "agent_message" => return seen.said.says(text(item, "/text"), events),
        "error" => return events.push(RunEvent::Note(short(text(item, "/message")))),
        _ => {}
    }
    let Some((name, about)) = tool(item) else { return };
    let outcome = text(item, "/status");
    let told = text(item, "/error/message");
    if outcome == "declined" || told.contains("requires approval") {
        events.push(deny(&mut seen.denials, &name, if told.is_empty() { &about } else { told }));
    }
    let succeeded = outcome == "completed" && at(item, "/exit_code").and_then(Line::as_i64).unwrap_or_default() == 0;
    let id = text(item, "/id").to_owned();
    events.push(RunEvent::Tool(ToolCall { id, name, about, succeeded: Some(succeeded) }));
    if text(item, "/type") == "file_change" && succeeded {
        let paths = list(item, "/changes").iter().map(|change| text(change, "/path").to_owned());
        events.push(RunEvent::Wrote(paths.collect()));
    }
}

/// The name of an item that is a tool's call, and what it does.
fn tool(item: &Line<'_>) -> Option<(String, String)> {
    match text(item, "/type") {
        "command_execution" => Some(("command".to_owned(), short(text(item, "/command")))),
        "file_change" => {
            let paths: Vec<&str> = list(item, "/changes").iter().map(|change| text(change, "/path")).collect();
            Some(("edit".to_owned(), short(&paths.join(" "))))
        }
        "mcp_tool_call" => Some((short(&format!("{}.{}", text(item, "/server"), text(item, "/tool"))), String::new())),
        "web_search" => Some(("web_search".to_owned(), short(text(item, "/query")))),
        _ => None,
    }
}

/// Codex counts tokens from the cache as input too.
fn used(usage: &Line<'_>) -> Used {
    let cached = count(usage, "/cached_input_tokens");
    Used {
        input: count(usage, "/input_tokens").saturating_sub(cached),
        cached,
        output: count(usage, "/output_tokens"),
        reasoning: count(usage, "/reasoning_output_tokens"),
    }
}

impl Used {
    pub(super) fn usage(self, whole_session: bool) -> Usage {
        Usage {
            input: self.input,
            cached_input: self.cached,
            output: self.output,
            reasoning: Some(self.reasoning),
            cost: None,
            whole_session,
        }
    }
}
