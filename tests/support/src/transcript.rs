//! A readable account of a run: who did what, in order.

use std::fmt::Write;

/// An account that grows while a test runs.
#[derive(Default)]
pub struct Transcript {
    text: String,
    step: usize,
}

impl Transcript {
    /// An empty one.
    pub fn new() -> Transcript {
        Transcript::default()
    }

    /// Adds a step with its output.
    pub fn step(&mut self, who: &str, what: &str, shown: &str) {
        self.step += 1;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "\n{:>2}. {who}: {what}", self.step);
        for line in shown.lines() {
            let _ = writeln!(self.text, "      │ {line}");
        }
    }

    /// Prints it for the user who runs the test (`make demo`).
    #[expect(clippy::print_stdout, reason = "the test runner takes what a test prints, and shows it when asked")]
    pub fn show(&self) {
        println!("{}", self.text);
    }
}
