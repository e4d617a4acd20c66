//! Looks messages up in an inbox, settled or not, with what its receipts say of each.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use futures::StreamExt as _;
use store::{Entry, Position, Seek, StoreError, Term};

use crate::agents::list::of_each;
use crate::core::Core;
use crate::messages::Message;
use crate::messages::fetch::Fetch;
use crate::messages::inbox::Header;
use crate::messages::receipt::{DeliveryHistory, Receipt};
use crate::names::{AgentName, MessageId};
use crate::storage::{index_rule, keys, records};

/// How many bytes of an inbox are read at a time.
const STEP: usize = 256 * 1024;
/// The receipts of more messages than this are read in one go instead of being looked up.
const MOST_LOOKED_UP: usize = 500;

/// A message of an inbox, settled or not.
#[derive(Clone, Debug)]
pub(crate) struct KeptMessage {
    /// Its place in the inbox.
    pub(crate) at: Position,
    pub(crate) message: Message,
    pub(crate) history: DeliveryHistory,
}

/// The messages with these ids and their histories, in the order of the inbox. Ids that are not in it are left out.
pub(crate) async fn these(core: &Core, name: &AgentName, ids: &[MessageId]) -> Result<Vec<KeptMessage>, StoreError> {
    let terms: Vec<Term> = ids.iter().map(|id| index_rule::of_message(*id)).collect();
    let entries = core.shared.find(&keys::inbox(name), &terms).await?;
    let mut wanted: BTreeSet<MessageId> = ids.iter().copied().collect();
    let mut messages: Vec<(Position, Message)> = Vec::new();
    for entry in entries {
        if let Ok(message) = serde_json::from_slice::<Message>(&entry.bytes)
            && wanted.remove(&message.id)
        {
            messages.push((entry.at, message));
        }
    }
    with_histories(core, name, messages).await
}

/// One message of an inbox and its delivery history; none if it is not there.
pub(crate) async fn one_of(core: &Core, name: &AgentName, id: MessageId) -> Result<Option<KeptMessage>, StoreError> {
    Ok(these(core, name, &[id]).await?.pop())
}

/// The first of these agents' copies of a message, as in [`one_of`].
pub(crate) async fn of_any(
    core: &Core,
    owners: Vec<AgentName>,
    id: MessageId,
) -> Result<Option<KeptMessage>, StoreError> {
    let mut looks = pin!(of_each(core, owners, |owner: AgentName| async move { one_of(core, &owner, id).await }));
    while let Some(kept) = looks.next().await {
        if let Some(kept) = kept? {
            return Ok(Some(kept));
        }
    }
    Ok(None)
}

/// The newest messages of an inbox that are wanted, settled or not, in the order of the inbox.
pub(crate) async fn newest(core: &Core, name: &AgentName, ask: &Fetch) -> Result<Vec<KeptMessage>, StoreError> {
    let log = keys::inbox(name);
    let floor = index_rule::first_since(core.shared.as_ref(), &log, ask.since).await?;
    let mut before = core.shared.end(&log).await?;
    let mut messages: Vec<(Position, Message)> = Vec::new();
    while messages.len() < ask.limit {
        let batch = core.shared.read_back(&log, before, STEP).await?;
        messages.extend(batch.entries.iter().rev().filter_map(|entry| wanted(ask, entry)));
        if batch.at_end || batch.next <= floor || batch.next >= before {
            break;
        }
        before = batch.next;
    }
    messages.truncate(ask.limit);
    messages.reverse();
    with_histories(core, name, messages).await
}

/// The oldest messages of an inbox that are wanted, settled or not, in the order of the inbox.
pub(crate) async fn oldest(core: &Core, name: &AgentName, ask: &Fetch) -> Result<Vec<KeptMessage>, StoreError> {
    let log = keys::inbox(name);
    let mut from = index_rule::first_since(core.shared.as_ref(), &log, ask.since).await?;
    let mut messages: Vec<(Position, Message)> = Vec::new();
    while messages.len() < ask.limit {
        let batch = core.shared.read(&log, from, STEP).await?;
        messages.extend(batch.entries.iter().filter_map(|entry| wanted(ask, entry)));
        if batch.at_end || batch.next == from {
            break;
        }
        from = batch.next;
    }
    messages.truncate(ask.limit);
    with_histories(core, name, messages).await
}

fn wanted(ask: &Fetch, entry: &Entry) -> Option<(Position, Message)> {
    let message: Message = serde_json::from_slice(&entry.bytes).ok()?;
    ask.wants(&Header::of(&message)).then_some((entry.at, message))
}

/// Messages of an inbox with what its receipts say of each.
async fn with_histories(
    core: &Core,
    name: &AgentName,
    messages: Vec<(Position, Message)>,
) -> Result<Vec<KeptMessage>, StoreError> {
    let log = keys::receipts(name);
    let mut histories: BTreeMap<MessageId, DeliveryHistory> =
        messages.iter().map(|(_, message)| (message.id, DeliveryHistory::of_stored(message.held.as_ref()))).collect();
    let mut take = |entry: &Entry| {
        if let Ok(receipt) = serde_json::from_slice::<Receipt>(&entry.bytes)
            && let Some(history) = histories.get_mut(&receipt.message)
        {
            history.take(receipt.at, receipt.event);
        }
    };
    if messages.len() > MOST_LOOKED_UP {
        // Nothing is noted of a message before it is there, and ids grow.
        let lowest = messages.iter().map(|(_, message)| message.id).min().map(|id| id.to_string());
        let from = core.shared.seek(&log, Seek::Term(lowest.as_deref().unwrap_or_default())).await?;
        records::scan(core.shared.as_ref(), &log, from.unwrap_or(Position::START), |entry| take(&entry)).await?;
    } else {
        let terms: Vec<Term> = messages.iter().map(|(_, message)| index_rule::of_message(message.id)).collect();
        core.shared.find(&log, &terms).await?.iter().for_each(take);
    }
    let kept = messages.into_iter().map(|(at, message)| {
        let history = histories.get(&message.id).cloned().unwrap_or_default();
        KeptMessage { at, message, history }
    });
    Ok(kept.collect())
}
