//! The long-lived server of a data folder, as other processes find it: its record, its token, its end.

pub(crate) mod background;
pub(crate) mod nats;
pub(crate) mod record;
pub(crate) mod token;

use std::path::PathBuf;

use crate::errors::Explain;
use crate::exit::Exit;
pub(crate) use record::HostRecord;

/// Why the server could not be started, found or stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    /// One runs already.
    #[error("a server runs already on `{}`: {url}, process {pid}", dir.display())]
    Running {
        /// The data folder.
        dir: PathBuf,
        /// Where it listens.
        url: String,
        /// Its process.
        pid: u32,
    },
    /// Another process is just starting one, or holds the folder without saying who it is.
    #[error("another server is being started on `{}`", dir.display())]
    Starting {
        /// The data folder.
        dir: PathBuf,
    },
    /// The address cannot be listened at.
    #[error(transparent)]
    Listen(#[from] mcp::http::BindError),
    /// It was started and did not come up.
    #[error("the server did not come up: {why}")]
    Start {
        /// What was seen of it.
        why: String,
        /// Where its log lies.
        log: PathBuf,
    },
    /// Its program or its log could not be opened.
    #[error("the server could not be started in the background")]
    Spawn(#[source] std::io::Error),
    /// It was asked to stop and did not.
    #[error("the server, process {pid}, was asked to stop and still runs")]
    Stubborn {
        /// Its process.
        pid: u32,
    },
    /// It could not be asked to stop.
    #[error("the server, process {pid}, could not be asked to stop")]
    Signal {
        /// Its process.
        pid: u32,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The token could not be read or made.
    #[error("the server's token in `{}` cannot be used", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The record could not be read or written.
    #[error("the server's record in `{}` cannot be used", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It ended by a fault.
    #[error("the server stopped serving")]
    Http(#[from] mcp::http::ServeError),
    /// The conversation with the client that started us ended by a fault.
    #[error("the conversation with the client broke off")]
    Stdio(#[from] mcp::StdioError),
}

impl Explain for HostError {
    fn exit(&self) -> Exit {
        Exit::Failure
    }

    fn hint(&self) -> Option<String> {
        match self {
            HostError::Running { .. } => {
                Some("stop it by `relay-mesh down`, or use another folder by `--dir DIR`".to_owned())
            }
            HostError::Listen(error) => Some(error.hint()),
            // On a full disk it has no log.
            HostError::Start { log, .. } => Some(match std::fs::metadata(log) {
                Ok(found) if found.len() > 0 => format!("its log says more: {}", log.display()),
                Ok(_) | Err(_) => "run `relay-mesh serve`, which says here what is wrong".to_owned(),
            }),
            HostError::Stubborn { pid } => Some(format!("look at what it does, and end it yourself: kill -KILL {pid}")),
            HostError::Starting { .. } => Some("wait a moment, and look again with `relay-mesh status`".to_owned()),
            HostError::Token { path, .. } | HostError::Record { path, .. } => {
                Some(format!("look at the file, and remove it where it is not needed: {}", path.display()))
            }
            HostError::Spawn(_) | HostError::Signal { .. } | HostError::Http(_) | HostError::Stdio(_) => None,
        }
    }
}
