//! `relay-mesh plugin install` of a component that nothing was compiled of before: read, compiled,
//! tried out, and on disk.

use std::path::Path;
use std::time::Duration;

use crate::{Failure, Subject, programs};
use bench::report::Report;

/// How often. Each one compiles, which takes the better part of a second.
const ROUNDS: usize = 7;
/// A component of some 200 KB. It is installed in place of the built-in one, which is the same.
const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/generic");

/// The whole process, each time with an empty data folder and an empty cache.
pub(crate) fn plugin(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let size = std::fs::metadata(Path::new(PACKAGE).join("generic.wasm"))?.len();
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let data = subject.data_folder(&format!("install-{round}"));
        let mut install = programs::relay_mesh(&subject.relay_mesh, &data);
        install.args([
            "plugin",
            "install",
            "--allow-unsigned",
            PACKAGE,
            "--yes",
            "--grant",
            "state",
            "--grant",
            "replaces-built-in",
        ]);
        times.push(programs::time(&mut install, None)?);
    }
    times.sort();
    let median: Duration = times[ROUNDS / 2];
    report.note(&format!("plugin install of {} KB, compiled anew (budget 1 s)", size / 1_000), median);
    Ok(())
}
