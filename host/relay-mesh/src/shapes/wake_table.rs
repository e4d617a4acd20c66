//! The wake table of `harnesses --matrix`: what was tested with the real client of each harness.
//!
//! It is compiled into the program: `make clients` writes docs/wake-table.json from its test results.

use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthStr;

use crate::render::{Show, table};
use crate::screen::Screen;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WakeTable {
    /// Sorted by name.
    harnesses: Vec<Row>,
}

/// The results for one harness.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    /// The adapter's name.
    harness: String,
    /// The tested version of the client; none if it was not tested.
    version: Option<String>,
    abilities: Abilities,
}

/// The columns. Each lists the routes that were seen to work, named as in receipts if possible; empty if untested.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Abilities {
    /// An agent is bound to the harness's own session.
    bind: Vec<String>,
    /// The model sees the protocol without asking.
    context: Vec<String>,
    /// Name and protocol survive a compaction.
    compaction: Vec<String>,
    /// Mail is shown during a turn.
    mid_turn: Vec<String>,
    /// Mail that waits at the end of a turn is shown before the turn ends.
    turn_end: Vec<String>,
    /// An idle session begins a turn.
    idle_wake: Vec<String>,
    /// The sender sees that the recipient has the message.
    acknowledged: Vec<String>,
}

impl WakeTable {
    pub(crate) fn of_this_build() -> WakeTable {
        serde_json::from_str(include_str!("wake-table.json"))
            .unwrap_or_else(|error| unreachable!("a test reads docs/wake-table.json: {error}"))
    }
}

const HEAD: [&str; 9] =
    ["HARNESS", "VERSION", "BIND", "CONTEXT", "COMPACTION", "MID-TURN", "TURN END", "IDLE WAKE", "ACKNOWLEDGED"];

impl Show for WakeTable {
    fn text(&self) -> String {
        table(&HEAD, &self.harnesses.iter().map(cells).collect::<Vec<_>>())
    }

    /// A list for each harness where the table has no room.
    fn text_on(&self, screen: &Screen) -> String {
        let beside = self.text();
        if beside.lines().all(|line| line.width() <= screen.columns) {
            return beside;
        }
        let widest = HEAD[2..].iter().map(|name| name.len()).max().unwrap_or_default();
        let one = |row: &Row| {
            let cells = cells(row);
            let ability =
                |(name, cell): (&&str, &String)| screen.labelled(&format!("  {:widest$}  ", name.to_lowercase()), cell);
            let abilities = HEAD[2..].iter().zip(&cells[2..]).map(ability);
            let name = if cells[1] == "-" { cells[0].clone() } else { cells[..2].join(" ") };
            std::iter::once(name).chain(abilities).collect::<Vec<_>>().join("\n")
        };
        self.harnesses.iter().map(one).collect::<Vec<_>>().join("\n\n")
    }
}

fn cells(row: &Row) -> Vec<String> {
    let Abilities { bind, context, compaction, mid_turn, turn_end, idle_wake, acknowledged } = &row.abilities;
    let means = [bind, context, compaction, mid_turn, turn_end, idle_wake, acknowledged];
    let version = row.version.clone().unwrap_or_else(|| "-".to_owned());
    let tried = |means: &Vec<String>| if means.is_empty() { "untried".to_owned() } else { means.join(", ") };
    [row.harness.clone(), version].into_iter().chain(means.into_iter().map(tried)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_run_has_seen_is_untried() {
        let read: WakeTable = serde_json::from_str(
            r#"{"harnesses": [{"harness": "toy", "version": "1.0", "abilities": {
                "bind": ["ticket"], "context": [], "compaction": [], "mid-turn": ["hook:A", "hook:B"], "turn-end": [],
                "idle-wake": [], "acknowledged": []}}]}"#,
        )
        .expect("it is a table");
        assert_eq!(
            read.text(),
            "HARNESS  VERSION  BIND    CONTEXT  COMPACTION  MID-TURN        TURN END  IDLE WAKE  ACKNOWLEDGED\n\
             toy      1.0      ticket  untried  untried     hook:A, hook:B  untried   untried    untried"
        );
    }

    #[test]
    fn the_table_of_this_build_can_be_read() {
        assert!(!WakeTable::of_this_build().harnesses.is_empty());
    }
}
