//! What the user lets agents start: runs, and agents that are driven. Without it an agent starts nothing.

use std::fmt;
use std::str::FromStr;

use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::ports::runner::Reach;

/// Milliseconds of a day.
pub const DAY: u64 = 24 * 3_600_000;

/// How many an agent may start within a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Budget(pub u32);

/// Why text is not a budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a number within a day, as in `5/day`")]
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
    /// The agent that may start some.
    pub agent: AgentName,
    /// Of this harness, by its adapter's name.
    pub harness: String,
    /// With at most this reach.
    pub reach: Reach,
    /// How often.
    pub budget: Option<Budget>,
}

/// Who asks, by evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asker {
    /// The user, outside of any harness.
    User,
    /// A session of a harness, with its agent if it has joined.
    Session { harness: String, agent: Option<AgentName> },
}

/// What is to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    Runs,
    /// An agent that is driven.
    Agents,
}

impl Starts {
    /// The command that the user allows it by.
    pub fn command(self) -> &'static str {
        match self {
            Starts::Runs => "runs",
            Starts::Agents => "spawn",
        }
    }

    /// As the object of `start`.
    pub fn of(self, harness: &str) -> String {
        match self {
            Starts::Runs => format!("runs of {harness}"),
            Starts::Agents => format!("agents of {harness}"),
        }
    }
}

/// Why the user would have to agree first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    /// The caller is in a session that has no agent.
    #[error(
        "this shell belongs to a session of {harness} that has no agent, and only an agent can be allowed anything"
    )]
    Nameless {
        /// The session's harness.
        harness: String,
    },
    /// The user has not allowed it.
    #[error("the user has not allowed `{agent}` to start {}", starts.of(harness))]
    NotAtAll {
        starts: Starts,
        agent: AgentName,
        /// The harness that was to run.
        harness: String,
    },
    /// The user has allowed less.
    #[error("the user lets `{agent}` start {} with the reach `{}` at most", starts.of(harness), most.as_str())]
    TooFar {
        starts: Starts,
        agent: AgentName,
        harness: String,
        /// What is allowed.
        most: Reach,
    },
    /// The budget of the day is spent.
    #[error("`{agent}` has started {spent} {} within a day, and may start {budget}", starts.of(harness))]
    Spent {
        starts: Starts,
        agent: AgentName,
        harness: String,
        /// How many it has started.
        spent: usize,
        /// How many it may.
        budget: Budget,
    },
}

/// The agent that asks. `above` is what the caller is in, by evidence, with its harness and its agent: a shell below it
/// speaks for that agent, whatever it says.
pub fn speaker(asker: &Asker, above: Option<(&str, Option<&AgentName>)>) -> Result<AgentName, NotAllowed> {
    match (asker, above) {
        (Asker::Session { agent: Some(agent), .. }, _)
        | (Asker::User | Asker::Session { agent: None, .. }, Some((_, Some(agent)))) => Ok(agent.clone()),
        (Asker::Session { harness, agent: None }, _) => Err(NotAllowed::Nameless { harness: harness.clone() }),
        (Asker::User, above) => {
            Err(NotAllowed::Nameless { harness: above.map_or_else(String::new, |(harness, _)| harness.to_owned()) })
        }
    }
}

/// Whether the user has allowed it, without a look at the budget.
pub fn allowed_to(
    starts: Starts,
    agent: &AgentName,
    (harness, reach): (&str, Reach),
    allowed: &[Allowance],
) -> Result<(), NotAllowed> {
    let (agent_name, harness_name) = (agent.clone(), harness.to_owned());
    match of(agent, harness, allowed) {
        None => Err(NotAllowed::NotAtAll { starts, agent: agent_name, harness: harness_name }),
        Some(allowance) if reach > allowance.reach => {
            Err(NotAllowed::TooFar { starts, agent: agent_name, harness: harness_name, most: allowance.reach })
        }
        Some(_) => Ok(()),
    }
}

/// Whether an agent that has started so many within a day may start one more.
pub fn within_budget(
    starts: Starts,
    agent: &AgentName,
    harness: &str,
    spent: usize,
    allowed: &[Allowance],
) -> Result<(), NotAllowed> {
    match of(agent, harness, allowed).and_then(|allowance| allowance.budget) {
        Some(budget) if spent >= budget.0 as usize => {
            Err(NotAllowed::Spent { starts, agent: agent.clone(), harness: harness.to_owned(), spent, budget })
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether what an agent started still counts against what it may start within a day, so that its record has to stay.
pub fn still_counts(by: Option<&AgentName>, started: Instant, now: Instant) -> bool {
    by.is_some() && is_younger_than_a_day(started, now)
}

/// Whether something began less than a day ago.
pub(crate) fn is_younger_than_a_day(began: Instant, now: Instant) -> bool {
    now.since(began) < DAY
}

fn of<'a>(agent: &AgentName, harness: &str, allowed: &'a [Allowance]) -> Option<&'a Allowance> {
    allowed.iter().find(|allowance| allowance.agent == *agent && allowance.harness == harness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_number_within_a_day() {
        assert_eq!("5/day".parse(), Ok(Budget(5)));
        for text in ["0/day", "5", "-1/day", "5/hour", ""] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_began_a_whole_day_ago_is_not_younger_than_a_day() {
        let began = Instant(DAY);
        for (now, expected) in
            [(began, true), (began.plus(DAY - 1), true), (began.plus(DAY), false), (Instant(0), true)]
        {
            assert_eq!(is_younger_than_a_day(began, now), expected, "{now:?}");
        }
    }
}
