//! What became of a message, and how the mesh as a whole is doing.

use std::collections::BTreeMap;

use store::StoreError;

use crate::agent::Seen;
use crate::message::Message;
use crate::names::{AgentName, MessageId};
use crate::receipt::RecipientStatus;
use crate::session::Caller;
use crate::{Mesh, keys};

/// Where a message stands with each recipient.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageStatus {
    /// The message, as its first recipient has it.
    pub message: Message,
    /// Each recipient's ladder.
    pub recipients: Vec<RecipientStatus>,
}

/// Why a message's status cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// Not sent by or to the asker.
    #[error("no message `{0}` was sent to you or by you")]
    Unknown(MessageId),
    /// The person asked, who may see all mail, and there is none with this id.
    #[error("no message `{0}` is in any inbox")]
    Nowhere(MessageId),
    /// The store failed.
    #[error("the receipts could not be read")]
    Store(#[from] store::StoreError),
}

/// A sender and a recipient between whom waking stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPair {
    /// Who sent.
    pub from: AgentName,
    /// Who is not woken.
    pub to: AgentName,
    /// Messages held.
    pub messages: usize,
    /// Why the latest is held.
    pub reason: String,
}

/// How the mesh is doing.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshStatus {
    /// Every agent.
    pub agents: Vec<Seen>,
    /// Messages that wait, over all inboxes.
    pub waiting: usize,
    /// Where waking stopped.
    pub held: Vec<HeldPair>,
    /// What could not be read, and why, a sentence each. Everything else went on without it.
    pub damaged: Vec<String>,
}

impl Mesh {
    /// Where a message stands. An agent may ask for what it sent or was sent; the person's own
    /// command line for any.
    pub async fn message_status(&self, asker: &Caller, id: MessageId) -> Result<MessageStatus, StatusError> {
        let mut owners = match &asker.agent {
            Some(agent) => self.recipients_of(agent, id).await?,
            None => Vec::new(),
        };
        if owners.is_empty()
            && let Some(agent) = &asker.agent
        {
            owners.push(agent.clone());
        }
        let mut status = self.ladders(&owners, id).await?;
        if status.is_none() && asker.is_person() {
            status = self.ladders(&self.names().await?, id).await?;
        }
        let unknown = if asker.is_person() { StatusError::Nowhere(id) } else { StatusError::Unknown(id) };
        status.ok_or(unknown)
    }

    /// How the mesh is doing.
    pub async fn status(&self) -> Result<MeshStatus, StatusError> {
        let mut status = MeshStatus { agents: Vec::new(), waiting: 0, held: Vec::new(), damaged: Vec::new() };
        for name in self.names().await? {
            match self.load_agent(&name).await {
                Ok(Some(agent)) => status.agents.push(self.seen(agent).await?),
                Ok(None) => continue,
                Err(StoreError::Damaged { what, why }) => {
                    status.damaged.push(format!("{what}: {why}"));
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            let inbox = self.inbox_of(&name);
            let inbox = inbox.lock().await;
            status.waiting += inbox.unsettled.len();
            if inbox.damage > 0 {
                status.damaged.push(format!("{}: {} damaged lines were passed over", keys::inbox(&name), inbox.damage));
            }
            let mut held: BTreeMap<AgentName, HeldPair> = BTreeMap::new();
            for slot in inbox.unsettled.values() {
                let Some(reason) = &slot.ladder.held else { continue };
                let from = slot.header.from.clone();
                let pair = held.entry(from.clone()).or_insert_with(|| HeldPair {
                    from,
                    to: name.clone(),
                    messages: 0,
                    reason: String::new(),
                });
                pair.messages += 1;
                pair.reason.clone_from(reason);
            }
            status.held.extend(held.into_values());
        }
        status.agents.sort_by(|a, b| a.agent.name.cmp(&b.agent.name));
        Ok(status)
    }

    async fn ladders(&self, owners: &[AgentName], id: MessageId) -> Result<Option<MessageStatus>, StoreError> {
        let mut status: Option<MessageStatus> = None;
        for owner in owners {
            if let Some((message, ladder)) = self.one_of(owner, id).await? {
                let recipient = RecipientStatus { to: owner.clone(), stored: message.at, ladder };
                match &mut status {
                    Some(status) => status.recipients.push(recipient),
                    None => status = Some(MessageStatus { message, recipients: vec![recipient] }),
                }
            }
        }
        Ok(status)
    }
}
