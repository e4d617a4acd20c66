//! The lines of a run.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::runner::reading::{
    LastSaid, Line, about, at, cost, count, deny, lines, number, short, text,
};
use relay_mesh_sdk::optional::runner::{OutputLine, OutputReading, RunEvent, ToolCall, Usage};
use serde::{Deserialize, Serialize};

/// The fields of tools' inputs that say what a call is about.
const ABOUT: [&str; 7] = ["command", "filePath", "pattern", "path", "url", "query", "description"];
/// How OpenCode tells that a tool was not permitted.
const REFUSED: [&str; 3] = ["rule which prevents", "rejected permission", "unavailable tool"];

/// What is remembered of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RunMemory {
    pub(super) session: Option<String>,
    pub(super) said: LastSaid,
    pub(super) denials: Vec<(String, String)>,
    /// Why the last step finished. None while a step goes on.
    pub(super) finished: Option<String>,
    /// Whether a tool was refused in the last step in a way that ends the run.
    pub(super) rejected: bool,
    pub(super) failed: Option<Failed>,
    pub(super) used: Option<Used>,
    pub(super) steps: u32,
}

/// The event `error`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Failed {
    pub(super) name: String,
    pub(super) message: String,
    pub(super) status: Option<u16>,
}

/// The sum over all steps of this run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Used {
    input: u64,
    cached: u64,
    output: u64,
    reasoning: u64,
    cost: u64,
}

pub(super) fn read(memory: Option<&str>, given: &[OutputLine]) -> Result<OutputReading, Error> {
    lines(memory, given, step)
}

fn step(seen: &mut RunMemory, line: &Line<'_>, events: &mut Vec<RunEvent>) {
    let session = text(line, "/sessionID");
    if !session.is_empty() && seen.session.as_deref() != Some(session) {
        seen.session = Some(session.to_owned());
        events.push(RunEvent::Session(session.to_owned()));
    }
    match text(line, "/type") {
        "step_start" => (seen.finished, seen.rejected, seen.failed) = (None, false, None),
        "text" => seen.said.says(text(line, "/part/text"), events),
        "tool_use" => at(line, "/part").into_iter().for_each(|part| tool(seen, part, events)),
        "step_finish" => {
            seen.finished = Some(short(text(line, "/part/reason")));
            seen.steps += 1;
            let used = seen.used.get_or_insert_default();
            at(line, "/part").into_iter().for_each(|part| used.add(part));
            events.push(RunEvent::Used(used.usage()));
            // After a permission that nobody gave, no further step comes.
            if seen.finished.as_deref() == Some("tool-calls") && !seen.rejected {
                events.push(RunEvent::Turns(seen.steps));
            }
        }
        "error" => {
            let message = at(line, "/error/data/message").and_then(Line::as_str);
            let message = message.unwrap_or(text(line, "/error/message"));
            let status = number(line, "/error/data/statusCode");
            seen.failed = Some(Failed {
                name: short(text(line, "/error/name")),
                message: short(message),
                status: status.and_then(|status| u16::try_from(status).ok()),
            });
        }
        _ => {}
    }
}

/// OpenCode tells of a tool once it has ended.
fn tool(seen: &mut RunMemory, part: &Line<'_>, events: &mut Vec<RunEvent>) {
    let name = short(text(part, "/tool"));
    let succeeded = text(part, "/state/status") == "completed";
    let error = text(part, "/state/error");
    if REFUSED.iter().any(|words| error.contains(words)) {
        seen.rejected |= error.contains("rejected permission");
        // After the first sentence it lists its rules.
        events.push(deny(&mut seen.denials, &name, error.split(". ").next().unwrap_or(error)));
    }
    let id = text(part, "/callID").to_owned();
    let is_edit = ["write", "edit", "multiedit"].contains(&name.as_str());
    events.push(RunEvent::Tool(ToolCall {
        id,
        name,
        about: at(part, "/state/input").map(|input| about(input, &ABOUT)).unwrap_or_default(),
        succeeded: Some(succeeded),
    }));
    if let Some(file) = at(part, "/state/input/filePath").and_then(Line::as_str).filter(|_| is_edit && succeeded) {
        events.push(RunEvent::Wrote(vec![file.to_owned()]));
    }
}

impl Used {
    fn add(&mut self, part: &Line<'_>) {
        self.input += count(part, "/tokens/input") + count(part, "/tokens/cache/write");
        self.cached += count(part, "/tokens/cache/read");
        self.output += count(part, "/tokens/output");
        self.reasoning += count(part, "/tokens/reasoning");
        self.cost += cost(part, "/cost");
    }

    pub(super) fn usage(self) -> Usage {
        Usage {
            input: self.input,
            cached_input: self.cached,
            output: self.output,
            reasoning: Some(self.reasoning),
            cost: Some(self.cost),
            whole_session: false,
        }
    }
}
