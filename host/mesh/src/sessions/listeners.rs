//! Who listens for a session: a connector inside its harness, by `relay-mesh listen`. A listener that was killed
//! leaves its record behind, and that says so.

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError};

use crate::core::Core;
use crate::ports::machine::Process;
use crate::sessions::record;
use crate::sessions::{Activity, SessionRef};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// Who listens for a session, as it is kept under `listeners/HARNESS/ID` in the local store.
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

/// Removes what listeners that died have left behind for sessions that are over.
pub(crate) async fn clean_up_listeners(core: &Core) -> Result<(), StoreError> {
    for key in core.local.list(&keys::listeners()).await? {
        let Some((_, listener)) = records::load::<Listener>(core.local.as_ref(), &key).await? else { continue };
        let lives =
            record::session(core, &listener.session).await?.is_some_and(|view| view.activity != Activity::Ended);
        if lives || core.machine.lives(listener.process) {
            continue;
        }
        records::update(core.local.as_ref(), &key, Durability::Process, |found: Option<Listener>| match found {
            Some(found) if found == listener => (Next::Remove, ()),
            Some(_) | None => (Next::Keep, ()),
        })
        .await?;
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
