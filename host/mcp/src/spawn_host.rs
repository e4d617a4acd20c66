//! What the tools about driven agents ask of the process that they are served by.

use std::time::Duration;

use async_trait::async_trait;
use mesh::driven::WantedAgent;
use mesh::sessions::Principal;

use crate::run_host::RunRefusal;

/// What came of asking for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpawnAnswer {
    /// It is here.
    Started {
        /// Its name.
        agent: String,
        /// What its spawner should know.
        notes: Vec<String>,
    },
    /// It begins, and has no session yet.
    Starting {
        /// Its name.
        agent: String,
    },
    /// The user is asked first; what comes of it is told by mail.
    Waits {
        /// The question's id.
        question: String,
    },
}

/// What came of asking to dismiss one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseAnswer {
    /// It has ended, with its summary if one was asked for and came.
    Ended(Option<String>),
    /// It is ending.
    Ending,
}

/// Starts and dismisses driven agents for the clients of this server. Who asks is known by evidence.
#[async_trait]
pub trait SpawnHost: Send + Sync {
    /// Starts an agent, if the user allows it; else asks them. `folder` is as the caller names it.
    async fn spawn(
        &self,
        caller: &Principal,
        wanted: WantedAgent,
        folder: Option<&str>,
        most: Duration,
    ) -> Result<SpawnAnswer, RunRefusal>;
    /// Dismisses an agent that this caller has had started.
    async fn release(
        &self,
        caller: &Principal,
        name: &str,
        summary: bool,
        most: Duration,
    ) -> Result<ReleaseAnswer, RunRefusal>;
}
