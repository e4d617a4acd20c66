//! What was cleanup: `gc`.

use mesh::{Cleanup, DryRun};
use serde::Serialize;

use super::counted;
use crate::render::{Show, printable_line};

/// `relay-mesh gc`.
#[derive(Debug, Serialize)]
pub(crate) struct CleanupShape {
    /// Whether it was only looked at.
    pub(crate) dry_run: bool,
    /// Reservations: `OWNER PATTERN`.
    pub(crate) reservations: Vec<String>,
    /// Commands: their ids.
    pub(crate) commands: Vec<String>,
    /// Agents.
    pub(crate) agents: Vec<String>,
    /// How many segments of the log of events went; left out where it was only looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) segments: Option<usize>,
}

impl CleanupShape {
    pub(crate) fn of(cleanup: &Cleanup, dry_run: DryRun) -> CleanupShape {
        let dry_run = match dry_run {
            DryRun::No => false,
            DryRun::Yes => true,
        };
        CleanupShape {
            dry_run,
            reservations: cleanup
                .reservations
                .iter()
                .map(|(_, one)| format!("{} {}", one.owner, one.pattern))
                .collect(),
            commands: cleanup.commands.iter().map(|command| command.id.to_string()).collect(),
            agents: cleanup.agents.iter().map(ToString::to_string).collect(),
            segments: (!dry_run).then_some(cleanup.segments),
        }
    }
}

impl Show for CleanupShape {
    fn text(&self) -> String {
        let verb = if self.dry_run { "would remove" } else { "removed" };
        let line = |noun: &str, some: &[String]| {
            let each: Vec<String> = some.iter().map(|one| printable_line(one)).collect();
            (!some.is_empty()).then(|| format!("{verb} {}: {}", counted(some.len(), noun), each.join(", ")))
        };
        let segments = self.segments.filter(|count| *count > 0);
        let lines: Vec<String> = [
            line("reservation", &self.reservations),
            line("command", &self.commands),
            line("agent", &self.agents),
            segments.map(|count| format!("{verb} {} of the log of events", counted(count, "segment"))),
        ]
        .into_iter()
        .flatten()
        .collect();
        if lines.is_empty() { "nothing is finished and old".to_owned() } else { lines.join("\n") }
    }
}
