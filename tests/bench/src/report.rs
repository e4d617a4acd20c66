//! The lines that people read.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use crate::Failure;
use crate::sampling::Compared;

/// Where the lines go.
pub struct Report;

impl Report {
    /// A report on standard output.
    pub fn to_standard_output() -> Report {
        Report
    }

    /// A heading over the lines that follow.
    pub fn section(&self, title: &str) {
        self.line(&format!("\n{title}"));
    }

    /// A time, the time it is measured against, and their ratio against its budget.
    pub fn ratio(&self, name: &str, compared: &Compared, budget: f64) {
        let ratio = compared.ratio();
        let measured = format!("{} against {}", shown(compared.subject), shown(compared.baseline));
        self.line(&format!(
            "{name:<46} {measured:<26} {ratio:>5.1} ×   budget {budget} ×   {}",
            verdict(ratio, budget)
        ));
    }

    /// The same without a budget.
    pub fn figure(&self, name: &str, compared: &Compared) {
        let measured = format!("{} against {}", shown(compared.subject), shown(compared.baseline));
        self.line(&format!("{name:<46} {measured:<26} {:>5.1} ×", compared.ratio()));
    }

    /// A time against the longest that it may be.
    pub fn time(&self, name: &str, measured: Duration, budget: Duration) {
        let verdict = verdict(measured.as_secs_f64(), budget.as_secs_f64());
        self.line(&format!("{name:<46} {:<26}           budget {}   {verdict}", shown(measured), shown(budget)));
    }

    /// How much longer one thing takes than another, against what it may.
    pub fn difference(&self, name: &str, subject: Duration, baseline: Duration, budget: Duration) {
        let more = subject.saturating_sub(baseline);
        let measured = format!("{} against {}", shown(subject), shown(baseline));
        self.line(&format!(
            "{name:<46} {measured:<26} {:>9} more   budget {}   {}",
            shown(more),
            shown(budget),
            verdict(more.as_secs_f64(), budget.as_secs_f64())
        ));
    }

    /// A share of something against the least that it may be.
    pub fn share(&self, name: &str, measured: f64, budget: f64, remark: &str) {
        let verdict = verdict(budget, measured);
        self.line(&format!(
            "{name:<46} {:>5.0} %                    budget {:.0} %   {verdict}{remark}",
            measured * 100.0,
            budget * 100.0
        ));
    }

    /// A time that has no budget of its own and explains those that do.
    pub fn note(&self, name: &str, time: Duration) {
        self.line(&format!("{name:<46} {}", shown(time)));
    }

    /// A size against its budget, both in one unit.
    pub fn size(&self, name: &str, measured: f64, budget: f64, unit: &str, remark: &str) {
        let verdict = verdict(measured, budget);
        let measured = format!("{measured:.1} {unit}");
        self.line(&format!("{name:<46} {measured:<26}           budget {budget} {unit}   {verdict}{remark}"));
    }

    /// The same without a budget.
    pub fn amount(&self, name: &str, measured: f64, unit: &str, remark: &str) {
        self.line(&format!("{name:<46} {measured:.1} {unit}{remark}"));
    }

    /// A row of a table that is taken over into a document as it is.
    pub fn row(&self, row: &str) {
        self.line(row);
    }

    fn line(&self, text: &str) {
        // A reader who closed the pipe wants no more lines, and nothing is lost by that.
        let _closed = writeln!(std::io::stdout().lock(), "{text}");
    }
}

/// Ends a measuring program: says why nothing more is measured, where that is so.
pub fn ended(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure);
            ExitCode::FAILURE
        }
    }
}

/// Says why nothing more is measured.
pub fn complain(failure: &Failure) {
    let _closed = writeln!(std::io::stderr().lock(), "error: {failure}");
}

fn verdict(measured: f64, budget: f64) -> &'static str {
    if measured <= budget { "within" } else { "OVER" }
}

fn shown(time: Duration) -> String {
    let microseconds = time.as_secs_f64() * 1e6;
    if microseconds < 1000.0 { format!("{microseconds:.0} µs") } else { format!("{:.2} ms", microseconds / 1000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_the_unit_that_fits() {
        assert_eq!(shown(Duration::from_micros(640)), "640 µs");
        assert_eq!(shown(Duration::from_micros(1640)), "1.64 ms");
    }

    #[test]
    fn a_budget_that_is_just_met_is_met() {
        assert_eq!((verdict(3.0, 3.0), verdict(3.01, 3.0)), ("within", "OVER"));
    }
}
