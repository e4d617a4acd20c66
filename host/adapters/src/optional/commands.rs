//! `commands`: running the harness's own slash commands in a live session.

use std::sync::Arc;

use async_trait::async_trait;
use mesh::commands::Command;
use mesh::ports::harness::{HarnessCommands, HarnessError, Means, Progress, ProgressStage};
use mesh::sessions::Session;

use crate::adapter::Adapter;
use crate::convert::{from_guest, to_guest};

use bindings::exports::relay::adapter::commands;

pub(super) use bindings::RunsCommandsIndices as Indices;

mod bindings {
    wasmtime::component::bindgen!({
        path: "wit",
        world: "relay:adapter/runs-commands",
        exports: { default: async },
        with: { "relay:adapter/types": crate::bindings::relay::adapter::types },
    });
}

#[async_trait]
impl HarnessCommands for Adapter {
    async fn plan(&self, to: &Session, command: &Command) -> Result<Means, HarnessError> {
        let indices = self.command_indices()?;
        let (to, command) = (to_guest::session(to), command_to_guest(command));
        let means = self.ask("plan", |store, component| {
            Box::pin(async move {
                let exports = indices.load(&mut *store, component.raw())?;
                exports.relay_adapter_commands().call_plan(store, &to, &command).await
            })
        });
        Ok(means_from_guest(means.await?))
    }

    async fn run(&self, to: &Session, command: &Command) -> Result<Progress, HarnessError> {
        let indices = self.command_indices()?;
        let (to, command) = (to_guest::session(to), command_to_guest(command));
        let begun = self.ask("run", |store, component| {
            Box::pin(async move {
                let exports = indices.load(&mut *store, component.raw())?;
                exports.relay_adapter_commands().call_run(store, &to, &command).await
            })
        });
        Ok(progress_from_guest(begun.await?))
    }

    async fn watch(&self, to: &Session, command: &Command, begun: &Progress) -> Result<Progress, HarnessError> {
        let indices = self.command_indices()?;
        let (to, command, begun) = (to_guest::session(to), command_to_guest(command), progress_to_guest(begun));
        let progress = self.ask("watch", |store, component| {
            Box::pin(async move {
                let exports = indices.load(&mut *store, component.raw())?;
                exports.relay_adapter_commands().call_watch(store, &to, &command, &begun).await
            })
        });
        Ok(progress_from_guest(progress.await?))
    }
}

impl Adapter {
    fn command_indices(&self) -> Result<Arc<Indices>, HarnessError> {
        let none = || HarnessError::Unsupported(format!("the adapter `{}` runs no commands", self.name()));
        self.exported.commands.clone().ok_or_else(none)
    }
}

fn command_to_guest(command: &Command) -> commands::Command {
    commands::Command {
        id: command.id.to_string(),
        name: command.command.bare().to_owned(),
        arguments: command.arguments.clone(),
    }
}

fn means_from_guest(means: commands::Means) -> Means {
    Means { name: means.name, when: means.when.into_iter().map(from_guest::activity).collect() }
}

fn progress_from_guest(progress: commands::Progress) -> Progress {
    Progress {
        stage: match progress.stage {
            commands::Stage::Begun => ProgressStage::Begun,
            commands::Stage::Succeeded => ProgressStage::Succeeded,
            commands::Stage::Failed => ProgressStage::Failed,
        },
        said: progress.said,
        evidence: progress.evidence,
    }
}

fn progress_to_guest(progress: &Progress) -> commands::Progress {
    commands::Progress {
        stage: match progress.stage {
            ProgressStage::Begun => commands::Stage::Begun,
            ProgressStage::Succeeded => commands::Stage::Succeeded,
            ProgressStage::Failed => commands::Stage::Failed,
        },
        said: progress.said.clone(),
        evidence: progress.evidence.clone(),
    }
}
