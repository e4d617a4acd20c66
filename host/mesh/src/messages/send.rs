//! Sending: store first, tell afterwards.

use serde::{Deserialize, Serialize};
use store::{Durability, Position, StoreError};

use crate::agents;
use crate::agents::presence;
use crate::agents::remote_cache::RemoteCache;
use crate::agents::{Agent, Presence};
use crate::core::Core;
use crate::delivery::chain;
use crate::delivery::loop_guard::next_trace;
use crate::delivery::wake_file;
use crate::delivery::wake_file::{Rang, Ring};
use crate::messages::address;
use crate::messages::idempotency;
use crate::messages::idempotency::Kept;
use crate::messages::inbox;
use crate::messages::inbox::contains;
use crate::messages::outbox;
use crate::messages::outbox::Way;
use crate::messages::receipt::{DeliveryStatus, Event};
use crate::messages::{Draft, InvalidDraft, Message};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::sessions::{Principal, SessionRecord, Transport};
use crate::storage::{keys, records};
use crate::{AddressError, Mesh};

/// Whom a broadcast goes to. Always without its sender and without agents that are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// Only this team.
    pub team: Option<String>,
    /// Only agents of this harness.
    pub harness: Option<String>,
}

/// What became of a sending.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// The message. One id in every inbox.
    pub id: MessageId,
    /// The conversation that it belongs to.
    pub thread: String,
    /// Each recipient.
    pub recipients: Vec<SentTo>,
}

/// What became of a sending with one recipient.
#[derive(Clone, Debug, PartialEq)]
pub struct SentTo {
    /// The recipient.
    pub to: AgentName,
    /// How far it got: stored, or notified where a wake file was written.
    pub status: DeliveryStatus,
    /// How present the recipient is.
    pub presence: Presence,
    /// Why nobody was woken, where waking stopped.
    pub held: Option<String>,
    /// The same had been stored before under the same idempotency key: this is that message.
    pub duplicate: bool,
}

/// Why nothing was sent. Nothing was stored for anybody, except where `Store` or `OtherUnderKey` names them.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The draft is not a message.
    #[error(transparent)]
    Draft(#[from] InvalidDraft),
    /// An address leads to nobody.
    #[error(transparent)]
    Address(#[from] crate::AddressError),
    /// The caller is not registered.
    #[error("you have not registered")]
    NotRegistered,
    /// Nobody was named.
    #[error("the message names no recipient")]
    Nobody,
    /// It was for everybody in an audience, and there is nobody else in it.
    #[error("there is nobody else to send it to")]
    NobodyElse,
    /// The message that it answers is in nobody's mail that the caller may see.
    #[error("no message `{0}` was sent to you or by you")]
    UnknownReply(MessageId),
    /// The sender has used the key for another message to the same recipient.
    #[error("the idempotency key `{key}` stands for another message to `{to}`, `{older}`")]
    OtherUnderKey {
        /// The key.
        key: String,
        /// For whom.
        to: AgentName,
        /// The message that lies there under that key.
        older: MessageId,
        /// Who had been sent the new one before that was noticed.
        stored: Vec<AgentName>,
    },
    /// The store did not take it.
    #[error("the store did not take the message for `{to}`")]
    Store {
        /// For whom.
        to: AgentName,
        /// Who had been sent it before the failure.
        stored: Vec<AgentName>,
        /// Why.
        #[source]
        source: store::StoreError,
    },
    /// The store failed before anything was written.
    #[error("the store could not be read")]
    Unreadable(#[from] store::StoreError),
    /// The servers cannot be reached, and this machine's own folder did not take the message either.
    #[error("the servers cannot be reached, and the message could not be kept here until they can")]
    NotQueued(#[source] store::StoreError),
}

impl SendError {
    /// Whether the servers could not be reached, so that the same sending may succeed later.
    pub(crate) fn is_out_of_reach(&self) -> bool {
        match self {
            SendError::Address(AddressError::Store(error))
            | SendError::Store { source: error, .. }
            | SendError::Unreadable(error) => error.is_out_of_reach(),
            SendError::Address(
                AddressError::Invalid(_) | AddressError::Unknown { .. } | AddressError::Ambiguous { .. },
            )
            | SendError::Draft(_)
            | SendError::NotRegistered
            | SendError::Nobody
            | SendError::NobodyElse
            | SendError::UnknownReply(_)
            | SendError::OtherUnderKey { .. }
            | SendError::NotQueued(_) => false,
        }
    }
}

/// Whose mail an answer may be looked for in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sight {
    /// What the sender was sent or has sent.
    Own,
    /// All of it: the sender is the person, whose files they are.
    All,
}

/// Something to be sent, before it is in anybody's inbox. One id in all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sending {
    pub(crate) id: MessageId,
    pub(crate) at: Instant,
    pub(crate) from: AgentName,
    pub(crate) sight: Sight,
    pub(crate) draft: Draft,
}

/// Whether a message may lie in an inbox already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Try {
    /// Nobody has tried to store it.
    First,
    /// Somebody has, and did not hear whether it was stored.
    Again,
}

impl Mesh {
    /// Sends a message to each of these addresses. All are resolved before anything is stored. Where the
    /// servers cannot be reached, it waits on this machine and is sent when they can.
    pub async fn send(&self, caller: &Principal, to: &[String], draft: Draft) -> Result<Sent, SendError> {
        draft.validate()?;
        let sending = self::sending(&self.core, caller, draft)?;
        if to.is_empty() {
            return Err(SendError::Nobody);
        }
        let mut sent = Sent::of(&sending);
        // What waits was said before.
        match self.send_what_waits_before(&sending.from).await {
            Way::Open => {}
            Way::Blocked => return outbox::queue(&self.core, sending, to, Reach::Named, sent).await,
            Way::Busy => return self.queue_behind(sending, to, Reach::Named).await,
        }
        match self.send_by_address(&sending, to, &mut sent).await {
            Ok(()) => Ok(sent),
            Err(error) if error.is_out_of_reach() => outbox::queue(&self.core, sending, to, Reach::Named, sent).await,
            Err(error) => Err(error),
        }
    }

    async fn send_by_address(&self, sending: &Sending, to: &[String], sent: &mut Sent) -> Result<(), SendError> {
        let mut recipients = Vec::new();
        for address in to {
            let name = address::resolve(&self.core, &self.remote, address, Some(&sending.from)).await?;
            if !recipients.contains(&name) {
                recipients.push(name);
            }
        }
        self.send_to(sending, &recipients, Reach::Named, Try::First, sent).await
    }

    /// Sends a message to everyone in an audience.
    pub async fn broadcast(&self, caller: &Principal, audience: &Audience, draft: Draft) -> Result<Sent, SendError> {
        draft.validate()?;
        let sending = self::sending(&self.core, caller, draft)?;
        let mut recipients = Vec::new();
        for name in address::names(&self.core).await? {
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

    /// Sends a message to agents that are known to be there, after whatever its sender said before.
    async fn send_after_what_waits(
        &self,
        sending: Sending,
        recipients: &[AgentName],
        reach: Reach,
    ) -> Result<Sent, SendError> {
        let mut sent = Sent::of(&sending);
        let to = || -> Vec<String> { recipients.iter().map(ToString::to_string).collect() };
        match self.send_what_waits_before(&sending.from).await {
            Way::Open => {
                self.send_to(&sending, recipients, reach, Try::First, &mut sent).await?;
                Ok(sent)
            }
            Way::Blocked => outbox::queue(&self.core, sending, &to(), reach, sent).await,
            Way::Busy => self.queue_behind(sending, &to(), reach).await,
        }
    }

    /// Sends a message in the name of an agent that has just done what it says, to one that exists.
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

    /// Stores a message for each of these and rings, adding to `sent` as it goes.
    pub(crate) async fn send_to(
        &self,
        sending: &Sending,
        recipients: &[AgentName],
        reach: Reach,
        how: Try,
        sent: &mut Sent,
    ) -> Result<(), SendError> {
        let Sending { id, from, draft, .. } = sending;
        let answered = match draft.reply_to {
            Some(id) => {
                Some(known_message(&self.core, sending.sight, from, id).await?.ok_or(SendError::UnknownReply(id))?)
            }
            None => None,
        };
        let working_on = if from.is_shell() { None } else { chain::working_on(&self.core, from).await? };
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
                        // A sending that broke off half-way is completed under the id that some have it by.
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
            inbox::receipt(&self.core, &answered.to, &[answered.id], &event, Durability::Synced).await?;
        }
        remember_sent(&self.core, &message, sent).await;
        Ok(())
    }

    /// Stores a message in its recipient's inbox, then rings. Gives the id under which it lies
    /// there, which is an older one where the same was stored before under the same idempotency key.
    async fn store_and_ring(&self, message: &Message, how: Try) -> Result<(MessageId, SentTo), NotStored> {
        let kept = match (how, &message.idempotency_key) {
            (Try::Again, _) => idempotency::store_unless_there(&self.core, &self.inboxes, message).await?,
            (Try::First, Some(key)) => idempotency::store_once(&self.core, &self.inboxes, message, key).await?,
            (Try::First, None) => {
                records::append(self.core.shared.as_ref(), &keys::inbox(&message.to), message, Durability::Synced)
                    .await?;
                Kept::Anew
            }
        };
        let first = match (kept, how) {
            (Kept::Anew, _) => None,
            // What was tried before and is there now is this very sending's own doing.
            (Kept::Before(id), Try::Again) if id == message.id => None,
            (Kept::Before(id), _) => Some(id),
            (Kept::NotOver(older), _) => {
                let key = message.idempotency_key.clone().unwrap_or_default();
                return Err(NotStored::OtherUnderKey { key, older });
            }
        };
        if let Some(presence) = self.remote.presence(&message.to, self.core.machine.now()) {
            // It lives on another machine, where nothing of ours rings.
            let duplicate = first.is_some();
            let outcome =
                SentTo { to: message.to.clone(), status: DeliveryStatus::Stored, presence, held: None, duplicate };
            return Ok((first.unwrap_or(message.id), outcome));
        }
        // The message is stored: that its recipient cannot be looked at now takes nothing of that back.
        let (agent, presence, record) = match looked_at(&self.core, &self.remote, &message.to).await {
            Ok(seen) => seen,
            Err(error) => {
                tracing::warn!(to = %message.to, %error, "the recipient could not be looked at");
                (None, Presence::Away, None)
            }
        };
        let mut outcome = SentTo {
            to: message.to.clone(),
            status: DeliveryStatus::Stored,
            presence,
            held: None,
            duplicate: first.is_some(),
        };
        if let (None, Some(agent)) = (first, &agent) {
            // The message is stored: whatever becomes of the wake file, sending has succeeded.
            match wake_file::ring(&self.core, agent, record.as_ref(), &Ring::of(message)).await {
                Ok(Rang::Yes) => outcome.status = DeliveryStatus::Notified,
                Ok(Rang::Nobody) => {}
                Ok(Rang::Held(reason)) => outcome.held = Some(reason),
                Err(error) => tracing::warn!(to = %message.to, %error, "the wake file could not be status"),
            }
        }
        Ok((first.unwrap_or(message.id), outcome))
    }
}

fn sending(core: &Core, caller: &Principal, draft: Draft) -> Result<Sending, SendError> {
    Ok(sending_as(core, sender(caller)?, caller, draft))
}

fn sending_as(core: &Core, from: AgentName, caller: &Principal, draft: Draft) -> Sending {
    let at = core.machine.now();
    let sight = if caller.is_person() { Sight::All } else { Sight::Own };
    Sending { id: core.new_id(at), at, from, sight, draft: draft.without_blanks() }
}

/// A recipient, how present it is, and its session on this machine.
async fn looked_at(
    core: &Core,
    remote: &RemoteCache,
    name: &AgentName,
) -> Result<(Option<Agent>, Presence, Option<SessionRecord>), StoreError> {
    let Some(agent) = agents::list::load_agent(core, name).await? else { return Ok((None, Presence::Away, None)) };
    let (traces, presence, _) = presence::judged(core, &agent).await?;
    if core.topology.has_other_machines() && agent.machine != core.machine.name() {
        remote.note_presence(name, core.machine.now(), presence);
    }
    Ok((Some(agent), presence, traces.record))
}

/// Notes a sending for its sender's own eyes and in the event log. The message itself is safe.
async fn remember_sent(core: &Core, message: &Message, sent: &Sent) {
    let line = SentLine {
        id: sent.id,
        at: message.at,
        to: sent.recipients.iter().map(|recipient| recipient.to.clone()).collect(),
        subject: message.subject.clone(),
        thread: message.thread.clone(),
    };
    let log = keys::sent(&message.from);
    if let Err(error) = core.event_log.write_behind.log_line(&log, &line).await {
        tracing::warn!(id = %sent.id, %error, "a sending is missing from its sender's list");
    }
    let anew: Vec<&AgentName> =
        sent.recipients.iter().filter(|recipient| !recipient.duplicate).map(|recipient| &recipient.to).collect();
    if !anew.is_empty() {
        let event = SentEvent { id: sent.id, from: &message.from, to: &anew, event: "sent", at: core.machine.now() };
        core.event_log.note_line(event.event, &event).await;
    }
}

/// To whom an agent sent a message.
pub(crate) async fn recipients_of(core: &Core, from: &AgentName, id: MessageId) -> Result<Vec<AgentName>, StoreError> {
    let needle = id.to_string();
    let mut to = Vec::new();
    let mut take = |bytes: &[u8]| {
        if contains(bytes, needle.as_bytes())
            && let Ok(line) = serde_json::from_slice::<SentLine>(bytes)
            && line.id == id
        {
            to.extend(line.to);
        }
    };
    // What is not written yet is looked at first: it may be written meanwhile.
    for line in core.event_log.write_behind.unwritten(&keys::sent(from)) {
        take(&line);
    }
    records::scan(core.shared.as_ref(), &keys::sent(from), Position::START, |entry| take(&entry.bytes)).await?;
    to.sort();
    to.dedup();
    Ok(to)
}

/// A message that the asker was sent or has sent. The person's own command line may name any.
pub(crate) async fn known_message(
    core: &Core,
    sight: Sight,
    asker: &AgentName,
    id: MessageId,
) -> Result<Option<Message>, StoreError> {
    if let Some((message, _)) = inbox::one_of(core, asker, id).await? {
        return Ok(Some(message));
    }
    let mut owners = recipients_of(core, asker, id).await?;
    if owners.is_empty() && sight == Sight::All {
        owners = address::names(core).await?;
    }
    for owner in owners {
        if let Some((message, _)) = inbox::one_of(core, &owner, id).await? {
            return Ok(Some(message));
        }
    }
    Ok(None)
}

impl Sending {
    /// The message as it is known before it has recipients.
    pub(crate) fn as_message(&self) -> Message {
        let Sending { id, at, from, sight: _, draft } = self.clone();
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
            to: from.clone(),
            from,
        }
    }
}

impl Sent {
    /// Nobody has it yet.
    pub(crate) fn of(sending: &Sending) -> Sent {
        let thread = sending.draft.thread.clone().unwrap_or_else(|| sending.id.to_string());
        Sent { id: sending.id, thread, recipients: Vec::new() }
    }
}

/// Whether a message was addressed to names or to all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reach {
    #[default]
    Named,
    Everyone,
}

/// Why one recipient was not sent a message.
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
struct SentLine {
    id: MessageId,
    at: Instant,
    to: Vec<AgentName>,
    subject: String,
    thread: String,
}

/// The event log's line of a sending.
#[derive(Serialize)]
struct SentEvent<'a> {
    id: MessageId,
    from: &'a AgentName,
    to: &'a [&'a AgentName],
    event: &'static str,
    at: Instant,
}

/// Who sends: the caller's agent; on a command line that speaks for nobody, the shell.
fn sender(caller: &Principal) -> Result<AgentName, SendError> {
    match (&caller.agent, caller.transport) {
        (Some(agent), _) => Ok(agent.clone()),
        (None, Transport::CommandLine) => Ok(AgentName::shell()),
        (None, Transport::Stdio | Transport::Http) => Err(SendError::NotRegistered),
    }
}
