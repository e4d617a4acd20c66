//! Handing messages over to a session: a hook's answer with the text was written out, and the harness has yet to show
//! that a model request held it. Until then the message is the session's; if the session ends or begins anew first,
//! it is taken back and presented again, marked as perhaps repeated.

use std::collections::BTreeMap;

use store::{Durability, StoreError};

use crate::agents;
use crate::core::Core;
use crate::messages::fetch;
use crate::messages::fetch::{Lease, tidy};
use crate::messages::inbox;
use crate::messages::inbox::Inbox;
use crate::messages::inboxes::Inboxes;
use crate::messages::receipt::{DeliveryStatus, Event, FETCH, HandOver};
use crate::names::{AgentName, MessageId};
use crate::sessions::record;
use crate::sessions::{Activity, SessionRecord, SessionRef};

/// Records that a hook's answer with leased messages was written out.
pub(crate) async fn hand_over(core: &Core, lease: &Lease, session: &SessionRef, route: &str) -> Result<(), StoreError> {
    let event = Event::HandedOver { session: session.clone(), route: route.to_owned() };
    inbox::receipt(core, &lease.agent, &lease.messages, &event, Durability::Process).await?;
    fetch::note_cut(core, lease).await
}

/// Records that the reply to a fetch with leased messages was written out. A session whose harness tells of its turns
/// will show whether a model request held them: until then they are open, and they are shown again if it is killed before.
pub(crate) async fn fetched(
    core: &Core,
    inboxes: &Inboxes,
    lease: &Lease,
    by: Option<&SessionRef>,
) -> Result<(), StoreError> {
    let record = match by {
        Some(session) => record::session_record(core, session).await?,
        None => None,
    };
    let is_in_turn =
        |record: &SessionRecord| record.activity == Activity::Busy && record.agent.as_ref() == Some(&lease.agent);
    match record.filter(is_in_turn) {
        Some(record) => {
            fetch::note_chain(core, lease).await?;
            hand_over(core, lease, &record.session, FETCH).await
        }
        None => fetch::confirm(core, inboxes, lease, DeliveryStatus::Read, FETCH, None).await,
    }
}

/// Records that a model request held these messages, each by the hook that had carried it, or the fetch.
pub(crate) async fn prove(
    core: &Core,
    inboxes: &Inboxes,
    agent: &AgentName,
    proven: &BTreeMap<MessageId, HandOver>,
) -> Result<(), StoreError> {
    let mut by_route: BTreeMap<&str, Vec<MessageId>> = BTreeMap::new();
    for (id, handed) in proven {
        by_route.entry(&handed.route).or_default().push(*id);
    }
    if by_route.is_empty() {
        return Ok(());
    }
    for (route, ids) in by_route {
        let status = if route == FETCH { DeliveryStatus::Read } else { DeliveryStatus::Shown };
        let event = Event::Status { status, route: route.to_owned(), evidence: None };
        inbox::receipt(core, agent, &ids, &event, Durability::Process).await?;
    }
    tidy(core, inboxes, agent).await
}

/// Takes messages back that the harness left out.
pub(crate) async fn take_back(
    core: &Core,
    agent: &AgentName,
    ids: &[MessageId],
    reason: &str,
) -> Result<(), StoreError> {
    let event = Event::TakenBack { reason: reason.to_owned() };
    inbox::receipt(core, agent, ids, &event, Durability::Process).await
}

/// Reads what is new in an inbox, for a presenter: what was handed over in vain is taken back first.
pub(crate) async fn refresh(core: &Core, inbox: &mut Inbox, agent: &AgentName) -> Result<(), StoreError> {
    inbox.refresh(core.shared.as_ref(), agent).await?;
    match reclaim(core, agent, &inbox.handed_over()).await {
        Ok(true) => inbox.refresh(core.shared.as_ref(), agent).await?,
        Ok(false) => {}
        // Without room to note it, the rest of the mail can still be read.
        Err(error) if error.is_full() => tracing::debug!(%agent, %error, "nothing is taken back"),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Takes back what was handed over to sessions that have ended or are no longer the agent's. Returns whether there was
/// any.
async fn reclaim(core: &Core, agent: &AgentName, handed: &BTreeMap<MessageId, HandOver>) -> Result<bool, StoreError> {
    if handed.is_empty() || record::lives_elsewhere(core, agent).await? {
        return Ok(false);
    }
    let own = agents::list::load_agent(core, agent).await?.and_then(|agent| agent.session);
    let mut lost: BTreeMap<&str, Vec<MessageId>> = BTreeMap::new();
    for (id, handed) in handed {
        let reason = match record::session_record(core, &handed.session).await? {
            Some(record) if !record::has_ended(core, &record) => {
                let moved = own.as_ref().is_some_and(|own| *own != handed.session) && record.parent.is_none();
                moved.then_some("the agent moved to another session before a model request held it")
            }
            Some(_) | None => Some("its session ended before a model request held it"),
        };
        if let Some(reason) = reason {
            lost.entry(reason).or_default().push(*id);
        }
    }
    for (reason, ids) in &lost {
        take_back(core, agent, ids, reason).await?;
    }
    Ok(!lost.is_empty())
}
