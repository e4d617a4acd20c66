//! Who is here: the roster, and a fuzzy search that finds and never routes.

use std::pin::pin;

use futures::{Stream, StreamExt as _, stream};
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Matcher, Utf32Str};
use serde::{Deserialize, Serialize};
use store::{Beside, Child, Durability, Key, Leaf, Store, StoreError, Taker};

use crate::agents::presence;
use crate::agents::presence::{Heartbeat, span};
use crate::agents::{Agent, AgentSummary, Presence};
use crate::core::Core;
use crate::messages::inboxes::Inboxes;
use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::storage::keys::{self, CURSOR, HEARTBEAT, INBOX, META, RECEIPTS};
use crate::storage::records::{self, Next};

/// Up to so many messages are read to say how many wait. Of more than that the servers' own count is believed, where
/// nothing has become of any.
const READ_ANYWAY: usize = 1_000;
/// How many agents are remembered for when the servers are out of reach.
const MOST_REMEMBERED: usize = 1_000;

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
    pub seen: AgentSummary,
    /// How well it matches; comparable within one search.
    pub score: u32,
}

pub(crate) async fn agents(core: &Core, inboxes: &Inboxes) -> Result<Vec<AgentSummary>, FindError> {
    match agents_now(core, inboxes).await {
        Ok(all) => {
            remember_roster(core, &all).await;
            Ok(all)
        }
        Err(FindError::Store(error)) if error.is_out_of_reach() => match last_roster(core).await? {
            Some(all) => Ok(all),
            None => Err(error.into()),
        },
        Err(error) => Err(error),
    }
}

async fn agents_now(core: &Core, inboxes: &Inboxes) -> Result<Vec<AgentSummary>, FindError> {
    let mut all = Vec::new();
    let mut looks = pin!(of_each(core, crowd(core).await?, |PrefetchedAgent { name, agent, beside }| async move {
        match agent {
            Ok(agent) => (name, presence::seen_beside(core, inboxes, agent, &beside).await),
            Err(error) => (name, Err(error)),
        }
    }));
    while let Some((name, seen)) = looks.next().await {
        match seen {
            Ok(seen) => all.push(seen),
            // One damaged record hides one agent, not the whole roster; `status` names it.
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::warn!(agent = %name, %error, "an agent is passed over");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}

/// Keeps what this machine saw of the agents, for when the servers are out of reach.
pub(crate) async fn remember_roster(core: &Core, agents: &[AgentSummary]) {
    if !core.topology.may_be_out_of_reach() {
        return;
    }
    let roster = LastRoster { at: core.machine.now(), agents: agents.iter().take(MOST_REMEMBERED).cloned().collect() };
    let put = |_: Option<LastRoster>| (Next::Put(roster.clone()), ());
    let kept = records::update(core.local.as_ref(), &keys::last_roster(), Durability::Process, put).await;
    if let Err(error) = kept {
        tracing::debug!(%error, "the agents are not remembered");
    }
}

/// The agents as this machine last saw them. What they do now nobody here can say.
pub(crate) async fn last_roster(core: &Core) -> Result<Option<Vec<AgentSummary>>, StoreError> {
    let Some((_, last)) = records::load::<LastRoster>(core.local.as_ref(), &keys::last_roster()).await? else {
        return Ok(None);
    };
    let ago = span(core.machine.now().since(last.at));
    let faded = |seen: AgentSummary| AgentSummary {
        evidence: format!(
            "{ago} ago: {}, {}; the servers cannot be reached since",
            seen.presence.as_str(),
            seen.evidence
        ),
        presence: Presence::Away,
        ..seen
    };
    Ok(Some(last.agents.into_iter().map(faded).collect()))
}

pub(crate) async fn agent(core: &Core, inboxes: &Inboxes, name: &AgentName) -> Result<Option<AgentSummary>, FindError> {
    match load_agent(core, name).await? {
        Some(agent) => Ok(Some(presence::seen(core, inboxes, agent).await?)),
        None => Ok(None),
    }
}

pub(crate) async fn find(core: &Core, inboxes: &Inboxes, query: &str, limit: usize) -> Result<Vec<Found>, FindError> {
    let pattern = Pattern::parse(query, CaseMatching::Ignore, Normalization::Smart);
    match records_of_all(core).await {
        Ok(agents) => {
            // How they are, and what waits for them, is looked at for those alone who are shown.
            let mut found = Vec::new();
            for (score, agent) in best(&pattern, agents, |agent| agent, limit) {
                found.push(Found {
                    seen: presence::seen_beside(core, inboxes, agent, &Prefetched::UNKNOWN).await?,
                    score,
                });
            }
            Ok(found)
        }
        Err(error) if error.is_out_of_reach() => {
            let all = last_roster(core).await?.ok_or(error)?;
            let found = best(&pattern, all, |seen| &seen.agent, limit);
            Ok(found.into_iter().map(|(score, seen)| Found { seen, score }).collect())
        }
        Err(error) => Err(error.into()),
    }
}

/// The record of every agent, without those that are damaged.
async fn records_of_all(core: &Core) -> Result<Vec<Box<Agent>>, StoreError> {
    let mut all = Vec::new();
    for PrefetchedAgent { name, agent, .. } in glimpses(core, &[]).await? {
        match agent {
            Ok(agent) => all.push(agent),
            Err(error) => tracing::warn!(agent = %name, %error, "an agent is passed over"),
        }
    }
    Ok(all)
}

/// Every agent's record, in the order of names, with its sign of life and what waits for it, as far as one look
/// at all of them shows that.
pub(crate) async fn crowd(core: &Core) -> Result<Vec<PrefetchedAgent>, StoreError> {
    let all = [Leaf::Value(HEARTBEAT), Leaf::Log(INBOX), Leaf::Log(RECEIPTS), Leaf::Value(CURSOR)];
    // Files are not counted by anybody, so that looking for the last two would be in vain.
    let beside = if core.topology.counts_messages() { &all[..] } else { &all[..2] };
    let mut crowd = glimpses(core, beside).await?;
    let counted: usize = crowd.iter().map(|glimpse| glimpse.beside.mail.counted()).sum();
    if counted <= READ_ANYWAY {
        for glimpse in crowd.iter_mut().filter(|glimpse| glimpse.beside.mail.counted() > 0) {
            glimpse.beside.mail = PrefetchedMail::Unknown;
        }
    }
    Ok(crowd)
}

/// Every agent's record, in the order of names, and its sign of life.
pub(crate) async fn crowd_and_signs(core: &Core) -> Result<Vec<PrefetchedAgent>, StoreError> {
    glimpses(core, &[Leaf::Value(HEARTBEAT)]).await
}

async fn glimpses(core: &Core, beside: &[Leaf<'_>]) -> Result<Vec<PrefetchedAgent>, StoreError> {
    let store = core.shared.as_ref();
    let (mut crowd, mut rest) = (Vec::new(), Vec::new());
    let take =
        |onto: &mut Vec<PrefetchedAgent>, child: Child<'_>| onto.extend(PrefetchedAgent::of(child, beside, store));
    let takers: [Taker<'_>; 2] = [&mut |child| take(&mut crowd, child), &mut |child| take(&mut rest, child)];
    store.children(&keys::agents(), META, beside, takers).await?;
    // They come in the order of keys, which spell names as they are.
    crowd.append(&mut rest);
    Ok(crowd)
}

/// An agent's record.
pub(crate) async fn load_agent(core: &Core, name: &AgentName) -> Result<Option<Agent>, StoreError> {
    Ok(records::load::<Agent>(core.shared.as_ref(), &keys::meta(name)).await?.map(|(_, agent)| agent))
}

/// Asks something of each agent, of some at once where each answer is a way to the servers. The answers come in
/// the order in which they were asked for, and who stops taking them has the rest not asked.
pub(crate) fn of_each<T, F: Future, A: Fn(T) -> F>(
    core: &Core,
    agents: Vec<T>,
    ask: A,
) -> impl Stream<Item = F::Output> + use<T, F, A> {
    stream::iter(agents.into_iter().map(ask)).buffered(core.topology.lookups_at_once())
}

/// One agent among all.
pub(crate) struct PrefetchedAgent {
    pub(crate) name: AgentName,
    /// Its record; an error where that is damaged.
    pub(crate) agent: Result<Box<Agent>, StoreError>,
    pub(crate) beside: Prefetched,
}

/// What one look at all agents showed of one beside its record.
pub(crate) struct Prefetched {
    /// When it was last heard of, where its session does not say so.
    pub(crate) heartbeat: PrefetchedHeartbeat,
    /// What waits for it.
    pub(crate) mail: PrefetchedMail,
}

/// What one look at all agents showed of one's sign of life.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PrefetchedHeartbeat {
    /// It never gave one.
    Nothing,
    /// The last one.
    Given(Heartbeat),
    /// Whoever wants to know reads it: what was damaged a moment ago may be whole again, and else says why.
    Unknown,
}

impl PrefetchedHeartbeat {
    fn of(seen: &Beside) -> PrefetchedHeartbeat {
        match seen {
            Beside::Nothing => PrefetchedHeartbeat::Nothing,
            Beside::Value(Ok(value)) => {
                serde_json::from_slice(&value.bytes).map_or(PrefetchedHeartbeat::Unknown, PrefetchedHeartbeat::Given)
            }
            Beside::Value(Err(_)) | Beside::Appends(_) | Beside::Unknown => PrefetchedHeartbeat::Unknown,
        }
    }
}

/// What one look at all agents showed of one's mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrefetchedMail {
    /// It never got any.
    Nothing,
    /// So many messages lie in its inbox, and nothing has become of any. None of them was read.
    Counted(usize),
    /// Whoever wants to know reads it.
    Unknown,
}

impl PrefetchedMail {
    fn counted(self) -> usize {
        match self {
            PrefetchedMail::Counted(messages) => messages,
            PrefetchedMail::Nothing | PrefetchedMail::Unknown => 0,
        }
    }
}

impl Prefetched {
    /// Of an agent that was looked at alone.
    pub(crate) const UNKNOWN: Prefetched =
        Prefetched { heartbeat: PrefetchedHeartbeat::Unknown, mail: PrefetchedMail::Unknown };

    fn of(beside: &mut Vec<Beside>, leaves: &[Leaf<'_>]) -> Prefetched {
        let mut heartbeat = PrefetchedHeartbeat::Unknown;
        let (mut inbox, mut receipts, mut cursor) = (Beside::Unknown, Beside::Unknown, Beside::Unknown);
        for (leaf, seen) in leaves.iter().zip(beside.drain(..)) {
            match leaf {
                Leaf::Value(HEARTBEAT) => heartbeat = PrefetchedHeartbeat::of(&seen),
                Leaf::Value(CURSOR) => cursor = seen,
                Leaf::Log(INBOX) => inbox = seen,
                Leaf::Log(RECEIPTS) => receipts = seen,
                Leaf::Value(_) | Leaf::Log(_) => {}
            }
        }
        // A message is stored by an append of its own, and only whoever carries a store appends several: it leaves a
        // cursor. As long as there is no receipt, each message waits.
        let mail = match (inbox, receipts, cursor) {
            (Beside::Nothing, _, _) => PrefetchedMail::Nothing,
            (Beside::Appends(messages), Beside::Nothing, Beside::Nothing) => {
                usize::try_from(messages).map_or(PrefetchedMail::Unknown, PrefetchedMail::Counted)
            }
            (Beside::Appends(_) | Beside::Value(_) | Beside::Unknown, _, _) => PrefetchedMail::Unknown,
        };
        Prefetched { heartbeat, mail }
    }
}

impl PrefetchedAgent {
    fn of(child: Child<'_>, leaves: &[Leaf<'_>], store: &dyn Store) -> Option<PrefetchedAgent> {
        let name: AgentName = Key::decode(child.name).parse().ok()?;
        let place = || store.place(&keys::meta(&name));
        let agent = child.value.and_then(|value| records::parse_at(place, value));
        Some(PrefetchedAgent { name, agent, beside: Prefetched::of(child.beside, leaves) })
    }
}

/// The agents as this machine last saw them, as they are kept under `roster`.
#[derive(Clone, Serialize, Deserialize)]
struct LastRoster {
    at: Instant,
    agents: Vec<AgentSummary>,
}

/// Those that match best, the best first, and by name where they match alike.
fn best<T>(pattern: &Pattern, all: Vec<T>, agent: impl Fn(&T) -> &Agent, limit: usize) -> Vec<(u32, T)> {
    let mut matcher = Matcher::new(nucleo_matcher::Config::DEFAULT);
    let mut fitting: Vec<(u32, T)> =
        all.into_iter().filter_map(|one| Some((score(pattern, &mut matcher, agent(&one))?, one))).collect();
    fitting.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| agent(one).name.cmp(&agent(other).name)));
    fitting.truncate(limit);
    fitting
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
