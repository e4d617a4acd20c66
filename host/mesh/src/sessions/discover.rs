//! The roster: every session that lives on this machine, also those that have not joined.

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

/// The route by which an adapter tells the person and not the session.
pub(crate) const NOTIFICATION: &str = "notification";
/// What stands in the place of a route where somebody listens for the session: a connector inside its harness.
pub(crate) const LISTEN: &str = "listen";

/// A session that lives, as far as anybody can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rostered {
    /// Which.
    pub session: SessionRef,
    /// The root session, where this one is a subagent's.
    pub parent: Option<String>,
    /// The folder that it works in; empty where that is not known.
    pub workdir: String,
    /// The agent that is bound to it.
    pub agent: Option<AgentName>,
    /// What it does; none where nobody says so.
    pub activity: Option<Activity>,
    /// When it was last heard of; none where only its harness knows it.
    pub heard: Option<Instant>,
    /// By what it can be woken while it is idle, in the order in which it is tried: `listen` where somebody listens
    /// for it, and the routes of its adapter.
    pub wakes_by: Vec<String>,
    /// Whether its person can be told that something waits for it.
    pub tells_person: bool,
}

/// Everybody who is here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// The sessions, by harness and id.
    pub sessions: Vec<Rostered>,
    /// Harnesses that could not be asked, and why.
    pub faults: Vec<(String, HarnessError)>,
}

/// Why there is no roster.
#[derive(Debug, thiserror::Error)]
pub enum RosterError {
    /// No adapter has that name.
    #[error("no adapter is named `{0}`")]
    UnknownHarness(String),
    /// The store failed.
    #[error("the sessions could not be read")]
    Store(#[from] StoreError),
}

/// A session with everything that waking it needs.
pub(crate) struct Found {
    pub(crate) harness: Arc<dyn Harness>,
    pub(crate) session: Session,
    /// What is kept of it; none where only its harness knows it.
    pub(crate) record: Option<SessionRecord>,
    pub(crate) activity: Option<Activity>,
    /// The adapter's routes, without a wake file that it does not hear.
    pub(crate) routes: Vec<Route>,
    /// Whether somebody listens for it.
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
            tells_person: found.routes.iter().any(|route| route.name == NOTIFICATION),
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

/// The same, with what must not be shown. A harness that keeps no list is asked for nothing more.
pub(crate) async fn find_sessions(
    core: &Core,
    only: Option<&str>,
) -> Result<(Vec<Found>, Vec<(String, HarnessError)>), RosterError> {
    let names = match only {
        Some(name) => vec![name.to_owned()],
        None => core.harnesses.names(),
    };
    let mut kept = Vec::new();
    for view in record::sessions(core).await? {
        // The list hides what a route needs.
        kept.extend(record::session_record(core, &view.record.session).await?.map(|record| (record, view.activity)));
    }
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
            let session = told.map_or_else(|| of_record(record), |told| merged(told, record));
            all.push(
                found(core, Arc::clone(&harness), session, Some(record.clone()), Some(*activity), &mut faults).await?,
            );
        }
        for session in discovered {
            if kept.iter().any(|(record, _)| record.session.harness == name && record.session.id == session.id) {
                continue;
            }
            let activity = harness.activity_of(&session.id).await.ok();
            // A list outlives whoever crashed: a process that does not run has no session.
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
) -> Result<Found, StoreError> {
    let watches_wake_file = record.as_ref().is_some_and(|record| record.watches_wake_file);
    let routes = match harness.routes(&session).await {
        Ok(routes) => routes.into_iter().filter(|route| route.name != ROUTE || watches_wake_file).collect(),
        Err(error) => {
            faults.push((harness.about().harness.clone(), error));
            Vec::new()
        }
    };
    let mut found = Found { harness, session, record, activity, routes, is_listened_to: false };
    found.is_listened_to = listeners::is_listened_to(core, &found.reference()).await?;
    Ok(found)
}

impl Found {
    /// Which session it is.
    pub(crate) fn reference(&self) -> SessionRef {
        SessionRef { harness: self.harness.about().harness.clone(), id: self.session.id.clone() }
    }

    /// The routes that wake it while it is idle.
    pub(crate) fn waking(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter().filter(|route| route.name != NOTIFICATION && route.when.contains(&Activity::Idle))
    }

    /// Everything that wakes it while it is idle, by name.
    pub(crate) fn wakes_by(&self) -> Vec<&str> {
        let listener = self.is_listened_to.then_some(LISTEN);
        listener.into_iter().chain(self.waking().map(|route| route.name.as_str())).collect()
    }
}

/// A session as its record tells it.
pub(crate) fn of_record(record: &SessionRecord) -> Session {
    Session {
        id: record.session.id.clone(),
        parent: record.parent.clone(),
        workdir: record.workdir.clone(),
        process: record.process.map(|process| process.pid),
        route_hint: record.route_hint.clone(),
    }
}

/// What the harness says now comes before what was kept.
fn merged(told: &Session, record: &SessionRecord) -> Session {
    let kept = of_record(record);
    Session {
        id: kept.id,
        parent: told.parent.clone().or(kept.parent),
        workdir: if told.workdir.is_empty() { kept.workdir } else { told.workdir.clone() },
        process: told.process.or(kept.process),
        route_hint: told.route_hint.clone().or(kept.route_hint),
    }
}
