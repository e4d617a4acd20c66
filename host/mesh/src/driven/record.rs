//! The record of a driven agent, under `driven/ID` of the local store.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ledger::GivenPrompt;
use super::owed::OwedWords;
use super::permit::together;
use super::request::{Request, RequestOutcome};
use crate::names::{AgentName, InvalidMessageId, MessageId};
use crate::ports::driver::{DrivenAgent, Tokens};
use crate::ports::machine::{Instant, Process};
use crate::runs::Workplace;
use crate::tool_threads::ToolThread;

/// A driven agent's id: a ULID, so that ids sort by the time of their start. A name may be used again after its agent has
/// ended; an id never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DrivenId(pub MessageId);

impl FromStr for DrivenId {
    type Err = InvalidMessageId;

    fn from_str(text: &str) -> Result<DrivenId, InvalidMessageId> {
        text.parse().map(DrivenId)
    }
}

impl DrivenId {
    /// When it was made.
    pub fn made(self) -> Instant {
        Instant(self.0.0.timestamp_ms())
    }
}

impl fmt::Display for DrivenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a driven agent may spend. None is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrivenLimits {
    /// When it is ended.
    pub until: Option<Instant>,
    /// Turns, by mail or by the user.
    pub turns: Option<u32>,
    /// Tokens that its model read and wrote, those from a cache included.
    pub tokens: Option<u64>,
}

/// What a driven agent has spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Turns that have ended.
    pub turns: u32,
    /// Their tokens.
    pub tokens: Tokens,
}

/// Which limit a driven agent has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverBudget {
    #[error("its time is up")]
    Time,
    /// The number of turns.
    #[error("its budget of {0} turns is spent")]
    Turns(u32),
    #[error("its budget of {0} tokens is spent")]
    Tokens(u64),
}

/// How a driven agent ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrivenEnd {
    pub at: Instant,
    /// Why, as one clause.
    pub why: String,
    /// Whether it was meant to end: it was dismissed, or its budget was spent.
    pub meant: bool,
}

/// Where a driven agent stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrivenStage {
    /// No process drives it now. The next one goes on with it.
    Resting,
    /// A process drives it.
    Driven,
    /// It has ended.
    Ended,
}

/// A driven agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrivenRecord {
    pub id: DrivenId,
    /// The harness, by its adapter's name.
    pub harness: String,
    /// The agent that had it started; none if the user did.
    pub by: Option<AgentName>,
    /// The driven agent that had it started, if one did.
    pub parent: Option<DrivenId>,
    /// The first of the driven agents that led to this one.
    pub root: DrivenId,
    /// How many driven agents lie above it, plus one.
    pub depth: u32,
    /// The folder that was named.
    pub asked_folder: PathBuf,
    /// Where it works.
    pub workplace: Workplace,
    /// Who it is, as its adapter is told.
    pub agent: DrivenAgent,
    /// The first line of what it is to do.
    pub about: String,
    /// What it may spend.
    pub limits: DrivenLimits,
    /// What it has spent.
    #[serde(default)]
    pub spent: Spent,
    /// What each agent below it has spent, if it is the first of its tree: they share its limits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub below: BTreeMap<DrivenId, Spent>,
    /// The harness's session, once it has one.
    #[serde(default)]
    pub session: Option<String>,
    /// The connection over which it is driven, by its name in listings.
    #[serde(default)]
    pub connection: Option<String>,
    /// The environment that its program gets: that of the process in which it was asked for.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
    /// The program that is started, absolute, as that process found it.
    #[serde(default)]
    pub program: Option<String>,
    /// The user's own command line that is started in place of its adapter's words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The mark of the processes that were started for it alone.
    #[serde(default)]
    pub mark: Option<String>,
    /// The mark of the program that it is driven in, if others share that.
    #[serde(default)]
    pub program_mark: Option<String>,
    /// The socket of that program, by which its user can join.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// The process that drives it.
    #[serde(default)]
    pub driver: Option<Process>,
    /// What it was given in a turn that has not ended, in order.
    #[serde(default)]
    pub given: Vec<GivenPrompt>,
    /// What its turns that have ended leave to be done, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<OwedWords>,
    /// What is asked of it and not done, in order.
    #[serde(default)]
    pub requests: Vec<Request>,
    /// What became of the last requests.
    #[serde(default)]
    pub outcomes: Vec<RequestOutcome>,
    /// What it said last.
    #[serde(default)]
    pub last_words: Option<String>,
    /// What it has as a thread of a tool, if it is one: then its mail begins no turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolThread>,
    /// The spawner was told what its first turn came to.
    #[serde(default)]
    pub reported: bool,
    /// When it was asked for.
    pub started: Instant,
    /// How it ended.
    #[serde(default)]
    pub ended: Option<DrivenEnd>,
}

impl DrivenRecord {
    /// Where it stands, if the process that drives it lives or not.
    pub fn stage(&self, driver_lives: impl FnOnce(Process) -> bool) -> DrivenStage {
        match (&self.ended, self.driver) {
            (Some(_), _) => DrivenStage::Ended,
            (None, Some(driver)) if driver_lives(driver) => DrivenStage::Driven,
            (None, _) => DrivenStage::Resting,
        }
    }

    /// Which of its limits is reached, if one is: then no further turn begins. What those below it have spent counts.
    pub fn over_budget(&self, now: Instant) -> Option<OverBudget> {
        let Spent { turns, tokens: Tokens { input, cached_input, output } } = together(self.spent, &self.below);
        let tokens = input.saturating_add(cached_input).saturating_add(output);
        if self.limits.until.is_some_and(|until| now >= until) {
            return Some(OverBudget::Time);
        }
        if let Some(most) = self.limits.turns.filter(|most| turns >= *most) {
            return Some(OverBudget::Turns(most));
        }
        self.limits.tokens.filter(|most| tokens >= *most).map(OverBudget::Tokens)
    }
}
