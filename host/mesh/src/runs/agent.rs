//! A run is an agent while it lives: it has a name, an inbox and a presence, and can hold reservations.

use store::{Durability, StoreError};

use crate::agents::{Profile, remote_presence};
use crate::names::AgentName;
use crate::ports::machine::{Life, Process};
use crate::runs::{RunId, RunRecord};
use crate::sessions::record;
use crate::sessions::{Activity, Evidence, Principal, Session, SessionRecord, SessionRef, Transport};
use crate::storage::keys;
use crate::{Mesh, RegisterError, Registration};

/// Why a run could not become an agent.
#[derive(Debug, thiserror::Error)]
pub enum RunAgentError {
    /// It could not be registered.
    #[error("the run could not join the mesh")]
    Register(#[from] RegisterError),
    /// Its session could not be noted.
    #[error("the run's session could not be noted")]
    Store(#[from] StoreError),
}

impl Mesh {
    /// A new run's id.
    pub fn new_run_id(&self) -> RunId {
        RunId(self.core.new_id(self.core.machine.now()))
    }

    /// Adds to the event log that a run began. Its task's text is not there.
    pub async fn note_run_started(&self, run: &RunRecord) {
        let details = serde_json::json!({ "id": run.id, "agent": run.agent, "harness": run.harness, "by": run.by });
        self.core.event_log.note("run-started", details).await;
    }

    /// Adds to the event log that a run ended, and how.
    pub async fn note_run_ended(&self, run: &RunRecord) {
        let ended = run.ended.as_ref();
        let details = serde_json::json!({
            "id": run.id, "agent": run.agent, "harness": run.harness, "by": run.by,
            "ended": ended.map(|end| end.ending.as_str()), "ok": ended.map(|end| end.ok),
        });
        self.core.event_log.note("run-ended", details).await;
    }

    /// Registers a run as an agent, under a session that it will have or that stands for it until it names its own.
    /// `process` shows that it lives. Returns the run as a caller.
    pub async fn run_joins(
        &self,
        session: SessionRef,
        process: u32,
        name: Option<AgentName>,
        profile: Profile,
    ) -> Result<Principal, RunAgentError> {
        let details = Session {
            id: session.id.clone(),
            parent: None,
            workdir: profile.project.clone().unwrap_or_default(),
            process: Some(process),
            route_hint: None,
        };
        let mut caller = Principal {
            session: Some((session.clone(), details)),
            connection: None,
            agent: None,
            evidence: Evidence::Call,
            owns_connection: false,
            transport: Transport::CommandLine,
            profile: profile.clone(),
        };
        // A run is over when the machine loses its power, and joins again when it is concluded: it need not wait for the
        // disk before its harness starts. But a record that was there before must not be lost with it.
        let is_there = match &name {
            Some(name) => self.core.shared.get(&keys::meta(name)).await.map_err(RegisterError::from)?.is_some(),
            None => false,
        };
        let durability = if is_there { Durability::Synced } else { Durability::Process };
        let wanted = Registration { name, team: None, profile };
        let registered = self.register_kept(&caller, wanted, durability).await?;
        caller.agent = Some(registered.agent.name);
        record::change_session(&self.core, &session, |record| record.activity = Activity::Busy).await?;
        Ok(caller)
    }

    /// Notes what a run turned out to be: its harness's session, and its program.
    pub async fn run_is(&self, caller: &mut Principal, session: &str, process: u32) -> Result<(), StoreError> {
        let Some((reference, details)) = &mut caller.session else { return Ok(()) };
        let old = reference.id.clone();
        details.id = session.to_owned();
        details.process = Some(process);
        reference.id = session.to_owned();
        record::observe(&self.core, &reference.harness, details, Some(Activity::Busy)).await?;
        record::rebind(&self.core, &reference.harness, &old, details).await?;
        record::change_session(&self.core, reference, |record| record.activity = Activity::Busy).await
    }

    /// The live session whose process, or whose client's, is among these, with its agent: what runs below a harness,
    /// although nothing in its environment says so.
    pub async fn session_of_process(
        &self,
        processes: &[u32],
    ) -> Result<Option<(SessionRef, Option<AgentName>)>, StoreError> {
        let is_above = |record: &SessionRecord| {
            let runs_here = |process: &Process| {
                processes.contains(&process.pid) && record::life_of(&self.core, record, *process) == Life::Runs
            };
            let of_client = record.client.as_ref().filter(|_| record.activity != Activity::Ended);
            record.process.iter().chain(of_client).any(runs_here)
        };
        let found = record::sessions(&self.core).await?.into_iter().map(|view| view.record).find(is_above);
        Ok(found.map(|record| (record.session, record.agent)))
    }

    /// The harness whose agent runs a process with these variables in its shell, as far as they show it.
    pub fn shell_of(&self, variables: &[(String, String)]) -> Option<String> {
        self.core.harnesses.shell_of(variables)
    }

    /// Notes that a run has ended.
    pub async fn run_leaves(&self, session: &SessionRef) -> Result<(), StoreError> {
        record::change_session(&self.core, session, |record| record.activity = Activity::Ended).await?;
        remote_presence::tell_of_session(&self.core, session).await;
        Ok(())
    }
}
