//! Who may start a run. The user may; an agent only as far as the user has allowed it in their own settings.

use std::fmt;
use std::str::FromStr;

use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::ports::runner::Reach;
use crate::runs::record::{RunId, RunRecord};

/// Milliseconds of a day.
const DAY: u64 = 24 * 3_600_000;

/// How many runs an agent may start within a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Budget(pub u32);

/// Why text is not a budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a number of runs in a day, as in `5/day`")]
pub struct InvalidBudget(String);

impl FromStr for Budget {
    type Err = InvalidBudget;

    fn from_str(text: &str) -> Result<Budget, InvalidBudget> {
        let number = text.strip_suffix("/day").and_then(|number| number.parse().ok());
        number.filter(|number| *number > 0).map(Budget).ok_or_else(|| InvalidBudget(text.to_owned()))
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/day", self.0)
    }
}

/// One permission that the user gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// The agent that may start runs.
    pub agent: AgentName,
    /// Of this harness, by its adapter's name.
    pub harness: String,
    /// With at most this reach.
    pub reach: Reach,
    /// How often.
    pub budget: Option<Budget>,
}

/// Who asks for a run, by evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asker {
    /// The user, outside of any harness.
    User,
    /// A session of a harness, with its agent if it has joined.
    Session {
        /// The harness.
        harness: String,
        /// Its agent.
        agent: Option<AgentName>,
    },
}

/// Why a run is not permitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPermitted {
    /// The caller is in a session that has no agent.
    #[error(
        "this shell belongs to a session of {harness} that has no agent, and nobody can be allowed what has no name"
    )]
    Nameless {
        /// The session's harness.
        harness: String,
    },
    /// The user has not allowed it.
    #[error("the user has not allowed `{agent}` to run {harness}")]
    NotAllowed {
        /// The agent.
        agent: AgentName,
        /// The harness that was to run.
        harness: String,
    },
    /// The user has allowed less.
    #[error("the user lets `{agent}` run {harness} with the reach `{}` at most", allowed.as_str())]
    TooFar {
        /// The agent.
        agent: AgentName,
        /// The harness.
        harness: String,
        /// What is allowed.
        allowed: Reach,
    },
    /// The budget of the day is spent.
    #[error("`{agent}` has started {spent} runs of {harness} within a day, and may start {budget}")]
    Spent {
        /// The agent.
        agent: AgentName,
        /// The harness.
        harness: String,
        /// How many it has started.
        spent: usize,
        /// How many it may.
        budget: Budget,
    },
    /// The caller is a run itself, too deep to start another.
    #[error("this is run {parent} itself, and runs may start runs to a depth of {most}")]
    TooDeep {
        /// The run that asks.
        parent: RunId,
        /// The greatest depth.
        most: u32,
    },
}

/// Decides whether a run may start, given the runs that are known and the greatest depth. `parent` is the live run that
/// the caller is in, by evidence.
pub fn permit(
    asker: &Asker,
    (harness, reach): (&str, Reach),
    parent: Option<&RunRecord>,
    most: u32,
    allowed: &[Allowance],
    runs: &[RunRecord],
    now: Instant,
) -> Result<(), NotPermitted> {
    if let Some(parent) = parent.filter(|parent| parent.depth >= most) {
        return Err(NotPermitted::TooDeep { parent: parent.id, most });
    }
    let agent = match (asker, parent) {
        (Asker::User, None) => return Ok(()),
        (Asker::Session { agent: Some(agent), .. }, _) => agent.clone(),
        // A shell below a run speaks for that run, whatever it says.
        (Asker::User | Asker::Session { agent: None, .. }, Some(RunRecord { agent: Some(agent), .. })) => agent.clone(),
        (Asker::Session { harness, agent: None }, _) => {
            return Err(NotPermitted::Nameless { harness: harness.clone() });
        }
        (Asker::User, Some(parent)) => return Err(NotPermitted::Nameless { harness: parent.harness.clone() }),
    };
    let Some(allowance) = allowed.iter().find(|allowance| allowance.agent == agent && allowance.harness == harness)
    else {
        return Err(NotPermitted::NotAllowed { agent, harness: harness.to_owned() });
    };
    if reach > allowance.reach {
        return Err(NotPermitted::TooFar { agent, harness: harness.to_owned(), allowed: allowance.reach });
    }
    if let Some(budget) = allowance.budget {
        let is_its = |run: &&RunRecord| run.by.as_ref() == Some(&agent) && run.harness == harness;
        let spent = runs.iter().filter(is_its).filter(|run| now.since(run.started) < DAY).count();
        if spent >= budget.0 as usize {
            return Err(NotPermitted::Spent { agent, harness: harness.to_owned(), spent, budget });
        }
    }
    Ok(())
}

/// How long a run below others may take at most, in milliseconds: what its root has left.
pub fn time_left(root: &RunRecord, now: Instant) -> u64 {
    root.limits.time.saturating_sub(now.since(root.started))
}

/// What a run below others may cost at most, in millionths of a US dollar: what its root and the other runs below that
/// have left. None if the root has no limit.
pub fn cost_left(root: &RunRecord, runs: &[RunRecord]) -> Option<u64> {
    let spent = runs.iter().filter(|run| run.root == root.id).filter_map(|run| run.ended.as_ref()?.cost).sum();
    root.task.cost.map(|most| most.saturating_sub(spent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> AgentName {
        text.parse().expect("a name")
    }

    fn check(asker: &str, reach: Reach, allowed: &[&str], expected: &str) {
        let asker = match asker {
            "user" => Asker::User,
            "nameless" => Asker::Session { harness: "codex".to_owned(), agent: None },
            agent => Asker::Session { harness: "codex".to_owned(), agent: Some(name(agent)) },
        };
        let allowance = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            Allowance {
                agent: name(words[0]),
                harness: words[1].to_owned(),
                reach: words[2].parse().expect("a reach"),
                budget: words.get(3).map(|budget| budget.parse().expect("a budget")),
            }
        };
        let allowed: Vec<Allowance> = allowed.iter().map(allowance).collect();
        let outcome = permit(&asker, ("claude-code", reach), None, 1, &allowed, &[], Instant(0));
        let outcome = outcome.map_or_else(|error| error.to_string(), |()| "permitted".to_owned());
        assert!(outcome.contains(expected), "{asker:?}: {outcome}");
    }

    #[test]
    fn an_agent_may_what_the_user_has_allowed() {
        check("user", Reach::Unguarded, &[], "permitted");
        check("nameless", Reach::Look, &["bob claude-code work"], "has no agent");
        check("bob", Reach::Look, &[], "has not allowed `bob` to run claude-code");
        check("bob", Reach::Look, &["carol claude-code work", "bob codex work"], "has not allowed `bob`");
        check("bob", Reach::Edit, &["bob claude-code edit"], "permitted");
        check("bob", Reach::Work, &["bob claude-code edit"], "with the reach `edit` at most");
        check("bob", Reach::Look, &["bob claude-code edit 1/day"], "permitted");
    }

    #[test]
    fn a_budget_is_a_number_of_runs_in_a_day() {
        assert_eq!("5/day".parse(), Ok(Budget(5)));
        for text in ["0/day", "5", "-1/day", "5/hour", ""] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
    }
}
