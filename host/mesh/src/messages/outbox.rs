//! The outbox: messages that could not be sent to the NATS servers wait in this machine's own store. The first
//! process of the machine that reaches the servers sends them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError, SwapError, reasons};

use crate::agents::Presence;
use crate::agents::adopt;
use crate::conversations::MailReader;
use crate::core::Core;
use crate::messages::Message;
use crate::messages::address;
use crate::messages::receipt::{DeliveryHistory, DeliveryStatus, Reached, RecipientStatus};
use crate::messages::send::{Reach, Sending, Try, WaitsFor};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::storage::{keys, records};
use crate::{AddressError, Mesh, SendError, Sent, SentTo};

/// The route's name in the delivery history of a queued message.
const ROUTE: &str = "outbox";
/// How many times, and how far apart, a sender checks whether another process has emptied the outbox. A sender that
/// did not wait would add to the outbox faster than it empties. It polls, because a killed process raises no event,
/// and its messages are then this process's to send.
const MOST_LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A message in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The message.
    pub id: MessageId,
    /// When it was sent.
    pub at: Instant,
    /// The sender.
    pub from: AgentName,
    /// The recipients that do not have it yet, as the sender wrote them.
    pub to: Vec<String>,
    pub subject: String,
    /// Why it waits, if the reason is not that the servers cannot be reached.
    pub refused: Option<String>,
    /// The recipients that it can never be sent to, and why.
    pub returned: Vec<(String, String)>,
}

/// The state of the outbox after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outbox {
    /// Every message was sent, or never can be.
    Done,
    /// A message waits that the servers have not taken.
    Waits,
    /// Messages wait, and another process is sending them.
    IsSent,
}

/// Whether a message may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutboxState {
    /// Yes.
    Open,
    /// The servers cannot be reached, or have no leader: queue it behind the rest.
    Blocked(WaitsFor),
    /// Earlier messages of the same sender still wait: another process is sending them, or the servers refuse them.
    Busy,
}

/// One outgoing message, stored under `outbox/NUMBER-ID`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Outgoing {
    #[serde(flatten)]
    sending: Sending,
    /// The recipients that do not have it yet.
    to: Vec<String>,
    /// Whether the sender named the recipients or sent to everyone.
    #[serde(default)]
    reach: Reach,
    /// The recipients that have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stored: Vec<AgentName>,
    /// Why the servers refused it at the last try, though they could be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// The recipients that it can never be sent to, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    returned: Vec<(String, String)>,
    /// Whether nothing more can be done for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    done: bool,
}

impl Mesh {
    /// Queues a message behind those that another process is sending. That process sends it too; if it has ended,
    /// this one does. A message whose turn does not come soon stays queued.
    pub(crate) async fn queue_behind(&self, sending: Sending, to: &[String], reach: Reach) -> Result<Sent, SendError> {
        let name = sending.id.to_string();
        let sent = Sent { waits_for: Some(WaitsFor::Turn), ..Sent::of(&sending) };
        let mut sent = queue(&self.core, sending, to, reach, sent).await?;
        let round = async {
            let mut looks = 0;
            loop {
                // The other process may have listed the outbox for the last time before this was added.
                let outbox = self.send_what_waits().await?;
                let left = self.core.local.list(&keys::outbox()).await?;
                let waits = left.iter().any(|key| key.as_str().ends_with(&name));
                match outbox {
                    Outbox::IsSent if waits && looks < MOST_LOOKS => {
                        looks += 1;
                        tokio::time::sleep(LOOK_AGAIN).await;
                    }
                    Outbox::IsSent | Outbox::Waits | Outbox::Done => return Ok::<bool, StoreError>(waits),
                }
            }
        };
        match round.await {
            Ok(true) => {}
            Ok(false) => sent.recipients.iter_mut().for_each(|recipient| recipient.status = DeliveryStatus::Stored),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::debug!(error, "the outbox waits");
            }
        }
        Ok(sent)
    }

    /// Sends what waits, and returns whether a new message of this sender may follow. Failing to send is only logged
    /// at debug level.
    pub(crate) async fn send_what_waits_before(&self, sender: &AgentName) -> OutboxState {
        if !self.core.topology.may_be_out_of_reach() {
            return OutboxState::Open;
        }
        let waits = match self.send_what_waits().await {
            Ok(Outbox::Done) => return OutboxState::Open,
            Ok(Outbox::Waits | Outbox::IsSent) => waits_for_its_turn(&self.core, sender).await,
            Err(error) => Err(error),
        };
        match waits {
            Ok(true) => OutboxState::Busy,
            Ok(false) => OutboxState::Open,
            Err(error) => {
                let by = error.is_out_of_reach().then(|| WaitsFor::end_of(&error));
                let way = by.map_or(OutboxState::Open, OutboxState::Blocked);
                let error: &dyn std::error::Error = &error;
                tracing::debug!(error, "the outbox waits");
                way
            }
        }
    }

    /// Sends what waits, oldest first, unless another process of this machine is doing so. Fails if the servers
    /// cannot be reached, and leaves what it has not sent.
    pub(crate) async fn send_what_waits(&self) -> Result<Outbox, StoreError> {
        let mut waits = self.core.local.list(&keys::outbox()).await?;
        let mut outbox = Outbox::Done;
        while !waits.is_empty() {
            let Some(hold) = self.core.local.hold(&keys::draining()).await? else { return Ok(Outbox::IsSent) };
            let left = self.send_everything().await?;
            drop(hold);
            outbox = if left.held_up.is_empty() { Outbox::Done } else { Outbox::Waits };
            // Listed again after the hold is released: a process that added a message meanwhile left it to us.
            waits = self.core.local.list(&keys::outbox()).await?;
            waits.retain(|key| !left.keys.contains(key));
        }
        Ok(outbox)
    }

    /// Goes through the outbox once, under the hold. A message that the servers refuse for now holds up later
    /// messages of the same sender only.
    async fn send_everything(&self) -> Result<Left, StoreError> {
        let mut left = Left { keys: Vec::new(), held_up: Vec::new() };
        // Listed under the hold: what another process has sent is gone from the list.
        for key in self.core.local.list(&keys::outbox()).await? {
            let Some((revision, mut outgoing)) = load(&self.core, &key).await? else {
                // Nothing is known of it: it stays where it is and holds up nobody.
                left.keys.push(key);
                continue;
            };
            if outgoing.done {
                forget_when_old(&self.core, &key, revision, &outgoing).await?;
                left.keys.push(key);
                continue;
            }
            if left.held_up.contains(&outgoing.sending.from) {
                left.keys.push(key);
                continue;
            }
            let before = outgoing.clone();
            outgoing.refused = None;
            let outcome = self.send_again(&mut outgoing).await;
            outgoing.done = outcome.is_ok();
            if let Err(error) = &outcome
                && !ends_the_round(error)
            {
                outgoing.refused = Some(reasons(error));
            }
            let next = if outgoing.done && outgoing.returned.is_empty() { None } else { Some(&outgoing) };
            if next != Some(&before) {
                let value = next.map(records::json);
                match self.core.local.swap(&key, Some(revision), value.as_deref(), Durability::Synced).await {
                    // No other process changes it under the hold. If the hold was lost, its new owner goes on.
                    Ok(_) | Err(SwapError::Changed { .. }) => {}
                    Err(SwapError::Store(error)) => return Err(error),
                }
            }
            match outcome {
                Ok(()) if outgoing.returned.is_empty() => {}
                Ok(()) => left.keys.push(key),
                Err(error) if ends_the_round(&error) => return Err(error),
                Err(_) => {
                    left.held_up.push(outgoing.sending.from);
                    left.keys.push(key);
                }
            }
        }
        self.inboxes.forget_what_is_there();
        Ok(left)
    }

    /// Sends one message to the recipients that do not have it. Recipients that can never have it are `returned`.
    async fn send_again(&self, outgoing: &mut Outgoing) -> Result<(), StoreError> {
        let from = outgoing.sending.from.clone();
        // Another machine has adopted the sender's name.
        if !from.is_shell() && adopt::unless_adopted(&self.core, &self.remote, Some(from.clone())).await.is_none() {
            let reason = format!("`{from}` lives on another machine now, and only that machine may send in its name");
            outgoing.returned.extend(std::mem::take(&mut outgoing.to).into_iter().map(|to| (to, reason.clone())));
            return Ok(());
        }
        let mut recipients = Vec::new();
        for address in &outgoing.to {
            match address::resolve(&self.core, &self.remote, address, Some(&from)).await {
                Ok(name) => recipients.push((address.clone(), name)),
                Err(AddressError::Store(error)) if !error.is_for_good() => return Err(error),
                Err(error) => outgoing.returned.push((address.clone(), reasons(&error))),
            }
        }
        let mut sent = Sent::of(&outgoing.sending);
        let stored = std::mem::take(&mut outgoing.stored);
        sent.recipients.extend(stored.into_iter().map(|to| SentTo {
            to,
            status: DeliveryStatus::Stored,
            presence: Presence::Away,
            held: None,
            duplicate: false,
        }));
        let outcome = loop {
            let has_it = |name: &AgentName| sent.recipients.iter().any(|recipient| recipient.to == *name);
            recipients.retain(|(_, name)| !has_it(name));
            let names: Vec<AgentName> = recipients.iter().map(|(_, name)| name.clone()).collect();
            if names.is_empty() && sent.recipients.is_empty() {
                break Ok(());
            }
            match self.send_to(&outgoing.sending, &names, outgoing.reach, Try::Again, &mut sent).await {
                Ok(()) => break Ok(()),
                // The other recipients are still tried.
                Err(SendError::Store { to, source, .. }) if source.is_for_good() => {
                    let reason = reasons(&source);
                    let is_for_it = |(_, name): &mut (String, AgentName)| *name == to;
                    let back = recipients.extract_if(.., is_for_it).map(|(address, _)| (address, reason.clone()));
                    outgoing.returned.extend(back);
                }
                Err(SendError::Store { source, .. } | SendError::Unreadable(source) | SendError::NotQueued(source))
                    if !source.is_for_good() =>
                {
                    break Err(source);
                }
                Err(error) => {
                    let reason = reasons(&error);
                    let back = std::mem::take(&mut recipients).into_iter();
                    outgoing.returned.extend(back.map(|(address, _)| (address, reason.clone())));
                    break Ok(());
                }
            }
        };
        outgoing.stored = sent.recipients.into_iter().map(|recipient| recipient.to).collect();
        recipients.retain(|(_, name)| !outgoing.stored.contains(name));
        outgoing.to = recipients.into_iter().map(|(address, _)| address).collect();
        outcome
    }
}

/// Reads a message of the outbox. None if its record is empty or gone, or damaged: that is only logged, so that it
/// stands in no other message's way.
async fn load(core: &Core, key: &store::Key) -> Result<Option<(store::Revision, Outgoing)>, StoreError> {
    match records::load::<Outgoing>(core.local.as_ref(), key).await {
        Err(error @ StoreError::Damaged { .. }) => {
            tracing::warn!(%key, %error, "a message in the outbox cannot be read and is left there");
            Ok(None)
        }
        found => found,
    }
}

pub(crate) async fn queued(core: &Core) -> Result<Vec<Queued>, StoreError> {
    let mut all = Vec::new();
    for key in core.local.list(&keys::outbox()).await? {
        let Some((_, outgoing)) = load(core, &key).await? else { continue };
        all.push(Queued {
            id: outgoing.sending.id,
            at: outgoing.sending.at,
            subject: outgoing.sending.draft.subject_or_default(),
            from: outgoing.sending.from,
            to: outgoing.to,
            refused: outgoing.refused,
            returned: outgoing.returned,
        });
    }
    Ok(all)
}

/// Queues a message on this machine for the recipients that do not have it. No address is a channel, and if anybody
/// has the message, the addresses are the recipients' full names.
pub(crate) async fn queue(
    core: &Core,
    sending: Sending,
    to: &[String],
    reach: Reach,
    mut sent: Sent,
) -> Result<Sent, SendError> {
    let stored: Vec<AgentName> = sent.recipients.iter().map(|recipient| recipient.to.clone()).collect();
    let mut waiting = Vec::new();
    for address in to {
        let name: AgentName = address.parse().map_err(AddressError::Invalid)?;
        if !stored.contains(&name) && !waiting.contains(&name) {
            waiting.push(name);
        }
    }
    let to = waiting.iter().map(ToString::to_string).collect();
    let outgoing = Outgoing { to, reach, stored, refused: None, returned: Vec::new(), done: false, sending };
    let there = core.local.list(&keys::outbox()).await.map_err(SendError::NotQueued)?;
    let number = there.last().and_then(number_of).map_or(0, |last| last + 1);
    let key = keys::outgoing(number, outgoing.sending.id);
    let kept = core.local.swap(&key, None, Some(&records::json(&outgoing)), Durability::Synced).await;
    match kept {
        Ok(_) => {}
        Err(SwapError::Store(error)) => return Err(SendError::NotQueued(error)),
        Err(SwapError::Changed { .. }) => unreachable!("nothing else has this id"),
    }
    sent.recipients.extend(waiting.into_iter().map(|to| SentTo {
        to,
        status: DeliveryStatus::Queued,
        presence: Presence::Away,
        held: None,
        duplicate: false,
    }));
    Ok(sent)
}

/// Whether an earlier message of this sender still waits.
async fn waits_for_its_turn(core: &Core, sender: &AgentName) -> Result<bool, StoreError> {
    for key in core.local.list(&keys::outbox()).await? {
        if let Some((_, outgoing)) = load(core, &key).await?
            && outgoing.sending.from == *sender
            && !outgoing.done
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deletes a returned message after the time that settled mail is kept; until then its sender can see it.
async fn forget_when_old(
    core: &Core,
    key: &store::Key,
    revision: store::Revision,
    outgoing: &Outgoing,
) -> Result<(), StoreError> {
    if core.machine.now().since(outgoing.sending.at) < core.limits.keep {
        return Ok(());
    }
    match core.local.swap(key, Some(revision), None, Durability::Process).await {
        Ok(_) | Err(SwapError::Changed { .. }) => Ok(()),
        Err(SwapError::Store(error)) => Err(error),
    }
}

/// A message in this machine's outbox, with its status for each recipient that does not have it. None if it is
/// not there, or the asker may not see it.
pub(crate) async fn in_outbox(
    core: &Core,
    asker: &crate::sessions::Principal,
    id: MessageId,
) -> Result<Option<(Message, Vec<RecipientStatus>)>, StoreError> {
    if !core.topology.may_be_out_of_reach() {
        return Ok(None);
    }
    let name = id.to_string();
    let there = core.local.list(&keys::outbox()).await?;
    let Some(key) = there.into_iter().find(|key| key.as_str().ends_with(&name)) else { return Ok(None) };
    let Some((_, outgoing)) = load(core, &key).await? else { return Ok(None) };
    if asker.agent() != Some(&outgoing.sending.from) && !asker.is_person() {
        return Ok(None);
    }
    Ok(Some(as_status(outgoing)))
}

/// The messages in this machine's outbox that a reader may see, each with its status for each recipient that does not have
/// it. What one sends stays little while the servers can be reached, so all of it is read.
pub(crate) async fn visible_to(
    core: &Core,
    reader: &MailReader,
) -> Result<Vec<(Message, Vec<RecipientStatus>)>, StoreError> {
    let mut visible = Vec::new();
    if !core.topology.may_be_out_of_reach() {
        return Ok(visible);
    }
    for key in core.local.list(&keys::outbox()).await? {
        let Some((_, outgoing)) = load(core, &key).await? else { continue };
        let may_see = match reader {
            MailReader::User => true,
            MailReader::Agent(agent) => outgoing.sending.from == *agent,
        };
        if may_see && !outgoing.done {
            visible.push(as_status(outgoing));
        }
    }
    Ok(visible)
}

/// A message as it waits here, and its status for each recipient that does not have it.
fn as_status(outgoing: Outgoing) -> (Message, Vec<RecipientStatus>) {
    let at = outgoing.sending.at;
    let refused = outgoing.refused.map(|why| serde_json::json!({ "refused": why }));
    let status = |to: &str, undeliverable: Option<String>| {
        let reached = Reached { at, route: ROUTE.to_owned(), evidence: refused.clone() };
        let history = DeliveryHistory {
            reached: [(DeliveryStatus::Queued, reached)].into(),
            undeliverable,
            ..DeliveryHistory::default()
        };
        to.parse().ok().map(|to| RecipientStatus { to, stored: at, history, awaits: None })
    };
    let waiting = outgoing.to.iter().filter_map(|to| status(to, None));
    let returned = outgoing.returned.iter().filter_map(|(to, why)| status(to, Some(why.clone())));
    let recipients: Vec<RecipientStatus> = waiting.chain(returned).collect();
    let mut message = outgoing.sending.as_message();
    if let Some(first) = recipients.first() {
        message.to = first.to.clone();
    }
    (message, recipients)
}

/// What remains in the outbox after a round.
struct Left {
    /// Returned messages, which their senders may still look at, waiting ones, and what cannot be read.
    keys: Vec<store::Key>,
    /// Senders of messages that the servers refused for now.
    held_up: Vec<AgentName>,
}

/// Whether no other message could be sent either: the servers or this machine's own data folder cannot be used.
fn ends_the_round(error: &StoreError) -> bool {
    match error {
        StoreError::Server { .. } => error.is_out_of_reach(),
        StoreError::Io { .. } | StoreError::Injected(_) => true,
        StoreError::Damaged { .. } | StoreError::Elsewhere { .. } | StoreError::Unfit { .. } => false,
    }
}

/// The number in an outbox key.
fn number_of(key: &store::Key) -> Option<u64> {
    key.segments().last()?.split_once('-')?.0.parse().ok()
}
