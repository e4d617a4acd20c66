//! Measures what watching costs: how soon a message is on screen in the terminal view, what that takes of a processor while
//! twenty agents talk and while nothing happens, and how much later mail is delivered while a hundred pages of the server
//! are open.
//!
//! Run by `make bench`. The first argument says how many messages.

mod pages;
mod talk;
mod terminal;

use std::process::ExitCode;

use bench::{Failure, report::Report};

/// How many messages, if nothing is said.
const MESSAGES: usize = 200;

fn main() -> ExitCode {
    bench::isolated(measure)
}

fn measure() -> Result<(), Failure> {
    let messages = std::env::args().nth(1).map_or(Ok(MESSAGES), |number| number.parse())?;
    let (relay_mesh, _scratch) = bench::subject()?;
    let report = Report::to_standard_output();
    report.section("`relay-mesh ui` in a terminal of 160 columns and 48 lines");
    terminal::measure(&relay_mesh, messages, &report)?;
    report.section(&format!("{} pages of the server, {messages} messages with and without, in turns", pages::OPEN));
    pages::measure(&relay_mesh, messages, &report)
}
