//! Signs of life that an agent gives by itself, and waiting for those of others.

use std::time::Duration;

use store::{Durability, StoreError};

use crate::agents::presence::is_here;
use crate::agents::{Agent, Seen};
use crate::messages::LONGEST_LABEL;
use crate::names::AgentName;
use crate::sessions::Caller;
use crate::storage::keys;
use crate::storage::records::{self, Next};
use crate::{FindError, Mesh};

/// How often it is looked whether somebody is here whom no change in the store would announce: a process that
/// starts or ends changes none.
const LOOK: Duration = Duration::from_secs(1);

/// Why no sign of life was noted.
#[derive(Debug, thiserror::Error)]
pub enum HeartbeatError {
    /// The caller is not registered.
    #[error("you have not registered")]
    NotRegistered,
    /// The task is too long.
    #[error("the task has {0} bytes and may have {LONGEST_LABEL}")]
    TooLong(usize),
    /// The store failed.
    #[error("the sign of life could not be stored")]
    Store(#[from] StoreError),
}

impl Mesh {
    /// Notes that the caller's agent lives, and what it is doing where it says so. An empty task is none.
    pub async fn heartbeat(&self, caller: &Caller, task: Option<&str>) -> Result<Seen, HeartbeatError> {
        let name = caller.agent().ok_or(HeartbeatError::NotRegistered)?.clone();
        if let Some(task) = task.filter(|task| task.len() > LONGEST_LABEL) {
            return Err(HeartbeatError::TooLong(task.len()));
        }
        let agent = records::update(
            self.shared.as_ref(),
            &keys::meta(&name),
            Durability::Process,
            |old: Option<Agent>| match (old, task) {
                (None, _) => (Next::Keep, None),
                (Some(agent), None) => (Next::Keep, Some(agent)),
                (Some(mut agent), Some(task)) => {
                    agent.profile.task = (!task.is_empty()).then(|| task.to_owned());
                    (Next::Put(agent.clone()), Some(agent))
                }
            },
        )
        .await?;
        let agent = agent.ok_or(HeartbeatError::NotRegistered)?;
        let now = self.machine.now();
        match &agent.session {
            // A session's own record says when it was heard.
            Some(session) => self.change_session(session, |record| record.heard = now).await?,
            None => self.put_heartbeat(&name).await?,
        }
        Ok(self.seen(agent).await?)
    }

    /// Returns when all of these are here, live or idle: at once, or as soon as they are. Gives them in the same
    /// order. Cancel it to stop waiting.
    pub async fn here(&self, names: &[AgentName]) -> Result<Vec<Seen>, FindError> {
        // Watching begins before looking, so that nothing can come in between.
        let mut joining = self.shared.watch(&[keys::agents()]).await?;
        let mut living = self.local.watch(&[keys::sessions()]).await?;
        loop {
            let mut here = Vec::with_capacity(names.len());
            for name in names {
                match self.agent(name).await? {
                    Some(seen) if is_here(seen.presence) => here.push(seen),
                    Some(_) | None => break,
                }
            }
            if here.len() == names.len() {
                return Ok(here);
            }
            tokio::select! {
                changed = joining.changed() => changed?,
                changed = living.changed() => changed?,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Returns when one of these is no longer here, away or gone: at once, or as soon as it is. Gives those. Who is
    /// not registered is passed over. Cancel it to stop waiting.
    pub async fn stale(&self, names: &[AgentName]) -> Result<Vec<Seen>, FindError> {
        let mut living = self.local.watch(&[keys::sessions()]).await?;
        loop {
            let mut stale = Vec::new();
            for name in names {
                stale.extend(self.agent(name).await?.filter(|seen| !is_here(seen.presence)));
            }
            if !stale.is_empty() {
                return Ok(stale);
            }
            tokio::select! {
                changed = living.changed() => changed?,
                // That nothing is heard changes nothing in the store.
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }
}
