//! Reports this machine's sessions to other machines. Those see neither its processes nor its hooks, so each agent's
//! activity is written to the shared store when it changes, and periodically as a heartbeat.

use std::time::Duration;

use store::{Durability, Revision, StoreError};

use crate::agents;
use crate::agents::presence::Heartbeat;
use crate::core::Core;
use crate::delivery::serve::{self, Served};
use crate::sessions::archive;
use crate::sessions::connections::Connections;
use crate::sessions::record;
use crate::sessions::retention::{has_ended, sound};
use crate::sessions::{SessionRecord, SessionRef, ToldActivity};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// Heartbeat interval of a session in which nothing happens.
const BETWEEN_SIGNS: Duration = Duration::from_secs(60);

/// Reports a session's activity to other machines, unless they know it. Only logs an error: a heartbeat is not worth
/// failing a call.
pub(crate) async fn tell_of_session(core: &Core, session: &SessionRef) {
    if !core.topology.has_other_machines() {
        return;
    }
    let outcome = match record::session_record(core, session).await {
        Ok(Some(record)) => tell_of(core, &record).await,
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a session's activity is not reported to other machines");
    }
}

async fn tell_of(core: &Core, record: &SessionRecord) -> Result<(), StoreError> {
    let Some(name) = &record.agent else { return Ok(()) };
    let told = ToldActivity { at: core.machine.now(), activity: record::activity(core, record) };
    let enough = u64::try_from(BETWEEN_SIGNS.as_millis()).unwrap_or(u64::MAX);
    if record.told.is_some_and(|before| before.activity == told.activity && told.at.since(before.at) < enough) {
        return Ok(());
    }
    // The agent may have left this session.
    let agent = agents::list::load_agent(core, name).await?;
    let speaks = |agent: &crate::agents::Agent| {
        agent.machine == core.machine.name() && agent.session.as_ref() == Some(&record.session)
    };
    if !agent.as_ref().is_some_and(speaks) {
        return Ok(());
    }
    let beat = Heartbeat { at: told.at, activity: Some(told.activity) };
    let put = |_: Option<Heartbeat>| (Next::Put(beat), ());
    records::update(core.shared.as_ref(), &keys::heartbeat(name), Durability::Process, put).await?;
    let note = |old: Option<SessionRecord>| match old {
        Some(old) => (Next::Put(SessionRecord { told: Some(told), ..old }), ()),
        None => (Next::Keep, ()),
    };
    records::update(core.local.as_ref(), &keys::session(&record.session), Durability::Process, note).await
}

/// Puts the record of a session that has ended away, after other machines were told: what is put away, nobody tells
/// of any more. Where they cannot be told, the record stays.
pub(crate) async fn tell_of_end(core: &Core, revision: Revision, record: &SessionRecord) -> Result<(), StoreError> {
    if !core.topology.has_other_machines() || record.agent.is_none() {
        archive::put_away(core, revision, record).await;
        return Ok(());
    }
    tell_of(core, record).await?;
    if let Some((revision, told)) = records::load(core.local.as_ref(), &keys::session(&record.session)).await? {
        archive::put_away(core, revision, &told).await;
    }
    Ok(())
}

/// Writes heartbeats for the sessions that a process serves, and reports those that ended.
pub(crate) async fn keep_telling(core: &Core, connections: &Connections, served: &Served) {
    let mut tick = tokio::time::interval(BETWEEN_SIGNS);
    loop {
        tick.tick().await;
        if let Err(error) = tell_of_all(core, connections, served).await {
            tracing::debug!(%error, "this machine's sessions are not reported to other machines");
        }
    }
}

async fn tell_of_all(core: &Core, connections: &Connections, served: &Served) -> Result<(), StoreError> {
    match served {
        Served::Everyone => {
            for key in core.local.list(&keys::sessions()).await? {
                // A damaged record hides its own session alone.
                match sound::<SessionRecord>(core, &key).await? {
                    Some((revision, record)) if has_ended(core, &record) => {
                        tell_of_end(core, revision, &record).await?
                    }
                    Some((_, record)) => tell_of(core, &record).await?,
                    None => {}
                }
            }
        }
        Served::Connection(_) => {
            for (_, record) in serve::clients(core, connections, served).await? {
                tell_of_session(core, &record.session).await;
            }
        }
    }
    Ok(())
}
