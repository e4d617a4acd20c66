//! The lines of a run.

use std::collections::BTreeMap;

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::runner::reading::{
    Json as _, Line, about, at, count, deny, flag, lines, short, status, text,
};
use relay_mesh_sdk::optional::runner::{OutputLine, OutputReading, RunEvent, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most tool calls that are remembered while they run.
const MOST_CALLS: usize = 64;
/// The fields of tools' inputs that say what a call is about.
const ABOUT: [&str; 6] = ["command", "file_path", "path", "pattern", "url", "query"];

/// What is remembered of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RunMemory {
    pub(super) session: Option<String>,
    /// Tools that run: their names, and the file that they write.
    calls: BTreeMap<String, (String, Option<String>)>,
    /// How often its model has answered, and whether the last of these answers is not over.
    pub(super) turns: u32,
    in_turn: bool,
    pub(super) denials: Vec<(String, String)>,
    pub(super) last_word: Option<LastWord>,
}

/// The event `result`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LastWord {
    pub(super) succeeded: bool,
    pub(super) kind: String,
    pub(super) message: String,
    pub(super) status: Option<u16>,
    pub(super) used: Used,
}

/// Tokens of this run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Used {
    input: u64,
    cached: u64,
    output: u64,
}

pub(super) fn read(memory: Option<&str>, given: &[OutputLine]) -> Result<OutputReading, Error> {
    lines(memory, given, step)
}

fn step(seen: &mut RunMemory, line: &Line<'_>, events: &mut Vec<RunEvent>) {
    match text(line, "/type") {
        "init" => {
            let session = text(line, "/session_id");
            seen.session = Some(session.to_owned());
            events.push(RunEvent::Session(session.to_owned()));
        }
        "message" if text(line, "/role") == "assistant" => {
            seen.is_in_turn();
            let said = text(line, "/content").to_owned();
            let is_piece = flag(line, "/delta");
            if !said.is_empty() {
                events.push(if is_piece { RunEvent::Piece(said) } else { RunEvent::Said(said) });
            }
        }
        "tool_use" => {
            seen.is_in_turn();
            begins(seen, line, events);
        }
        "tool_result" => ends(seen, line, events),
        "error" => events.push(RunEvent::Note(short(text(line, "/message")))),
        "result" => {
            let message = text(line, "/error/message");
            let used = at(line, "/stats").map(used).unwrap_or_default();
            events.push(RunEvent::Used(used.usage()));
            seen.last_word = Some(LastWord {
                succeeded: text(line, "/status") == "success",
                kind: short(text(line, "/error/type")),
                message: short(&in_words(message)),
                status: status(message),
                used,
            });
        }
        _ => {}
    }
}

impl RunMemory {
    /// There is no event for a turn: one begins with the first word or call after the results of the tools before it.
    fn is_in_turn(&mut self) {
        self.turns += u32::from(!std::mem::replace(&mut self.in_turn, true));
    }
}

fn begins(seen: &mut RunMemory, line: &Line<'_>, events: &mut Vec<RunEvent>) {
    let (id, name, input) = (text(line, "/tool_id"), short(text(line, "/tool_name")), line.member("parameters"));
    let writes = ["write_file", "replace"].contains(&name.as_str());
    let file = input
        .and_then(|input| input.member("file_path")?.as_str())
        .filter(|file| writes && file.len() < 500)
        .map(str::to_owned);
    if seen.calls.len() < MOST_CALLS {
        seen.calls.insert(id.to_owned(), (name.clone(), file));
    }
    let about = input.map(|input| about(input, &ABOUT)).unwrap_or_default();
    events.push(RunEvent::Tool(ToolCall { id: id.to_owned(), name, about, succeeded: None }));
}

fn ends(seen: &mut RunMemory, line: &Line<'_>, events: &mut Vec<RunEvent>) {
    let id = text(line, "/tool_id");
    let (name, file) = seen.calls.remove(id).unwrap_or_default();
    let succeeded = text(line, "/status") == "success";
    // A tool that is not permitted is not offered: the model has called it all the same.
    let kind = text(line, "/error/type");
    let refused = ["tool_not_registered", "policy_violation", "execution_denied"].contains(&kind);
    if refused || text(line, "/error/message").starts_with("Path not in workspace") {
        events.push(deny(&mut seen.denials, &name, text(line, "/error/message")));
    }
    let about = String::new();
    events.push(RunEvent::Tool(ToolCall { id: id.to_owned(), name, about, succeeded: Some(succeeded) }));
    if let Some(file) = file.filter(|_| succeeded) {
        events.push(RunEvent::Wrote(vec![file]));
    }
    // All calls of a turn are told before the first of their results.
    if seen.calls.is_empty() && std::mem::replace(&mut seen.in_turn, false) {
        events.push(RunEvent::Turns(seen.turns));
    }
}

/// The server's own words in `[API Error: {"error":{"message":"…"}}]`.
fn in_words(message: &str) -> String {
    let inner = message.trim_start_matches("[API Error: ").trim_end_matches(']');
    let parsed: Option<Value> = serde_json::from_str(inner).ok();
    let told = parsed.as_ref().and_then(|error| error.pointer("/error/message")?.as_str());
    told.unwrap_or(inner).to_owned()
}

fn used(stats: &Line<'_>) -> Used {
    let cached = count(stats, "/cached");
    let input = count(stats, "/input_tokens").saturating_sub(cached);
    Used { input, cached, output: count(stats, "/output_tokens") }
}

impl Used {
    pub(super) fn usage(self) -> Usage {
        let Used { input, cached, output } = self;
        Usage { input, cached_input: cached, output, ..Usage::none() }
    }
}
