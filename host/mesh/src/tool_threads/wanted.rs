//! A thread as it is asked for, as part of the agent that is to be started for it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::context::ThreadPlace;
use crate::names::{AgentName, InvalidName};
use crate::ports::driver::Tailoring;
use crate::ports::machine::{Instant, Process};

/// What a thread has beside what every driven agent has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedThread {
    /// The name that it gets, with a number behind it if a live agent has that.
    pub identity: String,
    pub team: Option<String>,
    /// Where it works.
    pub place: ThreadPlace,
    /// What its caller calls it.
    pub tag: Option<String>,
    /// The role of the settings that it has.
    pub role: Option<String>,
    /// The caller's own instructions.
    pub instructions: Option<String>,
    /// What only some harnesses take.
    pub tailoring: Tailoring,
    /// The thread to go on with: its id, when it began, and what is known of it.
    pub continues: Option<(String, Instant, Option<String>)>,
    /// The harness's program, if the user's settings name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The server by which it is asked for.
    pub server: Process,
}

impl fmt::Display for WantedThread {
    /// As the user is asked about it. Nothing that widens what the agent may do is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tailoring { effort, base, compaction, settings } = &self.tailoring;
        let mut part = |label: &str, value: Option<&str>| match value {
            Some(value) => write!(f, "\n{label}: {value}"),
            None => Ok(()),
        };
        part("thread", self.continues.as_ref().map(|(thread, ..)| thread.as_str()))?;
        part("role of the settings", self.role.as_deref())?;
        part("instructions", self.instructions.as_deref())?;
        part("instructions in place of the harness's own", base.as_deref())?;
        part("effort", effort.as_deref())?;
        part("to sum up a long conversation", compaction.as_deref())?;
        for (name, value) in settings {
            part(&format!("setting {name}"), Some(&value.to_string()))?;
        }
        Ok(())
    }
}

/// The names to try for an identity: itself, then with a number behind it. The bare name of a harness is no agent's, so
/// that its first one has a number too.
pub fn numbered(identity: &str, team: Option<&str>) -> Result<Vec<AgentName>, InvalidName> {
    let (first, from) = match identity.parse::<AgentName>() {
        Ok(name) => (name, 2),
        Err(InvalidName::Misleading(_)) => (AgentName::label(identity)?, 1),
        Err(error) => return Err(error),
    };
    let first = if first.team().is_none() && team.is_some() { first.label_in_team(team)? } else { first };
    let bare = (from == 2).then(|| first.clone());
    Ok(bare.into_iter().chain((from..=99).map(|number| first.numbered(number))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f3_an_identity_is_a_name_and_then_numbers() {
        let check = |identity: &str, team: Option<&str>, expected: &[&str]| {
            let names = numbered(identity, team).expect("names");
            let first: Vec<&str> = names.iter().take(2).map(AgentName::as_str).collect();
            assert_eq!(first, expected, "{identity} {team:?}");
        };
        check("reviewer", None, &["reviewer", "reviewer-2"]);
        check("reviewer", Some("backend"), &["reviewer@backend", "reviewer-2@backend"]);
        check("reviewer@qa", Some("backend"), &["reviewer@qa", "reviewer-2@qa"]);
        check("codex", None, &["codex-1", "codex-2"]);
        check("codex", Some("backend"), &["codex-1@backend", "codex-2@backend"]);
        assert!(numbered("Not A Name", None).is_err());
    }
}
