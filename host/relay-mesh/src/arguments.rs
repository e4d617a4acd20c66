//! Reports what is wrong with a command line.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::exit::Exit;
use crate::render;

/// Help and version go to standard output, everything else to standard error. A hook's command line that does not
/// parse, perhaps because it was written for another version, must not stop the harness.
pub(crate) fn usage(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let asked_for = !error.use_stderr();
    let is_hook = arguments.iter().skip(1).any(|argument| argument == "hook");
    if is_hook && !asked_for {
        render::last_words(&format!("relay-mesh: {}", render::what_is_wrong(&error.to_string())));
        return Exit::Success.into();
    }
    // There are no parsed options to ask.
    let wants_json =
        arguments.iter().skip(1).take_while(|argument| *argument != "--").any(|argument| argument == "--json");
    if wants_json && !asked_for {
        render::usage_as_json(&error.to_string());
        return Exit::Usage.into();
    }
    match error.print() {
        Err(failure) if failure.kind() != std::io::ErrorKind::BrokenPipe => Exit::Failure.into(),
        Ok(()) | Err(_) if asked_for => Exit::Success.into(),
        Ok(()) | Err(_) => Exit::Usage.into(),
    }
}
