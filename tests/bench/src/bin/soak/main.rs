//! The soak: two real clients of each harness in one project, with scripted models, and for as long as one likes random
//! mail between all of them and from a shell, while their users type, press Esc, clear, leave and open again, and
//! clients are killed. In the end every message must have reached a model exactly once, or more often and marked as
//! repeated, or it still waits and says why.
//!
//! Run by `make soak CLIENTS=1`. `MINUTES` says for how long (60), `SEED` repeats the choices of another run; what the
//! clients do with them differs from run to run. `HARNESSES` names some of them. With `WRITE` the table goes into the
//! README and docs/receipts.md.

mod chance;
mod drive;
mod ledger;
mod player;
mod table;

use std::process::ExitCode;
use std::time::Duration;

use bench::Failure;
use bench::report::{self, Report};
use test_support::{isolated_program, now, variable};

use crate::chance::Chance;
use crate::drive::Drive;
use crate::player::Kind;

fn main() -> ExitCode {
    // What a client did not do in time is told in one line by who waited for it.
    std::panic::set_hook(Box::new(|panic| report::complain(&panic.to_string().into())));
    let outcome = isolated_program(|| match soak() {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(failure) => {
            report::complain(&failure);
            2
        }
    });
    ExitCode::from(outcome)
}

/// Returns whether no message was lost and none was repeated without a mark.
fn soak() -> Result<bool, Failure> {
    if cfg!(panic = "abort") {
        return Err(
            "a client that does not open would end this build of the soak; `make soak` builds one that goes on".into(),
        );
    }
    let minutes: f64 = variable("MINUTES").map_or(Ok(60.0), |text| text.parse())?;
    let seed: u64 = match variable("SEED") {
        Some(text) => text.parse()?,
        None => u64::try_from(now().duration_since(std::time::UNIX_EPOCH)?.as_micros() & 0xffff_ffff)?,
    };
    let named = variable("HARNESSES").unwrap_or_default();
    let kinds: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|kind| named.is_empty() || named.split(',').any(|name| name == kind.name()))
        .collect();
    let (relay_mesh, _scratch) = bench::subject()?;
    let report = Report::to_standard_output();
    report.section(&format!("soak: {minutes} min, SEED={seed}"));
    let drive = Drive::start(&relay_mesh, &kinds, Chance::new(seed), &report);
    let finished = drive.run(Duration::from_secs_f64(minutes * 60.0));
    let judged = ledger::judge(&finished);
    table::print(&report, &finished, &judged);
    if variable("WRITE").is_some() {
        let processors = std::thread::available_parallelism()?;
        let run = format!("A run of {minutes} minutes on {processors} processors (`SEED={seed}`)");
        table::write(&finished, &judged, &run)?;
    }
    Ok(judged.is_well())
}
