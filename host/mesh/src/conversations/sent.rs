//! What an agent sent, by its own list.

use std::collections::BTreeMap;

use store::{Position, StoreError};

use super::MailReader;
use super::thread::with_recipients;
use crate::core::Core;
use crate::messages::outbox;
use crate::messages::send::SentLine;
use crate::messages::status::MessageStatus;
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::storage::{index_rule, keys};

/// How many bytes of the list are read at a time.
const STEP: usize = 64 * 1024;

/// The newest messages that an agent sent, oldest first, with what became of each. Reads the list back from its end, so
/// it costs the same however much was sent before. What retention has deleted is left out.
pub(crate) async fn sent(
    core: &Core,
    agent: &AgentName,
    since: Option<Instant>,
    limit: usize,
) -> Result<Vec<MessageStatus>, StoreError> {
    let log = keys::sent(agent);
    let mut newest: BTreeMap<(Instant, MessageId), Vec<AgentName>> = BTreeMap::new();
    let mut take = |bytes: &[u8]| {
        if let Ok(line) = serde_json::from_slice::<SentLine>(bytes)
            && since.is_none_or(|since| line.at >= since)
        {
            let owners = newest.entry((line.at, line.id)).or_default();
            owners.extend(line.to);
            owners.sort();
            owners.dedup();
        }
        newest.len()
    };
    for line in core.event_log.write_behind.unwritten(&log) {
        take(&line);
    }
    let mut before = core.shared.end(&log).await?;
    let floor = index_rule::first_since(core.shared.as_ref(), &log, since).await?;
    let mut count = 0;
    while count < limit && before > Position::START {
        let batch = core.shared.read_back(&log, before, STEP).await?;
        batch.entries.iter().for_each(|entry| count = take(&entry.bytes));
        if batch.at_end || batch.next <= floor || batch.next >= before {
            break;
        }
        before = batch.next;
    }
    while newest.len() > limit {
        newest.pop_first();
    }
    let mut messages = with_recipients(core, newest).await?;
    for (message, recipients) in outbox::visible_to(core, &MailReader::Agent(agent.clone())).await? {
        match messages.iter_mut().find(|status| status.message.id == message.id) {
            Some(status) => status.recipients.extend(recipients),
            None if since.is_none_or(|since| message.at >= since) => {
                messages.push(MessageStatus { message, recipients });
            }
            None => {}
        }
    }
    messages.sort_by_key(|status| (status.message.at, status.message.id));
    messages.drain(..messages.len().saturating_sub(limit));
    Ok(messages)
}
