//! Fuzzy search over the agents' profiles. It finds agents and never routes mail.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Matcher, Utf32Str};

use crate::agents::list::{FindError, Prefetched, last_roster, records_of_all};
use crate::agents::{Agent, AgentSummary, presence};
use crate::core::Core;
use crate::messages::inboxes::Inboxes;

/// An agent that matches a search.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentMatch {
    /// The agent.
    pub seen: AgentSummary,
    /// The match score; comparable within one search.
    pub score: u32,
}

pub(crate) async fn find(
    core: &Core,
    inboxes: &Inboxes,
    query: &str,
    limit: usize,
) -> Result<Vec<AgentMatch>, FindError> {
    let pattern = Pattern::parse(query, CaseMatching::Ignore, Normalization::Smart);
    match records_of_all(core).await {
        Ok(agents) => {
            // Presence and waiting mail are read only for the agents in the result.
            let mut found = Vec::new();
            for (score, agent) in best(&pattern, agents, |agent| agent, limit) {
                found.push(AgentMatch {
                    seen: presence::seen_beside(core, inboxes, agent, &Prefetched::UNKNOWN).await?,
                    score,
                });
            }
            Ok(found)
        }
        Err(error) if error.is_out_of_reach() => {
            let all = last_roster(core).await?.ok_or(error)?;
            let found = best(&pattern, all, |seen| &seen.agent, limit);
            Ok(found.into_iter().map(|(score, seen)| AgentMatch { seen, score }).collect())
        }
        Err(error) => Err(error.into()),
    }
}

/// The best matches, best first; equal scores are sorted by name.
fn best<T>(pattern: &Pattern, all: Vec<T>, agent: impl Fn(&T) -> &Agent, limit: usize) -> Vec<(u32, T)> {
    let mut matcher = Matcher::new(nucleo_matcher::Config::DEFAULT);
    let mut fitting: Vec<(u32, T)> =
        all.into_iter().filter_map(|one| Some((score(pattern, &mut matcher, agent(&one))?, one))).collect();
    fitting.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| agent(one).name.cmp(&agent(other).name)));
    fitting.truncate(limit);
    fitting
}

/// An agent's match score. Each word of the query may match another field.
fn score(pattern: &Pattern, matcher: &mut Matcher, agent: &Agent) -> Option<u32> {
    let profile = &agent.profile;
    let fields = [&profile.role, &profile.task, &profile.project, &profile.harness, &profile.model, &profile.program];
    let mut haystack = agent.name.as_str().to_owned();
    for word in fields.into_iter().flatten().chain(&profile.skills) {
        haystack.push(' ');
        haystack.push_str(word);
    }
    let mut characters = Vec::new();
    pattern.score(Utf32Str::new(&haystack, &mut characters), matcher)
}
