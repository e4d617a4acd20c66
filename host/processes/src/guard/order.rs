//! What the host tells the guard, and what the guard writes down.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::table::ProcessId;

/// The longest complaint of a program, in characters.
const LONGEST_COMPLAINT: usize = 300;

/// What to run, how to watch it, and how to end it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The program, absolute, and its arguments.
    pub command: Vec<String>,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// The folder that it works in.
    pub folder: PathBuf,
    /// What it reads from standard input, and where its standard output goes.
    pub streams: Streams,
    /// How it is asked to stop, in order. After the last step it is killed.
    pub stop: Vec<Step>,
    /// When it is ended although nobody asked.
    pub limits: Limits,
    /// The file for the beginning and the end of its standard error.
    pub errors: PathBuf,
    /// The file that says which processes these are, as a [`Running`].
    pub running: PathBuf,
    /// The file that says what happened, as an [`Ended`].
    pub ended: PathBuf,
}

/// A program's standard input and output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Streams {
    /// It reads a text, after which its input is closed, and writes to a file.
    Files {
        /// The text.
        input: String,
        /// The file. It must not exist.
        output: PathBuf,
    },
    /// Pipes that the host holds: see [`crate::Guard::talk`].
    Pipes,
}

impl Streams {
    /// The file that is the program's standard output, if one is.
    pub(crate) fn output(&self) -> Option<&Path> {
        match self {
            Streams::Files { output, .. } => Some(output),
            Streams::Pipes => None,
        }
    }
}

/// A way of asking a program to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What its whole group gets.
    pub signal: StepSignal,
    /// How long it has until the next step, in milliseconds.
    pub grace: u64,
}

/// A signal that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepSignal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// When the guard ends a program. In milliseconds and bytes; none is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// After so long.
    pub time: Option<u64>,
    /// After so long without a byte of output or error.
    pub silence: Option<u64>,
    /// After so much output.
    pub output: Option<u64>,
}

/// The processes of a run, while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    pub guard: ProcessId,
    /// The program; none while it is being started.
    pub program: Option<ProcessId>,
}

/// Why a program was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// It ended by itself.
    Itself,
    /// The host or a signal asked the guard to stop it.
    Stopped,
    /// The limit of time.
    Time,
    /// The limit of silence.
    Silence,
    /// The limit of output.
    Output,
    /// The host was gone.
    Leash,
    /// The guard was killed, or wrote nothing down. Only the host says this.
    GuardLost,
}

/// What happened to a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub cause: Cause,
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// How many further processes of it had to be killed.
    pub killed: usize,
    /// Processes that could not be killed.
    pub left: usize,
    /// Why it was never started.
    pub not_started: Option<String>,
    /// The end of its standard error.
    pub stderr_end: String,
}

impl Ended {
    /// What the program said last of an error, on one line without colours: its last line that begins with `error`, else
    /// the last of all.
    pub fn complaint(&self) -> Option<String> {
        let plain = anstream::adapter::strip_str(&self.stderr_end).to_string();
        let mut lines = plain.lines().map(str::trim).filter(|line| !line.is_empty());
        let is_error = |line: &&str| line.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error"));
        let last = lines.clone().rfind(is_error).or_else(|| lines.next_back())?;
        let plain = last.trim_end_matches('.').chars().filter(|letter| !letter.is_control());
        Some(plain.take(LONGEST_COMPLAINT).collect())
    }

    /// Why the program was never started, or ended before it did anything.
    pub fn why_not_started(&self) -> String {
        let nobody_tells = || "the process that watches over it was killed".to_owned();
        self.not_started.clone().or_else(|| self.complaint()).unwrap_or_else(nobody_tells)
    }

    /// Nothing is known but that the guard is gone.
    pub fn guard_lost(stderr_end: String) -> Ended {
        Ended { cause: Cause::GuardLost, code: None, signal: None, killed: 0, left: 0, not_started: None, stderr_end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_the_last_error_on_one_plain_line() {
        let check = |stderr: &str, expected: Option<&str>| {
            assert_eq!(Ended::guard_lost(stderr.to_owned()).complaint().as_deref(), expected, "{stderr:?}");
        };
        check("", None);
        check(" \n\u{1b}[2m \u{1b}[0m\n", None);
        check("one\ntwo...\n\n", Some("two"));
        check("error: no such flag\n\nFor more information, try '--help'.\n", Some("error: no such flag"));
        check("Error: a\nERROR: b\nwarning: c", Some("ERROR: b"));
        check("\u{1b}[31merror\u{1b}[0m: \u{7}x\u{1b}]0;title\u{7}", Some("error: x"));
        check(&"é".repeat(400), Some(&"é".repeat(LONGEST_COMPLAINT)));
        let lost = Ended::guard_lost(String::new());
        assert_eq!(lost.why_not_started(), "the process that watches over it was killed");
    }
}
