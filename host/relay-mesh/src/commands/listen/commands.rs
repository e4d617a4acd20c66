//! Commands for the agent that `listen` follows: taken one at a time, and ended by a line from the connector.

use std::sync::Arc;
use std::time::Duration;

use mesh::commands::{Command, Ended};
use mesh::names::MessageId;
use mesh::sessions::Principal;
use mesh::{Mesh, reasons};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Receipts;

/// Pause before the next try after a store fault.
const AFTER_A_FAULT: Duration = Duration::from_secs(2);
/// The result of a command that was taken and never printed.
const NOT_BEGUN: &str = "its listener ended before the command was begun";

/// The commands of one agent.
pub(super) struct Orders {
    mesh: Arc<Mesh>,
    caller: Principal,
    /// Who reports that a command ended.
    receipts: Receipts,
    taken: mpsc::Receiver<Result<Command, String>>,
    /// One permit, so that one command is out at a time. Returned when the command has ended.
    room: Arc<Semaphore>,
    /// The command that was printed and has not ended.
    begun: Option<MessageId>,
    task: JoinHandle<()>,
    stop: CancellationToken,
}

impl Orders {
    pub(super) fn of(mesh: Arc<Mesh>, caller: Principal, receipts: Receipts) -> Orders {
        let (news, taken) = mpsc::channel(1);
        let room = Arc::new(Semaphore::new(1));
        let stop = CancellationToken::new();
        let taking = take(Arc::clone(&mesh), caller.clone(), Arc::clone(&room), news, stop.clone());
        Orders { mesh, caller, receipts, taken, room, begun: None, task: tokio::spawn(taking), stop }
    }

    /// The next command, or a fault after which it retries. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Command, String> {
        match self.taken.recv().await {
            Some(taken) => taken,
            None => std::future::pending().await,
        }
    }

    /// Notes that a command was printed. If no line will report its end, the next one may follow.
    pub(super) async fn printed(&mut self, id: MessageId) {
        if let Err(error) = self.mesh.confirm_command(id).await {
            tracing::warn!(%id, error = %reasons(&error), "that a command was handed over could not be stored");
        }
        match self.receipts {
            Receipts::Lines => self.begun = Some(id),
            Receipts::Printing => self.room.add_permits(1),
        }
    }

    pub(super) async fn ended(&mut self, id: MessageId, ended: Ended, result: &str) -> Result<(), String> {
        self.mesh.finish_command(&self.caller, id, ended, result).await.map_err(|error| reasons(&error))?;
        if self.begun == Some(id) {
            self.begun = None;
            self.room.add_permits(1);
        }
        Ok(())
    }

    /// Takes no more commands. One that was taken and not printed fails; one that was printed can still be ended by
    /// `relay-mesh cmd done`.
    pub(super) async fn close(mut self) {
        self.stop.cancel();
        self.taken.close();
        while let Some(taken) = self.taken.recv().await {
            if let Ok(command) = taken {
                give_up(&self.mesh, &self.caller, command.id).await;
            }
        }
        if let Err(error) = self.task.await {
            tracing::warn!(%error, "a task that took commands ended badly");
        }
    }
}

/// Takes one command per permit. A command that was taken is always either sent on or given up.
async fn take(
    mesh: Arc<Mesh>,
    caller: Principal,
    room: Arc<Semaphore>,
    news: mpsc::Sender<Result<Command, String>>,
    stop: CancellationToken,
) {
    loop {
        let permit = tokio::select! {
            () = stop.cancelled() => return,
            permit = room.acquire() => permit,
        };
        let Ok(permit) = permit else { return };
        let waited = tokio::select! {
            () = stop.cancelled() => return,
            waited = mesh.command_waits(&caller) => waited,
        };
        let taken = match waited {
            Ok(()) => mesh.take_command(&caller).await,
            Err(error) => Err(error),
        };
        let told = match taken {
            // Another process was faster.
            Ok(None) => continue,
            Ok(Some(command)) => {
                permit.forget();
                news.send(Ok(command)).await
            }
            Err(error) => {
                let told = news.send(Err(reasons(&error))).await;
                tokio::time::sleep(AFTER_A_FAULT).await;
                told
            }
        };
        if let Err(mpsc::error::SendError(untold)) = told {
            if let Ok(command) = untold {
                give_up(&mesh, &caller, command.id).await;
            }
            return;
        }
    }
}

async fn give_up(mesh: &Mesh, caller: &Principal, id: MessageId) {
    if let Err(error) = mesh.finish_command(caller, id, Ended::Failed, NOT_BEGUN).await {
        tracing::warn!(%id, %error, "a command was taken and is neither begun nor ended");
    }
}
