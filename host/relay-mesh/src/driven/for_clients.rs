//! Driven agents for the clients of an MCP server: what the tools of `mcp` ask for, under the rules of the command line.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp::{ReleaseAnswer, RunRefusal, SpawnAnswer, SpawnHost};
use mesh::driven::{RequestKind, WantedAgent};
use mesh::sessions::Principal;

use super::asking;
use super::begin;
use super::permission::{self, PermissionOutcome};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::runs::for_clients::{folder_of, refusal};

/// The driven agents of one server.
pub(crate) struct ClientAgents {
    context: Context,
    open: Arc<Open>,
}

impl ClientAgents {
    pub(crate) fn new(context: &Context, open: Arc<Open>) -> ClientAgents {
        ClientAgents { context: context.at(context.workdir.clone()), open }
    }

    async fn started(
        &self,
        caller: &Principal,
        wanted: WantedAgent,
        folder: Option<&str>,
        most: Duration,
    ) -> Result<SpawnAnswer, CommandError> {
        let wanted = WantedAgent { folder: folder_of(&self.context, caller, folder)?, ..wanted };
        let asker = permission::of_client(&self.context, &self.open, caller).await?;
        let begun = match permission::ask_for(&self.context, &self.open, &asker, wanted).await? {
            PermissionOutcome::Begun(begun) => begun,
            PermissionOutcome::Waits(ask) => return Ok(SpawnAnswer::Waits { question: ask.id.to_string() }),
        };
        self.open.mesh.want_driving(true).await?;
        let agent = begun.record.agent.name.clone();
        let started = begin::started(&self.context, &self.open, &begun.record);
        match tokio::time::timeout(most, started).await {
            Ok(started) => started.map(|_| SpawnAnswer::Started { agent, notes: begun.notes }),
            Err(_) => Ok(SpawnAnswer::Starting { agent }),
        }
    }

    async fn released(
        &self,
        caller: &Principal,
        name: &str,
        summary: bool,
        most: Duration,
    ) -> Result<ReleaseAnswer, CommandError> {
        let asker = permission::of_client(&self.context, &self.open, caller).await?;
        let by = permission::may_dismiss(&self.open, &asker, name).await?;
        let record = self.open.mesh.driven_named(name).await?;
        if record.ended.is_some() {
            return Ok(ReleaseAnswer::Ended(record.outcomes.into_iter().rev().find_map(|outcome| outcome.note)));
        }
        let request = (name, RequestKind::Dismiss { summary });
        match asking::done(&self.context, &self.open, request, Some(&by), most).await {
            Ok((_, outcome)) => Ok(ReleaseAnswer::Ended(outcome.note)),
            Err(error) if error.exit() == Exit::TimedOut => Ok(ReleaseAnswer::Ending),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl SpawnHost for ClientAgents {
    async fn spawn(
        &self,
        caller: &Principal,
        wanted: WantedAgent,
        folder: Option<&str>,
        most: Duration,
    ) -> Result<SpawnAnswer, RunRefusal> {
        self.started(caller, wanted, folder, most).await.map_err(|error| refusal(&error))
    }

    async fn release(
        &self,
        caller: &Principal,
        name: &str,
        summary: bool,
        most: Duration,
    ) -> Result<ReleaseAnswer, RunRefusal> {
        self.released(caller, name, summary, most).await.map_err(|error| refusal(&error))
    }
}
