//! Records what a run of the real clients has proven, for the tables in docs/: one line per observation, in a file that
//! `make` names. A test run by hand records nothing.

use std::io::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::claude_code::ClaudeCode;
use crate::client::Client;
use crate::codex::Codex;
use crate::gemini::Gemini;
use crate::opencode::OpenCode;
use crate::programs::Program;
use crate::stage::Stage;

/// The variable that names the file of observations.
pub const OBSERVATIONS: &str = "RELAY_OBSERVATIONS";

/// A column of the wake table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ability {
    /// The agent belongs to the harness's own session.
    Bind,
    /// The model sees the protocol without asking.
    Context,
    /// Name and mail survive a compaction.
    Compaction,
    /// Mail is shown during a turn.
    MidTurn,
    /// Mail that waits at the end of a turn is shown then: before it ends, or by a following turn that starts at once
    /// by itself.
    TurnEnd,
    /// An idle session begins a turn.
    IdleWake,
    /// The sender sees that the recipient has the message.
    Acknowledged,
}

impl Ability {
    /// All abilities in the order of the columns.
    pub const ALL: [Ability; 7] = [
        Ability::Bind,
        Ability::Context,
        Ability::Compaction,
        Ability::MidTurn,
        Ability::TurnEnd,
        Ability::IdleWake,
        Ability::Acknowledged,
    ];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Ability::Bind => "bind",
            Ability::Context => "context",
            Ability::Compaction => "compaction",
            Ability::MidTurn => "mid-turn",
            Ability::TurnEnd => "turn-end",
            Ability::IdleWake => "idle-wake",
            Ability::Acknowledged => "acknowledged",
        }
    }
}

/// Records that a client showed an ability, and by what means. Call it after the test has seen it.
///
/// # Panics
/// If the means is unknown: a cell of the table must name it.
pub fn observed(stage: &Stage, client: Client, ability: Ability, by: Option<&str>) {
    let by = by.unwrap_or_else(|| panic!("{}: {} by no means that is known", client.name(), ability.name()));
    note(&json!({"harness": client.name(), "version": client.version(stage), "ability": ability.name(), "by": by}));
}

/// The version of a harness's client.
fn version(stage: &Stage, harness: &str) -> String {
    let version = match harness {
        "claude-code" => ClaudeCode::version(stage),
        "codex" => Codex::version(stage),
        "opencode" => OpenCode::version(stage),
        "copilot" => {
            Program::new(stage.programs().join("copilot")).arg("--version").envs(stage.environment()).succeed()
        }
        _ => Gemini::version(stage),
    };
    let number = version.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    number.unwrap_or(&version).trim_end_matches('.').to_owned()
}

/// Records what came of a run of a harness: a cell of a table in docs/runs.md, in the row of this name.
pub fn run_observed(stage: &Stage, harness: &str, (table, row): (&str, &str), cell: &str) {
    if is_recorded() {
        let version = version(stage, harness);
        note(&json!({"run": {"harness": harness, "version": version, "table": table, "row": row, "cell": cell}}));
    }
}

/// Records what a driven agent of a harness has shown.
pub fn drive_observed(stage: &Stage, harness: &str, shown: &Value) {
    let mut row = json!({"harness": harness, "version": version(stage, harness)});
    if let (Some(row), Some(shown)) = (row.as_object_mut(), shown.as_object()) {
        row.extend(shown.clone());
    }
    note(&json!({"drive": row}));
}

/// The file of observations; none in a test run by hand.
#[expect(clippy::disallowed_methods, reason = "make names the file, and a test run by hand has none")]
fn recorded_in() -> Option<PathBuf> {
    std::env::var_os(OBSERVATIONS).map(PathBuf::from)
}

fn is_recorded() -> bool {
    recorded_in().is_some()
}

/// Appends a line to the file of observations, if there is one.
pub(crate) fn note(line: &Value) {
    let Some(file) = recorded_in() else { return };
    // One write of one short line: other tests may append at the same time.
    let written = std::fs::OpenOptions::new().create(true).append(true).open(&file);
    written
        .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
        .unwrap_or_else(|error| panic!("{} cannot be written: {error}", file.display()));
}
