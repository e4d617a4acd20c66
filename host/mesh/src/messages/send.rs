//! Sending: store first, notify afterwards.

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError};

use crate::Mesh;
use crate::agents;
use crate::agents::Presence;
use crate::agents::presence;
use crate::agents::remote_cache::RemoteCache;
use crate::core::Core;
use crate::delivery::chain;
use crate::delivery::loop_guard::next_trace;
use crate::delivery::wake_file;
use crate::delivery::wake_file::Ring;
use crate::event_hooks::HookCause;
use crate::messages::address;
use crate::messages::channel::{self, ChannelName};
use crate::messages::idempotency;
use crate::messages::idempotency::KeyedStore;
use crate::messages::inbox;
use crate::messages::kept;
use crate::messages::outbox;
use crate::messages::outbox::OutboxState;
use crate::messages::receipt::{DeliveryStatus, Event};
pub use crate::messages::send_error::SendError;
use crate::messages::{Draft, Message};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::sessions::{Principal, SessionRecord, Transport};
use crate::storage::{index_rule, keys, records};

/// The recipients of a broadcast. Its sender and agents that are offline are always left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// Only this team.
    pub team: Option<String>,
    /// Only agents of this harness.
    pub harness: Option<String>,
}

/// The result of sending a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// Message id, the same in every inbox.
    pub id: MessageId,
    /// The thread: the id of its first message, or a name.
    pub thread: String,
    /// The result for each recipient.
    pub recipients: Vec<SentTo>,
    /// What the queued ones among them wait for.
    pub waits_for: Option<WaitsFor>,
}

/// What a queued message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The servers can be reached and have no leader: they have to elect one.
    Election,
    /// The servers cannot be reached.
    Servers,
    /// Earlier messages of the same sender.
    Turn,
}

impl WaitsFor {
    pub(crate) fn end_of(error: &StoreError) -> WaitsFor {
        if error.awaits_election() { WaitsFor::Election } else { WaitsFor::Servers }
    }

    /// The reason as a clause, after "it waits on this machine until".
    pub fn as_str(self) -> &'static str {
        match self {
            WaitsFor::Election => "the servers have elected a leader",
            WaitsFor::Servers => "the servers can be reached",
            WaitsFor::Turn => "the servers have taken what was sent before it",
        }
    }
}

/// The result of sending a message to one recipient.
#[derive(Clone, Debug, PartialEq)]
pub struct SentTo {
    /// The recipient.
    pub to: AgentName,
    /// Its status: stored, or notified if a wake file was written.
    pub status: DeliveryStatus,
    /// The recipient's presence.
    pub presence: Presence,
    /// Why the recipient was not woken, if the loop guard stopped it.
    pub held: Option<String>,
    /// Whether it is a duplicate: the same message was stored before under the same idempotency key.
    pub duplicate: bool,
}

/// Whose mail the sender may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sight {
    /// Messages that the sender received or sent.
    Own,
    /// All mail: the sender is the user, who owns the files.
    All,
}

/// A message before it is in any inbox. It has the same id in all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sending {
    pub(crate) id: MessageId,
    pub(crate) at: Instant,
    pub(crate) from: AgentName,
    pub(crate) sight: Sight,
    pub(crate) draft: Draft,
    /// The event hook that sends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<HookCause>,
}

/// Whether a message may be in an inbox already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Try {
    /// No process has tried to store it.
    First,
    /// A process tried, and did not learn whether it was stored.
    Again,
}

impl Mesh {
    /// Sends a message to each of these addresses. All are resolved before anything is stored. If the servers
    /// cannot be reached, the message waits in this machine's outbox and is sent when they can.
    pub async fn send(&self, caller: &Principal, to: &[String], draft: Draft) -> Result<Sent, SendError> {
        let from = sender(caller)?;
        self.send_as_caused(caller, from, to, draft, None).await
    }

    /// The same in a name, and for an event hook if one sends it.
    pub(crate) async fn send_as_caused(
        &self,
        caller: &Principal,
        from: AgentName,
        to: &[String],
        draft: Draft,
        cause: Option<HookCause>,
    ) -> Result<Sent, SendError> {
        draft.validate()?;
        let sending = Sending { cause, ..sending_as(&self.core, from, caller, draft) };
        if to.is_empty() {
            return Err(SendError::Nobody);
        }
        let mut sent = Sent::of(&sending);
        // Queued messages of this sender come first.
        match self.send_what_waits_before(&sending.from).await {
            OutboxState::Open => {}
            OutboxState::Blocked(by) => {
                sent.waits_for = Some(by);
                let to = with_members(&self.core, &sending.from, to).await?;
                return outbox::queue(&self.core, sending, &to, Reach::Named, sent).await;
            }
            OutboxState::Busy => {
                let to = with_members(&self.core, &sending.from, to).await?;
                return self.queue_behind(sending, &to, Reach::Named).await;
            }
        }
        let (error, to): (SendError, Result<Vec<String>, &[String]>) = match self.resolved(&sending, to).await {
            Ok(recipients) => match self.send_to(&sending, &recipients, Reach::Named, Try::First, &mut sent).await {
                Ok(()) => return Ok(sent),
                Err(error) => (error, Ok(recipients.iter().map(ToString::to_string).collect())),
            },
            Err(error) => (error, Err(to)),
        };
        let Some(cause) = error.out_of_reach() else { return Err(error) };
        sent.waits_for = Some(WaitsFor::end_of(cause));
        let to = match to {
            Ok(recipients) => recipients,
            Err(typed) => with_members(&self.core, &sending.from, typed).await?,
        };
        outbox::queue(&self.core, sending, &to, Reach::Named, sent).await
    }

    /// The agents that these addresses mean, each once.
    async fn resolved(&self, sending: &Sending, to: &[String]) -> Result<Vec<AgentName>, SendError> {
        let mut recipients = Vec::new();
        for address in to {
            if ChannelName::is_meant(address) {
                for member in channel::recipients(&self.core, address, &sending.from).await? {
                    if !recipients.contains(&member) {
                        recipients.push(member);
                    }
                }
                continue;
            }
            let name = address::resolve(&self.core, &self.remote, address, Some(&sending.from)).await?;
            if !recipients.contains(&name) {
                recipients.push(name);
            }
        }
        Ok(recipients)
    }

    /// Sends a message to everyone in an audience.
    pub async fn broadcast(&self, caller: &Principal, audience: &Audience, draft: Draft) -> Result<Sent, SendError> {
        draft.validate()?;
        let sending = self::sending(&self.core, caller, draft)?;
        let mut recipients = Vec::new();
        for name in agents::list::names(&self.core).await? {
            let Some(agent) = agents::list::load_agent(&self.core, &name).await? else { continue };
            let in_team = audience.team.as_deref().is_none_or(|team| name.team() == Some(team));
            let in_harness =
                audience.harness.as_ref().is_none_or(|harness| agent.profile.harness.as_ref() == Some(harness));
            if name != sending.from
                && in_team
                && in_harness
                && presence::presence(&self.core, &agent).await? != Presence::Offline
            {
                recipients.push(name);
            }
        }
        if recipients.is_empty() {
            return Err(SendError::NobodyElse);
        }
        self.send_after_what_waits(sending, &recipients, Reach::Everyone).await
    }

    /// Sends a message to agents that are known to exist, after the sender's queued messages.
    async fn send_after_what_waits(
        &self,
        sending: Sending,
        recipients: &[AgentName],
        reach: Reach,
    ) -> Result<Sent, SendError> {
        let mut sent = Sent::of(&sending);
        let to = || -> Vec<String> { recipients.iter().map(ToString::to_string).collect() };
        match self.send_what_waits_before(&sending.from).await {
            OutboxState::Open => {
                self.send_to(&sending, recipients, reach, Try::First, &mut sent).await?;
                Ok(sent)
            }
            OutboxState::Blocked(by) => {
                sent.waits_for = Some(by);
                outbox::queue(&self.core, sending, &to(), reach, sent).await
            }
            OutboxState::Busy => self.queue_behind(sending, &to(), reach).await,
        }
    }

    /// Sends a notice in the name of an agent that has just done what it reports. The recipient must exist.
    pub(crate) async fn tell(
        &self,
        caller: &Principal,
        from: &AgentName,
        to: &AgentName,
        draft: Draft,
    ) -> Result<(), SendError> {
        draft.validate()?;
        let sending = sending_as(&self.core, from.clone(), caller, draft);
        self.send_after_what_waits(sending, std::slice::from_ref(to), Reach::Named).await.map(|_| ())
    }

    /// Stores a message for each recipient and wakes them, adding to `sent` as it goes.
    pub(crate) async fn send_to(
        &self,
        sending: &Sending,
        recipients: &[AgentName],
        reach: Reach,
        how: Try,
        sent: &mut Sent,
    ) -> Result<(), SendError> {
        let Sending { id, from, draft, cause, .. } = sending;
        let answered = match draft.reply_to {
            Some(id) => {
                Some(known_message(&self.core, sending.sight, from, id).await?.ok_or(SendError::UnknownReply(id))?)
            }
            None => None,
        };
        let works = match cause {
            Some(cause) => cause.agent.as_ref(),
            None => Some(from).filter(|from| !from.is_shell()),
        };
        let working_on = match works {
            Some(agent) => chain::working_on(&self.core, agent).await?,
            None => None,
        };
        let thread = draft.thread.clone().or_else(|| answered.as_ref().map(|message| message.thread.clone()));
        let known_as = |message: Message, id: MessageId| Message {
            id,
            trace: next_trace(id, working_on),
            thread: thread.clone().unwrap_or_else(|| id.to_string()),
            ..message
        };
        let bare = Message { to: from.clone(), broadcast: reach == Reach::Everyone, ..sending.as_message() };
        let mut message = known_as(bare, *id);
        sent.thread.clone_from(&message.thread);
        for to in recipients {
            message.to = to.clone();
            match self.store_and_ring(&message, how).await {
                Ok((first_id, outcome)) => {
                    if outcome.duplicate && sent.recipients.is_empty() {
                        // A sending that broke off half-way is completed under the id that its first recipients have.
                        message = known_as(message, first_id);
                        sent.id = first_id;
                        sent.thread.clone_from(&message.thread);
                    }
                    sent.recipients.push(outcome);
                }
                Err(not_stored) => {
                    let stored = sent.recipients.iter().map(|recipient| recipient.to.clone()).collect();
                    let to = message.to;
                    return Err(match not_stored {
                        NotStored::OtherUnderKey { key, older } => SendError::OtherUnderKey { key, to, older, stored },
                        NotStored::Store(source) => SendError::Store { to, stored, source },
                    });
                }
            }
        }
        if let Some(answered) = answered.filter(|answered| answered.to == message.from) {
            let event = Event::Status {
                status: DeliveryStatus::Acknowledged,
                route: "reply".to_owned(),
                evidence: Some(serde_json::json!({ "reply": sent.id })),
            };
            match inbox::receipt(&self.core, &answered.to, &[answered.id], &event, Durability::Synced).await {
                Ok(()) => {}
                // It waits in the outbox for nothing but this.
                Err(error) if reach == Reach::Named && error.is_out_of_reach() => return Err(error.into()),
                // Every recipient has the message: its sender must not send it again because of this.
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, id = %answered.id, "that a message was answered is not noted");
                }
            }
        }
        remember_sent(&self.core, &message, sent, cause.as_ref()).await;
        Ok(())
    }

    /// Stores a message in its recipient's inbox, then wakes the recipient. Returns the id under which it is
    /// stored: that of the older message if the same was stored before under the same idempotency key.
    async fn store_and_ring(&self, message: &Message, how: Try) -> Result<(MessageId, SentTo), NotStored> {
        let elsewhere = self.remote.presence(&message.to, self.core.machine.now());
        // The message will be stored: failing to look up its recipient is not an error of sending.
        let (presence, record) = match elsewhere {
            // It has wake files that this machine cannot write.
            Some(presence) => (presence, None),
            None => looked_at(&self.core, &self.remote, &message.to).await.unwrap_or_else(|error| {
                tracing::warn!(to = %message.to, %error, "the recipient could not be looked up");
                (Presence::Away, None)
            }),
        };
        let ring = Ring::of(message);
        // Decided before the message is stored, since a reader may take it at once.
        let held = wake_file::why_hold(&self.core, record.as_ref(), &ring).await.unwrap_or_else(|error| {
            tracing::warn!(to = %message.to, %error, "the loop guard could not look at the recipient's wakes");
            None
        });
        let with_hold = held.clone().map(|hold| Message { held: Some(hold), ..message.clone() });
        let message = with_hold.as_ref().unwrap_or(message);
        let kept = match (how, &message.idempotency_key) {
            (Try::Again, _) => idempotency::store_unless_there(&self.core, &self.inboxes, message).await?,
            (Try::First, Some(key)) => idempotency::store_once(&self.core, &self.inboxes, message, key).await?,
            (Try::First, None) => {
                records::append(self.core.shared.as_ref(), &keys::inbox(&message.to), message, Durability::Synced)
                    .await?;
                KeyedStore::Anew
            }
        };
        let first = match (kept, how) {
            (KeyedStore::Anew, _) => None,
            // An earlier try of this same sending stored it, so it is no duplicate.
            (KeyedStore::Before(id), Try::Again) if id == message.id => None,
            (KeyedStore::Before(id), _) => Some(id),
            (KeyedStore::NotOver(older), _) => {
                let key = message.idempotency_key.clone().unwrap_or_default();
                return Err(NotStored::OtherUnderKey { key, older });
            }
        };
        let mut outcome = SentTo {
            to: message.to.clone(),
            status: DeliveryStatus::Stored,
            presence,
            held: None,
            duplicate: first.is_some(),
        };
        if let (None, Some(hold)) = (first, &held) {
            wake_file::note_held(&self.core, &ring, &message.to, hold).await;
            outcome.held = Some(hold.reason.clone());
        } else {
            let notified = match first {
                None => wake_file::ring(&self.core, &message.to, record.as_ref(), &ring).await,
                Some(id) => idempotency::ring_for_earlier(&self.core, record.as_ref(), &message.to, id).await,
            };
            // The message is stored: failing to write the wake file is not an error of sending.
            match notified {
                Ok(true) => outcome.status = DeliveryStatus::Notified,
                Ok(false) => {}
                Err(error) => tracing::warn!(to = %message.to, %error, "the wake file could not be written"),
            }
        }
        Ok((first.unwrap_or(message.id), outcome))
    }
}

/// Addresses for the outbox: with a channel's members in its place, because only names can wait there.
async fn with_members(core: &Core, from: &AgentName, to: &[String]) -> Result<Vec<String>, SendError> {
    let mut all = Vec::new();
    for address in to {
        if !ChannelName::is_meant(address) {
            all.push(address.clone());
            continue;
        }
        match channel::recipients(core, address, from).await {
            Ok(members) => all.extend(members.iter().map(ToString::to_string)),
            Err(SendError::Unreadable(source)) if source.is_out_of_reach() => {
                return Err(SendError::ChannelOutOfReach { channel: address.parse()?, source });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

fn sending(core: &Core, caller: &Principal, draft: Draft) -> Result<Sending, SendError> {
    Ok(sending_as(core, sender(caller)?, caller, draft))
}

fn sending_as(core: &Core, from: AgentName, caller: &Principal, draft: Draft) -> Sending {
    let at = core.machine.now();
    let sight = if caller.is_person() { Sight::All } else { Sight::Own };
    Sending { id: core.new_id(at), at, from, sight, draft: draft.without_blanks(), cause: None }
}

/// A recipient's presence, and its session on this machine.
async fn looked_at(
    core: &Core,
    remote: &RemoteCache,
    name: &AgentName,
) -> Result<(Presence, Option<SessionRecord>), StoreError> {
    let Some(agent) = agents::list::load_agent(core, name).await? else { return Ok((Presence::Away, None)) };
    let (traces, presence, _) = presence::judged(core, &agent).await?;
    if core.topology.has_other_machines() && agent.machine != core.machine.name() {
        remote.note_presence(name, core.machine.now(), presence);
    }
    Ok((presence, traces.record))
}

/// Adds the message to its sender's `sent` log and to the event log. The message itself is safe already.
async fn remember_sent(core: &Core, message: &Message, sent: &Sent, cause: Option<&HookCause>) {
    let line = SentLine {
        id: sent.id,
        at: message.at,
        to: sent.recipients.iter().map(|recipient| recipient.to.clone()).collect(),
        subject: message.subject.clone(),
        thread: message.thread.clone(),
    };
    let log = keys::sent(&message.from);
    if let Err(error) = core.event_log.write_behind.log_line(&log, &line).await {
        tracing::warn!(id = %sent.id, %error, "a message is missing from its sender's `sent` log");
    }
    let anew: Vec<&AgentName> =
        sent.recipients.iter().filter(|recipient| !recipient.duplicate).map(|recipient| &recipient.to).collect();
    if !anew.is_empty() {
        let hook = cause.map(|cause| cause.hook.as_str());
        let event =
            SentEvent { id: sent.id, from: &message.from, to: &anew, event: "sent", at: core.machine.now(), hook };
        core.event_log.note_line(event.event, &event).await;
    }
}

/// The recipients of a message that an agent sent.
pub(crate) async fn recipients_of(core: &Core, from: &AgentName, id: MessageId) -> Result<Vec<AgentName>, StoreError> {
    let log = keys::sent(from);
    let mut to = Vec::new();
    let mut take = |bytes: &[u8]| {
        if let Ok(line) = serde_json::from_slice::<SentLine>(bytes)
            && line.id == id
        {
            to.extend(line.to);
        }
    };
    // Unwritten lines are looked at first, because they may be written meanwhile.
    for line in core.event_log.write_behind.unwritten(&log) {
        take(&line);
    }
    for entry in core.shared.find(&log, &[index_rule::of_message(id)]).await? {
        take(&entry.bytes);
    }
    to.sort();
    to.dedup();
    Ok(to)
}

/// A message that the asker received or sent. The user's own command line may name any message.
pub(crate) async fn known_message(
    core: &Core,
    sight: Sight,
    asker: &AgentName,
    id: MessageId,
) -> Result<Option<Message>, StoreError> {
    if let Some(kept) = kept::one_of(core, asker, id).await? {
        return Ok(Some(kept.message));
    }
    let mut owners = recipients_of(core, asker, id).await?;
    if owners.is_empty() && sight == Sight::All {
        owners = agents::list::names(core).await?;
    }
    Ok(kept::of_any(core, owners, id).await?.map(|kept| kept.message))
}

impl Sending {
    /// The message before it has recipients.
    pub(crate) fn as_message(&self) -> Message {
        let Sending { id, at, from, sight: _, draft, cause: _ } = self.clone();
        Message {
            id,
            at,
            subject: draft.subject_or_default(),
            body: draft.body,
            thread: draft.thread.unwrap_or_else(|| id.to_string()),
            reply_to: draft.reply_to,
            priority: draft.priority,
            tags: draft.tags,
            idempotency_key: draft.idempotency_key,
            broadcast: false,
            trace: next_trace(id, None),
            held: None,
            to: from.clone(),
            from,
        }
    }
}

impl Sent {
    /// The result before any recipient has it.
    pub(crate) fn of(sending: &Sending) -> Sent {
        let thread = sending.draft.thread.clone().unwrap_or_else(|| sending.id.to_string());
        Sent { id: sending.id, thread, recipients: Vec::new(), waits_for: None }
    }
}

/// Whether a message was addressed to names or to everyone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reach {
    #[default]
    Named,
    Everyone,
}

#[derive(Debug)]
enum NotStored {
    OtherUnderKey { key: String, older: MessageId },
    Store(StoreError),
}

impl From<StoreError> for NotStored {
    fn from(error: StoreError) -> NotStored {
        NotStored::Store(error)
    }
}

/// One line of a sender's `sent` log.
#[derive(Serialize, Deserialize)]
pub(crate) struct SentLine {
    pub(crate) id: MessageId,
    pub(crate) at: Instant,
    pub(crate) to: Vec<AgentName>,
    subject: String,
    thread: String,
}

/// The event log's line for a sent message.
#[derive(Serialize)]
struct SentEvent<'a> {
    id: MessageId,
    from: &'a AgentName,
    to: &'a [&'a AgentName],
    event: &'static str,
    at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<&'a str>,
}

/// The sender: the caller's agent, or the shell if a command line has no agent.
fn sender(caller: &Principal) -> Result<AgentName, SendError> {
    match (&caller.agent, caller.transport) {
        (Some(agent), _) => Ok(agent.clone()),
        (None, Transport::CommandLine) => Ok(AgentName::shell()),
        (None, Transport::Stdio | Transport::Http) => Err(SendError::NotRegistered),
    }
}
