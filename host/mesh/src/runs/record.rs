//! The record of a run: what was asked for, where it works, and how it ended.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::names::{AgentName, InvalidMessageId, MessageId};
use crate::ports::machine::{Instant, Process};
use crate::ports::runner::{Ending, Launch, Task, Usage};
use crate::runs::judge::Halt;

/// A run's id: a ULID, so ids sort by the time of their start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub MessageId);

impl FromStr for RunId {
    type Err = InvalidMessageId;

    fn from_str(text: &str) -> Result<RunId, InvalidMessageId> {
        text.parse().map(RunId)
    }
}

impl RunId {
    /// When it was made, in milliseconds since 1970.
    pub fn made(self) -> Instant {
        Instant(self.0.0.timestamp_ms())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The limits that the host keeps for a run. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// The whole run, a repair turn included.
    pub time: u64,
    /// Without any output.
    pub silence: u64,
    /// Bytes of standard output.
    pub output: u64,
    /// What it may report, in events.
    pub events: u64,
    /// How often the model's server may refuse the key before the run is ended.
    pub refusals: u32,
}

impl Default for RunLimits {
    fn default() -> RunLimits {
        RunLimits { time: 30 * 60_000, silence: 10 * 60_000, output: 256 * 1024 * 1024, events: 1_000_000, refusals: 2 }
    }
}

/// Where a run works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Workplace {
    /// In the folder that it was given.
    Here {
        /// The top of its repository, if it is in one.
        top: Option<PathBuf>,
    },
    /// In a worktree of its own.
    Worktree {
        /// The top of the repository's working copy that it was started in.
        top: PathBuf,
        /// The top of the worktree.
        folder: PathBuf,
        /// The worktree's branch.
        branch: String,
        /// The commit that it began at.
        commit: String,
    },
}

impl Workplace {
    /// The top of the working copy that the run changes.
    pub fn changed_top(&self) -> Option<&Path> {
        match self {
            Workplace::Here { top } => top.as_deref(),
            Workplace::Worktree { folder, .. } => Some(folder),
        }
    }
}

/// What the figures of a usage cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// This run alone.
    Run,
    /// The whole session: earlier runs of it are not known here, so they cannot be subtracted.
    Session,
}

/// How a run ended, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    pub at: Instant,
    pub ending: Ending,
    /// Whether it did what it was asked to.
    pub ok: bool,
    /// One sentence for the user.
    pub why: Option<String>,
    /// The harness's session.
    pub session: Option<String>,
    /// What the harness said last about usage of the whole session, from which a resumed run is subtracted.
    pub session_usage: Option<Usage>,
    /// What this run cost, in millionths of a US dollar.
    pub cost: Option<u64>,
    /// How many files it changed.
    pub changed: usize,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStage {
    /// It runs.
    Running,
    /// It has ended.
    Ended,
    /// The process that ran it is gone, and nobody has looked yet what came of it.
    Abandoned,
}

/// A run, as it is kept in its folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub id: RunId,
    /// The harness, by its adapter's name.
    pub harness: String,
    /// The agent that it is while it runs.
    pub agent: Option<AgentName>,
    /// The agent that started it; none if the user did.
    pub by: Option<AgentName>,
    /// The run that started it, and that run's own root.
    pub parent: Option<RunId>,
    /// The first of the runs that led to this one; itself if the user or a live session started it.
    pub root: RunId,
    /// How many runs lie above it, plus one.
    pub depth: u32,
    /// The folder that was named.
    pub asked_folder: PathBuf,
    /// Where it works.
    pub workplace: Workplace,
    /// What the adapter was given.
    pub task: Task,
    /// The first line of the task's text.
    pub about: String,
    pub limits: RunLimits,
    /// Who gets its result by mail.
    pub report: Vec<String>,
    /// What it reserved for its time, in its repository.
    pub reserve: Vec<String>,
    /// How it was started; none until the adapter has said how.
    pub launch: Option<Launch>,
    /// The contents of its working copy before it began, as git names them.
    pub before: Option<String>,
    /// The process that runs it.
    pub supervisor: Process,
    /// When it was asked for.
    pub started: Instant,
    /// How many times its program was started: a repair turn counts.
    pub attempts: u32,
    /// What attempts before the last one used, for harnesses that count each by itself.
    pub earlier: Option<Usage>,
    /// What runs below it may spend beside its own `task.cost`, in millionths of a US dollar: set aside from its budget,
    /// because most harnesses say what they have cost when all is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<u64>,
    /// What it has cost so far, in millionths of a US dollar, if its harness says so as it goes. The process that runs it
    /// writes it, and runs below it are given the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<u64>,
    /// What its harness calls its session, if that is not the one that it began as: by it the run is the same agent for
    /// a process that concludes it later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Why the host ended it, noted before its end is told: its files do not say that to a process that concludes it
    /// again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halt: Option<Halt>,
    /// How it ended.
    pub ended: Option<RunEnd>,
    /// When its changes were applied to the folder that was named.
    pub applied: Option<Instant>,
}

impl RunRecord {
    /// Where it stands, if its process lives or not.
    pub fn stage(&self, supervisor_lives: bool) -> RunStage {
        match (&self.ended, supervisor_lives) {
            (Some(_), _) => RunStage::Ended,
            (None, true) => RunStage::Running,
            (None, false) => RunStage::Abandoned,
        }
    }
}

/// The name of a harness in results: short names for those that have one.
pub fn agent_label(harness: &str) -> &str {
    match harness {
        "claude-code" => "claude",
        "gemini-cli" => "gemini",
        other => other,
    }
}
