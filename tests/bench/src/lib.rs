//! What the measuring programs share: what they measure, how they compare, and the lines that they print.

pub mod client;
pub mod process;
pub mod programs;
pub mod report;
pub mod sampling;

use std::path::PathBuf;
use std::process::ExitCode;

use tempfile::TempDir;

/// Anything that keeps a measurement from being made, told in one sentence.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The relay-mesh binary that is measured, and a folder on the disk that the repository lies on, which is
/// gone afterwards.
pub fn subject() -> Result<(PathBuf, TempDir), Failure> {
    // A rig is built with a profile of its own; tests of rigs have the program beside them, or one folder above.
    let this = std::env::current_exe()?;
    let folder =
        this.ancestors().skip(1).find(|folder| !folder.ends_with("deps")).ok_or("this program lies in no folder")?;
    #[expect(clippy::disallowed_methods, reason = "the variable names the binary, as it does for the product tests")]
    let named = std::env::var_os(test_support::BINARY).map(PathBuf::from);
    let released = folder.with_file_name("release").join("relay-mesh");
    let beside = folder.join("relay-mesh");
    let built = named.unwrap_or(if beside.is_file() { beside } else { released });
    if !built.is_file() {
        return Err(format!("{} is not there; run `make bench`, which builds it first", built.display()).into());
    }
    let scratch = tempfile::Builder::new().prefix("bench-").tempdir_in(folder)?;
    // A copy, as people install it. What a linker has just written lies in the system's memory in small pieces,
    // and is slower to start until it is read from the disk again.
    let relay_mesh = scratch.path().join("relay-mesh");
    std::fs::copy(&built, &relay_mesh)?;
    Ok((relay_mesh, scratch))
}

/// Runs a measurement in a network of its own, as the tests do, and says why if it cannot be made.
pub fn isolated(measure: impl FnOnce() -> Result<(), Failure>) -> ExitCode {
    let outcome = test_support::isolated_program(|| match measure() {
        Ok(()) => 0,
        Err(failure) => {
            report::complain(&failure);
            1
        }
    });
    ExitCode::from(outcome)
}
