//! A binary that is nothing but a guard, for the tests of this crate.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    processes::guard::if_asked(&arguments).unwrap_or(ExitCode::FAILURE)
}
