//! A task, and a run from recorded output.

use std::path::Path;

use serde_json::{Value, json};

use crate::Error;
use crate::optional::driver::{Agent, Approvals};
use crate::optional::runner::{
    Extensions, Installation, Outcome, OutputLine, ProcessExit, Reach, RunEvent, Runner, Start, Task,
};

/// A task that only looks, in a new session.
pub fn task() -> Task {
    Task {
        id: "run-1".into(),
        folder: "/home/u/app".into(),
        start: Start::Fresh("5d20a1b2-0000-4000-8000-000000000001".into()),
        reach: Reach::Look,
        extensions: Extensions::Mesh,
        installation: installation(),
        model: None,
        schema: None,
        guidance: None,
        turns: None,
        cost: None,
    }
}

/// An agent that only looks, and whose user is asked.
pub fn agent() -> Agent {
    Agent {
        name: "helper".into(),
        folder: "/home/u/app".into(),
        model: None,
        effort: None,
        base: None,
        compaction: None,
        settings: Vec::new(),
        guidance: "You are helper.".into(),
        reach: Reach::Look,
        approvals: Approvals::Ask,
        extensions: Extensions::Mesh,
        installation: installation(),
        id: "5d20a1b2-0000-4000-8000-000000000001".into(),
        environment: Vec::new(),
    }
}

/// How relay-mesh is reached from inside a run or a driven agent.
pub(crate) fn installation() -> Installation {
    Installation {
        server_name: "relay-mesh".into(),
        server: vec!["/opt/bin/relay-mesh".into(), "mcp".into()],
        program: vec!["/opt/bin/relay-mesh".into()],
        environment: vec![("RELAY_DIR".into(), "/srv/relay".into())],
    }
}

/// A process that ended by itself with this code.
pub fn ended(code: i32) -> ProcessExit {
    ProcessExit { code: Some(code), signal: None, asked_to_stop: false, stderr_end: String::new() }
}

/// Reads a recorded output as the host does, in portions of `at_once` lines, and concludes. Pieces of messages are
/// joined, as the host joins them. Fails if the memory
/// exceeds what the host keeps.
pub fn run<A: Runner>(
    task: &Task,
    output: &str,
    at_once: usize,
    exit: &ProcessExit,
) -> Result<(Vec<RunEvent>, Outcome), Error> {
    let lines: Vec<OutputLine> = output.lines().map(|line| OutputLine { text: line.to_owned(), cut: false }).collect();
    let (mut memory, mut events, mut pieces): (Option<String>, _, _) = (None, Vec::new(), String::new());
    for portion in lines.chunks(at_once.max(1)) {
        let reading = A::read(task, memory.as_deref(), portion)?;
        assert!(reading.memory.as_deref().map_or(0, str::len) <= 64 * 1024, "the host keeps at most 64 KiB");
        memory = reading.memory;
        for event in reading.events {
            match event {
                RunEvent::Piece(piece) => pieces.push_str(&piece),
                other => {
                    events.extend((!pieces.is_empty()).then(|| RunEvent::Said(std::mem::take(&mut pieces))));
                    events.push(other);
                }
            }
        }
    }
    events.extend((!pieces.is_empty()).then_some(RunEvent::Said(pieces)));
    Ok((events, A::conclude(task, memory.as_deref(), exit)?))
}

/// Reads and concludes every run in `FOLDER/runs/*.json`, in the format of relay-mesh's docs/fixtures.md, once line by
/// line and once all at once, and compares with what each file expects. Returns how many there are.
///
/// # Panics
/// If a file is not of the format, or a run is read otherwise than it says.
#[track_caller]
pub fn recorded_runs<A: Runner>(folder: impl AsRef<Path>) -> usize {
    let folder = folder.as_ref().join("runs");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut all = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let recorded: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for at_once in [1, 1_000_000] {
            let told = compare::<A>(&recorded, at_once).unwrap_or_else(|error| vec![format!("it failed: {error:?}")]);
            all.extend(told.iter().map(|told| format!("{}, {at_once} lines at once: {told}", file.display())));
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
    files.len()
}

/// What differs from what a recorded run expects.
fn compare<A: Runner>(recorded: &Value, at_once: usize) -> Result<Vec<String>, Error> {
    let lines = recorded["output"].as_array().cloned().unwrap_or_default();
    let output = lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
    let exit = &recorded["exit"];
    let number = |name: &str| exit[name].as_i64().and_then(|number| i32::try_from(number).ok());
    let exit = ProcessExit {
        code: number("code"),
        signal: number("signal"),
        asked_to_stop: exit["asked-to-stop"] == true,
        stderr_end: exit["stderr"].as_str().unwrap_or_default().to_owned(),
    };
    let (events, outcome) = run::<A>(&recorded_task(recorded), &output, at_once, &exit)?;
    let last_said = events.iter().rev().find_map(|event| match event {
        RunEvent::Said(text) => Some(text.clone()),
        _ => None,
    });
    let usage = outcome.usage.map(|usage| {
        json!({
            "input": usage.input, "cached-input": usage.cached_input, "output": usage.output,
            "reasoning": usage.reasoning, "cost": usage.cost, "whole-session": usage.whole_session,
        })
    });
    let was = json!({
        "ending": kebab(&format!("{:?}", outcome.ending)),
        "answer": outcome.answer.or(last_said),
        "output": outcome.output.map(|output| serde_json::from_str::<Value>(&output).unwrap_or_default()),
        "session": outcome.session,
        "turns": outcome.turns,
        "denials": outcome.denials.iter().map(|denial| denial.tool.as_str()).collect::<Vec<_>>(),
        "why": outcome.why,
        "retry-after-ms": outcome.retry_after_ms,
        "usage": usage,
        "events": events.iter().map(kind).collect::<Vec<_>>(),
    });
    let expected = recorded["concludes"].as_object().cloned().unwrap_or_default();
    let differs = |(name, expected): (&String, &Value)| {
        let is_part = name == "why"
            && expected.as_str().is_some_and(|part| was["why"].as_str().unwrap_or_default().contains(part));
        (!is_part && was[name] != *expected).then(|| format!("{name}: expected {expected}, and it is {}", was[name]))
    };
    let missing = (!expected.contains_key("ending")).then(|| format!("it expects no `ending`; it is {was}"));
    Ok(expected.iter().filter_map(differs).chain(missing).collect())
}

fn recorded_task(recorded: &Value) -> Task {
    let session = || recorded["session"].as_str().unwrap_or("5d20a1b2-0000-4000-8000-000000000009").to_owned();
    Task {
        start: match recorded["start"].as_str() {
            Some("resume") => Start::Resume(session()),
            Some("fork") => Start::Fork(session()),
            _ => task().start,
        },
        reach: match recorded["reach"].as_str() {
            Some("edit") => Reach::Edit,
            Some("work") => Reach::Work,
            Some("unguarded") => Reach::Unguarded,
            _ => Reach::Look,
        },
        schema: (recorded["schema"] == true).then(|| "{}".to_owned()),
        turns: recorded["turns"].as_u64().and_then(|turns| u32::try_from(turns).ok()),
        ..task()
    }
}

fn kind(event: &RunEvent) -> &'static str {
    match event {
        RunEvent::Session(_) => "session",
        RunEvent::Said(_) | RunEvent::Piece(_) => "said",
        RunEvent::Tool(_) => "tool",
        RunEvent::Wrote(_) => "wrote",
        RunEvent::Denied(_) => "denied",
        RunEvent::Retries(_) => "retries",
        RunEvent::Used(_) => "used",
        RunEvent::Turns(_) => "turns",
        RunEvent::Note(_) => "note",
    }
}

/// `Ending::BrokeOff` as `broke-off`.
fn kebab(case: &str) -> String {
    let name = case.rsplit("::").next().unwrap_or_default();
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.extend(letter.to_lowercase());
    }
    words
}
