//! Commands of a harness's own that its connector runs: those that the connector named for a session, of senders
//! whom the person has allowed, one at a time. How each ended comes by a line.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mesh::command::{Command, Ended};
use mesh::harness::{HarnessError, Means};
use mesh::names::MessageId;
use mesh::session::{Activity, Session, SessionRef};
use mesh::{Mesh, Ran, Runner};
use store::StoreError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::words::Ending;

/// How long to wait for the right to run commands in a session, and after a fault.
const WHILE_HELD: Duration = Duration::from_secs(2);
/// For how many milliseconds a command rests that the connector did not begin.
const REST: u32 = 5_000;
/// What the means are called.
const MEANS: &str = "connector";

/// The sessions whose connector runs commands.
pub(super) struct Runs {
    mesh: Arc<Mesh>,
    harness: Option<String>,
    asked: mpsc::Receiver<Asked>,
    /// Cloned for each session.
    asking: mpsc::Sender<Asked>,
    /// The tasks. Written when a connector names its commands, and when a session is watched no longer.
    sessions: BTreeMap<String, Running>,
    /// What was printed and has not ended.
    begun: BTreeMap<MessageId, (String, oneshot::Sender<Answer>)>,
}

/// A command for the connector, and where its end goes.
pub(super) struct Asked {
    /// In which session.
    pub(super) session: String,
    /// What.
    pub(super) command: Command,
    answer: oneshot::Sender<Answer>,
}

type Answer = Result<Ran, HarnessError>;

struct Running {
    names: watch::Sender<BTreeSet<String>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Runs {
    /// Runs nothing yet.
    pub(super) fn of(mesh: Arc<Mesh>, harness: Option<String>) -> Runs {
        let (asking, asked) = mpsc::channel(1);
        Runs { mesh, harness, asked, asking, sessions: BTreeMap::new(), begun: BTreeMap::new() }
    }

    /// The connector of a session can run these from now on, and no others.
    pub(super) fn notified(&mut self, session: String, names: BTreeSet<String>) -> Result<(), &'static str> {
        let Some(harness) = &self.harness else { return Err("sessions can be watched with `--harness` alone") };
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

    /// A session is watched no longer. What runs there may have ended in any way.
    pub(super) fn forget(&mut self, session: &str) {
        if let Some(running) = self.sessions.remove(session) {
            running.stop.cancel();
        }
        self.begun.retain(|_, (of, _)| of != session);
    }

    /// The next command to be printed. Cancelling it loses nothing.
    pub(super) async fn next(&mut self) -> Asked {
        match self.asked.recv().await {
            Some(asked) => asked,
            None => std::future::pending().await,
        }
    }

    /// Notes that one was printed.
    pub(super) fn printed(&mut self, asked: Asked) {
        self.begun.insert(asked.command.id, (asked.session, asked.answer));
    }

    /// The connector says how one ended; false where it is not one of these.
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
        // Nobody waits for it any more where its session is watched no longer.
        drop(answer.send(told));
        true
    }

    /// Ends. What was printed has an unknown end; what was not goes back.
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

/// Runs what may be run in a session, until it is told to stop.
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

/// Returns when it was told to stop, or with a fault.
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
    // Watching begins before looking, so that nothing can come in between.
    let mut watch = mesh.watch_for_commands().await?;
    loop {
        runner.notified.borrow_and_update();
        let agent = mesh.session(session).await?.and_then(|view| view.record.agent);
        // A run is never dropped half-way: whoever ends it is told that nobody knows any more.
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

/// Runs commands by lines.
struct ByConnector {
    notified: watch::Receiver<BTreeSet<String>>,
    asking: mpsc::Sender<Asked>,
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
        let asked = Asked { session: to.id.clone(), command: command.clone(), answer };
        if self.asking.send(asked).await.is_err() {
            return Err(HarnessError::Busy(REST));
        }
        match ended.await {
            Ok(answer) => answer,
            Err(_) => {
                let said = "whoever listened for it ended before it was said how".to_owned();
                Ok(Ran { ended: None, said, evidence: None })
            }
        }
    }
}
