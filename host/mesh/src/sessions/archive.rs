//! Sessions that have ended are kept apart from those that may be alive, under `ended/`, so that listing the live ones
//! does not cost more with every session there ever was. A session that is resumed is moved back.
//!
//! Each move writes the record at its new place before it removes the old one. If both are there, because a process was
//! killed in between or another one changed the record meanwhile, the one among the live counts.

use store::{Durability, Revision, StoreError, SwapError};

use crate::core::Core;
use crate::sessions::{SessionRecord, SessionRef, retention};
use crate::storage::{keys, records};

/// Moves the record of a session that has provably ended out of the way. What fails is tried again by the next listing.
pub(crate) async fn put_away(core: &Core, revision: Revision, record: &SessionRecord) {
    if !retention::has_ended(core, record) {
        return;
    }
    if let Err(error) = moved_away(core, revision, record).await {
        tracing::debug!(session = %record.session.id, %error, "an ended session stays among the live ones");
    }
}

async fn moved_away(core: &Core, revision: Revision, record: &SessionRecord) -> Result<(), StoreError> {
    let store = core.local.as_ref();
    let ended = keys::ended_session(&record.session);
    let old = store.get(&ended).await?.map(|value| value.revision);
    match store.swap(&ended, old, Some(&records::json(record)), Durability::Process).await {
        Ok(_) => {}
        // Another process is moving it.
        Err(SwapError::Changed { .. }) => return Ok(()),
        Err(SwapError::Store(error)) => return Err(error),
    }
    records::remove_if(store, &keys::session(&record.session), revision, Durability::Process).await.map(drop)
}

/// Moves the record of an ended session back among the live ones. Returns whether there is one there now.
pub(crate) async fn bring_back(core: &Core, session: &SessionRef) -> Result<bool, StoreError> {
    let store = core.local.as_ref();
    let ended = keys::ended_session(session);
    let Some(value) = store.get(&ended).await? else { return Ok(false) };
    match store.swap(&keys::session(session), None, Some(&value.bytes), Durability::Process).await {
        // Another process was faster.
        Ok(_) | Err(SwapError::Changed { .. }) => {}
        Err(SwapError::Store(error)) => return Err(error),
    }
    records::remove_if(store, &ended, value.revision, Durability::Process).await?;
    Ok(true)
}
