//! The roster: every live session of this machine, also those that have not joined.

use std::sync::Arc;

use store::StoreError;

use crate::core::Core;
use crate::delivery::wake_file::ROUTE;
use crate::names::AgentName;
use crate::ports::harness::{Harness, HarnessError, Route};
use crate::ports::machine::Instant;
use crate::sessions::listeners;
use crate::sessions::record;
use crate::sessions::{Activity, Session, SessionRecord, SessionRef};

/// The route by which an adapter notifies the user instead of the session.
pub(crate) const NOTIFICATION: &str = "notification";
/// The pseudo-route of a session that has a listener: a connector inside its harness.
pub(crate) const LISTEN: &str = "listen";

/// A session that is alive as far as its process and its harness show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rostered {
    /// The session's harness and id.
    pub session: SessionRef,
    /// The root session, if this one is a subagent's.
    pub parent: Option<String>,
    /// The folder it works in; empty if unknown.
    pub workdir: String,
    /// The agent that is bound to it.
    pub agent: Option<AgentName>,
    /// Its activity; `None` if unknown.
    pub activity: Option<Activity>,
    /// Its last sign of life; `None` if only its harness knows the session.
    pub heard: Option<Instant>,
    /// Routes that can wake it while idle, in order: `listen` if it has a listener, then the adapter's.
    pub wakes_by: Vec<String>,
    /// Whether its user can be notified that mail waits.
    pub tells_user: bool,
}

/// The live sessions of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// The sessions, by harness and id.
    pub sessions: Vec<Rostered>,
    /// Harnesses that could not be asked, and why.
    pub faults: Vec<(String, HarnessError)>,
}

/// Why the roster could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RosterError {
    /// No adapter has that name.
    #[error("no adapter is named `{0}`")]
    UnknownHarness(String),
    /// The store failed.
    #[error("the sessions could not be read")]
    Store(#[from] StoreError),
}

/// A session, with all that is needed to wake it.
pub(crate) struct WakeableSession {
    pub(crate) harness: Arc<dyn Harness>,
    pub(crate) session: Session,
    /// Its record; `None` if only its harness knows it.
    pub(crate) record: Option<SessionRecord>,
    pub(crate) activity: Option<Activity>,
    /// The adapter's routes, without a wake file that the session does not watch.
    pub(crate) routes: Vec<Route>,
    pub(crate) is_listened_to: bool,
}

pub(crate) async fn roster(core: &Core, harness: Option<&str>) -> Result<Roster, RosterError> {
    let (found, faults) = find_sessions(core, harness).await?;
    let mut sessions = Vec::new();
    for found in found {
        let session = found.reference();
        let agent = record::agent_of(core, &session).await?;
        let wakes_by = found.wakes_by().into_iter().map(str::to_owned).collect();
        sessions.push(Rostered {
            agent,
            wakes_by,
            tells_user: found.routes.iter().any(|route| route.name == NOTIFICATION),
            heard: found.record.as_ref().map(|record| record.heard),
            activity: found.activity,
            parent: found.session.parent,
            workdir: found.session.workdir,
            session,
        });
    }
    sessions.sort_by(|one, other| one.session.cmp(&other.session));
    Ok(Roster { sessions, faults })
}

/// Like `roster`, but with route hints, which must not be shown. A harness that cannot list its sessions contributes
/// only those on record.
pub(crate) async fn find_sessions(
    core: &Core,
    only: Option<&str>,
) -> Result<(Vec<WakeableSession>, Vec<(String, HarnessError)>), RosterError> {
    let names = match only {
        Some(name) => vec![name.to_owned()],
        None => core.harnesses.names(),
    };
    let kept = record::live_sessions(core).await?;
    let mut all = Vec::new();
    let mut faults = Vec::new();
    for name in names {
        let harness = match core.harnesses.get(&name).await {
            Ok(Some(harness)) => harness,
            Ok(None) if only.is_some() => return Err(RosterError::UnknownHarness(name)),
            Ok(None) => continue,
            Err(error) => {
                faults.push((name, error));
                continue;
            }
        };
        let name = harness.about().harness.clone();
        let discovered = match harness.discover().await {
            Ok(discovered) => discovered,
            Err(HarnessError::Unsupported(_)) => Vec::new(),
            Err(error) => {
                faults.push((name.clone(), error));
                Vec::new()
            }
        };
        let ours = kept.iter().filter(|(record, _)| record.session.harness == name);
        for (record, activity) in ours {
            let told = discovered.iter().find(|session| session.id == record.session.id);
            let session = told.map_or_else(|| of_record(core, record), |told| merged(core, told, record));
            all.push(
                found(core, Arc::clone(&harness), session, Some(record.clone()), Some(*activity), &mut faults).await?,
            );
        }
        for session in discovered {
            if kept.iter().any(|(record, _)| record.session.harness == name && record.session.id == session.id) {
                continue;
            }
            let activity = harness.activity_of(&session.id).await.ok();
            // A harness's list may still have crashed sessions: skip those whose process does not run.
            let died = session.process.is_some_and(|pid| core.machine.process(pid).is_none());
            if !died && activity != Some(Activity::Ended) {
                all.push(found(core, Arc::clone(&harness), session, None, activity, &mut faults).await?);
            }
        }
    }
    Ok((all, faults))
}

async fn found(
    core: &Core,
    harness: Arc<dyn Harness>,
    session: Session,
    record: Option<SessionRecord>,
    activity: Option<Activity>,
    faults: &mut Vec<(String, HarnessError)>,
) -> Result<WakeableSession, StoreError> {
    let watches_wake_file = record.as_ref().is_some_and(|record| record.watches_wake_file);
    let routes = match harness.routes(&session).await {
        Ok(routes) => routes.into_iter().filter(|route| route.name != ROUTE || watches_wake_file).collect(),
        Err(error) => {
            faults.push((harness.about().harness.clone(), error));
            Vec::new()
        }
    };
    let mut found = WakeableSession { harness, session, record, activity, routes, is_listened_to: false };
    found.is_listened_to = listeners::is_listened_to(core, &found.reference()).await?;
    Ok(found)
}

impl WakeableSession {
    pub(crate) fn reference(&self) -> SessionRef {
        SessionRef { harness: self.harness.about().harness.clone(), id: self.session.id.clone() }
    }

    /// The routes that wake it while it is idle.
    pub(crate) fn waking(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter().filter(|route| route.name != NOTIFICATION && route.when.contains(&Activity::Idle))
    }

    pub(crate) fn wakes_by(&self) -> Vec<&str> {
        let listener = self.is_listened_to.then_some(LISTEN);
        listener.into_iter().chain(self.waking().map(|route| route.name.as_str())).collect()
    }
}

pub(crate) fn of_record(core: &Core, record: &SessionRecord) -> Session {
    Session {
        id: record.session.id.clone(),
        parent: record.parent.clone(),
        workdir: record.workdir.clone(),
        // An adapter looks processes up by their numbers here.
        process: record.process.filter(|process| record::is_of_here(core, process)).map(|process| process.pid),
        route_hint: record.route_hint.clone(),
    }
}

/// Prefers what the harness reports now over the record.
fn merged(core: &Core, told: &Session, record: &SessionRecord) -> Session {
    let kept = of_record(core, record);
    Session {
        id: kept.id,
        parent: told.parent.clone().or(kept.parent),
        workdir: if told.workdir.is_empty() { kept.workdir } else { told.workdir.clone() },
        process: told.process.or(kept.process),
        route_hint: told.route_hint.clone().or(kept.route_hint),
    }
}
