//! Sending: store first, tell afterwards.

use serde::{Deserialize, Serialize};
use store::{Durability, Position, StoreError};

use crate::agent::Presence;
use crate::bell::{Rang, Ring};
use crate::inbox::contains;
use crate::loops::next_trace;
use crate::machine::Instant;
use crate::message::{Draft, InvalidDraft, Message};
use crate::names::{AgentName, MessageId};
use crate::receipt::{Event, Rung};
use crate::session::{Caller, Transport};
use crate::{Mesh, keys, records};

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
    /// How far it got: stored, or offered where a bell was rung.
    pub rung: Rung,
    /// How present the recipient is.
    pub presence: Presence,
    /// Why nobody was woken, where waking stopped.
    pub held: Option<String>,
    /// The same idempotency key had been stored before: this is that message.
    pub duplicate: bool,
}

/// Why nothing was sent. Nothing was stored for anybody, except where `Store` names them.
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
}

impl Mesh {
    /// Sends a message to each of these addresses. All are resolved before anything is stored.
    pub async fn send(&self, caller: &Caller, to: &[String], draft: Draft) -> Result<Sent, SendError> {
        draft.validate()?;
        let from = sender(caller)?;
        let mut recipients = Vec::new();
        for address in to {
            let name = self.resolve(address, Some(&from)).await?;
            if !recipients.contains(&name) {
                recipients.push(name);
            }
        }
        self.send_to(caller, from, recipients, draft, Reach::Named).await
    }

    /// Sends a message to everyone in an audience.
    pub async fn broadcast(&self, caller: &Caller, audience: &Audience, draft: Draft) -> Result<Sent, SendError> {
        draft.validate()?;
        let from = sender(caller)?;
        let mut recipients = Vec::new();
        for name in self.names().await? {
            let Some(agent) = self.load_agent(&name).await? else { continue };
            let in_team = audience.team.as_deref().is_none_or(|team| name.team() == Some(team));
            let in_harness =
                audience.harness.as_ref().is_none_or(|harness| agent.profile.harness.as_ref() == Some(harness));
            if name != from && in_team && in_harness && self.presence(&agent).await? != Presence::Gone {
                recipients.push(name);
            }
        }
        self.send_to(caller, from, recipients, draft, Reach::Everyone).await
    }

    /// Sends a message in the name of an agent that has just done what it says, to one that exists.
    pub(crate) async fn tell(
        &self,
        caller: &Caller,
        from: &AgentName,
        to: &AgentName,
        draft: Draft,
    ) -> Result<(), SendError> {
        draft.validate()?;
        self.send_to(caller, from.clone(), vec![to.clone()], draft, Reach::Named).await.map(|_| ())
    }

    async fn send_to(
        &self,
        caller: &Caller,
        from: AgentName,
        recipients: Vec<AgentName>,
        draft: Draft,
        reach: Reach,
    ) -> Result<Sent, SendError> {
        if recipients.is_empty() {
            return Err(match reach {
                Reach::Named => SendError::Nobody,
                Reach::Everyone => SendError::NobodyElse,
            });
        }
        let answered = match draft.reply_to {
            Some(id) => Some(self.known_message(caller, &from, id).await?.ok_or(SendError::UnknownReply(id))?),
            None => None,
        };
        let now = self.machine.now();
        let id = self.new_id(now);
        let working_on = if from.is_shell() { None } else { self.working_on(&from).await? };
        let thread = draft.thread.clone().or_else(|| answered.as_ref().map(|message| message.thread.clone()));
        let mut message = Message {
            id,
            at: now,
            subject: draft.subject_or_default(),
            body: draft.body,
            thread: thread.unwrap_or_else(|| id.to_string()),
            reply_to: draft.reply_to,
            priority: draft.priority,
            tags: draft.tags,
            idempotency_key: draft.idempotency_key,
            broadcast: reach == Reach::Everyone,
            trace: next_trace(id, working_on),
            to: from.clone(),
            from,
        };
        let mut sent = Sent { id, thread: message.thread.clone(), recipients: Vec::new() };
        for to in recipients {
            message.to = to;
            match self.store_and_ring(&message).await {
                Ok((first_id, outcome)) => {
                    if outcome.duplicate && sent.recipients.is_empty() {
                        sent.id = first_id;
                    }
                    sent.recipients.push(outcome);
                }
                Err(source) => {
                    let stored = sent.recipients.into_iter().map(|recipient| recipient.to).collect();
                    return Err(SendError::Store { to: message.to, stored, source });
                }
            }
        }
        if let Some(answered) = answered.filter(|answered| answered.to == message.from) {
            let event = Event::Rung {
                rung: Rung::Acknowledged,
                route: "reply".to_owned(),
                evidence: Some(serde_json::json!({ "reply": sent.id })),
            };
            self.receipt(&answered.to, &[answered.id], &event, Durability::Synced).await?;
        }
        self.remember_sent(&message, &sent).await;
        Ok(sent)
    }

    /// Stores a message in its recipient's inbox, then rings. Gives the id under which it lies
    /// there, which is an older one where the same idempotency key was stored before.
    async fn store_and_ring(&self, message: &Message) -> Result<(MessageId, SentTo), StoreError> {
        let first = match &message.idempotency_key {
            Some(key) => self.store_once(message, key).await?,
            None => {
                records::append(self.shared.as_ref(), &keys::inbox(&message.to), message, Durability::Synced).await?;
                None
            }
        };
        let agent = self.load_agent(&message.to).await?;
        let (presence, record) = match &agent {
            Some(agent) => {
                let (traces, presence, _) = self.judged(agent).await?;
                (presence, traces.record)
            }
            None => (Presence::Away, None),
        };
        let mut outcome =
            SentTo { to: message.to.clone(), rung: Rung::Stored, presence, held: None, duplicate: first.is_some() };
        if let (None, Some(agent)) = (first, &agent) {
            // The message is stored: whatever becomes of the bell, sending has succeeded.
            match self.ring(agent, record.as_ref(), &Ring::of(message)).await {
                Ok(Rang::Yes) => outcome.rung = Rung::Offered,
                Ok(Rang::Nobody) => {}
                Ok(Rang::Held(reason)) => outcome.held = Some(reason),
                Err(error) => tracing::warn!(to = %message.to, %error, "the bell could not be rung"),
            }
        }
        Ok((first.unwrap_or(message.id), outcome))
    }

    /// Notes a sending for its sender's own eyes and in the diary. The message itself is safe.
    async fn remember_sent(&self, message: &Message, sent: &Sent) {
        let to: Vec<&AgentName> = sent.recipients.iter().map(|recipient| &recipient.to).collect();
        let line = SentLine {
            id: sent.id,
            at: message.at,
            to: to.iter().map(|name| (*name).clone()).collect(),
            subject: message.subject.clone(),
            thread: message.thread.clone(),
        };
        let log = keys::sent(&message.from);
        if let Err(error) = records::append(self.shared.as_ref(), &log, &line, Durability::Process).await {
            tracing::warn!(id = %sent.id, %error, "a sending is missing from its sender's list");
        }
        self.note("sent", serde_json::json!({ "id": sent.id, "from": message.from, "to": to })).await;
    }

    /// To whom an agent sent a message.
    pub(crate) async fn recipients_of(&self, from: &AgentName, id: MessageId) -> Result<Vec<AgentName>, StoreError> {
        let needle = id.to_string();
        let mut to = Vec::new();
        records::scan(self.shared.as_ref(), &keys::sent(from), Position::START, |entry| {
            if contains(&entry.bytes, needle.as_bytes())
                && let Ok(line) = serde_json::from_slice::<SentLine>(&entry.bytes)
                && line.id == id
            {
                to.extend(line.to);
            }
        })
        .await?;
        Ok(to)
    }

    /// A message that the caller was sent or has sent. The person's own command line may name any.
    pub(crate) async fn known_message(
        &self,
        caller: &Caller,
        asker: &AgentName,
        id: MessageId,
    ) -> Result<Option<Message>, StoreError> {
        if let Some((message, _)) = self.one_of(asker, id).await? {
            return Ok(Some(message));
        }
        let mut owners = self.recipients_of(asker, id).await?;
        if owners.is_empty() && caller.is_person() {
            owners = self.names().await?;
        }
        for owner in owners {
            if let Some((message, _)) = self.one_of(&owner, id).await? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }
}

/// Whether a message was addressed to names or to all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Named,
    Everyone,
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

/// Who sends: the caller's agent; on a command line that speaks for nobody, the shell.
fn sender(caller: &Caller) -> Result<AgentName, SendError> {
    match (&caller.agent, caller.transport) {
        (Some(agent), _) => Ok(agent.clone()),
        (None, Transport::CommandLine) => Ok(AgentName::shell()),
        (None, Transport::Stdio | Transport::Http) => Err(SendError::NotRegistered),
    }
}
