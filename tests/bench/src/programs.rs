//! The one place that starts programs.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;

/// A program to be started, with nothing of this process's environment but the search path.
#[expect(clippy::disallowed_methods, reason = "this is the one file of this crate that starts programs")]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command
}

/// relay-mesh on a data folder of its own, with a home that holds nothing.
pub fn relay_mesh(program: &Path, data: &Path) -> Command {
    let mut command = command(program);
    command.env("RELAY_DIR", data).env("HOME", data.with_extension("home"));
    command
}

/// Runs a program to its end and gives the time that took, from before it was started until it
/// was reaped. What it prints goes nowhere.
pub fn time(command: &mut Command, input: Option<&str>) -> Result<Duration, Failure> {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    command.stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let mut child = command.spawn()?;
    if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
        pipe.write_all(input.as_bytes())?;
    }
    let outcome = child.wait()?;
    let took = began.elapsed();
    if outcome.success() { Ok(took) } else { Err(format!("{command:?} ended with {outcome}").into()) }
}

/// Runs a program to its end and gives what it printed; a failure shows what it complained of.
pub fn output(command: &mut Command, input: &str) -> Result<String, Failure> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(input.as_bytes())?;
    }
    let outcome = child.wait_with_output()?;
    if outcome.status.success() {
        Ok(String::from_utf8_lossy(&outcome.stdout).into_owned())
    } else {
        Err(format!("{command:?} ended with {}: {}", outcome.status, String::from_utf8_lossy(&outcome.stderr)).into())
    }
}
