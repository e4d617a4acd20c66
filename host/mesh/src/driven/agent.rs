//! A driven agent as an agent of the mesh: it joins under its harness's session, and its presence is what its harness
//! reports.

use store::StoreError;

use crate::Mesh;
use crate::agents::{Profile, remote_presence};
use crate::names::AgentName;
use crate::runs::RunAgentError;
use crate::sessions::{Activity, Principal, SessionRecord, SessionRef, record};

impl Mesh {
    /// Registers a driven agent under a session, as certain: the host has begun that session itself. `process` shows that
    /// it lives. Returns it as a caller.
    pub async fn driven_joins(
        &self,
        session: SessionRef,
        process: u32,
        name: AgentName,
        profile: Profile,
    ) -> Result<Principal, RunAgentError> {
        let caller = self.run_joins(session.clone(), process, Some(name), profile).await?;
        self.driven_does(&session, Activity::Idle).await?;
        Ok(caller)
    }

    /// Notes what a driven agent's session does now.
    pub async fn driven_does(&self, session: &SessionRef, activity: Activity) -> Result<(), StoreError> {
        let does = |record: &mut SessionRecord| {
            record.driven = true;
            record.watches_wake_file = false;
            record.activity = activity;
        };
        record::change_session(&self.core, session, does).await?;
        remote_presence::tell_of_session(&self.core, session).await;
        Ok(())
    }
}
