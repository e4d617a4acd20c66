//! The status of a message, and of the mesh as a whole.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::StreamExt as _;
use store::StoreError;

use crate::agents;
use crate::agents::AgentSummary;
use crate::agents::list::{PrefetchedAgent, PrefetchedMail};
use crate::agents::presence;
use crate::commands::Command;
use crate::commands::order;
use crate::core::Core;
use crate::delivery::pass;
use crate::messages::Message;
use crate::messages::inbox::Inbox;
use crate::messages::inboxes::Inboxes;
use crate::messages::kept::{self, KeptMessage};
use crate::messages::outbox;
use crate::messages::receipt::{DeliveryHistory, RecipientStatus};
use crate::messages::send;
use crate::names::{AgentName, MessageId};
use crate::reservations;
use crate::sessions::Principal;
use crate::storage::keys;
use crate::{Queued, RepositoryReservations, ReservationFilter};

/// A message's delivery history with each recipient.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageStatus {
    /// The message, as its first recipient has it.
    pub message: Message,
    /// Each recipient's history.
    pub recipients: Vec<RecipientStatus>,
}

/// Why a message's status is not available.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The asker neither sent nor received it.
    #[error("no message `{0}` was sent to you or by you")]
    Unknown(MessageId),
    /// The user asked, who may see all mail, and no message has this id.
    #[error("no message `{0}` is in any inbox")]
    Nowhere(MessageId),
    /// The store failed.
    #[error("the receipts could not be read")]
    Store(#[from] store::StoreError),
}

/// Messages of one sender in one inbox that go no further by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckMail {
    /// The sender.
    pub from: AgentName,
    /// The recipient.
    pub to: AgentName,
    pub messages: usize,
    /// Why the latest goes no further.
    pub reason: String,
}

/// The status of the mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeshStatus {
    /// Every agent.
    pub agents: Vec<AgentSummary>,
    /// Number of waiting messages, over all inboxes.
    pub waiting: usize,
    /// How many of these were counted by the servers and not read here: no receipt concerns them, and damage among
    /// them is unknown.
    pub counted: usize,
    /// Mail for which the loop guard stopped waking.
    pub held: Vec<StuckMail>,
    /// Mail that no route takes. It stays in the inbox.
    pub undeliverable: Vec<StuckMail>,
    /// What could not be read, and why, one sentence each. Everything else is complete.
    pub damaged: Vec<String>,
    /// Messages in this machine's outbox: waiting for the servers, or returned.
    pub queued: Vec<Queued>,
    /// Why the servers cannot be reached, if they cannot. The agents are then as this machine last saw them.
    pub out_of_reach: Option<String>,
}

pub(crate) async fn message_status(
    core: &Core,
    asker: &Principal,
    id: MessageId,
) -> Result<MessageStatus, StatusError> {
    let queued = outbox::in_outbox(core, asker, id).await?;
    match (stored_status(core, asker, id).await, queued) {
        (Ok(Some(mut status)), Some((_, waiting))) => {
            status.recipients.extend(waiting);
            Ok(status)
        }
        (Ok(None), Some((message, recipients))) => Ok(MessageStatus { message, recipients }),
        (Err(error), Some((message, recipients))) if error.is_out_of_reach() => {
            Ok(MessageStatus { message, recipients })
        }
        (Ok(Some(status)), None) => Ok(status),
        (Ok(None), None) if asker.is_person() => Err(StatusError::Nowhere(id)),
        (Ok(None), None) => Err(StatusError::Unknown(id)),
        (Err(error), _) => Err(error.into()),
    }
}

async fn stored_status(core: &Core, asker: &Principal, id: MessageId) -> Result<Option<MessageStatus>, StoreError> {
    let mut owners = match &asker.agent {
        Some(agent) => send::recipients_of(core, agent, id).await?,
        None => Vec::new(),
    };
    if owners.is_empty()
        && let Some(agent) = &asker.agent
    {
        owners.push(agent.clone());
    }
    let status = histories(core, &owners, id).await?;
    if status.is_none() && asker.is_person() {
        return histories(core, &agents::list::names(core).await?, id).await;
    }
    Ok(status)
}

pub(crate) async fn status(core: &Core, inboxes: &Inboxes) -> Result<MeshStatus, StatusError> {
    let queued = if core.topology.may_be_out_of_reach() { outbox::queued(core).await? } else { Vec::new() };
    match status_now(core, inboxes).await {
        Ok(status) => {
            agents::list::remember_roster(core, &status.agents).await;
            Ok(MeshStatus { queued, ..status })
        }
        Err(error) if error.is_out_of_reach() => {
            let agents = agents::list::last_roster(core).await?.unwrap_or_default();
            let waiting = agents.iter().map(|seen| seen.waiting).sum();
            let out_of_reach = Some(error.to_string());
            Ok(MeshStatus { agents, waiting, queued, out_of_reach, ..MeshStatus::default() })
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) async fn coordination(
    core: &Core,
    status: &mut MeshStatus,
) -> Result<Option<(Vec<RepositoryReservations>, Vec<Command>)>, StoreError> {
    if status.out_of_reach.is_some() {
        return Ok(None);
    }
    let everything = ReservationFilter::default();
    match tokio::try_join!(reservations::list::reservations(core, &everything), order::commands(core, None)) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_out_of_reach() => {
            status.out_of_reach = Some(error.to_string());
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

async fn status_now(core: &Core, inboxes: &Inboxes) -> Result<MeshStatus, StoreError> {
    let mut status = MeshStatus::default();
    let mut looks = pin!(agents::list::of_each(
        core,
        agents::list::summaries(core).await?,
        |PrefetchedAgent { name, agent, beside }| async move {
            let seen = match agent {
                Ok(agent) => presence::seen_beside(core, inboxes, agent, &beside).await,
                Err(damage) => Err(damage),
            };
            (name, seen, beside.mail)
        }
    ));
    while let Some((name, seen, mail)) = looks.next().await {
        match seen {
            Ok(seen) => status.agents.push(seen),
            Err(StoreError::Damaged { what, why }) => {
                status.damaged.push(format!("{what}: {why}"));
                continue;
            }
            Err(error) => return Err(error),
        }
        match mail {
            PrefetchedMail::Nothing => continue,
            PrefetchedMail::Counted(messages) => {
                status.waiting += messages;
                status.counted += messages;
                continue;
            }
            PrefetchedMail::Unknown => {}
        }
        let inbox = inboxes.of(&name);
        let inbox = inbox.lock().await;
        status.waiting += inbox.open.len();
        if inbox.damage > 0 {
            let (lines, were) = if inbox.damage == 1 { ("line", "was") } else { ("lines", "were") };
            status.damaged.push(format!("{}: {} damaged {lines} {were} skipped", keys::inbox(&name), inbox.damage));
        }
        let now = core.machine.now();
        status.held.extend(stuck(&name, &inbox, |history| history.held(now)));
        status.undeliverable.extend(stuck(&name, &inbox, |history| history.undeliverable.as_deref()));
    }
    agents::list::note_what_their_user_says(core, &mut status.agents).await?;
    Ok(status)
}

/// The open messages of an inbox that go no further for a reason, by their sender.
fn stuck(to: &AgentName, inbox: &Inbox, why: impl Fn(&DeliveryHistory) -> Option<&str>) -> Vec<StuckMail> {
    let mut stuck: BTreeMap<AgentName, StuckMail> = BTreeMap::new();
    for slot in inbox.open.all() {
        let Some(reason) = why(&slot.history) else { continue };
        let from = slot.header.from.clone();
        let none = || StuckMail { from: from.clone(), to: to.clone(), messages: 0, reason: String::new() };
        let mail = stuck.entry(from.clone()).or_insert_with(none);
        mail.messages += 1;
        reason.clone_into(&mut mail.reason);
    }
    stuck.into_values().collect()
}

async fn histories(core: &Core, owners: &[AgentName], id: MessageId) -> Result<Option<MessageStatus>, StoreError> {
    let mut looks = pin!(agents::list::of_each(core, owners.to_vec(), |owner: AgentName| async move {
        let Some(kept) = kept::one_of(core, &owner, id).await? else { return Ok(None) };
        let recipient = recipient_status(core, &owner, &kept).await?;
        Ok::<_, StoreError>(Some((kept.message, recipient)))
    }));
    let mut status: Option<MessageStatus> = None;
    while let Some(found) = looks.next().await {
        let Some((message, recipient)) = found? else { continue };
        match &mut status {
            Some(status) => status.recipients.push(recipient),
            None => status = Some(MessageStatus { message, recipients: vec![recipient] }),
        }
    }
    Ok(status)
}

/// What became of a message with the owner of the inbox that it is in.
pub(crate) async fn recipient_status(
    core: &Core,
    owner: &AgentName,
    kept: &KeptMessage,
) -> Result<RecipientStatus, StoreError> {
    let KeptMessage { message, history, .. } = kept;
    Ok(RecipientStatus {
        awaits: pass::awaits(core, owner, history, message.priority).await?,
        to: owner.clone(),
        stored: message.at,
        history: history.clone(),
    })
}
