//! Who may have an agent started, and what a tree of agents may spend. The user may start any; an agent only as far as the
//! user allows, in their own settings or by their answer, and never beyond the bounds.

use std::collections::BTreeMap;

use super::record::{DrivenId, DrivenLimits, DrivenRecord, OverBudget, Spent};
use crate::allowances::{
    Allowance, Asker, NotAllowed, Starts, allowed_to, is_younger_than_a_day, speaker, within_budget,
};
use crate::names::AgentName;
use crate::ports::driver::Tokens;
use crate::ports::machine::Instant;
use crate::ports::runner::Reach;
use crate::runs::RunId;

/// How many agents may be started by agents. The user's settings can say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpawnBounds {
    /// How deep: an agent that an agent of this depth would start is refused. At 1 started agents start none.
    pub depth: u32,
    /// How many one agent may have at a time, with those below them.
    pub each: usize,
    /// How many there may be on this machine at a time.
    pub all: usize,
    /// How many one program of a harness carries, if it can carry several.
    pub share: usize,
}

impl Default for SpawnBounds {
    fn default() -> SpawnBounds {
        SpawnBounds { depth: 1, each: 4, all: 16, share: 64 }
    }
}

/// Who asks for an agent, by evidence.
#[derive(Clone, Debug)]
pub struct SpawnAsker {
    pub asker: Asker,
    /// The driven agent that asks, or below which the caller is.
    pub parent: Option<DrivenRecord>,
    /// The live run that the caller is in.
    pub run: Option<RunId>,
}

impl SpawnAsker {
    /// Whether nothing shows that an agent is behind this caller.
    pub fn is_user(&self) -> bool {
        self.asker == Asker::User && self.parent.is_none() && self.run.is_none()
    }

    /// The agent that asks.
    pub fn agent(&self) -> Result<AgentName, NotAllowed> {
        let above = self.parent.as_ref().map(|parent| (parent.harness.as_str(), parent.agent.name.parse().ok()));
        speaker(&self.asker, above.as_ref().map(|(harness, agent)| (*harness, agent.as_ref())))
    }
}

/// Why an agent is not started, and would not be if the user agreed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpawnRefused {
    /// The caller has no name that could be allowed anything.
    #[error(transparent)]
    Nameless(NotAllowed),
    /// The caller is in a run.
    #[error("this is run {0} itself, and a run starts no agents")]
    InRun(RunId),
    /// The caller is too deep.
    #[error("`{parent}` was started itself, and agents may start agents to a depth of {most}")]
    TooDeep {
        /// The driven agent that asks.
        parent: String,
        /// The greatest depth.
        most: u32,
    },
    /// It has as many as it may.
    #[error("{here} agents are here that `{agent}` has started, and {most} are the most")]
    TooManyOfOne {
        /// Who started them, or the first of them.
        agent: String,
        here: usize,
        /// How many it may have.
        most: usize,
    },
    /// There are as many as there may be.
    #[error("{here} agents are here that were started, and {most} are the most")]
    TooMany {
        here: usize,
        /// How many there may be.
        most: usize,
    },
    /// What the tree may spend is spent.
    #[error("nothing is left of what `{root}` may spend, and what it starts has part in: {over}")]
    Spent {
        /// The first agent of the tree.
        root: String,
        /// Which limit.
        over: OverBudget,
    },
}

/// Who has a driven agent in the end: the agent that had the first of its tree started, or that first one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Holder {
    Agent(AgentName),
    Root(DrivenId),
}

fn holder(record: &DrivenRecord, all: &[DrivenRecord]) -> Holder {
    let root = all.iter().find(|other| other.id == record.root).unwrap_or(record);
    match &root.by {
        Some(by) => Holder::Agent(by.clone()),
        None => Holder::Root(record.root),
    }
}

/// Decides whether what stands against it is only that the user has not agreed. `records` are the driven agents that have
/// not ended, and those that began within a day.
pub fn may_ask(
    asker: &SpawnAsker,
    bounds: SpawnBounds,
    records: &[DrivenRecord],
    now: Instant,
) -> Result<(), SpawnRefused> {
    if asker.is_user() {
        return Ok(());
    }
    if let Some(run) = asker.run {
        return Err(SpawnRefused::InRun(run));
    }
    let agent = asker.agent().map_err(SpawnRefused::Nameless)?;
    if let Some(parent) = asker.parent.as_ref().filter(|parent| parent.depth >= bounds.depth) {
        return Err(SpawnRefused::TooDeep { parent: parent.agent.name.clone(), most: bounds.depth });
    }
    if let Some(parent) = &asker.parent {
        let root = records.iter().find(|record| record.id == parent.root).unwrap_or(parent);
        if let Some(over) = root.over_budget(now) {
            return Err(SpawnRefused::Spent { root: root.agent.name.clone(), over });
        }
    }
    let live = || records.iter().filter(|record| record.ended.is_none());
    let here = live().count();
    if here >= bounds.all {
        return Err(SpawnRefused::TooMany { here, most: bounds.all });
    }
    let own = asker.parent.as_ref().map_or_else(|| Holder::Agent(agent.clone()), |parent| holder(parent, records));
    // The first of a tree that the user began is not one of those that it has started.
    let is_of_it = |record: &&DrivenRecord| holder(record, records) == own && own != Holder::Root(record.id);
    let of_it = live().filter(is_of_it).count();
    if of_it >= bounds.each {
        return Err(SpawnRefused::TooManyOfOne { agent: agent.to_string(), here: of_it, most: bounds.each });
    }
    Ok(())
}

/// Decides whether the user has allowed it.
pub fn is_allowed(
    asker: &SpawnAsker,
    (harness, reach): (&str, Reach),
    allowed: &[Allowance],
    records: &[DrivenRecord],
    now: Instant,
) -> Result<(), NotAllowed> {
    if asker.is_user() {
        return Ok(());
    }
    let agent = asker.agent()?;
    allowed_to(Starts::Agents, &agent, (harness, reach), allowed)?;
    let by_it = |record: &&DrivenRecord| {
        record.by.as_ref() == Some(&agent)
            && record.harness == harness
            && is_younger_than_a_day(record.started, now)
            // Going on with a thread begins no further one.
            && record.tool.as_ref().is_none_or(|tool| tool.continues.is_none())
    };
    within_budget(Starts::Agents, &agent, harness, records.iter().filter(by_it).count(), allowed)
}

/// What an agent that is started below another may spend: no longer than the first of its tree lives. Turns and tokens are
/// counted together.
pub fn within_root(asked: DrivenLimits, root: Option<&DrivenRecord>) -> DrivenLimits {
    let until = [asked.until, root.and_then(|root| root.limits.until)].into_iter().flatten().min();
    DrivenLimits { until, ..asked }
}

/// Everything that is spent, by an agent and by those below it.
pub(super) fn together(own: Spent, below: &BTreeMap<DrivenId, Spent>) -> Spent {
    below.values().fold(own, |sum, spent| Spent {
        turns: sum.turns.saturating_add(spent.turns),
        tokens: Tokens {
            input: sum.tokens.input.saturating_add(spent.tokens.input),
            cached_input: sum.tokens.cached_input.saturating_add(spent.tokens.cached_input),
            output: sum.tokens.output.saturating_add(spent.tokens.output),
        },
    })
}

/// Why an agent is to end although it is within its own limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeOver {
    /// The agent that had it started has ended.
    #[error("`{0}`, which had it started, has ended")]
    ParentEnded(String),
    /// The tree has spent what it may.
    #[error("of what `{0}` and those below it may spend, {1}")]
    Spent(String, OverBudget),
}

/// Whether an agent below others is to end. What is not there any more ended long ago.
pub fn tree_over(parent: Option<&DrivenRecord>, root: Option<&DrivenRecord>, now: Instant) -> Option<TreeOver> {
    let (Some(parent), Some(root)) = (parent, root) else {
        return Some(TreeOver::ParentEnded("the agent".to_owned()));
    };
    if parent.ended.is_some() {
        return Some(TreeOver::ParentEnded(parent.agent.name.clone()));
    }
    root.over_budget(now).map(|over| TreeOver::Spent(root.agent.name.clone(), over))
}
