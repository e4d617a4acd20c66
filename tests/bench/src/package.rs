//! What people download, and what lies on their disk then.

use std::path::Path;

use crate::{Failure, Subject, programs};
use bench::report::Report;

/// The binary, and the same packed as it is offered for download.
pub(crate) fn size(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let packed = subject.scratch.path().join("relay-mesh.gz");
    let script = r#"gzip -9 -c "$0" >"$1""#;
    programs::output(programs::command("sh").args(["-c", script]).arg(&subject.relay_mesh).arg(&packed), "")?;
    report.size("the binary", megabytes(&subject.relay_mesh)?, 30.0, "MB", "");
    report.size("  packed by gzip -9", megabytes(&packed)?, 10.0, "MB", "");
    Ok(())
}

fn megabytes(file: &Path) -> Result<f64, Failure> {
    Ok(std::fs::metadata(file)?.len() as f64 / 1e6)
}
