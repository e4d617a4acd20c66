//! Retention of mail: unread messages expire after a long time, and segments that hold only old settled messages, old
//! receipts or old lines of what an agent sent are deleted.

use std::collections::BTreeSet;

use store::{Durability, Key, Position, Seek, Store, StoreError};

use crate::agents;
use crate::cleanup::{DryRun, RecordKind, Tally};
use crate::core::Core;
use crate::messages::address;
use crate::messages::fetch;
use crate::messages::inbox;
use crate::messages::inbox::Header;
use crate::messages::inboxes::Inboxes;
use crate::messages::receipt::{Event, Receipt};
use crate::names::{AgentName, MessageId};
use crate::ports::data_files::DataFiles;
use crate::sessions::record;
use crate::storage::old::{self, Age, Ages, OldPart};
use crate::storage::{index_rule, keys, records};

/// How much of an inbox is read at a time, in bytes.
const STRETCH: usize = 1 << 20;
/// How long receipts stay after their messages, in milliseconds: so that a process that knows the messages reads what
/// became of them.
const UNTIL_HEARD: u64 = 24 * 60 * 60 * 1000;

/// Deletes old messages from every inbox, with their receipts, and old lines of what agents sent. Damage in one inbox
/// does not stop the others.
pub(crate) async fn retire_old(
    core: &Core,
    inboxes: &Inboxes,
    (dry_run, files): (DryRun, &dyn DataFiles),
    tally: &mut Tally,
) -> Result<(), StoreError> {
    let mut owners = address::inbox_owners(core).await?;
    owners.extend(files.agents());
    owners.insert(AgentName::shell());
    for name in owners {
        match retire_of(core, inboxes, &name, (dry_run, files), tally).await {
            Ok(()) | Err(StoreError::Elsewhere { .. }) => {}
            Err(error @ StoreError::Damaged { .. }) => tracing::warn!(agent = %name, %error, "its mail is kept"),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn retire_of(
    core: &Core,
    inboxes: &Inboxes,
    name: &AgentName,
    (dry_run, files): (DryRun, &dyn DataFiles),
    tally: &mut Tally,
) -> Result<(), StoreError> {
    // The agent's own machine does this; other machines need not even read its inbox.
    if record::lives_elsewhere(core, name).await? {
        return Ok(());
    }
    if dry_run == DryRun::No {
        expire(core, inboxes, name).await?;
        for log in [keys::inbox(name), keys::receipts(name), keys::sent(name)] {
            core.shared.index(&log).await?;
        }
    }
    let log = keys::inbox(name);
    let needed = needed_from(core, inboxes, name).await?;
    let ages = Ages::of(core.machine.now(), core.limits.keep);
    let inbox = old::old_part(core.shared.as_ref(), &log, ages, Some(needed)).await?;
    // A dry run takes the inbox for shortened by that.
    let left_from = files.segments_before(&log, inbox.before).map_or(inbox.before, |found| found.kept_from);
    let gone = old::retire(core.shared.as_ref(), (RecordKind::Mail, &log), inbox, (dry_run, files), tally).await?;
    // Only after the messages: one without its receipts would look as if it had never been delivered.
    let receipts = match dry_run {
        DryRun::Yes => old_receipts(core, name, left_from).await?,
        DryRun::No if gone > 0 || may_have_old_receipts(core.shared.as_ref(), name).await? => {
            old_receipts(core, name, Position::START).await?
        }
        DryRun::No => OldPart::before(Position::START),
    };
    let log = keys::receipts(name);
    old::retire(core.shared.as_ref(), (RecordKind::Receipts, &log), receipts, (dry_run, files), tally).await?;
    // As long as a message may wait, its sender can ask what became of it.
    let ages = Ages::of(core.machine.now(), core.limits.keep.max(core.limits.expire_after));
    let log = keys::sent(name);
    let sent = old::old_part(core.shared.as_ref(), &log, ages, None).await?;
    old::retire(core.shared.as_ref(), (RecordKind::Sent, &log), sent, (dry_run, files), tally).await?;
    if dry_run == DryRun::No {
        agents::retention::forget_the_rest(core, name).await?;
        if !core.topology.has_other_machines() {
            forget_without_record(core, name).await?;
        }
    }
    Ok(())
}

/// Marks messages expired that were unread for a very long time.
async fn expire(core: &Core, inboxes: &Inboxes, name: &AgentName) -> Result<(), StoreError> {
    let now = core.machine.now();
    let old = |at| now.since(at) >= core.limits.expire_after;
    let mut candidates: Vec<(Position, MessageId)> = {
        let inbox = inboxes.of(name);
        let mut inbox = inbox.lock().await;
        inbox.refresh(core.shared.as_ref(), name).await?;
        let slots = inbox.open.all().filter(|slot| old(slot.header.at));
        slots.map(|slot| (slot.at, slot.header.id)).collect()
    };
    candidates.sort_unstable();
    let Some((last, _)) = candidates.last() else { return Ok(()) };
    if let Some(fresh) = first_fresh(core, name, *last).await? {
        candidates.retain(|(at, _)| *at < fresh);
    }
    if candidates.is_empty() {
        return Ok(());
    }
    let expired: Vec<MessageId> = candidates.into_iter().map(|(_, id)| id).collect();
    inbox::receipt(core, name, &expired, &Event::Expired, Durability::Process).await?;
    fetch::tidy(core, inboxes, name).await
}

/// Where in an inbox the first message is, up to a position, that is too young to expire. Those behind it came later,
/// whatever their senders' clocks said.
async fn first_fresh(core: &Core, name: &AgentName, last: Position) -> Result<Option<Position>, StoreError> {
    let log = keys::inbox(name);
    let ages = Ages::of(core.machine.now(), core.limits.expire_after);
    let mut at = index_rule::first_since(core.shared.as_ref(), &log, Some(ages.keep_from)).await?;
    while at <= last {
        let batch = core.shared.read(&log, at, STRETCH).await?;
        let young = batch.entries.iter().find(|entry| {
            let header = serde_json::from_slice::<Header>(&entry.bytes);
            // One that is ahead of the clock says nothing of those behind it.
            header.is_ok_and(|header| ages.of_time(header.at) == Age::Kept)
        });
        if let Some(young) = young {
            return Ok(Some(young.at));
        }
        if batch.at_end || batch.next == at {
            break;
        }
        at = batch.next;
    }
    Ok(None)
}

/// The position of the first message that is not settled, or the end of the inbox.
async fn needed_from(core: &Core, inboxes: &Inboxes, name: &AgentName) -> Result<Position, StoreError> {
    // Before the inbox is read: what comes meanwhile may be of any age, as after weeks in an outbox.
    let end = core.shared.end(&keys::inbox(name)).await?;
    let inbox = inboxes.of(name);
    let mut inbox = inbox.lock().await;
    inbox.refresh(core.shared.as_ref(), name).await?;
    Ok(inbox.open.in_order().next().map_or(end, |slot| slot.at.min(end)))
}

/// Whether the oldest receipt is of a message that is older than the oldest one left: a process that was killed may have
/// deleted the messages and not their receipts. Without an index, that is not worth reading an inbox.
async fn may_have_old_receipts(store: &dyn Store, name: &AgentName) -> Result<bool, StoreError> {
    if !store.is_indexed() {
        return Ok(false);
    }
    let receipts = store.read(&keys::receipts(name), Position::START, 1).await?;
    let Some(receipt) = receipts.entries.first() else { return Ok(false) };
    let left = store.read(&keys::inbox(name), Position::START, 1).await?;
    let Some(left) = left.entries.first() else { return Ok(true) };
    let receipt = serde_json::from_slice::<Receipt>(&receipt.bytes);
    let left = serde_json::from_slice::<Header>(&left.bytes);
    Ok(matches!((receipt, left), (Ok(receipt), Ok(left)) if receipt.message < left.id))
}

/// The receipts before the first one of a message that is left in the inbox from a position on, and before the first one
/// that a process may not have read yet.
async fn old_receipts(core: &Core, name: &AgentName, left_from: Position) -> Result<OldPart, StoreError> {
    let store = core.shared.as_ref();
    let (inbox, receipts) = (keys::inbox(name), keys::receipts(name));
    let ages = Ages::of(core.machine.now(), UNTIL_HEARD);
    // Before the inbox is read: a message that comes meanwhile has its receipts after this.
    let end = store.end(&receipts).await?;
    let ahead = index_rule::lowest_id(ages.ahead_from());
    let found = sought_receipts(store, &inbox, &receipts, left_from).await?;
    if let Some(found) = found.filter(|_| !store.is_indexed()) {
        let unheard = store.seek(&receipts, Seek::Time(ages.keep_from.0)).await?.unwrap_or(end);
        let before = found.min(unheard).min(end);
        // Servers do not know the bytes before it.
        return old::read_until_kept(store, &receipts, Position::START, Some(before), |_| Age::Old).await;
    }
    if let Some(found) = found
        && !old::ends_ahead(store, &receipts, found, Seek::Term(&ahead)).await?
    {
        let unheard = old::old_part(store, &receipts, ages, None).await?.before;
        return Ok(OldPart::before(found.min(unheard).min(end)));
    }
    let mut left: BTreeSet<MessageId> = BTreeSet::new();
    records::scan(store, &inbox, left_from, |entry| {
        left.extend(serde_json::from_slice::<Header>(&entry.bytes).map(|header| header.id));
    })
    .await?;
    let age_of = |entry: &[u8]| match serde_json::from_slice::<Receipt>(entry) {
        Ok(receipt) if left.contains(&receipt.message) => Age::Kept,
        Ok(receipt) => ages.of_time(receipt.at),
        Err(_) => Age::Unreadable,
    };
    old::read_until_kept(store, &receipts, Position::START, Some(end), age_of).await
}

/// The same by the store's index; none if it has none, or if no message is left.
async fn sought_receipts(
    store: &dyn Store,
    inbox: &Key,
    receipts: &Key,
    left_from: Position,
) -> Result<Option<Position>, StoreError> {
    match store.lowest_term(inbox, left_from).await? {
        Some(lowest) => store.seek(receipts, Seek::Term(&lowest)).await,
        None => Ok(None),
    }
}

/// Removes what is left of an agent that has neither a record nor logs.
async fn forget_without_record(core: &Core, name: &AgentName) -> Result<(), StoreError> {
    let store = core.shared.as_ref();
    if store.get(&keys::meta(name)).await?.is_some() {
        return Ok(());
    }
    for log in [keys::inbox(name), keys::receipts(name), keys::sent(name)] {
        if !store.read(&log, Position::START, 1).await?.entries.is_empty() {
            return Ok(());
        }
    }
    for key in [keys::cursor(name), keys::known(name)] {
        if let Some(value) = store.get(&key).await? {
            records::remove_if(store, &key, value.revision, Durability::Process).await?;
        }
    }
    Ok(())
}
