//! The cursor, the invocations and the lock of event hooks in this machine's store.

use std::collections::BTreeMap;

use serde_json::Value;
use store::{Durability, Hold, Position, StoreError, Watch};

use super::{EventHook, HookTrigger, Invocation, InvocationStage, RateLimit};
use crate::agents::list::load_agent;
use crate::core::Core;
use crate::messages::kept;
use crate::names::{AgentName, MessageId};
use crate::storage::keys;
use crate::storage::records::{self, Next};
use crate::{Event, Mesh};

/// How many bytes of the event log to read at a time.
const STRETCH: usize = 64 * 1024;

/// Reads the event log for the hooks, from where it was last read: by this process or by the one before.
#[derive(Debug)]
pub struct HookReader {
    at: Position,
    /// The position that the store has. What lies between was read, and was for no hook.
    saved: Position,
    limit: RateLimit,
}

impl Mesh {
    /// The exclusive right to carry out the event hooks of this machine; none while another process has it.
    pub async fn hold_event_hooks(&self) -> Result<Option<Box<dyn Hold>>, StoreError> {
        self.core.local.hold(&keys::carrying_hooks()).await
    }

    /// Tells every process that the user has changed their hooks.
    pub async fn event_hooks_changed(&self) -> Result<(), StoreError> {
        let now = self.core.machine.now();
        let change = |_: Option<crate::ports::machine::Instant>| (Next::Put(now), ());
        records::update(self.core.local.as_ref(), &keys::hooks_changed(), Durability::Process, change).await
    }

    /// Watches whether the user changes their hooks.
    pub async fn watch_event_hooks(&self) -> Result<Box<dyn Watch>, StoreError> {
        self.core.local.watch(&[keys::hooks_changed()]).await
    }

    /// Begins to read where it was last read, or else at the oldest hook. `kept` are all invocations that are kept, which
    /// say how often each hook was carried out lately.
    pub async fn hook_reader(&self, hooks: &[EventHook], kept: &[Invocation]) -> Result<HookReader, StoreError> {
        let known = records::load::<Position>(self.core.local.as_ref(), &keys::hook_cursor()).await;
        let known = match known {
            // It is made anew from the hooks.
            Err(StoreError::Damaged { .. }) => None,
            known => known?.map(|(_, cursor)| cursor),
        };
        let end = self.core.event_log.end().await?;
        let at = match known {
            // The log is another one.
            Some(cursor) if cursor > end => end,
            Some(cursor) => cursor,
            None => match hooks.iter().map(|hook| hook.since).min() {
                Some(oldest) => self.core.event_log.since(oldest).await?,
                None => end,
            },
        };
        let mut limit = RateLimit::default();
        for invocation in kept {
            limit.admits(&invocation.hook, invocation.event.at, 0);
        }
        Ok(HookReader { at, saved: at, limit })
    }

    /// Every invocation that is kept, oldest first.
    pub async fn hook_invocations(&self) -> Result<Vec<Invocation>, StoreError> {
        let mut all = Vec::new();
        for key in self.core.local.list(&keys::hook_invocations()).await? {
            match records::load::<Invocation>(self.core.local.as_ref(), &key).await {
                Ok(found) => all.extend(found.map(|(_, invocation)| invocation)),
                Err(error @ StoreError::Damaged { .. }) => {
                    tracing::warn!(%error, "a damaged record of an event hook is skipped");
                }
                Err(error) => return Err(error),
            }
        }
        all.sort_by(|one, other| (one.event.at, &one.id).cmp(&(other.event.at, &other.id)));
        Ok(all)
    }

    /// Notes what became of an invocation. It is on disk when this returns if `durability` says so.
    pub async fn note_invocation(
        &self,
        id: &str,
        stage: InvocationStage,
        durability: Durability,
    ) -> Result<(), StoreError> {
        let note = |old: Option<Invocation>| match old {
            Some(old) => (Next::Put(Invocation { stage: stage.clone(), ..old }), ()),
            None => (Next::Keep, ()),
        };
        records::update(self.core.local.as_ref(), &keys::hook_invocation(id), durability, note).await
    }

    /// Deletes an invocation.
    pub async fn forget_invocation(&self, id: &str) -> Result<(), StoreError> {
        let forget = |_: Option<Invocation>| (Next::Remove, ());
        records::update(self.core.local.as_ref(), &keys::hook_invocation(id), Durability::Process, forget).await
    }
}

impl HookReader {
    /// Reads to the end of the event log. Makes an invocation for each hook that an event is for, and returns the new
    /// ones. `waiting` says how many of each hook are not carried out yet.
    pub async fn take(
        &mut self,
        mesh: &Mesh,
        hooks: &[EventHook],
        waiting: &BTreeMap<String, usize>,
    ) -> Result<Vec<Invocation>, StoreError> {
        let core = &mesh.core;
        let (mut new, mut waiting) = (Vec::new(), waiting.clone());
        loop {
            let stretch = core.event_log.read(self.at, STRETCH).await?;
            let mut is_for_one = false;
            for event in &stretch.events {
                let wanting: Vec<&EventHook> = hooks.iter().filter(|hook| hook.is_for(event)).collect();
                if wanting.is_empty() || !is_of_here(core, event).await? {
                    continue;
                }
                is_for_one = true;
                for hook in wanting {
                    let waits = waiting.entry(hook.id.clone()).or_default();
                    if !self.limit.admits(&hook.id, event.at, *waits) {
                        skip(core, hook, event).await?;
                    } else if let Some(made) = make(core, hook, event).await? {
                        *waits += 1;
                        new.push(made);
                    }
                }
            }
            let is_stuck = stretch.next == self.at;
            self.at = stretch.next;
            if is_for_one || self.at.0.saturating_sub(self.saved.0) > STRETCH as u64 {
                let save = |_: Option<Position>| (Next::Put(self.at), ());
                records::update(core.local.as_ref(), &keys::hook_cursor(), Durability::Process, save).await?;
                self.saved = self.at;
            }
            if stretch.at_end || is_stuck {
                return Ok(new);
            }
        }
    }
}

/// Makes an invocation, unless it was made before.
async fn make(core: &Core, hook: &EventHook, event: &Event) -> Result<Option<Invocation>, StoreError> {
    let id = format!("{}-{}-{}", hook.id, event.at.0, event.next.0);
    let made = Invocation::of(id.clone(), &hook.id, hook.on, event);
    let unless_there = |old: Option<Invocation>| match old {
        Some(_) => (Next::Keep, false),
        None => (Next::Put(made.clone()), true),
    };
    // On disk before the cursor passes it.
    let key = keys::hook_invocation(&id);
    let is_new = records::update(core.local.as_ref(), &key, Durability::Synced, unless_there).await?;
    Ok(is_new.then_some(made))
}

/// Counts an event that is passed over: one record for each minute of a hook.
async fn skip(core: &Core, hook: &EventHook, event: &Event) -> Result<(), StoreError> {
    let id = format!("{}-{}-skipped", hook.id, event.at.0 / 60_000);
    let (at, last) = (event.at, event.next);
    let count_it = |old: Option<Invocation>| {
        let count = match old.map(|old| old.stage) {
            Some(InvocationStage::Skipped { last: before, .. }) if before >= last => return (Next::Keep, ()),
            Some(InvocationStage::Skipped { count, .. }) => count,
            Some(_) | None => 0,
        };
        let stage = InvocationStage::Skipped { at, count: count + 1, last };
        (Next::Put(Invocation { stage, ..Invocation::of(id.clone(), &hook.id, hook.on, event) }), ())
    };
    records::update(core.local.as_ref(), &keys::hook_invocation(&id), Durability::Process, count_it).await
}

/// Whether an event is this machine's to act on: what an agent does is its own machine's, a message its recipients'. The
/// event log is everybody's, so what an agent does counts if this machine says so, and a message if it is there.
async fn is_of_here(core: &Core, event: &Event) -> Result<bool, StoreError> {
    if !core.topology.has_other_machines() {
        return Ok(true);
    }
    if event.kind != HookTrigger::Message.kind() {
        let own = core.machine.name();
        let names_it = event.details.get("machine").and_then(Value::as_str) == Some(own);
        return Ok(names_it && core.shared.is_written_by(&keys::global(), event.next, own).await?);
    }
    let text = |field: &str| event.details.get(field).and_then(Value::as_str);
    let id = text("id").and_then(|id| id.parse::<MessageId>().ok());
    let from = text("from").and_then(|from| from.parse::<AgentName>().ok());
    let (Some(id), Some(from)) = (id, from) else { return Ok(false) };
    let to = event.details.get("to").and_then(Value::as_array).into_iter().flatten();
    for name in to.filter_map(|name| name.as_str()?.parse::<AgentName>().ok()) {
        if load_agent(core, &name).await?.is_some_and(|agent| agent.machine == core.machine.name())
            && kept::one_of(core, &name, id).await?.is_some_and(|kept| kept.message.from == from)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
