//! Listeners of sessions: connectors inside the harness that run `relay-mesh listen`. A killed listener leaves its
//! record behind, which shows that it died.

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError};

use crate::cleanup::{DryRun, RecordKind, Tally};
use crate::core::Core;
use crate::ports::machine::Process;
use crate::sessions::{Activity, SessionRef};
use crate::sessions::{record, retention};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// A session's listener, stored under `listeners/HARNESS/ID` in the local store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Listener {
    session: SessionRef,
    process: Process,
}

pub(crate) async fn listens_for(core: &Core, session: &SessionRef) -> Result<(), StoreError> {
    let own = as_listener(core, session);
    let key = keys::listener(session);
    records::update(core.local.as_ref(), &key, Durability::Process, |old: Option<Listener>| match old {
        Some(old) if core.machine.lives(old.process) => (Next::Keep, ()),
        Some(_) | None => (Next::Put(own.clone()), ()),
    })
    .await
}

pub(crate) async fn listens_no_more(core: &Core, session: &SessionRef) -> Result<(), StoreError> {
    let own = as_listener(core, session);
    let key = keys::listener(session);
    records::update(core.local.as_ref(), &key, Durability::Process, |old: Option<Listener>| match old {
        Some(old) if old == own => (Next::Remove, ()),
        Some(_) | None => (Next::Keep, ()),
    })
    .await
}

pub(crate) async fn deserted(core: &Core, harness: &str) -> Result<Vec<SessionRef>, StoreError> {
    let mut deserted = Vec::new();
    for view in record::sessions(core).await?.into_iter().filter(|view| view.record.session.harness == harness) {
        let session = view.record.session;
        if self::listener(core, &session).await?.is_some_and(|listener| !core.machine.lives(listener.process)) {
            deserted.push(session);
        }
    }
    Ok(deserted)
}

/// Whether a living process listens for a session.
pub(crate) async fn is_listened_to(core: &Core, session: &SessionRef) -> Result<bool, StoreError> {
    Ok(self::listener(core, session).await?.is_some_and(|listener| core.machine.lives(listener.process)))
}

/// Deletes the records of dead listeners whose sessions have ended.
pub(crate) async fn clean_up_listeners(core: &Core, dry_run: DryRun, tally: &mut Tally) -> Result<(), StoreError> {
    for key in core.local.list(&keys::listeners()).await? {
        let Some((revision, listener)) = records::load::<Listener>(core.local.as_ref(), &key).await? else { continue };
        let lives =
            record::session(core, &listener.session).await?.is_some_and(|view| view.activity != Activity::Ended);
        if lives || core.machine.lives(listener.process) {
            continue;
        }
        retention::remove_one(core, RecordKind::Listeners, (&key, revision), dry_run, tally).await?;
    }
    Ok(())
}

fn as_listener(core: &Core, session: &SessionRef) -> Listener {
    Listener { session: session.clone(), process: core.machine.this_process() }
}

async fn listener(core: &Core, session: &SessionRef) -> Result<Option<Listener>, StoreError> {
    let found = records::load::<Listener>(core.local.as_ref(), &keys::listener(session)).await?;
    Ok(found.map(|(_, listener)| listener))
}
