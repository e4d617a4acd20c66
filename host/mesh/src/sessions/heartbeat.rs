//! Heartbeats of sessions: while a process of ours serves a session, it says so in the session's record from time to
//! time. Readers that see the session's process do without; to those in another PID namespace, such as a container
//! that shares the data folder, it is all that tells an idle session from a dead one.

use std::time::Duration;

use store::{Durability, StoreError};

use crate::core::Core;
use crate::delivery::serve::{self, Served};
use crate::ports::machine::{Instant, Life};
use crate::sessions::connections::Connections;
use crate::sessions::record;
use crate::sessions::{Activity, SessionRecord, SessionRef};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// Milliseconds between two heartbeats of a session in which nothing happens.
const BETWEEN: u64 = 60_000;

/// How often a session has to be said to live: several times before silence counts.
pub(crate) fn interval(core: &Core) -> Duration {
    Duration::from_millis(between(core))
}

fn between(core: &Core) -> u64 {
    BETWEEN.min(core.limits.away_after / 3).max(1_000)
}

/// Says from time to time that the sessions live which this process serves.
pub(crate) async fn keep_beating(core: &Core, connections: &Connections, served: &Served) {
    let mut tick = tokio::time::interval(interval(core));
    loop {
        tick.tick().await;
        if let Err(error) = beat_all(core, connections, served).await {
            tracing::debug!(%error, "readers in other PID namespaces do not hear of this process's sessions");
        }
    }
}

pub(crate) async fn beat_all(core: &Core, connections: &Connections, served: &Served) -> Result<(), StoreError> {
    for (_, record) in serve::clients(core, connections, served).await? {
        if is_seen(core, &record, served) {
            beat(core, &record.session).await?;
        }
    }
    Ok(())
}

/// Whether this process can say that a session lives. One that moved to another namespace is said to live there.
fn is_seen(core: &Core, record: &SessionRecord, served: &Served) -> bool {
    let lives = match (record::life(core, record), served) {
        (Some(Life::Runs), _) | (None, Served::Connection(_)) => true,
        (Some(Life::Ended | Life::Unknown), _) | (None, Served::Everyone) => false,
    };
    lives && record.activity != Activity::Ended && !record.shown_by.is_calls()
}

/// Notes that a session lives, unless that was noted just now.
pub(crate) async fn beat(core: &Core, session: &SessionRef) -> Result<(), StoreError> {
    let now = core.machine.now();
    let beat = |old: Option<SessionRecord>| match old {
        Some(record) if !is_due(core, record.last_sign(), now) => (Next::Keep, ()),
        Some(record) => (Next::Put(SessionRecord { beat: Some(now), ..record }), ()),
        None => (Next::Keep, ()),
    };
    records::update(core.local.as_ref(), &keys::session(session), Durability::Process, beat).await
}

/// Whether a sign of life is old enough for another one. One from the future was noted by a clock that was wrong.
pub(crate) fn is_due(core: &Core, last: Instant, now: Instant) -> bool {
    last > now || now.since(last) >= between(core) / 2
}
