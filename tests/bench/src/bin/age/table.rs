//! What was measured, as a table in Markdown: the first age in its unit, all others as ratios to it.

use crate::measuring::{Measured, Phase};
use crate::options::Age;
use crate::rows::{self, Budget, Row};

/// All medians of one run.
pub(crate) struct Table {
    ages: Vec<Age>,
    measured: Vec<Measured>,
}

impl Table {
    /// The table of these ages.
    pub(crate) fn new(ages: &[Age], measured: Vec<Measured>) -> Table {
        Table { ages: ages.to_vec(), measured }
    }

    /// The ages of its columns.
    pub(crate) fn ages(&self) -> &[Age] {
        &self.ages
    }

    /// The rows that were measured before `gc`, each with its ratio to the first age at each age.
    pub(crate) fn laws(&self) -> Vec<(Row, Vec<f64>)> {
        let law = |row: Row| {
            let day = self.value(row, Phase::Before, *self.ages.first()?)?;
            let ratio = |age: &Age| Some(self.value(row, Phase::Before, *age)? / day);
            let ratios = self.ages.iter().map(ratio).collect::<Option<Vec<f64>>>()?;
            ratios.iter().all(|ratio| ratio.is_finite()).then_some((row, ratios))
        };
        Row::ALL.into_iter().filter_map(law).collect()
    }

    /// Its lines.
    pub(crate) fn markdown(&self) -> Vec<String> {
        let phases: &[Phase] = match self.has_any(Phase::After) {
            true => &[Phase::Before, Phase::After],
            false => &[Phase::Before],
        };
        let columns = || phases.iter().flat_map(|phase| self.ages.iter().map(|age| (*phase, *age)));
        let heading = |(phase, age): (Phase, Age)| match phase {
            Phase::Before | Phase::Collecting => age.title().to_owned(),
            Phase::After => format!("{}, after `gc`", age.title()),
        };
        let headings: Vec<String> = columns().map(heading).collect();
        let mut lines = vec![
            String::new(),
            format!("| | {} |", headings.join(" | ")),
            format!("|---|{}", "---|".repeat(headings.len())),
        ];
        for row in Row::ALL {
            let cells: Vec<Option<String>> = columns().map(|(phase, age)| self.cell(row, phase, age)).collect();
            if cells.iter().any(Option::is_some) {
                let cells: Vec<String> = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "–".to_owned())).collect();
                lines.push(format!("| {} | {} |", row.name(), cells.join(" | ")));
            }
        }
        lines
    }

    /// What is over its budget, in words.
    pub(crate) fn over_budget(&self) -> Vec<String> {
        let words = |one: &&Measured| {
            let day = self.first(one.row).unwrap_or(one.value);
            let when = match one.phase {
                Phase::Before | Phase::Collecting => "",
                Phase::After => " after `gc`",
            };
            let value = rows::spoken(one.value, one.row.unit());
            format!(
                "{}, {}{when}: {value}, {:.1} × the {}",
                one.row.name(),
                one.age.title(),
                one.value / day,
                self.title()
            )
        };
        self.measured.iter().filter(|one| self.is_over(one)).map(|one| words(&one)).collect()
    }

    fn cell(&self, row: Row, phase: Phase, age: Age) -> Option<String> {
        // What changes the folder is told among the columns before it.
        let phase = match row {
            Row::Serve | Row::Gc | Row::GcDaily | Row::GcAgain if phase == Phase::Before => Phase::Collecting,
            _ => phase,
        };
        let one = self.measured.iter().find(|one| (one.row, one.phase, one.age) == (row, phase, age))?;
        let is_first = phase != Phase::After && self.ages.first() == Some(&age);
        let day = self.first(row)?;
        let text = match row.budget(phase) {
            Budget::Absolute(_) | Budget::None => rows::spoken(one.value, row.unit()),
            Budget::Age | Budget::Ratio(_) if is_first || one.value.is_infinite() => {
                rows::spoken(one.value, row.unit())
            }
            Budget::Age | Budget::Ratio(_) => format!("{:.1} ×", one.value / day),
        };
        Some(if self.is_over(one) { format!("**{text}**") } else { text })
    }

    fn is_over(&self, one: &Measured) -> bool {
        let day = self.first(one.row).unwrap_or(one.value);
        rows::is_over(one.row.budget(one.phase), one.age, one.value, day)
    }

    /// What everything of a row is compared with.
    fn first(&self, row: Row) -> Option<f64> {
        let age = *self.ages.first()?;
        self.value(row, Phase::Before, age).or_else(|| self.value(row, Phase::Collecting, age))
    }

    fn title(&self) -> &'static str {
        self.ages.first().map_or("first", |age| age.title())
    }

    fn value(&self, row: Row, phase: Phase, age: Age) -> Option<f64> {
        let found = self.measured.iter().find(|one| (one.row, one.phase, one.age) == (row, phase, age));
        found.map(|one| one.value)
    }

    fn has_any(&self, phase: Phase) -> bool {
        self.measured.iter().any(|one| one.phase == phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_stand_beside_the_day_and_what_is_over_is_marked() {
        let one = |row, phase, age, value| Measured { row, phase, age, value };
        let table = Table::new(
            &[Age::Day, Age::Year],
            vec![
                one(Row::Send, Phase::Before, Age::Day, 8.0),
                one(Row::Send, Phase::Before, Age::Year, 11.0),
                one(Row::Send, Phase::After, Age::Day, 8.0),
                one(Row::Send, Phase::After, Age::Year, 16.0),
                one(Row::GcDaily, Phase::Collecting, Age::Day, 0.1),
                one(Row::GcDaily, Phase::Collecting, Age::Year, 1.2),
            ],
        );
        let lines = table.markdown();
        assert_eq!(lines[1], "| | day | year | day, after `gc` | year, after `gc` |");
        assert_eq!(lines[3], "| `send` | 8.0 ms | 1.4 × | 1.0 × | **2.0 ×** |");
        assert_eq!(lines[4], "| `gc` a day later | 0.10 s | **1.2 s** | – | – |");
        assert_eq!(table.over_budget().len(), 2);
        assert_eq!(table.laws(), vec![(Row::Send, vec![1.0, 1.375])]);
    }
}
