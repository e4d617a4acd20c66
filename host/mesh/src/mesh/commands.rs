//! The verbs of commands.

use crate::Mesh;
use crate::commands::order::{FinishError, Order, OrderError, TakeError};
use crate::commands::run::Runner;
use crate::commands::{Command, Ended, order, run};
use crate::names::{AgentName, MessageId};
use crate::sessions::{Principal, SessionRef};
use store::{Hold, StoreError};

impl Mesh {
    /// Waits until a command's status is final or the command was deleted. Cancel it to stop waiting.
    pub async fn command_ended(&self, id: MessageId) -> Result<Option<Command>, StoreError> {
        order::command_ended(&self.core, id).await
    }

    /// Waits until a command is pending for the caller's agent, without taking it. Cancel it to stop waiting.
    pub async fn command_waits(&self, caller: &Principal) -> Result<(), TakeError> {
        order::command_waits(&self.core, caller).await
    }

    /// Asks an agent to run a command. The command is on disk when this returns.
    pub async fn order(&self, caller: &Principal, order: Order) -> Result<Command, OrderError> {
        order::order(&self.core, &self.remote, caller, order).await
    }

    /// Stores the result of a command that the caller's agent took. Possible once per command.
    pub async fn finish_command(
        &self,
        caller: &Principal,
        id: MessageId,
        ended: Ended,
        result: &str,
    ) -> Result<Command, FinishError> {
        order::finish_command(&self.core, caller, id, ended, result).await
    }

    /// Takes the oldest pending command for the caller's agent. Each command goes to one taker only.
    pub async fn take_command(&self, caller: &Principal) -> Result<Option<Command>, TakeError> {
        order::take_command(&self.core, caller).await
    }

    /// Notes that a command which was taken has reached its taker. Without it, the command fails a minute after it was
    /// taken: the taker was killed.
    pub async fn confirm_command(&self, id: MessageId) -> Result<(), TakeError> {
        order::confirm_command(&self.core, id).await
    }

    /// Lets a command that did not reach its taker be taken again.
    pub async fn give_command_back(&self, id: MessageId) -> Result<(), TakeError> {
        order::give_command_back(&self.core, id).await
    }

    /// Commands, oldest first: all, or those for one agent.
    pub async fn commands(&self, to: Option<&AgentName>) -> Result<Vec<Command>, StoreError> {
        order::commands(&self.core, to).await
    }

    /// Waits until the reason why a command waits differs from `known`, and returns it. Also returns if the command was
    /// taken and `known` was a reason. Cancel it to stop waiting.
    pub async fn command_news(&self, id: MessageId, known: Option<&str>) -> Result<Option<String>, StoreError> {
        order::command_news(&self.core, id, known).await
    }

    /// One command, if it exists.
    pub async fn command(&self, id: MessageId) -> Result<Option<Command>, StoreError> {
        order::command(&self.core, id).await
    }

    /// The exclusive right to run commands in a session, until dropped; `None` if another process has it.
    pub async fn hold_commands(&self, session: &SessionRef) -> Result<Option<Box<dyn Hold>>, StoreError> {
        run::hold_commands(&self.core, session).await
    }

    /// Clears the waiting reason of commands that are allowed by now, so that their runner tries again. Returns those
    /// commands.
    pub async fn look_again(&self) -> Result<Vec<Command>, StoreError> {
        run::look_again(&self.core).await
    }

    /// Watches the keys that decide whether a command can run.
    pub async fn watch_for_commands(&self) -> Result<Box<dyn store::Watch>, StoreError> {
        run::watch_for_commands(&self.core).await
    }

    /// Watches the commands, and nothing else that decides whether one can run.
    pub async fn watch_orders(&self) -> Result<Box<dyn store::Watch>, StoreError> {
        run::watch_orders(&self.core).await
    }

    /// Runs the pending commands of an agent that may run, one after the other. The caller holds
    /// [`Mesh::hold_commands`]. Returns after how many milliseconds to try again; `None` if only a change in the store
    /// makes that worthwhile.
    pub async fn run_commands(
        &self,
        agent: &AgentName,
        session: &SessionRef,
        runner: &impl Runner,
    ) -> Result<Option<u64>, StoreError> {
        run::run_commands(&self.core, agent, session, runner).await
    }

    /// Predicts why the recipient's session will not run a command by itself; `None` if it will as soon as it can.
    /// Covers only agents of this machine, and does not ask the harness.
    pub async fn foreseen(&self, command: &Command) -> Result<Option<String>, StoreError> {
        run::foreseen(&self.core, command).await
    }
}
