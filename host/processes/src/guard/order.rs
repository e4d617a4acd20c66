//! What the host tells the guard, and what the guard writes down.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::table::ProcessId;

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
    /// The guard.
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
    /// Why.
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
    /// Nothing is known but that the guard is gone.
    pub fn guard_lost(stderr_end: String) -> Ended {
        Ended { cause: Cause::GuardLost, code: None, signal: None, killed: 0, left: 0, not_started: None, stderr_end }
    }
}
