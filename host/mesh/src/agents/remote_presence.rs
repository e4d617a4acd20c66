//! What other machines are told of the sessions of this one. They see neither its processes nor its hooks,
//! so what an agent does is written where they look, when it changes and as a sign of life in between.

use std::time::Duration;

use store::{Durability, StoreError};

use crate::agents;
use crate::agents::presence::Heartbeat;
use crate::core::Core;
use crate::delivery::serve::Served;
use crate::sessions::connections::Connections;
use crate::sessions::record;
use crate::sessions::{SessionRecord, SessionRef, ToldActivity};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// How long other machines go without a sign of life of a session in which nothing happens.
const BETWEEN_SIGNS: Duration = Duration::from_secs(60);

/// Tells other machines what a session does, where they have not been told. A sign of life is worth
/// failing nothing for.
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
        tracing::debug!(%error, "other machines are not told what a session does");
    }
}

async fn tell_of(core: &Core, record: &SessionRecord) -> Result<(), StoreError> {
    let Some(name) = &record.agent else { return Ok(()) };
    let told = ToldActivity { at: core.machine.now(), activity: record::activity(core, record) };
    let enough = u64::try_from(BETWEEN_SIGNS.as_millis()).unwrap_or(u64::MAX);
    if record.told.is_some_and(|before| before.activity == told.activity && told.at.since(before.at) < enough) {
        return Ok(());
    }
    // A session that its agent has left speaks for nobody.
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

/// Gives signs of life of the sessions that a process serves, and tells of those that have ended.
pub(crate) async fn keep_telling(core: &Core, connections: &Connections, served: &Served) {
    let mut tick = tokio::time::interval(BETWEEN_SIGNS);
    loop {
        tick.tick().await;
        if let Err(error) = tell_of_all(core, connections, served).await {
            tracing::debug!(%error, "other machines are not told what happens here");
        }
    }
}

async fn tell_of_all(core: &Core, connections: &Connections, served: &Served) -> Result<(), StoreError> {
    match served {
        Served::Everyone => {
            for key in core.local.list(&keys::sessions()).await? {
                if let Some((_, record)) = records::load::<SessionRecord>(core.local.as_ref(), &key).await? {
                    tell_of(core, &record).await?;
                }
            }
        }
        Served::Connection(connection) => {
            for agent in connections.agents_by(connection) {
                if let Some(session) = agents::list::load_agent(core, &agent).await?.and_then(|agent| agent.session) {
                    tell_of_session(core, &session).await;
                }
            }
        }
    }
    Ok(())
}
