//! The guard: a process of ours between the host and the program that it runs.
//!
//! The host starts it as the hidden command `guard-run`, with a socket in the place of standard error: the leash. It writes
//! an [`Order`] there and keeps it open. Standard input and output are left to the program. The guard is in a session of its own, and every descendant of the program falls to it when its parent
//! ends. When the program has ended, or the leash breaks because the host is gone, or a limit is reached, the guard ends
//! the program in the order that its harness wants, then everything below it, and writes what happened to a file.
//!
//! On macOS nothing falls to the guard: what has left the program's process group is found by the guard's own mark in
//! its environment.
//!
//! If the guard itself is killed, the system kills the program at once, and the program's environment marks what else it
//! started: see [`crate::end_marked`].

mod end;
mod input;
mod order;
mod process;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) use input::STOP;
pub use order::{Cause, Ended, Limits, Order, Running, Step, StepSignal, Streams};

/// The hidden command of the binary that is the guard.
pub const COMMAND: &str = "guard-run";
/// The guard's own second step, in the process that becomes the program.
const BECOME: &str = "become";

/// Runs the guard if the command line asks for it. The binary calls this before anything else.
pub fn if_asked(arguments: &[OsString]) -> Option<ExitCode> {
    let mut words = arguments.iter().skip(1);
    if words.next()? != COMMAND {
        return None;
    }
    match words.next() {
        Some(word) if word == BECOME => Some(process::become_the_program(words)),
        Some(_) => Some(ExitCode::FAILURE),
        None => Some(run()),
    }
}

fn run() -> ExitCode {
    // It fails only in the leader of a group, as in a test: then it is apart from the host already.
    let _new_session = rustix::process::setsid();
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let outcome = runtime.block_on(watch::watch());
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
