//! What a server tells of its threads.

use mcp::{LiveThread, ThreadsStatus};
use mesh::driven::DrivenStage;
use mesh::ports::machine::Machine as _;
use mesh::sessions::Principal;
use mesh::tool_threads::ThreadRow;

use super::begin::CODEX;
use super::{Shared, agent_of};
use crate::errors::CommandError;

impl Shared {
    pub(super) async fn threads(&self, caller: &Principal) -> Result<Vec<ThreadRow>, CommandError> {
        let agent = agent_of(caller)?;
        let rows = self.open.mesh.threads().await?;
        Ok(rows.into_iter().filter(|row| row.by.as_ref() == Some(&agent)).collect())
    }

    pub(super) async fn status(&self, caller: &Principal) -> Result<ThreadsStatus, CommandError> {
        let agent = agent_of(caller)?;
        let mut live = Vec::new();
        for record in self.open.mesh.driven_agents().await? {
            if record.tool.is_none() || record.by.as_ref() != Some(&agent) {
                continue;
            }
            let is_driven = record.stage(|driver| self.open.machine.runs(driver)) == DrivenStage::Driven;
            live.push(LiveThread {
                thread: record.session.clone().unwrap_or_else(|| record.id.to_string()),
                works: !record.given.is_empty() || !record.requests.is_empty(),
                alive: is_driven && record.mark.is_some() && record.session.is_some(),
                pending: self.waiting(&record.agent.name.parse()?).await?,
                agent: record.agent.name,
            });
        }
        let harness = self.open.mesh.harnesses().get(CODEX).await.ok().flatten();
        let version = match harness {
            Some(harness) => harness.present().await.ok().flatten(),
            None => None,
        };
        Ok(ThreadsStatus {
            identity: self.identity(CODEX),
            team: self.context.settings.team.value.clone(),
            role: self.context.settings.threads.role(),
            harness: CODEX.to_owned(),
            version,
            uptime: self.open.machine.now().since(self.began) / 1_000,
            live,
            pending: self.waiting(&agent).await?,
        })
    }
}
