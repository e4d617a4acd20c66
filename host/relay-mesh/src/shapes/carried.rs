//! What was moved: `store copy` and `store import`.

use mesh::carrying::MigrationReport;
use serde::Serialize;

use super::counted;
use crate::render::Show;

/// What was moved.
#[derive(Debug, Serialize)]
pub(crate) struct CarriedShape {
    /// Entries of logs that were written.
    pub(crate) entries: usize,
    /// Values that were written.
    pub(crate) values: usize,
    /// Entries and values that were there already.
    pub(crate) already: usize,
    /// Values that stayed what they were, because the target held others.
    pub(crate) kept: usize,
    /// Damaged stretches of the source, which stayed behind.
    pub(crate) damaged: usize,
}

impl CarriedShape {
    pub(crate) fn of(carried: &MigrationReport) -> CarriedShape {
        let MigrationReport { entries, values, already, kept, damaged } = *carried;
        CarriedShape { entries, values, already, kept, damaged }
    }
}

impl Show for CarriedShape {
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
