//! What was handed over to a session by its hooks, and what the harness's evidence says became of it.

use std::collections::BTreeMap;

use store::StoreError;

use crate::Mesh;
use crate::messages::hand_over;
use crate::messages::receipt::{FETCH, HandOver};
use crate::names::{AgentName, MessageId};
use crate::ports::harness::{HandedOver, HookEvent, Reading, Verdict};
use crate::sessions::record;
use crate::sessions::{Activity, SessionRef};

/// What the route of a hook begins with; its event follows.
pub(super) const ROUTE_OF_HOOKS: &str = "hook:";

/// What the route of a turn that we gave begins with; the connection's name follows.
pub const ROUTE_OF_DRIVERS: &str = "driver:";

/// What was handed over to a session and is not proven.
pub(super) struct OpenHandOvers {
    agent: AgentName,
    messages: BTreeMap<MessageId, HandOver>,
    /// The session was working before this hook.
    pub(super) was_busy: bool,
}

impl OpenHandOvers {
    /// Looks only in hooks that read the inbox anyway, or after which nothing more of the session may come. None if
    /// nothing is open.
    pub(super) async fn of(mesh: &Mesh, harness: &str, reading: &Reading) -> Result<Option<OpenHandOvers>, StoreError> {
        let Some(id) = session_of(reading) else { return Ok(None) };
        let session = SessionRef { harness: harness.to_owned(), id: id.to_owned() };
        let Some(record) = record::session_record(&mesh.core, &session).await? else { return Ok(None) };
        let Some(agent) = record::agent_of(&mesh.core, &session).await? else { return Ok(None) };
        let mut messages = {
            let inbox = mesh.inboxes.of(&agent);
            let mut inbox = inbox.lock().await;
            inbox.refresh(mesh.core.shared.as_ref(), &agent).await?;
            inbox.handed_over()
        };
        // Who gives it its turns learns of those from the harness itself.
        let is_turn = |handed: &HandOver| handed.route.starts_with(ROUTE_OF_DRIVERS);
        messages.retain(|_, handed| handed.session == session && !is_turn(handed));
        let was_busy = record.activity == Activity::Busy;
        Ok((!messages.is_empty()).then_some(OpenHandOvers { agent, messages, was_busy }))
    }

    pub(super) fn list(&self) -> Vec<HandedOver> {
        let hook = |handed: &HandOver| handed.route.strip_prefix(ROUTE_OF_HOOKS).unwrap_or_default().to_owned();
        self.messages.iter().map(|(id, handed)| HandedOver { id: *id, hook: hook(handed), at: handed.at }).collect()
    }

    pub(super) fn all(&self, verdict: Verdict) -> Vec<(MessageId, Verdict)> {
        self.messages.keys().map(|id| (*id, verdict)).collect()
    }

    /// Takes those out that were fetched, if the turn has ended by itself: what a tool gave was in the request that
    /// followed. A transcript may not have it, where a subagent had fetched it.
    pub(super) fn fetched_in_a_turn_that_ended(&mut self) -> BTreeMap<MessageId, HandOver> {
        let (fetched, others) =
            std::mem::take(&mut self.messages).into_iter().partition(|(_, handed)| handed.route == FETCH);
        self.messages = others;
        fetched
    }

    pub(super) async fn prove(&self, mesh: &Mesh, proven: &BTreeMap<MessageId, HandOver>) -> Result<(), StoreError> {
        hand_over::prove(&mesh.core, &mesh.inboxes, &self.agent, proven).await
    }

    /// Writes down what became of them. What is said of other messages counts for nothing. In a session that has just
    /// begun anew, nothing of before waits for a model request any more.
    pub(super) async fn settle(
        mut self,
        mesh: &Mesh,
        verdicts: Vec<(MessageId, Verdict)>,
        begins_anew: bool,
    ) -> Result<(), StoreError> {
        let (mut shown, mut lost) = (BTreeMap::new(), Vec::new());
        for (id, verdict) in verdicts {
            let Some(handed) = self.messages.remove(&id) else { continue };
            match verdict {
                Verdict::Shown => drop(shown.insert(id, handed)),
                Verdict::Lost => lost.push(id),
            }
        }
        hand_over::prove(&mesh.core, &mesh.inboxes, &self.agent, &shown).await?;
        hand_over::take_back(&mesh.core, &self.agent, &lost, "the harness left it out").await?;
        if begins_anew {
            let left: Vec<MessageId> = self.messages.into_keys().collect();
            let why = "its session began anew before a model request held it";
            hand_over::take_back(&mesh.core, &self.agent, &left, why).await?;
        }
        Ok(())
    }
}

/// The session whose mail this hook may say something of.
fn session_of(reading: &Reading) -> Option<&str> {
    let ended = reading.events.iter().find_map(|event| match event {
        HookEvent::Ended(id) => Some(id.as_str()),
        HookEvent::Alive(_)
        | HookEvent::Activity { .. }
        | HookEvent::Rebound { .. }
        | HookEvent::UserSpoke(_)
        | HookEvent::Stopped(_) => None,
    });
    let may_tell = reading.max_bytes > 0 || reading.occasion.is_some() || reading.ends_turn();
    let speaker = reading.speaker.as_ref().filter(|_| may_tell);
    ended.or(speaker.map(|speaker| speaker.id.as_str()))
}
