//! The long-lived server of a data folder: its record, its token, and starting and stopping it.

pub(crate) mod background;
pub(crate) mod nats;
pub(crate) mod of_harness;
pub(crate) mod record;
pub(crate) mod settling;
pub(crate) mod token;

use std::io::ErrorKind;
use std::path::PathBuf;

use mcp::http::BindError;

use crate::errors::{Explain, ToldError};
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
    /// The server said itself why it ended.
    #[error("the server did not come up: {}", _0.what)]
    Told(ToldError),
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
        match self {
            ServerError::Told(told) => told.exit(),
            error if error.is_disk_full() => Exit::Store,
            // As for an address of the settings that could not be.
            ServerError::Listen(BindError::NotLoopback(_) | BindError::NoToken(_)) => Exit::Usage,
            _ => Exit::Failure,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ServerError::Running { .. } => {
                Some("stop it by `relay-mesh down`, or use another folder by `--dir DIR`".to_owned())
            }
            ServerError::Told(told) => told.hint.clone(),
            error if error.is_disk_full() => {
                Some("make room on the disk and try again; what had been stored before is safe".to_owned())
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

impl ServerError {
    fn is_disk_full(&self) -> bool {
        match self {
            ServerError::Spawn(source) | ServerError::Token { source, .. } | ServerError::Record { source, .. } => {
                matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::errors::CommandError;

    #[test]
    fn a_full_disk_is_the_stores_trouble_and_what_the_server_told_keeps_its_code() {
        let record = |kind: ErrorKind| ServerError::Record { path: "/data/server.json".into(), source: kind.into() };
        assert_eq!(record(ErrorKind::StorageFull).exit(), Exit::Store);
        assert!(record(ErrorKind::StorageFull).hint().is_some_and(|hint| hint.contains("make room")));
        assert_eq!(record(ErrorKind::PermissionDenied).exit(), Exit::Failure);
        assert_eq!(ServerError::Spawn(io::ErrorKind::QuotaExceeded.into()).exit(), Exit::Store);
        let everywhere = std::net::SocketAddr::from(([0, 0, 0, 0], 7499));
        assert_eq!(ServerError::Listen(BindError::NotLoopback(everywhere)).exit(), Exit::Usage);
        assert_eq!(ServerError::Listen(BindError::InUse(everywhere)).exit(), Exit::Failure);
        let told = ServerError::Told(ToldError::of(&CommandError::usage("no token", "say one")));
        assert_eq!((told.to_string().as_str(), told.exit()), ("the server did not come up: no token", Exit::Usage));
        assert_eq!(told.hint().as_deref(), Some("say one"));
    }
}
