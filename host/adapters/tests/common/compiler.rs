//! A binary that does nothing but compile components, for the tests of this crate.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    adapters::compiling::if_asked(&arguments).unwrap_or(ExitCode::FAILURE)
}
