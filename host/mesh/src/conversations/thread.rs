//! One thread: what was said in it by everybody, and where each message stands with each recipient.

use std::collections::{BTreeMap, HashSet};
use std::pin::pin;

use futures::StreamExt as _;
use serde::Deserialize;
use store::{Entry, StoreError, Term};

use super::MailReader;
use super::reader::Sight;
use super::scan::{ScanFrom, look_up, scan};
use crate::agents::list::of_each;
use crate::core::Core;
use crate::messages::id_prefix::{self, IdError};
use crate::messages::kept;
use crate::messages::status::{MessageStatus, recipient_status};
use crate::messages::{outbox, send};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::storage::index_rule;

/// How far the clock of a sender may be behind that of the thread's first one, in milliseconds: a thread that is called by
/// an id has no message with an earlier one.
const SLACK: u64 = 24 * 3_600_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its name: the id of its first message, or a word.
    pub thread: String,
    /// Its newest messages, oldest first, each once with all recipients.
    pub messages: Vec<MessageStatus>,
    /// How many earlier ones were left out.
    pub earlier: usize,
    /// Damaged stretches of inboxes that were skipped. None where indexes name its messages: nothing else is read there.
    pub damaged: usize,
}

/// Why a thread cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// The reader knows of no such thread and of no such message.
    #[error("no thread and no message that you know of is called `{0}`")]
    Unknown(String),
    /// It is the beginning of several messages' ids.
    #[error(transparent)]
    Ambiguous(IdError),
    /// The store failed.
    #[error("the mail could not be read")]
    Store(#[from] StoreError),
}

/// What the lookup reads of a message.
#[derive(Deserialize)]
struct ThreadMessage<'a> {
    id: MessageId,
    at: Instant,
    #[serde(borrow)]
    thread: std::borrow::Cow<'a, str>,
}

/// The thread that is called so, or that the message with that id belongs to; at most `limit` of its messages.
pub(crate) async fn thread(core: &Core, reader: &MailReader, typed: &str, limit: usize) -> Result<Thread, ThreadError> {
    let of_message = thread_of_message(core, reader, typed).await?;
    let name = of_message.unwrap_or_else(|| typed.trim().to_owned());
    let thread = named(core, reader, &name, limit).await?;
    if thread.messages.is_empty() { Err(ThreadError::Unknown(typed.to_owned())) } else { Ok(thread) }
}

/// The thread of a message; none if what was typed is not a message's id, or the message is gone.
async fn thread_of_message(core: &Core, reader: &MailReader, typed: &str) -> Result<Option<String>, ThreadError> {
    let id = match id_prefix::id_known_to(core, reader, typed).await {
        Ok(id) => id,
        Err(IdError::Invalid(_) | IdError::Unknown(_)) => return Ok(None),
        Err(error @ IdError::Ambiguous { .. }) => return Err(ThreadError::Ambiguous(error)),
        Err(IdError::Store(error)) => return Err(error.into()),
    };
    if let Some((message, _)) = outbox::visible_to(core, reader).await?.into_iter().find(|(one, _)| one.id == id) {
        return Ok(Some(message.thread));
    }
    let owners = match reader {
        MailReader::User => crate::agents::list::names(core).await?,
        MailReader::Agent(agent) => {
            let mut owners = send::recipients_of(core, agent, id).await?;
            owners.push(agent.clone());
            owners
        }
    };
    Ok(kept::of_any(core, owners, id).await?.map(|kept| kept.message.thread))
}

async fn named(core: &Core, reader: &MailReader, name: &str, limit: usize) -> Result<Thread, StoreError> {
    let first = name.parse::<MessageId>().ok();
    let begun = first.map(|id| Instant(id.0.timestamp_ms().saturating_sub(SLACK)));
    let sight = Sight::of(core, reader, begun).await?;
    let mut newest: BTreeMap<(Instant, MessageId), Vec<AgentName>> = BTreeMap::new();
    let mut all: HashSet<MessageId> = HashSet::new();
    let damaged = each_entry(core, &sight, (name, first, begun), |owner, entry| {
        let Ok(line) = serde_json::from_slice::<ThreadMessage<'_>>(&entry.bytes) else { return };
        if line.thread != name || !sight.shows(owner, line.id) {
            return;
        }
        all.insert(line.id);
        newest.entry((line.at, line.id)).or_default().push(owner.clone());
        if newest.len() > limit {
            newest.pop_first();
        }
    })
    .await?;
    let mut messages = with_recipients(core, newest).await?;
    for (message, recipients) in outbox::visible_to(core, reader).await? {
        if message.thread != name {
            continue;
        }
        match messages.iter_mut().find(|status| status.message.id == message.id) {
            Some(status) => status.recipients.extend(recipients),
            None if all.insert(message.id) => messages.push(MessageStatus { message, recipients }),
            None => {}
        }
    }
    messages.sort_by_key(|status| (status.message.at, status.message.id));
    messages.drain(..messages.len().saturating_sub(limit));
    let earlier = all.len() - messages.len();
    Ok(Thread { thread: name.to_owned(), messages, earlier, damaged })
}

/// Passes each entry that may be of a thread to `take`, with the owner of its inbox: that of the message that it is named
/// after, if it has no name of its own, and those that name it. No message of it is older than `begun`. Returns how many
/// damaged stretches were skipped.
async fn each_entry(
    core: &Core,
    sight: &Sight,
    (name, first, begun): (&str, Option<MessageId>, Option<Instant>),
    mut take: impl FnMut(&AgentName, &Entry) + Send,
) -> Result<usize, StoreError> {
    let mut naming = index_rule::of_thread(name);
    naming.since = begun.map(|begun| begun.0);
    if core.shared.is_indexed() {
        let terms: Vec<Term> = first.map(index_rule::of_message).into_iter().chain([naming]).collect();
        look_up(core, sight, &terms, take).await?;
        return Ok(0);
    }
    let finder = memchr::memmem::Finder::new(naming.text.as_bytes());
    scan(core, sight, ScanFrom::Id(begun), |owner, entry| {
        if finder.find(&entry.bytes).is_some() {
            take(owner, entry);
        }
    })
    .await
}

/// The messages with each recipient's history, in order. One that is deleted meanwhile is left out.
pub(crate) async fn with_recipients(
    core: &Core,
    messages: BTreeMap<(Instant, MessageId), Vec<AgentName>>,
) -> Result<Vec<MessageStatus>, StoreError> {
    let mut of_owner: BTreeMap<&AgentName, Vec<MessageId>> = BTreeMap::new();
    for ((_, id), owners) in &messages {
        owners.iter().for_each(|owner| of_owner.entry(owner).or_default().push(*id));
    }
    let mut found: BTreeMap<MessageId, MessageStatus> = BTreeMap::new();
    let asked = of_owner.into_iter().collect();
    let mut looks = pin!(of_each(core, asked, |(owner, ids): (&AgentName, Vec<MessageId>)| async move {
        let mut those = Vec::new();
        for kept in kept::these(core, owner, &ids).await? {
            let recipient = recipient_status(core, owner, &kept).await?;
            those.push((kept.message, recipient));
        }
        Ok::<_, StoreError>(those)
    }));
    while let Some(those) = looks.next().await {
        for (message, recipient) in those? {
            match found.get_mut(&message.id) {
                Some(status) => status.recipients.push(recipient),
                None => {
                    found.insert(message.id, MessageStatus { message, recipients: vec![recipient] });
                }
            }
        }
    }
    Ok(messages.keys().filter_map(|(_, id)| found.remove(id)).collect())
}
