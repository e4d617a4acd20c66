//! The result of `store copy` and `store import`.

use mesh::storage::migrate::MigrationReport;
use serde::Serialize;

use super::counted;
use crate::render::Show;

#[derive(Debug, Serialize)]
pub(crate) struct MigrationShape {
    /// Log entries written.
    pub(crate) entries: usize,
    /// Values written.
    pub(crate) values: usize,
    /// Entries and values already there.
    pub(crate) already: usize,
    /// Values left as they were, because the target had different ones.
    pub(crate) kept: usize,
    /// Damaged parts of the source, not copied.
    pub(crate) damaged: usize,
}

impl MigrationShape {
    pub(crate) fn of(carried: &MigrationReport) -> MigrationShape {
        let MigrationReport { entries, values, already, kept, damaged } = *carried;
        MigrationShape { entries, values, already, kept, damaged }
    }
}

impl Show for MigrationShape {
    fn text(&self) -> String {
        let mut text = format!(
            "moved {} and {}; {} were there already",
            counted(self.entries, "line") + " of logs",
            counted(self.values, "value"),
            self.already
        );
        if self.kept > 0 {
            text.push_str(&format!("; {} kept as the target had them", counted(self.kept, "value")));
        }
        if self.damaged > 0 {
            text.push_str(&format!("; {} left behind", counted(self.damaged, "damaged line")));
        }
        text
    }
}
