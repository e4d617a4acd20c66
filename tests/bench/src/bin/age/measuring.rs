//! All ages in turns, row by row, so that whatever else the machine does meets each of them.

use std::time::{Duration, Instant};

use bench::Failure;
use bench::report::Report;

use crate::folder::AgedFolder;
use crate::options::{Age, Options};
use crate::rows::{self, Row};

/// A row that takes longer than this at one age is measured as often as a slow one.
const SLOW: Duration = Duration::from_secs(2);

/// When something is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// As the folder is.
    Before,
    /// What changes the folder: the first start of `serve`, and `gc`.
    Collecting,
    /// After it.
    After,
}

/// The median of one row at one age.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) row: Row,
    pub(crate) phase: Phase,
    pub(crate) age: Age,
    pub(crate) value: f64,
}

/// Measures every row that belongs to a phase.
pub(crate) fn measure(folders: &[AgedFolder], phase: Phase, options: &Options, report: &Report) -> Vec<Measured> {
    let is_chosen = |row: &Row| options.rows.as_deref().is_none_or(|word| row.name().contains(word));
    let mut measured = Vec::new();
    for row in Row::ALL.into_iter().filter(|row| row.belongs_to(phase)) {
        // What comes after `gc` needs it, whatever was chosen.
        if !is_chosen(&row) && phase != Phase::Collecting {
            continue;
        }
        let medians = in_turns(row, phase, folders, options.runs).unwrap_or_else(|failure| {
            // What was filled for minutes is measured on.
            report.row(&format!("failed: {failure}"));
            vec![f64::INFINITY; folders.len()]
        });
        let told: Vec<String> = medians.iter().map(|value| rows::spoken(*value, row.unit())).collect();
        report.row(&format!("{:<46} {}", row.name(), told.join("   ")));
        measured.extend(folders.iter().zip(medians).map(|(folder, value)| Measured {
            row,
            phase,
            age: folder.age,
            value,
        }));
    }
    measured
}

fn in_turns(row: Row, phase: Phase, folders: &[AgedFolder], quick: usize) -> Result<Vec<f64>, Failure> {
    let mut runs = row.runs(phase, quick);
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); folders.len()];
    // The first turn fills caches and does not count, unless there is only one.
    let warm_up = usize::from(runs > 1);
    let mut turn = 0;
    while turn < warm_up + runs {
        for (folder, values) in folders.iter().zip(&mut values) {
            let began = Instant::now();
            let failed = |error: Failure| format!("{} of the {}: {error}", row.name(), folder.age.title());
            let value = row.measure(folder, turn).map_err(failed)?;
            if turn >= warm_up {
                values.push(value);
            } else if began.elapsed() > SLOW {
                runs = runs.min(3);
            }
        }
        turn += 1;
    }
    Ok(values.into_iter().map(median).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
