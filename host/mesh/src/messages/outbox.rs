//! The outbox: what could not be handed to the servers waits in this machine's own store, and is sent when
//! they can be reached again, by whichever process of the machine comes to it first.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError, SwapError, reasons};

use crate::agents::Presence;
use crate::agents::adopt;
use crate::core::Core;
use crate::messages::Message;
use crate::messages::address;
use crate::messages::receipt::{DeliveryHistory, DeliveryStatus, Reached, RecipientStatus};
use crate::messages::send::{Reach, Sending, Try};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::storage::{keys, records};
use crate::{AddressError, Mesh, SendError, Sent, SentTo};

/// How the outbox is called in the history of what waits in it.
const ROUTE: &str = "outbox";
/// How many times, and how far apart, a sender looks whether another process has sent what was said before.
/// Whoever went on at once would put more behind it than it gets away. It looks, and is not only told when something is
/// sent: of a process that was killed nobody tells, and then it is this one's to send.
const MOST_LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A message in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The message.
    pub id: MessageId,
    /// When it was sent.
    pub at: Instant,
    /// Who sent it.
    pub from: AgentName,
    /// To whom it is still to be sent, as the sender wrote it.
    pub to: Vec<String>,
    /// What it is about.
    pub subject: String,
    /// Why it waits, where that is something else than servers that cannot be reached.
    pub refused: Option<String>,
    /// To whom it cannot be sent, and why.
    pub returned: Vec<(String, String)>,
}

/// Whether something waits in the outbox after it was looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outbox {
    /// Everything was sent, or could not be and never will.
    Done,
    /// Something waits that is not taken yet.
    Waits,
    /// Something waits, and another process is at it.
    IsSent,
}

/// Whether something may be sent now, as far as the outbox has found out just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Nothing speaks against it.
    Open,
    /// The servers cannot be reached, and whatever is sent now waits behind the rest.
    Blocked,
    /// What the same sender said before is not sent yet: another process is at it, or the servers do not take it.
    Busy,
}

/// One sending that waits, as it is kept under `outbox/NUMBER-ID`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Outgoing {
    #[serde(flatten)]
    sending: Sending,
    /// To whom it is still to be sent.
    to: Vec<String>,
    /// Whether they were named.
    #[serde(default)]
    reach: Reach,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stored: Vec<AgentName>,
    /// Why the servers did not take it when it was tried last, though they were there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// To whom it cannot be sent, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    returned: Vec<(String, String)>,
    /// Whether all of it is done that can be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    done: bool,
}

impl Mesh {
    /// Puts a message behind what another process is just sending, which sends it too, unless it has ended
    /// meanwhile. What does not come to its turn soon is queued.
    pub(crate) async fn queue_behind(&self, sending: Sending, to: &[String], reach: Reach) -> Result<Sent, SendError> {
        let name = sending.id.to_string();
        let sent = Sent::of(&sending);
        let mut sent = queue(&self.core, sending, to, reach, sent).await?;
        let round = async {
            let mut looks = 0;
            loop {
                // It may have looked for the last time before this was put there.
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

    /// Sends what waits, and says whether what a sender says now can follow what it said before. That something
    /// cannot be sent yet is worth a line, and no more.
    pub(crate) async fn send_what_waits_before(&self, sender: &AgentName) -> Way {
        if !self.core.topology.may_be_out_of_reach() {
            return Way::Open;
        }
        let waits = match self.send_what_waits().await {
            Ok(Outbox::Done) => return Way::Open,
            Ok(Outbox::Waits | Outbox::IsSent) => waits_for_its_turn(&self.core, sender).await,
            Err(error) => Err(error),
        };
        match waits {
            Ok(true) => Way::Busy,
            Ok(false) => Way::Open,
            Err(error) => {
                let way = if error.is_out_of_reach() { Way::Blocked } else { Way::Open };
                let error: &dyn std::error::Error = &error;
                tracing::debug!(error, "the outbox waits");
                way
            }
        }
    }

    /// Sends what waits, oldest first, unless another process of this machine is at it. Fails where the
    /// servers cannot be reached, and leaves what it has not sent.
    pub(crate) async fn send_what_waits(&self) -> Result<Outbox, StoreError> {
        let mut waits = self.core.local.list(&keys::outbox()).await?;
        let mut outbox = Outbox::Done;
        while !waits.is_empty() {
            let Some(hold) = self.core.local.hold(&keys::draining()).await? else { return Ok(Outbox::IsSent) };
            let left = self.send_everything().await?;
            drop(hold);
            outbox = if left.held_up.is_empty() { Outbox::Done } else { Outbox::Waits };
            // Looked at once more now that it is given up: who put something there meanwhile left it to us.
            waits = self.core.local.list(&keys::outbox()).await?;
            waits.retain(|key| !left.keys.contains(key));
        }
        Ok(outbox)
    }

    /// Goes through the outbox once, under the hold. What the servers do not take now holds up what its sender
    /// said afterwards, and nobody else.
    async fn send_everything(&self) -> Result<Left, StoreError> {
        let mut left = Left { keys: Vec::new(), held_up: Vec::new() };
        // Listed under the hold: what another process has sent is not there any more.
        for key in self.core.local.list(&keys::outbox()).await? {
            let Some((revision, mut outgoing)) = records::load::<Outgoing>(self.core.local.as_ref(), &key).await?
            else {
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
                    // Nobody else changes it under the hold; a hold that was lost is somebody else's to go on by.
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

    /// Sends one message to whoever has not got it. What can never be sent comes back.
    async fn send_again(&self, outgoing: &mut Outgoing) -> Result<(), StoreError> {
        let from = outgoing.sending.from.clone();
        // Its name is another machine's to speak for by now.
        if !from.is_shell() && adopt::unless_adopted(&self.core, &self.remote, Some(from.clone())).await.is_none() {
            let reason = format!("`{from}` lives on another machine now, and only there somebody speaks for it");
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
                // The others are tried nevertheless.
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

pub(crate) async fn queued(core: &Core) -> Result<Vec<Queued>, StoreError> {
    let mut all = Vec::new();
    for key in core.local.list(&keys::outbox()).await? {
        let Some((_, outgoing)) = records::load::<Outgoing>(core.local.as_ref(), &key).await? else { continue };
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

/// Keeps a message on this machine for those who have not got it.
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
        let mate = name.in_team(sending.from.team()).ok();
        if !stored.contains(&name) && mate.is_none_or(|mate| !stored.contains(&mate)) && !waiting.contains(&name) {
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

/// Whether something of this sender's is still to be sent.
async fn waits_for_its_turn(core: &Core, sender: &AgentName) -> Result<bool, StoreError> {
    for key in core.local.list(&keys::outbox()).await? {
        if let Some((_, outgoing)) = records::load::<Outgoing>(core.local.as_ref(), &key).await?
            && outgoing.sending.from == *sender
            && !outgoing.done
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What came back stays for as long as settled mail does, so that its sender may see it.
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

/// A message of this machine's outbox, and where it stands with those who have not got it. None where it
/// is not there, or is not for the asker's eyes.
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
    let Some((_, outgoing)) = records::load::<Outgoing>(core.local.as_ref(), &key).await? else {
        return Ok(None);
    };
    if asker.agent() != Some(&outgoing.sending.from) && !asker.is_person() {
        return Ok(None);
    }
    let at = outgoing.sending.at;
    let refused = outgoing.refused.map(|why| serde_json::json!({ "refused": why }));
    let status = |to: &str, undeliverable: Option<String>| {
        let reached = Reached { at, route: ROUTE.to_owned(), evidence: refused.clone() };
        let history = DeliveryHistory {
            reached: [(DeliveryStatus::Queued, reached)].into(),
            undeliverable,
            ..DeliveryHistory::default()
        };
        to.parse().ok().map(|to| RecipientStatus { to, stored: at, history })
    };
    let waiting = outgoing.to.iter().filter_map(|to| status(to, None));
    let returned = outgoing.returned.iter().filter_map(|(to, why)| status(to, Some(why.clone())));
    let recipients: Vec<RecipientStatus> = waiting.chain(returned).collect();
    let mut message = outgoing.sending.as_message();
    if let Some(first) = recipients.first() {
        message.to = first.to.clone();
    }
    Ok(Some((message, recipients)))
}

/// What is left in the outbox after a round.
struct Left {
    /// What came back, which its sender may still look at, and what waits.
    keys: Vec<store::Key>,
    /// From whom the servers did not take something that they may take later.
    held_up: Vec<AgentName>,
}

/// Whether nothing else could be sent either: the servers cannot be reached, or this machine's own folder is in trouble.
fn ends_the_round(error: &StoreError) -> bool {
    match error {
        StoreError::Server { .. } => error.is_out_of_reach(),
        StoreError::Io { .. } | StoreError::Injected(_) => true,
        StoreError::Damaged { .. } | StoreError::Elsewhere { .. } | StoreError::Unfit { .. } => false,
    }
}

/// The number of a key of the outbox.
fn number_of(key: &store::Key) -> Option<u64> {
    key.segments().last()?.split_once('-')?.0.parse().ok()
}
