//! `relay-mesh guard`.

use std::path::PathBuf;

use mesh::EditMode;
use serde::Serialize;

use crate::commit_guard::HookFile;
use crate::render::{Show, printable_line};

/// `relay-mesh guard install`.
#[derive(Debug, Serialize)]
pub(crate) struct GuardShape {
    /// `installed`, or `already` if nothing had to change.
    outcome: &'static str,
    /// The file with the guard.
    file: String,
    /// The hook manager: `git`, `core.hooksPath`, `husky`, `lefthook`, `pre-commit`.
    by: &'static str,
}

impl GuardShape {
    pub(crate) fn of(outcome: &'static str, place: &HookFile) -> GuardShape {
        GuardShape { outcome, file: place.file.display().to_string(), by: place.manager.as_str() }
    }
}

impl Show for GuardShape {
    fn text(&self) -> String {
        let said = if self.outcome == "already" { "stands already" } else { "stands now" };
        format!("the guard {said} in {} (by {})", printable_line(&self.file), self.by)
    }
}

/// `relay-mesh guard uninstall`.
#[derive(Debug, Serialize)]
pub(crate) struct RemovedShape {
    /// The files from which the guard was removed.
    removed: Vec<String>,
}

impl RemovedShape {
    pub(crate) fn of(files: &[PathBuf]) -> RemovedShape {
        RemovedShape { removed: files.iter().map(|file| file.display().to_string()).collect() }
    }
}

impl Show for RemovedShape {
    fn text(&self) -> String {
        let lines = self.removed.iter().map(|file| format!("took the guard out of {}", printable_line(file)));
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() { "there is no guard here".to_owned() } else { lines.join("\n") }
    }
}

/// `relay-mesh guard status`.
#[derive(Debug, Serialize)]
pub(crate) struct StandingShape {
    /// Whether the guard is in the file that git or the hook manager runs now.
    stands: bool,
    /// The files with the guard.
    files: Vec<String>,
    /// `enforce` or `advise`.
    mode: &'static str,
}

impl StandingShape {
    pub(crate) fn of(files: &[PathBuf], stands: bool, mode: EditMode) -> StandingShape {
        StandingShape {
            stands,
            files: files.iter().map(|file| file.display().to_string()).collect(),
            mode: mode.as_str(),
        }
    }
}

impl Show for StandingShape {
    fn text(&self) -> String {
        let files = self.files.iter().map(|file| printable_line(file)).collect::<Vec<_>>().join(", ");
        match (self.stands, self.files.is_empty()) {
            (true, _) => format!("the guard stands in {files} ({})", self.mode),
            (false, true) => "there is no guard here".to_owned(),
            (false, false) => format!("the guard stands in {files}, where nothing runs it any more"),
        }
    }
}
