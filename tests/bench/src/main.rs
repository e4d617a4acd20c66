//! Measures the built binary against its budgets and prints one line for each.
//!
//! Run by `make bench`, which builds the binary first. Every time is a ratio to something that
//! is measured in the same run, in turns with it, so that a slow or a busy machine changes both.
//! Nothing here is asserted: docs/benchmarks.md holds what was measured where. Words on its command
//! line name the sections to measure: processes, senders, runs, sizes.

mod baseline;
mod cold_start;
mod commands;
mod coordination;
mod installing;
mod memory;
mod package;
mod runs;
mod threads;
mod tool_list;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::baseline::Baselines;
use bench::report::{self, Report};
pub(crate) use bench::{Failure, client, programs};

/// What every measurement is given.
pub(crate) struct Subject {
    /// The relay-mesh binary that is measured.
    pub(crate) relay_mesh: PathBuf,
    /// Static programs in C that do little.
    pub(crate) baselines: Baselines,
    /// A folder on the disk that the repository lies on; gone afterwards.
    pub(crate) scratch: tempfile::TempDir,
}

impl Subject {
    /// A data folder that no other measurement uses.
    pub(crate) fn data_folder(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }
}

fn main() -> ExitCode {
    report::ended(measure())
}

fn measure() -> Result<(), Failure> {
    let (relay_mesh, scratch) = bench::subject()?;
    let baselines = Baselines::build(scratch.path())?;
    let subject = Subject { relay_mesh, baselines, scratch };
    let report = Report::to_standard_output();
    let named: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |name: &str| named.is_empty() || named.iter().any(|one| one == name);
    // One after the other: two measurements at once would measure each other.
    if is_wanted("processes") {
        report.section("whole processes, against a static hello-world");
        commands::send(&subject, &report)?;
        commands::hook(&subject, &report)?;
        cold_start::first_answer(&subject, &report)?;
        installing::plugin(&subject, &report)?;
        coordination::reservations(&subject, &report)?;
        coordination::status(&subject, &report)?;
    }
    if is_wanted("senders") {
        report.section("many senders");
        coordination::senders(&subject, &report)?;
    }
    if is_wanted("runs") {
        report.section("runs");
        runs::runs(&subject, &report)?;
        threads::list(&subject, &report)?;
    }
    if is_wanted("sizes") {
        report.section("sizes");
        package::size(&subject, &report)?;
        tool_list::tokens(&subject, &report)?;
        memory::short_lived(&subject, &report)?;
        memory::stdio_server(&subject, &report)?;
        memory::host(&subject, &report)?;
    }
    Ok(())
}
