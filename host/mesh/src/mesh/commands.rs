//! The verbs of commands.

use crate::Mesh;
use crate::commands::order::{FinishError, Order, OrderError, TakeError};
use crate::commands::run::Runner;
use crate::commands::{Command, Ended, order, run};
use crate::names::{AgentName, MessageId};
use crate::sessions::{Principal, SessionRef};
use store::{Hold, StoreError};

impl Mesh {
    /// Returns when nothing more will become of a command: when it ended, expired or was removed. Cancel it to
    /// stop waiting.
    pub async fn command_ended(&self, id: MessageId) -> Result<Option<Command>, StoreError> {
        order::command_ended(&self.core, id).await
    }

    /// Returns when a command waits for the caller's agent: at once, or as soon as there is one. It is not taken
    /// yet. Cancel it to stop waiting.
    pub async fn command_waits(&self, caller: &Principal) -> Result<(), TakeError> {
        order::command_waits(&self.core, caller).await
    }

    /// Asks an agent to run a command. It is on disk when this returns.
    pub async fn order(&self, caller: &Principal, order: Order) -> Result<Command, OrderError> {
        order::order(&self.core, &self.remote, caller, order).await
    }

    /// Ends a command that the caller's agent took, once.
    pub async fn finish_command(
        &self,
        caller: &Principal,
        id: MessageId,
        ended: Ended,
        result: &str,
    ) -> Result<Command, FinishError> {
        order::finish_command(&self.core, caller, id, ended, result).await
    }

    /// Takes the oldest command that waits for the caller's agent. Each is given to one taker alone.
    pub async fn take_command(&self, caller: &Principal) -> Result<Option<Command>, TakeError> {
        order::take_command(&self.core, caller).await
    }

    /// Commands, oldest first: all, or those for one agent.
    pub async fn commands(&self, to: Option<&AgentName>) -> Result<Vec<Command>, StoreError> {
        order::commands(&self.core, to).await
    }

    /// Returns when there is another reason than this why a command waits, and gives it; also when it has been
    /// taken, where there was one. Cancel it to stop waiting.
    pub async fn command_news(&self, id: MessageId, known: Option<&str>) -> Result<Option<String>, StoreError> {
        order::command_news(&self.core, id, known).await
    }

    /// One command.
    pub async fn command(&self, id: MessageId) -> Result<Option<Command>, StoreError> {
        order::command(&self.core, id).await
    }

    /// The right to run commands in a session, for as long as it is kept; none where another process has it.
    pub async fn hold_commands(&self, session: &SessionRef) -> Result<Option<Box<dyn Hold>>, StoreError> {
        run::hold_commands(&self.core, session).await
    }

    /// Forgets why commands wait that are allowed by now, so that whoever runs them looks again. Gives them.
    pub async fn look_again(&self) -> Result<Vec<Command>, StoreError> {
        run::look_again(&self.core).await
    }

    /// Watches what may change whether a command can be run.
    pub async fn watch_for_commands(&self) -> Result<Box<dyn store::Watch>, StoreError> {
        run::watch_for_commands(&self.core).await
    }

    /// Looks through what waits for an agent and runs what may be run, one after the other, by whoever holds
    /// [`Mesh::hold_commands`]. Gives after how many milliseconds it is worth another look; none where only a
    /// change in the store is.
    pub async fn run_commands(
        &self,
        agent: &AgentName,
        session: &SessionRef,
        runner: &impl Runner,
    ) -> Result<Option<u64>, StoreError> {
        run::run_commands(&self.core, agent, session, runner).await
    }

    /// What can be told of a command before anybody tried it: why the session that it is for will not run it by
    /// itself; none where it will as soon as it can. Only of agents of this machine, and without asking the
    /// harness.
    pub async fn foreseen(&self, command: &Command) -> Result<Option<String>, StoreError> {
        run::foreseen(&self.core, command).await
    }
}
