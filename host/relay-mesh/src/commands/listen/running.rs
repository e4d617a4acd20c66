//! Harness commands that the connector runs: those that it named for a session, from senders whom the user has
//! allowed, one at a time. A line from the connector reports how each ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mesh::commands::{Command, Ended};
use mesh::names::MessageId;
use mesh::ports::harness::{HarnessError, Means};
use mesh::sessions::{Activity, Session, SessionRef};
use mesh::{Mesh, Ran, Runner};
use store::StoreError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::connector_lines::Ending;

/// Retry interval while another process runs commands in the session, and after a fault.
const WHILE_HELD: Duration = Duration::from_secs(2);
/// Milliseconds before a command that the connector did not begin is tried again.
const REST: u32 = 5_000;
/// The name of the means of running a command.
const MEANS: &str = "connector";

/// The sessions whose connector runs commands.
pub(super) struct Runs {
    mesh: Arc<Mesh>,
    harness: Option<String>,
    asked: mpsc::Receiver<CommandRequest>,
    /// Sends to `asked`. Cloned for each session.
    asking: mpsc::Sender<CommandRequest>,
    /// The tasks, by session. Written when a connector names its commands, and when a session is no longer watched.
    sessions: BTreeMap<String, Running>,
    /// The commands that were printed and have not ended, each with its session.
    begun: BTreeMap<MessageId, (String, oneshot::Sender<CommandAnswer>)>,
}

/// A command for the connector, and the channel for its end.
pub(super) struct CommandRequest {
    pub(super) session: String,
    pub(super) command: Command,
    answer: oneshot::Sender<CommandAnswer>,
}

type CommandAnswer = Result<Ran, HarnessError>;

struct Running {
    names: watch::Sender<BTreeSet<String>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Runs {
    pub(super) fn of(mesh: Arc<Mesh>, harness: Option<String>) -> Runs {
        let (asking, asked) = mpsc::channel(1);
        Runs { mesh, harness, asked, asking, sessions: BTreeMap::new(), begun: BTreeMap::new() }
    }

    /// From now on the connector of a session can run these commands, and no others.
    pub(super) fn notified(&mut self, session: String, names: BTreeSet<String>) -> Result<(), &'static str> {
        let Some(harness) = &self.harness else { return Err("sessions can be watched only with `--harness`") };
        if let Some(running) = self.sessions.get(&session) {
            running.names.send_replace(names);
            return Ok(());
        }
        let (names, notified) = watch::channel(names);
        let runner = ByConnector { notified, asking: self.asking.clone() };
        let stop = CancellationToken::new();
        let reference = SessionRef { harness: harness.clone(), id: session.clone() };
        let task = tokio::spawn(keep_running(Arc::clone(&self.mesh), reference, runner, stop.clone()));
        self.sessions.insert(session, Running { names, stop, task });
        Ok(())
    }

    /// Stops running a session's commands: it is no longer watched. How those begun there end stays unknown.
    pub(super) fn forget(&mut self, session: &str) {
        if let Some(running) = self.sessions.remove(session) {
            running.stop.cancel();
        }
        self.begun.retain(|_, (of, _)| of != session);
    }

    /// The next command to be printed. Cancel-safe.
    pub(super) async fn next(&mut self) -> CommandRequest {
        match self.asked.recv().await {
            Some(asked) => asked,
            None => std::future::pending().await,
        }
    }

    pub(super) fn printed(&mut self, asked: CommandRequest) {
        self.begun.insert(asked.command.id, (asked.session, asked.answer));
    }

    /// Notes how a command ended, as the connector reports. False if the command is not one of these.
    pub(super) fn ended(
        &mut self,
        id: MessageId,
        ending: Ending,
        said: &str,
        evidence: Option<serde_json::Value>,
    ) -> bool {
        let Some((_, answer)) = self.begun.remove(&id) else { return false };
        let ran = |ended| Ok(Ran { ended: Some(ended), said: said.to_owned(), evidence });
        let told = match ending {
            Ending::Done => ran(Ended::Done),
            Ending::Failed => ran(Ended::Failed),
            Ending::Refused => Err(HarnessError::Busy(REST)),
        };
        // The receiver is gone if the session is no longer watched.
        drop(answer.send(told));
        true
    }

    /// Stops every task. Printed commands end as unknown; the others go back.
    pub(super) async fn close(mut self) {
        for running in self.sessions.values() {
            running.stop.cancel();
        }
        self.begun.clear();
        self.asked.close();
        while self.asked.recv().await.is_some() {}
        for running in std::mem::take(&mut self.sessions).into_values() {
            if let Err(error) = running.task.await {
                tracing::warn!(%error, "a task that ran commands ended badly");
            }
        }
    }
}

/// Runs what may be run in a session, until `stop`.
async fn keep_running(mesh: Arc<Mesh>, session: SessionRef, mut runner: ByConnector, stop: CancellationToken) {
    while !stop.is_cancelled() {
        if let Err(error) = run_on(&mesh, &session, &mut runner, &stop).await {
            tracing::warn!(%error, "commands are not run for a while");
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(WHILE_HELD) => {}
            }
        }
    }
}

/// Returns on `stop`, or with a fault.
async fn run_on(
    mesh: &Mesh,
    session: &SessionRef,
    runner: &mut ByConnector,
    stop: &CancellationToken,
) -> Result<(), StoreError> {
    let _lease = loop {
        if let Some(lease) = mesh.hold_commands(session).await? {
            break lease;
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(WHILE_HELD) => {}
        }
    };
    // Watch before reading, so that no change is missed in between.
    let mut watch = mesh.watch_for_commands().await?;
    loop {
        runner.notified.borrow_and_update();
        let agent = mesh.session(session).await?.and_then(|view| view.record.agent);
        // A run is never dropped half-way: dropping its answer channel ends it as unknown.
        let wait = match agent {
            Some(agent) => mesh.run_commands(&agent, session, runner).await?,
            None => None,
        };
        let later = async {
            match wait {
                Some(wait) => tokio::time::sleep(Duration::from_millis(wait)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            changed = watch.changed() => changed?,
            Ok(()) = runner.notified.changed() => {}
            () = later => {}
        }
    }
}

/// Runs commands by printing them for the connector.
struct ByConnector {
    notified: watch::Receiver<BTreeSet<String>>,
    asking: mpsc::Sender<CommandRequest>,
}

impl Runner for ByConnector {
    async fn plan(&self, _: &Session, command: &Command) -> Result<Means, HarnessError> {
        let notified = self.notified.borrow();
        match notified.contains(command.command.bare()) {
            true => Ok(Means { name: MEANS.to_owned(), when: vec![Activity::Idle] }),
            false => Err(HarnessError::Unsupported(format!("its session has no command {}", command.command))),
        }
    }

    async fn run(&self, to: &Session, command: &Command) -> Result<Ran, HarnessError> {
        let (answer, ended) = oneshot::channel();
        let asked = CommandRequest { session: to.id.clone(), command: command.clone(), answer };
        if self.asking.send(asked).await.is_err() {
            return Err(HarnessError::Busy(REST));
        }
        match ended.await {
            Ok(answer) => answer,
            Err(_) => {
                let said = "its listener ended before the connector said how the command ended".to_owned();
                Ok(Ran { ended: None, said, evidence: None })
            }
        }
    }
}
