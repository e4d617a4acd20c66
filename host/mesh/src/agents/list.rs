//! The roster of agents.

use std::pin::pin;

use futures::stream::{self, Buffered, StreamExt as _};
use serde::{Deserialize, Serialize};
use store::{Child, ChildLeaf, Durability, Key, Leaf, Store, StoreError, Taker};

use crate::agents::pause;
use crate::agents::presence;
use crate::agents::presence::{Heartbeat, span};
use crate::agents::{Agent, AgentSummary, Presence};
use crate::asks;
use crate::core::Core;
use crate::messages::inboxes::Inboxes;
use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::storage::keys::{self, CURSOR, HEARTBEAT, INBOX, META, RECEIPTS};
use crate::storage::records::{self, Next};

/// Up to this many messages are read to count those that wait. For more, the servers' count is used if no message has a
/// receipt.
const READ_ANYWAY: usize = 1_000;
/// How many agents are cached for when the servers are unreachable.
const MOST_REMEMBERED: usize = 1_000;

/// Why agents could not be listed or searched.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The store failed.
    #[error("the agents could not be read")]
    Store(#[from] store::StoreError),
}

pub(crate) async fn agents(core: &Core, inboxes: &Inboxes) -> Result<Vec<AgentSummary>, FindError> {
    let now = async { agents_now(core, inboxes, summaries(core).await?).await };
    match now.await {
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

/// Every agent with its presence, before its mail is counted: `waiting` is 0.
pub(crate) async fn agents_without_mail(core: &Core, inboxes: &Inboxes) -> Result<Vec<AgentSummary>, FindError> {
    let mut found = summaries_with_heartbeats(core).await?;
    for one in &mut found {
        one.beside.mail = PrefetchedMail::Nothing;
    }
    agents_now(core, inboxes, found).await
}

async fn agents_now(
    core: &Core,
    inboxes: &Inboxes,
    found: Vec<PrefetchedAgent>,
) -> Result<Vec<AgentSummary>, FindError> {
    let mut all = Vec::new();
    let mut looks = pin!(of_each(core, found, |PrefetchedAgent { name, agent, beside }| async move {
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
                tracing::warn!(agent = %name, %error, "an agent is skipped");
            }
            Err(error) => return Err(error.into()),
        }
    }
    note_what_their_user_says(core, &mut all).await?;
    Ok(all)
}

/// Notes which of these agents have asked their user something, and which the user has paused.
pub(crate) async fn note_what_their_user_says(core: &Core, all: &mut [AgentSummary]) -> Result<(), StoreError> {
    let (asking, paused) = (asks::list::asking(core).await?, pause::paused(core).await?);
    for seen in all {
        if asking.contains(&seen.agent.name) {
            asks_its_user(seen);
        }
        seen.paused = paused.iter().any(|(name, _)| *name == seen.agent.name);
    }
    Ok(())
}

/// An agent of which a question is open waits for its user, whatever its session does meanwhile.
fn asks_its_user(seen: &mut AgentSummary) {
    match seen.presence {
        Presence::Busy | Presence::Idle => {
            seen.presence = Presence::NeedsInput;
            seen.evidence = "has asked its user something".to_owned();
        }
        Presence::NeedsInput | Presence::Away | Presence::Offline => {}
    }
}

/// Caches the roster for when the servers are unreachable.
pub(crate) async fn remember_roster(core: &Core, agents: &[AgentSummary]) {
    if !core.topology.may_be_out_of_reach() {
        return;
    }
    let roster = LastRoster { at: core.machine.now(), agents: agents.iter().take(MOST_REMEMBERED).cloned().collect() };
    let put = |_: Option<LastRoster>| (Next::Put(roster.clone()), ());
    let kept = records::update(core.local.as_ref(), &keys::last_roster(), Durability::Process, put).await;
    if let Err(error) = kept {
        tracing::debug!(%error, "the roster is not cached");
    }
}

/// The agents as this machine last saw them, all shown as away: their current presence is unknown here.
pub(crate) async fn last_roster(core: &Core) -> Result<Option<Vec<AgentSummary>>, StoreError> {
    let Some((_, last)) = records::load::<LastRoster>(core.local.as_ref(), &keys::last_roster()).await? else {
        return Ok(None);
    };
    let ago = span(core.machine.now().since(last.at));
    let faded = |seen: AgentSummary| AgentSummary {
        evidence: format!(
            "{ago} ago: {}, {}; the servers have been unreachable since",
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
        Some(agent) => {
            let mut seen = presence::seen(core, inboxes, agent).await?;
            if asks::list::asking(core).await?.contains(name) {
                asks_its_user(&mut seen);
            }
            seen.paused = pause::is_paused(core, name).await?;
            Ok(Some(seen))
        }
        None => Ok(None),
    }
}

/// The record of every agent, except damaged ones.
pub(super) async fn records_of_all(core: &Core) -> Result<Vec<Box<Agent>>, StoreError> {
    let mut all = Vec::new();
    for PrefetchedAgent { name, agent, .. } in prefetched(core, &[]).await? {
        match agent {
            Ok(agent) => all.push(agent),
            Err(error) => tracing::warn!(agent = %name, %error, "an agent is skipped"),
        }
    }
    Ok(all)
}

/// Every agent's record, sorted by name, with its heartbeat and its waiting mail as far as one listing shows them.
pub(crate) async fn summaries(core: &Core) -> Result<Vec<PrefetchedAgent>, StoreError> {
    let all = [Leaf::Value(HEARTBEAT), Leaf::Log(INBOX), Leaf::Log(RECEIPTS), Leaf::Value(CURSOR)];
    // A folder store counts no messages, so listing the last two would be in vain.
    let beside = if core.topology.counts_messages() { &all[..] } else { &all[..2] };
    let mut summaries = prefetched(core, beside).await?;
    let counted: usize = summaries.iter().map(|summary| summary.beside.mail.counted()).sum();
    if counted <= READ_ANYWAY {
        for summary in summaries.iter_mut().filter(|summary| summary.beside.mail.counted() > 0) {
            summary.beside.mail = PrefetchedMail::Unknown;
        }
    }
    Ok(summaries)
}

/// Every agent's record and heartbeat, sorted by name.
pub(crate) async fn summaries_with_heartbeats(core: &Core) -> Result<Vec<PrefetchedAgent>, StoreError> {
    prefetched(core, &[Leaf::Value(HEARTBEAT)]).await
}

/// The names of all agents, also of those whose record is damaged.
pub(crate) async fn names(core: &Core) -> Result<Vec<AgentName>, StoreError> {
    Ok(prefetched(core, &[]).await?.into_iter().map(|summary| summary.name).collect())
}

async fn prefetched(core: &Core, beside: &[Leaf<'_>]) -> Result<Vec<PrefetchedAgent>, StoreError> {
    let store = core.shared.as_ref();
    let (mut summaries, mut rest) = (Vec::new(), Vec::new());
    let take =
        |onto: &mut Vec<PrefetchedAgent>, child: Child<'_>| onto.extend(PrefetchedAgent::of(child, beside, store));
    let takers: [Taker<'_>; 2] = [&mut |child| take(&mut summaries, child), &mut |child| take(&mut rest, child)];
    store.children(&keys::agents(), META, beside, takers).await?;
    // Already sorted: the listing has the order of keys, and a key spells a name as it is.
    summaries.append(&mut rest);
    Ok(summaries)
}

pub(crate) async fn load_agent(core: &Core, name: &AgentName) -> Result<Option<Agent>, StoreError> {
    Ok(records::load::<Agent>(core.shared.as_ref(), &keys::meta(name)).await?.map(|(_, agent)| agent))
}

/// Runs `ask` for each agent, several concurrently if each is a round trip to the servers. Yields the answers in the
/// order of `agents`; the rest is not asked if the caller drops the stream.
pub(crate) fn of_each<T, F: Future>(
    core: &Core,
    agents: Vec<T>,
    ask: impl Fn(T) -> F,
) -> Buffered<stream::Iter<std::vec::IntoIter<F>>> {
    // Nothing is begun by this. A closure that takes a reference must not be kept across an await: a future with one in it
    // could not move between threads.
    let asked: Vec<F> = agents.into_iter().map(ask).collect();
    stream::iter(asked).buffered(core.topology.lookups_at_once())
}

pub(crate) struct PrefetchedAgent {
    pub(crate) name: AgentName,
    /// Its record; an error if that is damaged.
    pub(crate) agent: Result<Box<Agent>, StoreError>,
    pub(crate) beside: Prefetched,
}

/// What the listing of all agents showed of one agent, apart from its record.
pub(crate) struct Prefetched {
    /// Its heartbeat. Counts only if its session's record is not on this machine.
    pub(crate) heartbeat: PrefetchedHeartbeat,
    pub(crate) mail: PrefetchedMail,
}

/// What the listing of all agents showed of one agent's heartbeat.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PrefetchedHeartbeat {
    /// There is none.
    Nothing,
    Given(Heartbeat),
    /// The caller reads it itself: a heartbeat that was damaged may be whole again, and if not, reading it gives the
    /// error.
    Unknown,
}

impl PrefetchedHeartbeat {
    fn of(seen: &ChildLeaf) -> PrefetchedHeartbeat {
        match seen {
            ChildLeaf::Nothing => PrefetchedHeartbeat::Nothing,
            ChildLeaf::Value(Ok(value)) => {
                serde_json::from_slice(&value.bytes).map_or(PrefetchedHeartbeat::Unknown, PrefetchedHeartbeat::Given)
            }
            ChildLeaf::Value(Err(_)) | ChildLeaf::Appends(_) | ChildLeaf::Unknown => PrefetchedHeartbeat::Unknown,
        }
    }
}

/// What the listing of all agents showed of one agent's mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrefetchedMail {
    /// It never got a message.
    Nothing,
    /// The number of messages in its inbox, none of which has a receipt.
    Counted(usize),
    /// The caller reads the inbox itself.
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
    /// For an agent that was not loaded by a listing.
    pub(crate) const UNKNOWN: Prefetched =
        Prefetched { heartbeat: PrefetchedHeartbeat::Unknown, mail: PrefetchedMail::Unknown };

    fn of(beside: &mut Vec<ChildLeaf>, leaves: &[Leaf<'_>]) -> Prefetched {
        let mut heartbeat = PrefetchedHeartbeat::Unknown;
        let (mut inbox, mut receipts, mut cursor) = (ChildLeaf::Unknown, ChildLeaf::Unknown, ChildLeaf::Unknown);
        for (leaf, seen) in leaves.iter().zip(beside.drain(..)) {
            match leaf {
                Leaf::Value(HEARTBEAT) => heartbeat = PrefetchedHeartbeat::of(&seen),
                Leaf::Value(CURSOR) => cursor = seen,
                Leaf::Log(INBOX) => inbox = seen,
                Leaf::Log(RECEIPTS) => receipts = seen,
                Leaf::Value(_) | Leaf::Log(_) => {}
            }
        }
        // Each message is stored by an append of its own. Only a migration appends several at once, and it leaves a
        // cursor. As long as there is no receipt, each message waits.
        let mail = match (inbox, receipts, cursor) {
            (ChildLeaf::Nothing, _, _) => PrefetchedMail::Nothing,
            (ChildLeaf::Appends(messages), ChildLeaf::Nothing, ChildLeaf::Nothing) => {
                usize::try_from(messages).map_or(PrefetchedMail::Unknown, PrefetchedMail::Counted)
            }
            (ChildLeaf::Appends(_) | ChildLeaf::Value(_) | ChildLeaf::Unknown, _, _) => PrefetchedMail::Unknown,
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

/// The agents as this machine last saw them, stored under `roster`.
#[derive(Clone, Serialize, Deserialize)]
struct LastRoster {
    at: Instant,
    agents: Vec<AgentSummary>,
}
