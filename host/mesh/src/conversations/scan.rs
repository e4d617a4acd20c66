//! Reads through inboxes, or looks messages up in them, oldest message first in each.

use std::pin::pin;
use std::sync::Mutex;

use futures::StreamExt as _;
use store::{Entry, StoreError, Term};

use super::reader::Sight;
use crate::agents::list::of_each;
use crate::core::Core;
use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::storage::{index_rule, keys, records};

/// Where a scan begins in each inbox. None is its beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScanFrom {
    /// With the messages of this time.
    Time(Option<Instant>),
    /// With the messages whose ids are of this time.
    Id(Option<Instant>),
}

/// Passes each entry that may be visible to `take`, with the owner of its inbox. Several inboxes are read at once if each
/// read is a round trip to the servers. Returns how many damaged stretches were skipped.
///
/// Memory holds one stretch per inbox that is being read, however much mail there is.
pub(crate) async fn scan(
    core: &Core,
    sight: &Sight,
    from: ScanFrom,
    take: impl FnMut(&AgentName, &Entry) + Send,
) -> Result<usize, StoreError> {
    // A std mutex: nothing is awaited while it is held.
    let take = Mutex::new(take);
    let take = &take;
    let mut reads = pin!(of_each(core, sight.owners.iter().collect(), |owner: &AgentName| async move {
        let log = keys::inbox(owner);
        let from = match from {
            ScanFrom::Time(since) => index_rule::first_since(core.shared.as_ref(), &log, since).await?,
            ScanFrom::Id(since) => index_rule::first_id_since(core.shared.as_ref(), &log, since).await?,
        };
        let each = |entry: Entry| {
            if sight.may_show(owner, &entry.bytes) {
                (take.lock().expect("no holder of this lock panics"))(owner, &entry);
            }
        };
        Ok::<_, StoreError>(records::scan(core.shared.as_ref(), &log, from, each).await?.1)
    }));
    let mut damage = 0;
    while let Some(read) = reads.next().await {
        damage += read?;
    }
    Ok(damage)
}

/// Passes each entry that has one of these terms and may be visible to `take`, with the owner of its inbox. Costs what is
/// found, if the store has indexes.
pub(crate) async fn look_up(
    core: &Core,
    sight: &Sight,
    terms: &[Term],
    mut take: impl FnMut(&AgentName, &Entry) + Send,
) -> Result<(), StoreError> {
    let mut looks = pin!(of_each(core, sight.owners.clone(), |owner: AgentName| async move {
        let found = core.shared.find(&keys::inbox(&owner), terms).await?;
        Ok::<_, StoreError>((owner, found))
    }));
    while let Some(look) = looks.next().await {
        let (owner, found) = look?;
        found.iter().filter(|entry| sight.may_show(&owner, &entry.bytes)).for_each(|entry| take(&owner, entry));
    }
    Ok(())
}
