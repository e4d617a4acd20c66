//! Who is here: the roster, and a fuzzy search that finds and never routes.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Matcher, Utf32Str};
use store::StoreError;

use crate::agent::{Agent, Seen};
use crate::names::AgentName;
use crate::{Mesh, keys, records};

/// Why nobody could be looked for.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The store failed.
    #[error("the agents could not be read")]
    Store(#[from] store::StoreError),
}

/// An agent that matches a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The agent.
    pub seen: Seen,
    /// How well it matches; comparable within one search.
    pub score: u32,
}

impl Mesh {
    /// Every agent, in the order of names.
    pub async fn agents(&self) -> Result<Vec<Seen>, FindError> {
        let mut all = Vec::new();
        for name in self.names().await? {
            match self.agent(&name).await {
                Ok(seen) => all.extend(seen),
                // One damaged record hides one agent, not the whole roster; `status` names it.
                Err(FindError::Store(error @ StoreError::Damaged { .. })) => {
                    tracing::warn!(agent = %name, %error, "an agent is passed over");
                }
                Err(error) => return Err(error),
            }
        }
        all.sort_by(|a, b| a.agent.name.cmp(&b.agent.name));
        Ok(all)
    }

    /// One agent.
    pub async fn agent(&self, name: &AgentName) -> Result<Option<Seen>, FindError> {
        match self.load_agent(name).await? {
            Some(agent) => Ok(Some(self.seen(agent).await?)),
            None => Ok(None),
        }
    }

    /// Agents whose name, role, task, project, harness, model or skills match a query, best first.
    /// An empty query matches everybody.
    pub async fn find(&self, query: &str, limit: usize) -> Result<Vec<Found>, FindError> {
        let pattern = Pattern::parse(query, CaseMatching::Ignore, Normalization::Smart);
        let mut matcher = Matcher::new(nucleo_matcher::Config::DEFAULT);
        let mut found: Vec<Found> = self
            .agents()
            .await?
            .into_iter()
            .filter_map(|seen| score(&pattern, &mut matcher, &seen.agent).map(|score| Found { seen, score }))
            .collect();
        found.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.seen.agent.name.cmp(&b.seen.agent.name)));
        found.truncate(limit);
        Ok(found)
    }

    /// An agent's record.
    pub(crate) async fn load_agent(&self, name: &AgentName) -> Result<Option<Agent>, StoreError> {
        Ok(records::load::<Agent>(self.shared.as_ref(), &keys::meta(name)).await?.map(|(_, agent)| agent))
    }
}

/// How well an agent matches: each word of the query may be found in another field.
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
