//! The lines of a run.

use std::collections::BTreeMap;

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::runner::reading::{
    self, Json, LastSaid, Line, about, at, cost, count, deny, flag, lines, list, number, short, text,
};
use relay_mesh_sdk::optional::runner::{OutputLine, OutputReading, Retry, RunEvent, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most tool calls that are remembered while they run.
const MOST_CALLS: usize = 64;
/// The largest answer by the schema that is remembered. A larger one becomes the last thing that was said.
const LARGEST_OUTPUT: usize = 16 * 1024;
/// The fields of tools' inputs that say what a call is about.
const ABOUT: [&str; 9] =
    ["command", "file_path", "notebook_path", "pattern", "path", "url", "query", "description", "prompt"];

/// What is remembered of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RunMemory {
    pub(super) session: Option<String>,
    pub(super) said: LastSaid,
    /// Tools that run: their names, and the file that they write.
    calls: BTreeMap<String, (String, Option<String>)>,
    /// The ids of refused calls, which the result lists again.
    refused: Vec<String>,
    pub(super) denials: Vec<(String, String)>,
    /// The HTTP status of the last failed request, if nothing came after it.
    pub(super) failing: Option<u16>,
    /// When a limit of the account ends, in seconds since 1970.
    pub(super) limit_ends: Option<u64>,
    /// The last result. A run with tasks in the background has several.
    pub(super) last_word: Option<LastWord>,
}

/// The event `result`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LastWord {
    pub(super) subtype: String,
    pub(super) is_error: bool,
    pub(super) reason: String,
    pub(super) status: Option<u16>,
    pub(super) message: String,
    pub(super) turns: Option<u32>,
    pub(super) used: Option<Used>,
    pub(super) output: Option<Value>,
}

/// Tokens of all models, and the cost in millionths of a dollar. Of a resumed session they are of all of it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Used {
    input: u64,
    cached: u64,
    output: u64,
    thinking: u64,
    cost: u64,
}

pub(super) fn read(memory: Option<&str>, given: &[OutputLine]) -> Result<OutputReading, Error> {
    lines(memory, given, step)
}

fn step(seen: &mut RunMemory, line: &Line<'_>, events: &mut Vec<RunEvent>) {
    match (text(line, "/type"), text(line, "/subtype")) {
        ("system", "init") => begins(seen, line, events),
        ("system", "permission_denied") => {
            seen.refused.push(text(line, "/tool_use_id").to_owned());
            events.push(deny(&mut seen.denials, text(line, "/tool_name"), text(line, "/message")));
        }
        ("system", "api_retry") => {
            let status = number(line, "/error_status").and_then(|status| u16::try_from(status).ok());
            seen.failing = status;
            let attempt = u32::try_from(count(line, "/attempt")).unwrap_or(u32::MAX);
            events.push(RunEvent::Retries(Retry { attempt, status, wait_ms: count(line, "/retry_delay_ms") }));
        }
        ("rate_limit_event", _) => {
            let info = at(line, "/rate_limit_info").filter(|info| info.is_object()).unwrap_or(line);
            if text(info, "/status") == "rejected" {
                seen.limit_ends = number(info, "/resetsAt");
            }
        }
        ("assistant", _) => says(seen, line, events),
        ("user", _) => tools_ended(seen, line, events),
        ("result", _) => ends(seen, line, events),
        _ => {}
    }
}

fn begins(seen: &mut RunMemory, line: &Line<'_>, events: &mut Vec<RunEvent>) {
    let session = text(line, "/session_id");
    if seen.session.as_deref() != Some(session) && !session.is_empty() {
        seen.session = Some(session.to_owned());
        events.push(RunEvent::Session(session.to_owned()));
    }
    for server in list(line, "/mcp_servers") {
        if text(server, "/status") == "failed" {
            events.push(RunEvent::Note(format!("the MCP server `{}` did not start", short(text(server, "/name")))));
        }
    }
}

fn says(seen: &mut RunMemory, line: &Line<'_>, events: &mut Vec<RunEvent>) {
    // Claude Code words an error of its server as a message of the model.
    if flag(line, "/is_api_error_message") {
        return;
    }
    seen.failing = None;
    let is_its_own = at(line, "/parent_tool_use_id").is_none_or(|parent| parent.is_null());
    for block in list(line, "/message/content") {
        match text(block, "/type") {
            "text" if is_its_own => seen.said.says(text(block, "/text"), events),
            "tool_use" => tool_begins(seen, block, events),
            _ => {}
        }
    }
}

fn tool_begins(seen: &mut RunMemory, block: &Line<'_>, events: &mut Vec<RunEvent>) {
    let (id, name, input) = (text(block, "/id"), short(text(block, "/name")), block.member("input"));
    let writes = ["Write", "Edit", "MultiEdit", "NotebookEdit"].contains(&name.as_str());
    let file =
        ["file_path", "notebook_path"].iter().find_map(|field| input?.member(field)?.as_str()).filter(|_| writes);
    if seen.calls.len() < MOST_CALLS {
        seen.calls.insert(id.to_owned(), (name.clone(), file.filter(|file| file.len() < 500).map(str::to_owned)));
    }
    let about = input.map(|input| about(input, &ABOUT)).unwrap_or_default();
    events.push(RunEvent::Tool(ToolCall { id: id.to_owned(), name, about, succeeded: None }));
}

fn tools_ended(seen: &mut RunMemory, line: &Line<'_>, events: &mut Vec<RunEvent>) {
    for block in list(line, "/message/content") {
        if text(block, "/type") != "tool_result" {
            continue;
        }
        let id = text(block, "/tool_use_id");
        let (name, file) = seen.calls.remove(id).unwrap_or_default();
        let succeeded = !flag(block, "/is_error");
        let told = text(block, "/content");
        if told.contains("No such tool available") && !seen.refused.iter().any(|refused| refused == id) {
            let why = told.trim_start_matches("<tool_use_error>").trim_end_matches("</tool_use_error>");
            events.push(deny(&mut seen.denials, &name, why));
        }
        let about = String::new();
        events.push(RunEvent::Tool(ToolCall { id: id.to_owned(), name, about, succeeded: Some(succeeded) }));
        if let Some(file) = file.filter(|_| succeeded) {
            events.push(RunEvent::Wrote(vec![file]));
        }
    }
}

fn ends(seen: &mut RunMemory, line: &Line<'_>, events: &mut Vec<RunEvent>) {
    if let Some(session) = at(line, "/session_id").and_then(Line::as_str) {
        seen.session = Some(session.to_owned());
    }
    for denial in list(line, "/permission_denials") {
        if !seen.refused.iter().any(|refused| refused == text(denial, "/tool_use_id")) {
            let why = denial.member("tool_input").map(|input| about(input, &ABOUT)).unwrap_or_default();
            events.push(deny(&mut seen.denials, text(denial, "/tool_name"), &why));
        }
    }
    let is_error = flag(line, "/is_error");
    let said = text(line, "/result");
    if !is_error {
        seen.said.says(said, events);
    }
    let output = line.member("structured_output").filter(|output| !output.is_null()).map(Value::from);
    let small = output.clone().filter(|output| output.to_string().len() <= LARGEST_OUTPUT);
    if let (Some(output), None) = (output, &small) {
        seen.said.says(&output.to_string(), events);
    }
    let errors: Vec<&str> = list(line, "/errors").iter().filter_map(Line::as_str).collect();
    let used = used(line);
    events.push(RunEvent::Used(used.usage(false)));
    seen.calls.clear();
    seen.last_word = Some(LastWord {
        subtype: short(text(line, "/subtype")),
        is_error,
        reason: short(text(line, "/terminal_reason")),
        status: number(line, "/api_error_status").and_then(|status| u16::try_from(status).ok()),
        message: short(if errors.is_empty() { said.to_owned() } else { errors.join("; ") }.as_str()),
        turns: number(line, "/num_turns").and_then(|turns| u32::try_from(turns).ok()),
        used: Some(used),
        output: small,
    });
}

/// The figures to account by. `usage` beside them leaves subagents out.
fn used(line: &Line<'_>) -> Used {
    let mut used = Used { cost: cost(line, "/total_cost_usd"), ..Used::default() };
    for model in at(line, "/modelUsage").into_iter().flat_map(Json::values) {
        used.input += count(model, "/inputTokens") + count(model, "/cacheCreationInputTokens");
        used.cached += count(model, "/cacheReadInputTokens");
        used.output += count(model, "/outputTokens");
        used.thinking += count(model, "/thinkingTokens");
    }
    used
}

impl Used {
    pub(super) fn usage(self, whole_session: bool) -> Usage {
        Usage {
            input: self.input,
            cached_input: self.cached,
            output: self.output,
            reasoning: Some(self.thinking),
            cost: Some(self.cost),
            whole_session,
        }
    }
}

/// The reasons of a run's denials, for its outcome.
pub(super) fn denials(seen: &RunMemory) -> Vec<relay_mesh_sdk::optional::runner::Denial> {
    reading::denials(&seen.denials)
}
