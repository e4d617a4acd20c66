//! The chain of messages that an agent works on, until its user prompts it.

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError};

use crate::asks;
use crate::core::Core;
use crate::messages::Trace;
use crate::messages::inbox;
use crate::messages::inboxes::Inboxes;
use crate::messages::receipt::Event;
use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// What an agent works on, stored under `work/NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Work {
    trace: Trace,
    /// When the agent got the chain's latest message.
    at: Instant,
}

pub(crate) async fn working_on(core: &Core, name: &AgentName) -> Result<Option<Trace>, StoreError> {
    let now = core.machine.now();
    let work = match records::load::<Work>(core.local.as_ref(), &keys::work(name)).await {
        Ok(work) => work.map(|(_, work)| work),
        // It is a hint, and one that cannot be read is none.
        Err(StoreError::Damaged { .. }) => None,
        Err(error) => return Err(error),
    };
    Ok(work.filter(|work| now.since(work.at) < core.limits.loops.rest).map(|work| work.trace))
}

/// Notes that the agent got a message: from now on it works on that message's chain.
pub(crate) async fn works_on(core: &Core, name: &AgentName, trace: Trace) -> Result<(), StoreError> {
    let at = core.machine.now();
    let outcome =
        records::update(core.local.as_ref(), &keys::work(name), Durability::Process, |old: Option<Work>| match old {
            // An older message of the same chain must not lower the hop count.
            Some(old) if old.trace.root == trace.root && old.trace.hops > trace.hops => {
                (Next::Put(Work { at, ..old }), ())
            }
            Some(_) | None => (Next::Put(Work { trace, at }), ()),
        })
        .await;
    unless_damaged(name, outcome)
}

/// A damaged record is left for `doctor` to set aside. Mail does not wait for that.
fn unless_damaged(name: &AgentName, outcome: Result<(), StoreError>) -> Result<(), StoreError> {
    match outcome {
        Err(error @ StoreError::Damaged { .. }) => {
            tracing::warn!(%name, %error, "the chain that an agent works on is not known");
            Ok(())
        }
        outcome => outcome,
    }
}

/// Notes that the user prompted the agent: its next message starts a new chain, and held messages may wake again.
pub(crate) async fn person_spoke(core: &Core, inboxes: &Inboxes, name: &AgentName) -> Result<(), StoreError> {
    let ended = |old: Option<Work>| (if old.is_some() { Next::Remove } else { Next::Keep }, ());
    let outcome = records::update(core.local.as_ref(), &keys::work(name), Durability::Process, ended).await;
    unless_damaged(name, outcome)?;
    let inbox = inboxes.of(name);
    let mut inbox = inbox.lock().await;
    inbox.refresh(core.shared.as_ref(), name).await?;
    let held: Vec<_> = inbox.open.all().filter(|slot| slot.history.hold.is_some()).map(|slot| slot.header.id).collect();
    inbox::receipt(core, name, &held, &Event::Freed, Durability::Process).await?;
    asks::held_loop::settle(core, name).await
}
