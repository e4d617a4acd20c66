//! What a run of the real clients has proven, noted for the wake table: one line for each observation, in a
//! folder that `make` names. A test that is run by hand notes nothing.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;

use crate::client::Client;
use crate::stage::Stage;

/// The variable that names the file which observations are added to.
pub const OBSERVATIONS: &str = "RELAY_OBSERVATIONS";

/// A column of the wake table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ability {
    /// The agent belongs to the harness's own session.
    Bind,
    /// The protocol stands before the model without a question.
    Context,
    /// Name and mail outlive a compaction.
    Compaction,
    /// Mail comes while a turn runs.
    MidTurn,
    /// Mail that waits at the end of a turn is shown there: before it ends, or by a turn that follows at
    /// once without anybody's doing.
    TurnEnd,
    /// A session that does nothing begins a turn.
    IdleWake,
    /// The sender sees that the recipient has it.
    Acknowledged,
}

impl Ability {
    /// All of them, as the columns stand.
    pub const ALL: [Ability; 7] = [
        Ability::Bind,
        Ability::Context,
        Ability::Compaction,
        Ability::MidTurn,
        Ability::TurnEnd,
        Ability::IdleWake,
        Ability::Acknowledged,
    ];

    /// Its name in files.
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

/// Notes that a client was seen to have an ability, and by what means. Call it once the test has seen it.
///
/// # Panics
/// Where the means is not known: a cell of the table has to say how.
#[expect(clippy::disallowed_methods, reason = "make names the file, and a test run by hand has none")]
pub fn observed(stage: &Stage, client: Client, ability: Ability, by: Option<&str>) {
    let by = by.unwrap_or_else(|| panic!("{}: {} by no means that is known", client.name(), ability.name()));
    let Some(file) = std::env::var_os(OBSERVATIONS).map(PathBuf::from) else { return };
    let line = json!({"harness": client.name(), "version": client.version(stage), "ability": ability.name(), "by": by});
    // One write of one short line: other tests may add theirs at the same time.
    let written = std::fs::OpenOptions::new().create(true).append(true).open(&file);
    written
        .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
        .unwrap_or_else(|error| panic!("{} cannot be written: {error}", file.display()));
}
