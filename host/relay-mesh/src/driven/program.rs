//! The programs of harnesses: one is started under a guard when an agent needs it, and is that agent's alone, or carries the
//! sessions of many, if the harness can and they were started with the same words and variables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mesh::ports::driver::{DriverAbilities, DriverConnection, DriverFraming, SOCKET};
use mesh::ports::harness::{Harness, HarnessError};
use processes::guard::{Limits, Order, Streams};
use processes::{Guard, GuardError};
use tokio::process::ChildStdout;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::frames::{FramesError, Incoming, Outgoing, over_lines, over_websocket};
use super::link::{BEGINS, Link};
use crate::runs::supervise::step;
use crate::unix;

/// The folder of the data folder with those of programs that are shared.
const FOLDER: &str = "links";
/// The variables that say which terminal somebody sits at. A program that is shared has those of whoever needed it first.
pub(super) const OF_THE_TERMINAL: [&str; 3] = ["TERM", "COLORTERM", "NO_COLOR"];
/// How long it may take to be greeted at a socket, and how often to look whether a program listens.
const GREETS: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// Where the files of a program lie.
#[derive(Clone, Debug)]
pub(super) struct ProgramFiles {
    pub(super) errors: PathBuf,
    pub(super) running: PathBuf,
    pub(super) ended: PathBuf,
    pub(super) socket: PathBuf,
    /// The folder, if it is the program's own and is to be deleted with it.
    pub(super) own: Option<PathBuf>,
}

impl ProgramFiles {
    /// Those in a folder. Those of the last program there are deleted.
    pub(super) fn within(folder: &Path) -> ProgramFiles {
        let file = |name: &str| {
            let path = folder.join(name);
            let _missing = std::fs::remove_file(&path);
            path
        };
        ProgramFiles {
            errors: file("errors"),
            running: file("running.json"),
            ended: file("ended.json"),
            socket: file("socket"),
            own: None,
        }
    }

    /// Those of a program that is shared, in a folder that nobody else can enter.
    pub(super) fn shared(data: &Path, mark: &str) -> std::io::Result<ProgramFiles> {
        let folder = data.join(FOLDER).join(mark);
        unix::make_private_folder(&folder)?;
        Ok(ProgramFiles { own: Some(folder.clone()), ..ProgramFiles::within(&folder) })
    }
}

/// Deletes what programs have left whose host was killed. Only for the process that drives the agents, before it begins.
pub(super) fn clean_up(data: &Path) {
    if let Err(error) = std::fs::remove_dir_all(data.join(FOLDER))
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "the folders of programs that have ended stay");
    }
}

/// Why a program could not be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramError {
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error("its program could not be started: {0}")]
    NotStarted(String),
    #[error("its program could not be reached")]
    NotReached(#[source] FramesError),
    #[error("its program did not listen within {} s", BEGINS.as_secs())]
    NotListening,
    #[error("its adapter failed")]
    Adapter(#[from] HarnessError),
}

/// A program that is to be started. `environment` is its whole environment, in which `mark` is.
#[derive(Debug)]
pub(super) struct ProgramOrder {
    pub(super) connection: DriverConnection,
    pub(super) environment: Vec<(String, String)>,
    pub(super) mark: String,
    pub(super) folder: PathBuf,
    pub(super) files: ProgramFiles,
}

/// A program that runs, and its frames.
pub(super) struct Started {
    pub(super) name: String,
    pub(super) able: DriverAbilities,
    pub(super) mark: String,
    pub(super) guard: Guard,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    pub(super) output_ended: Option<CancellationToken>,
    pub(super) socket: Option<PathBuf>,
    pub(super) folder: Option<PathBuf>,
}

/// Starts a program, and carries its frames until its last agent has left, or it ends.
pub(super) async fn start(harness: Arc<dyn Harness>, order: ProgramOrder) -> Result<Link, ProgramError> {
    let folder = order.files.own.clone();
    let started = async {
        let greeting = harness.driver()?.connect(&order.connection.name).await?;
        Ok((begun(order).await?, greeting))
    };
    match started.await {
        Ok((started, greeting)) => Ok(Link::carry(harness, started, greeting)),
        Err(error) => {
            folder.iter().for_each(|folder| drop(std::fs::remove_dir_all(folder)));
            Err(error)
        }
    }
}

async fn begun(order: ProgramOrder) -> Result<Started, ProgramError> {
    let ProgramOrder { connection, environment, mark, folder, files } = order;
    let mut command = connection.launch.command.clone();
    if let Some(word) = command.iter_mut().find(|word| word.contains(SOCKET)) {
        *word = word.replace(SOCKET, &files.socket.display().to_string());
    }
    let order = Order {
        command,
        environment,
        folder,
        streams: Streams::Pipes,
        stop: connection.launch.stop.iter().map(step).collect(),
        limits: Limits::default(),
        errors: files.errors,
        running: files.running,
        ended: files.ended,
    };
    let binary = crate::runs::binary().map_err(|error| ProgramError::NotStarted(error.to_string()))?;
    let (mut guard, input, output) = Guard::talk(&binary, &order).await?;
    if guard.started().await.is_none() {
        return Err(ProgramError::NotStarted(guard.ended().await?.why_not_started()));
    }
    let (outgoing, incoming, output_ended, socket) = match connection.framing {
        DriverFraming::Lines => {
            let (outgoing, incoming) = over_lines(input, output);
            (outgoing, incoming, None, None)
        }
        DriverFraming::WebSocket => {
            let output_ended = drained(output);
            let reached = reached(&files.socket, &output_ended).await;
            // Open for as long as the program runs: some end with their standard input.
            keep_open(input, output_ended.clone());
            match reached {
                Ok(Some((outgoing, incoming))) => (outgoing, incoming, Some(output_ended), Some(files.socket)),
                Ok(None) => return Err(ProgramError::NotStarted(guard.ended().await?.why_not_started())),
                Err(error) => {
                    guard.stop().await;
                    guard.ended().await?;
                    return Err(error);
                }
            }
        }
    };
    let (name, able) = (connection.name, connection.able);
    Ok(Started { name, able, mark, guard, outgoing, incoming, output_ended, socket, folder: files.own })
}

/// Reads a standard output that means nothing. Cancelled at its end.
fn drained(mut output: ChildStdout) -> CancellationToken {
    let ended = CancellationToken::new();
    let tells = ended.clone().drop_guard();
    tokio::spawn(async move {
        let _ended = tokio::io::copy(&mut output, &mut tokio::io::sink()).await;
        drop(tells);
    });
    ended
}

fn keep_open(input: tokio::process::ChildStdin, until: CancellationToken) {
    tokio::spawn(async move {
        until.cancelled().await;
        drop(input);
    });
}

/// The frames of a program, as soon as it listens; none if it has ended.
async fn reached(socket: &Path, ended: &CancellationToken) -> Result<Option<(Outgoing, Incoming)>, ProgramError> {
    let deadline = Instant::now() + BEGINS;
    loop {
        // There may be a socket at which nobody listens yet, or any more.
        if let Ok(stream) = adapters::connect_unix(socket).await {
            match tokio::time::timeout(GREETS, over_websocket(stream)).await {
                Ok(Ok(both)) => return Ok(Some(both)),
                Ok(Err(error)) if Instant::now() >= deadline => return Err(ProgramError::NotReached(error)),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        if Instant::now() >= deadline {
            return Err(ProgramError::NotListening);
        }
        tokio::select! {
            () = ended.cancelled() => return Ok(None),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// What agents must have in common to share a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shared {
    harness: String,
    connection: String,
    command: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Shared {
    /// None if each agent needs a program of its own.
    pub(super) fn of(harness: &str, connection: &DriverConnection, environment: &[(String, String)]) -> Option<Shared> {
        let is_everybodys = connection.able.share && connection.launch.files.is_empty();
        let mut environment = environment.to_vec();
        environment.retain(|(name, _)| !OF_THE_TERMINAL.contains(&name.as_str()));
        environment.sort();
        is_everybodys.then(|| Shared {
            harness: harness.to_owned(),
            connection: connection.name.clone(),
            command: connection.launch.command.clone(),
            environment,
        })
    }
}

type SharedLink = Arc<tokio::sync::Mutex<Option<Link>>>;

/// The programs that are shared.
#[derive(Debug, Default)]
pub(crate) struct Programs(Mutex<BTreeMap<Shared, SharedLink>>);

impl Programs {
    /// The newest of these programs, if there is one. While its place is held, nobody else starts one.
    pub(super) async fn place(&self, shared: Shared) -> OwnedMutexGuard<Option<Link>> {
        let place = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever has another end of a place is about to use it.
            all.retain(|_, place| match place.try_lock() {
                Ok(link) => Arc::strong_count(place) > 1 || link.as_ref().is_some_and(|link| !link.is_over()),
                Err(_) => true,
            });
            Arc::clone(all.entry(shared).or_default())
        };
        place.lock_owned().await
    }
}
