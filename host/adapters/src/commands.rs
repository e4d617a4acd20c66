//! The interface that only some adapters export: running a harness's own commands.

use std::sync::Arc;

use mesh::command::Command;
use mesh::harness::{HarnessError, Means, Progress};
use mesh::session::Session;

use crate::adapter::Adapter;
use crate::bindings::further::RunsCommandsIndices;
use crate::convert::{from_guest, to_guest};

impl Adapter {
    /// By what a command would be run.
    pub(crate) async fn plan(&self, to: &Session, command: &Command) -> Result<Means, HarnessError> {
        let indices = self.indices()?;
        let (to, command) = (to_guest::session(to), to_guest::command(command));
        let means = self.ask("plan", |store, component| {
            Box::pin(async move {
                let commands = component.commands(store, &indices)?;
                commands.relay_adapter_commands().call_plan(store, &to, &command).await
            })
        });
        Ok(from_guest::means(means.await?))
    }

    /// Begins a command.
    pub(crate) async fn begin(&self, to: &Session, command: &Command) -> Result<Progress, HarnessError> {
        let indices = self.indices()?;
        let (to, command) = (to_guest::session(to), to_guest::command(command));
        let begun = self.ask("run", |store, component| {
            Box::pin(async move {
                let commands = component.commands(store, &indices)?;
                commands.relay_adapter_commands().call_run(store, &to, &command).await
            })
        });
        Ok(from_guest::progress(begun.await?))
    }

    /// Looks whether it has ended.
    pub(crate) async fn look_at(
        &self,
        to: &Session,
        command: &Command,
        begun: &Progress,
    ) -> Result<Progress, HarnessError> {
        let indices = self.indices()?;
        let (to, command, begun) = (to_guest::session(to), to_guest::command(command), to_guest::progress(begun));
        let seen = self.ask("watch", |store, component| {
            Box::pin(async move {
                let commands = component.commands(store, &indices)?;
                commands.relay_adapter_commands().call_watch(store, &to, &command, &begun).await
            })
        });
        Ok(from_guest::progress(seen.await?))
    }

    fn indices(&self) -> Result<Arc<RunsCommandsIndices>, HarnessError> {
        let none = || HarnessError::Unsupported(format!("the adapter `{}` runs no commands", self.name()));
        self.commands.clone().ok_or_else(none)
    }
}
