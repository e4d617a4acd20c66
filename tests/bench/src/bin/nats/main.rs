//! Measures the mesh on a NATS server against the server itself: sending against a bare publish that is
//! acknowledged, a message's way to another machine against a bare consumer's, and how what one agent asks
//! grows with the mail of all others.
//!
//! Run by `make bench`. The first argument says how much is measured: `quick`, `sending` or `growth` alone, or nothing
//! for all of it. The server is a real one with a folder of its own, and both sides speak to the same.

mod growth;
mod host;
mod sending;
mod trip;

use std::process::ExitCode;

use bench::Failure;
use bench::report::{self, Report};
use test_support::NatsServer;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Enough to see that everything works.
    Quick,
    /// What the budgets speak of.
    Whole,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Everything,
    Sending,
    Growth,
}

fn main() -> ExitCode {
    report::ended(measure())
}

fn measure() -> Result<(), Failure> {
    let (part, extent) = match std::env::args().nth(1).as_deref() {
        None => (Part::Everything, Extent::Whole),
        Some("quick") => (Part::Everything, Extent::Quick),
        Some("sending") => (Part::Sending, Extent::Whole),
        Some("growth") => (Part::Growth, Extent::Whole),
        Some(other) => {
            return Err(format!("`{other}` is not an extent; write `quick`, `sending`, `growth`, or nothing").into());
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = Report::to_standard_output();
    runtime.block_on(async {
        if part != Part::Growth {
            let server = NatsServer::start();
            report.section("sending, messages per second, against publish and acknowledge");
            sending::measure(&server, extent, &report).await?;
            if part == Part::Everything {
                report.section("from sent to delivered, against publish to consumer");
                trip::measure(&server, extent, &report).await?;
            }
        }
        if part != Part::Sending {
            // What was sent before is not to be in the way.
            let server = NatsServer::start();
            report.section("what is asked of one agent, while agents and mail of all others grow");
            growth::measure(&server, extent, &report).await?;
        }
        Ok(())
    })
}
