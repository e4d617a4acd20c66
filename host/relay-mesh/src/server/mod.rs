//! The long-lived server of a data folder: its record, its token, and starting and stopping it.

pub(crate) mod background;
pub(crate) mod nats;
pub(crate) mod of_harness;
pub(crate) mod record;
pub(crate) mod token;

use std::path::PathBuf;

use crate::errors::Explain;
use crate::exit::Exit;
pub(crate) use record::ServerRecord;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    #[error("a server runs already on `{}`: {url}, process {pid}", dir.display())]
    Running { dir: PathBuf, url: String, pid: u32 },
    /// Another process is starting one, or holds the folder's lock without a record.
    #[error("another server is being started on `{}`", dir.display())]
    Starting { dir: PathBuf },
    #[error(transparent)]
    Listen(#[from] mcp::http::BindError),
    #[error("the server did not come up: {why}")]
    Start {
        /// What is known of the failure.
        why: String,
        log: PathBuf,
    },
    #[error("the server could not be started in the background")]
    Spawn(#[source] std::io::Error),
    #[error("the server, process {pid}, was asked to stop and still runs")]
    Stubborn { pid: u32 },
    /// A container that shares the data folder, or a sandbox.
    #[error("the server, process {pid}, runs in another PID namespace and cannot be stopped from here")]
    Elsewhere { pid: u32 },
    #[error("the server, process {pid}, could not be asked to stop")]
    Signal { pid: u32, source: std::io::Error },
    #[error("the server's token in `{}` cannot be used", path.display())]
    Token { path: PathBuf, source: std::io::Error },
    #[error("the server's record in `{}` cannot be used", path.display())]
    Record { path: PathBuf, source: std::io::Error },
    #[error("the server stopped serving")]
    Http(#[from] mcp::http::ServeError),
    #[error("the conversation with the client broke off")]
    Stdio(#[from] mcp::StdioError),
}

impl Explain for ServerError {
    fn exit(&self) -> Exit {
        Exit::Failure
    }

    fn hint(&self) -> Option<String> {
        match self {
            ServerError::Running { .. } => {
                Some("stop it by `relay-mesh down`, or use another folder by `--dir DIR`".to_owned())
            }
            ServerError::Listen(error) => Some(error.hint()),
            // On a full disk there is no log.
            ServerError::Start { log, .. } => Some(match std::fs::metadata(log) {
                Ok(found) if found.len() > 0 => format!("its log says more: {}", log.display()),
                Ok(_) | Err(_) => "run `relay-mesh serve`, which says here what is wrong".to_owned(),
            }),
            ServerError::Stubborn { pid } => {
                Some(format!("look at what it does, and end it yourself: kill -KILL {pid}"))
            }
            ServerError::Elsewhere { .. } => Some(
                "stop it where it runs, such as in its container; if that is gone, remove `nats/server.json` of the data \
                 folder"
                    .to_owned(),
            ),
            ServerError::Starting { .. } => Some("wait a moment, and look again with `relay-mesh status`".to_owned()),
            ServerError::Token { path, .. } | ServerError::Record { path, .. } => {
                Some(format!("look at the file, and remove it where it is not needed: {}", path.display()))
            }
            ServerError::Spawn(_) | ServerError::Signal { .. } | ServerError::Http(_) | ServerError::Stdio(_) => None,
        }
    }
}
