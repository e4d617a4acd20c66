//! Events for agents that go offline and come back: exactly one per change, no matter how many processes poll and where
//! one of them is killed. A process reads the event log to its end and appends only if no other process has appended
//! since, so the event log itself is the shared state.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use store::{AppendError, Durability, Expect, Position, StoreError, SwapError};

use crate::Mesh;
use crate::agents;
use crate::agents::Presence;
use crate::agents::list::PrefetchedAgent;
use crate::agents::presence;
use crate::agents::presence::is_here;
use crate::core::Core;
use crate::messages::inbox::contains;
use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::storage::event_log::Event;
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// How often other processes may append in between before this poll gives up.
const TRIES: usize = 100;

/// After how many events the reading position is stored.
const MANY: usize = 1_000;

/// The event of an agent that is no longer here.
const FELL: &str = "agent-offline";
/// The event of an agent that is here again.
const BACK: &str = "agent-online";
/// The event of a cleanup, which names the deleted agents.
const CLEANED_UP: &str = "deleted";

/// The agents that are offline according to the event log, up to where it was read. The copy stored under `offline`
/// saves reading the event log from its beginning, and outlives old events that were deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OfflineAgents {
    /// Up to where the event log was read.
    at: Position,
    silent: BTreeSet<AgentName>,
    /// How many events were read since this was stored.
    #[serde(skip)]
    unkept: usize,
}

impl OfflineAgents {
    fn take(&mut self, event: &Event) {
        let agent = || event.details.get("agent").and_then(|agent| agent.as_str()?.parse::<AgentName>().ok());
        match event.kind.as_str() {
            FELL => self.silent.extend(agent()),
            BACK => {
                if let Some(agent) = agent() {
                    self.silent.remove(&agent);
                }
            }
            CLEANED_UP => {
                let gone = event.details.get("agents").and_then(|agents| agents.as_array());
                for agent in gone.into_iter().flatten().filter_map(|agent| agent.as_str()) {
                    self.silent.retain(|silent| silent.as_str() != agent);
                }
            }
            _ => {}
        }
    }

    /// The event that is missing for an agent; `None` if the event log is right.
    fn news(&self, name: &AgentName, presence: Presence) -> Option<&'static str> {
        match (is_here(presence), self.silent.contains(name)) {
            (true, true) => Some(BACK),
            (false, false) => Some(FELL),
            (true, false) | (false, true) => None,
        }
    }
}

impl Mesh {
    /// Notes in the event log which agents of this machine go offline and come back, until dropped. Any number of
    /// processes may do so at once.
    pub async fn keep_noticing_silence(&self) {
        let mut known = None;
        let poll = self.core.topology.presence_poll();
        loop {
            let noticed = notice_silence(&self.core, &mut known).await;
            for error in [noticed, self.send_offline_notices().await].into_iter().filter_map(Result::err) {
                let error: &dyn std::error::Error = &error;
                tracing::debug!(error, "noticing offline agents failed and is retried");
            }
            tokio::time::sleep(poll).await;
        }
    }
}

/// Polls once. `known` is the state that the last poll left; `None` before the first.
pub(crate) async fn notice_silence(core: &Core, known: &mut Option<OfflineAgents>) -> Result<(), StoreError> {
    let mut silences = match known.take() {
        Some(silences) => silences,
        None => kept_silences(core).await?,
    };
    let before = silences.silent.clone();
    read_silences(core, &mut silences).await?;
    let mut news = Vec::new();
    for PrefetchedAgent { name, agent, beside } in agents::list::summaries_with_heartbeats(core).await? {
        // Only its own machine judges an agent, and `status` reports damaged records.
        let Ok(agent) = agent else { continue };
        if agent.machine != core.machine.name() {
            continue;
        }
        let (_, presence, _) = presence::judged_beside(core, &agent, beside.heartbeat).await?;
        if silences.news(&name, presence).is_some() {
            news.push(name);
        }
    }
    for _ in 0..TRIES {
        if news.is_empty() || tell_silence(core, &news, &mut silences).await? {
            break;
        }
    }
    if silences.silent != before || silences.unkept >= MANY {
        keep_silences(core, &silences).await?;
        silences.unkept = 0;
    }
    *known = Some(silences);
    Ok(())
}

/// Reads the event log to its end, checks these agents again, and appends the missing events unless another process
/// appended meanwhile. Returns whether it appended.
async fn tell_silence(core: &Core, names: &[AgentName], silences: &mut OfflineAgents) -> Result<bool, StoreError> {
    read_silences(core, silences).await?;
    let mut told = Vec::new();
    for name in names {
        // A cleanup may have deleted it.
        let Some(agent) = agents::list::load_agent(core, name).await? else { continue };
        let (_, presence, because) = presence::judged(core, &agent).await?;
        if let Some(event) = silences.news(name, presence) {
            told.push(records::json(&serde_json::json!({
                "event": event, "at": core.machine.now().0, "agent": name, "presence": presence.as_str(),
                "because": because,
            })));
        }
    }
    if told.is_empty() {
        return Ok(true);
    }
    match core.shared.append(&keys::global(), &told, Expect::End(silences.at), Durability::Process).await {
        // Reads its own events like all others.
        Ok(_) => read_silences(core, silences).await.map(|()| true),
        Err(AppendError::Moved) => Ok(false),
        Err(AppendError::Store(error)) => Err(error),
    }
}

/// Reads the event log on to its end. Few of its events matter here.
async fn read_silences(core: &Core, silences: &mut OfflineAgents) -> Result<(), StoreError> {
    let mut found = Vec::new();
    let mut count = 0;
    let (end, _) = records::scan(core.shared.as_ref(), &keys::global(), silences.at, |entry| {
        count += 1;
        if [FELL, BACK, CLEANED_UP].iter().any(|kind| contains(&entry.bytes, kind.as_bytes())) {
            found.extend(Event::parse(&entry));
        }
    })
    .await?;
    for event in &found {
        silences.take(event);
    }
    silences.unkept += count;
    silences.at = end;
    Ok(())
}

/// The stored state, unless it belongs to another event log. It is only a hint. But the event log of several machines
/// is long, and a machine only reports its own agents: so a machine without stored state starts at the end there. It
/// stores that position before it appends anything: if the process is killed in between, the next one continues from
/// there.
async fn kept_silences(core: &Core) -> Result<OfflineAgents, StoreError> {
    loop {
        let kept = match records::load::<OfflineAgents>(core.local.as_ref(), &keys::offline()).await {
            Ok(Some((_, kept))) => kept,
            Ok(None) if core.topology.reads_events_from_the_end() => {
                let begun = OfflineAgents { at: core.event_log.end().await?, ..OfflineAgents::default() };
                let (key, value) = (keys::offline(), records::json(&begun));
                match core.local.swap(&key, None, Some(&value), Durability::Synced).await {
                    Ok(_) => return Ok(begun),
                    // Another process of this machine stored it first.
                    Err(SwapError::Changed { .. }) => continue,
                    Err(SwapError::Store(error)) => return Err(error),
                }
            }
            Ok(None) | Err(StoreError::Damaged { .. }) => return from_what_retention_leaves(core).await,
            Err(error) => return Err(error),
        };
        return if kept.at > core.event_log.end().await? { from_what_retention_leaves(core).await } else { Ok(kept) };
    }
}

/// Nothing is known. Older events than a cleanup leaves are not read: a folder that nobody cleans up has millions.
async fn from_what_retention_leaves(core: &Core) -> Result<OfflineAgents, StoreError> {
    let oldest = Instant(core.machine.now().0.saturating_sub(core.limits.keep));
    Ok(OfflineAgents { at: core.event_log.since(oldest).await?, ..OfflineAgents::default() })
}

async fn keep_silences(core: &Core, silences: &OfflineAgents) -> Result<(), StoreError> {
    let mut names: BTreeSet<&AgentName> = silences.silent.iter().collect();
    // An agent without a record was deleted; it is not offline.
    for name in &silences.silent {
        if core.shared.get(&keys::meta(name)).await?.is_none() {
            names.remove(name);
        }
    }
    let silent = names.into_iter().cloned().collect();
    let kept = OfflineAgents { at: silences.at, silent, unkept: 0 };
    let put = |old: Option<serde_json::Value>| match old.and_then(|old| old.get("at")?.as_u64()) {
        Some(at) if at > kept.at.0 => (Next::Keep, ()),
        Some(_) | None => (Next::Put(serde_json::json!(kept)), ()),
    };
    records::update(core.local.as_ref(), &keys::offline(), Durability::Process, put).await
}
