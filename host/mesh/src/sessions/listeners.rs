//! Listeners of sessions: connectors inside the harness that run `relay-mesh listen`. A killed listener leaves its
//! record behind, which shows that it died.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError};

use crate::cleanup::{DryRun, RecordKind, Tally};
use crate::core::Core;
use crate::ports::machine::{Instant, Life, Process};
use crate::sessions::{Activity, SessionRef};
use crate::sessions::{heartbeat, record, retention};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// A session's listener, stored under `listeners/HARNESS/ID` in the local store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Listener {
    session: SessionRef,
    process: Process,
    /// When it last said that it lives: what readers in another PID namespace go by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    beat: Option<Instant>,
}

impl Listener {
    fn is_due(&self, core: &Core) -> bool {
        self.beat.is_none_or(|beat| heartbeat::is_due(core, beat, core.machine.now()))
    }

    /// Whether it listens. One of another PID namespace does while its heartbeat is fresh.
    fn is_here(&self, core: &Core) -> bool {
        match core.machine.life(self.process) {
            Life::Runs => true,
            Life::Ended => false,
            Life::Unknown => {
                let now = core.machine.now();
                self.beat.is_some_and(|beat| now.since(beat) < core.limits.away_after)
            }
        }
    }
}

pub(crate) async fn listens_for(core: &Core, session: &SessionRef) -> Result<(), StoreError> {
    let own = as_listener(core, session);
    let key = keys::listener(session);
    records::update(core.local.as_ref(), &key, Durability::Process, |old: Option<Listener>| match old {
        Some(old) if old.process.is(&own.process) && !old.is_due(core) => (Next::Keep, ()),
        Some(old) if !old.process.is(&own.process) && old.is_here(core) => (Next::Keep, ()),
        Some(_) | None => (Next::Put(own.clone()), ()),
    })
    .await?;
    heartbeat::beat(core, session).await
}

/// How often a process that listens for a session has to say so.
pub(crate) fn interval(core: &Core) -> Duration {
    heartbeat::interval(core)
}

pub(crate) async fn listens_no_more(core: &Core, session: &SessionRef) -> Result<(), StoreError> {
    let own = as_listener(core, session);
    let key = keys::listener(session);
    records::update(core.local.as_ref(), &key, Durability::Process, |old: Option<Listener>| match old {
        Some(old) if old.process.is(&own.process) => (Next::Remove, ()),
        Some(_) | None => (Next::Keep, ()),
    })
    .await
}

pub(crate) async fn deserted(core: &Core, harness: &str) -> Result<Vec<SessionRef>, StoreError> {
    let mut deserted = Vec::new();
    for view in record::sessions(core).await?.into_iter().filter(|view| view.record.session.harness == harness) {
        let session = view.record.session;
        if self::listener(core, &session).await?.is_some_and(|listener| !listener.is_here(core)) {
            deserted.push(session);
        }
    }
    Ok(deserted)
}

/// Whether a living process listens for a session.
pub(crate) async fn is_listened_to(core: &Core, session: &SessionRef) -> Result<bool, StoreError> {
    Ok(self::listener(core, session).await?.is_some_and(|listener| listener.is_here(core)))
}

/// Deletes the records of dead listeners whose sessions have ended.
pub(crate) async fn clean_up_listeners(core: &Core, dry_run: DryRun, tally: &mut Tally) -> Result<(), StoreError> {
    for key in core.local.list(&keys::listeners()).await? {
        let Some((revision, listener)) = retention::sound::<Listener>(core, &key).await? else { continue };
        let lives = match record::session(core, &listener.session).await {
            Ok(view) => view.is_some_and(|view| view.activity != Activity::Ended),
            // Of one that cannot be read, nobody knows.
            Err(StoreError::Damaged { .. }) => true,
            Err(error) => return Err(error),
        };
        if lives || listener.is_here(core) {
            continue;
        }
        retention::remove_one(core, RecordKind::Listeners, (&key, revision), dry_run, tally).await?;
    }
    Ok(())
}

fn as_listener(core: &Core, session: &SessionRef) -> Listener {
    Listener { session: session.clone(), process: core.machine.this_process(), beat: Some(core.machine.now()) }
}

async fn listener(core: &Core, session: &SessionRef) -> Result<Option<Listener>, StoreError> {
    let found = records::load::<Listener>(core.local.as_ref(), &keys::listener(session)).await?;
    Ok(found.map(|(_, listener)| listener))
}
