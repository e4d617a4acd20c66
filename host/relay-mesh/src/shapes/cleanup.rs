//! What was cleaned up: `gc`.

use mesh::DryRun;
use mesh::ports::data_files::Amount;
use serde::Serialize;

use super::counted;
use crate::render::{Show, printable_line, table};
use crate::retention::CleanedUp;

/// `relay-mesh gc`.
#[derive(Debug, Serialize)]
pub(crate) struct CleanupShape {
    /// Whether nothing was deleted.
    pub(crate) dry_run: bool,
    /// Reservations: `OWNER PATTERN`.
    pub(crate) reservations: Vec<String>,
    /// Ids of commands.
    pub(crate) commands: Vec<String>,
    /// Agents.
    pub(crate) agents: Vec<String>,
    /// Deleted segments of the event log; left out in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) segments: Option<usize>,
    /// In a dry run: the files of segments that would be deleted, or on servers the logs whose beginning would be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) segment_names: Vec<String>,
    /// Everything else, by kind.
    pub(crate) deleted: Vec<DeletedShape>,
    /// Worktrees of what ended long ago, which hold work and stay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) kept: Vec<String>,
}

/// How many segments are named in text; `--json` names all.
const MOST_NAMED: usize = 20;

/// One kind of what was deleted by number.
#[derive(Debug, Serialize)]
pub(crate) struct DeletedShape {
    /// What it is, in the plural.
    pub(crate) kind: &'static str,
    /// How many.
    pub(crate) count: usize,
    /// Their bytes; zero if the store does not say.
    pub(crate) bytes: u64,
}

impl CleanupShape {
    pub(crate) fn of(cleaned: &CleanedUp, dry_run: DryRun) -> CleanupShape {
        let CleanedUp { mesh: cleanup, files, adapters, runs, reviews, pipelines, driven } = cleaned;
        let dry_run = match dry_run {
            DryRun::No => false,
            DryRun::Yes => true,
        };
        let by_file = [
            ("wake files without a session", files.wake_files),
            ("locks without a session", files.locks),
            ("indexes without a segment", files.indexes),
            ("abandoned drafts", files.drafts),
            ("files of compiled adapters", adapters.compiled),
            ("notes of adapters that are gone", adapters.notes),
            ("runs", runs.runs),
            ("reviews", *reviews),
            ("pipelines", *pipelines),
            ("folders of driven agents", *driven),
        ];
        let counted = cleanup.tally.amounts.iter().map(|(kind, amount)| (kind.as_str(), *amount)).chain(by_file);
        CleanupShape {
            dry_run,
            reservations: cleanup
                .reservations
                .iter()
                .map(|(_, one)| format!("{} {}", one.owner, one.pattern))
                .collect(),
            commands: cleanup.commands.iter().map(|command| command.id.to_string()).collect(),
            agents: cleanup.agents.iter().map(ToString::to_string).collect(),
            segment_names: cleanup.tally.segments.clone(),
            segments: (!dry_run).then_some(cleanup.segments),
            deleted: counted
                .filter(|(_, amount)| amount.count > 0)
                .map(|(kind, Amount { count, bytes })| DeletedShape { kind, count, bytes })
                .collect(),
            kept: runs.kept.clone(),
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
        let mut lines: Vec<String> =
            [line("reservation", &self.reservations), line("command", &self.commands), line("agent", &self.agents)]
                .into_iter()
                .flatten()
                .collect();
        if !self.deleted.is_empty() {
            let head = if self.dry_run { "WOULD REMOVE" } else { "REMOVED" };
            let row = |one: &DeletedShape| {
                let bytes = if one.bytes > 0 { size(one.bytes) } else { String::new() };
                vec![one.kind.to_owned(), one.count.to_string(), bytes]
            };
            lines.push(table(&[head, "COUNT", "SIZE"], &self.deleted.iter().map(row).collect::<Vec<_>>()));
        }
        for name in self.segment_names.iter().take(MOST_NAMED) {
            lines.push(format!("{verb} {}", printable_line(name)));
        }
        if self.segment_names.len() > MOST_NAMED {
            lines.push(format!("and {} more: `--json` names them", self.segment_names.len() - MOST_NAMED));
        }
        lines.extend(self.kept.iter().map(|kept| format!("{} holds work and stays", printable_line(kept))));
        if lines.is_empty() { "nothing is finished and old".to_owned() } else { lines.join("\n") }
    }
}

/// A size in one unit, as in `3.7 GB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = [("GB", 1_000_000_000_u64), ("MB", 1_000_000), ("kB", 1_000)];
    match units.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_in_one_unit() {
        for (bytes, expected) in
            [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (2_560_000, "2.5 MB"), (3_700_000_001, "3.7 GB")]
        {
            assert_eq!(size(bytes), expected);
        }
    }
}
