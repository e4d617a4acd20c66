//! The socket: its path, who may connect, and what happens to an existing one.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::unix::{self, PermissionsExt, UnixListener, UnixStream};

const FILE: &str = "events.sock";
/// The socket of what driven agents say.
const DELTAS: &str = "deltas.sock";
/// The longest path of a Unix socket, without the final NUL: 108 bytes with it on Linux, 104 elsewhere.
const LONGEST_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    #[error(
        "events are not offered: the path `{}` has {} bytes, and a socket's may have {LONGEST_PATH}",
        path.display(), path.as_os_str().len()
    )]
    TooLong { path: PathBuf },
    #[error("events are not offered: another process listens at `{}`", .0.display())]
    InUse(PathBuf),
    #[error("events are not offered: `{}` exists and is not a socket", .0.display())]
    NotASocket(PathBuf),
    #[error("events are not offered at `{}`", path.display())]
    Bind { path: PathBuf, source: io::Error },
}

impl SocketError {
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            SocketError::TooLong { .. } => {
                "use a data folder with a shorter path, or set XDG_RUNTIME_DIR to a short one; `relay-mesh events` \
                 needs no socket"
            }
            SocketError::InUse(_) => "end that process, or use another data folder",
            SocketError::NotASocket(_) => "move that file away and start the server again",
            SocketError::Bind { .. } => "see whether this user may write there, and start the server again",
        }
    }
}

/// A listening socket. Dropping it removes its file.
#[derive(Debug)]
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// The socket's path: in the data folder, or in the user's runtime folder if that path would be too long.
    pub(crate) fn path(dir: &Path, environment: &Environment) -> Result<PathBuf, SocketError> {
        Socket::place(dir, FILE, "", environment)
    }

    /// The same for what driven agents say.
    pub(crate) fn path_of_deltas(dir: &Path, environment: &Environment) -> Result<PathBuf, SocketError> {
        Socket::place(dir, DELTAS, "deltas-", environment)
    }

    fn place(dir: &Path, name: &str, aside: &str, environment: &Environment) -> Result<PathBuf, SocketError> {
        let within = dir.join(name);
        if fits(&within) {
            return Ok(within);
        }
        let runtime = environment.get("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let mut hasher = DefaultHasher::new();
        dir.hash(&mut hasher);
        // Followers read the path from the server's record, so it may change between releases.
        let name = format!("relay-mesh-{aside}{:016x}.sock", hasher.finish());
        let aside = runtime.map(|folder| folder.join(name));
        match aside.filter(|path| fits(path)) {
            Some(path) => Ok(path),
            None => Err(SocketError::TooLong { path: within }),
        }
    }

    /// Listens at a path. Replaces a stale socket and leaves one with a live listener alone.
    pub(crate) async fn bind(path: &Path) -> Result<Socket, SocketError> {
        let failed = |source| SocketError::Bind { path: path.to_owned(), source };
        match std::fs::symlink_metadata(path) {
            Ok(found) if unix::is_socket(&found) => match UnixStream::connect(path).await {
                Ok(_) => return Err(SocketError::InUse(path.to_owned())),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path).map_err(failed)?;
                }
                // A listener with a full queue is alive too.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(SocketError::InUse(path.to_owned()));
                }
                Err(error) => return Err(failed(error)),
            },
            Ok(_) => return Err(SocketError::NotASocket(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        // The folder is private to the user, so no other user connects before this.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Socket { listener, path: path.to_owned() })
    }

    /// The next connection; none if it is another user's process.
    pub(crate) async fn accept(&self) -> io::Result<Option<UnixStream>> {
        let (stream, _) = self.listener.accept().await?;
        Ok(unix::is_of_this_user(&stream).then_some(stream))
    }

    pub(crate) fn file(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, "the socket's file stays; the next server replaces it");
        }
    }
}

fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= LONGEST_PATH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_too_long_is_avoided_or_named() {
        let long = format!("/{}", "deep/".repeat(30));
        for (dir, runtime, expected) in [
            ("/home/u/.relay-mesh", "", "/home/u/.relay-mesh/events.sock"),
            (long.as_str(), "/run/user/1000", "/run/user/1000/relay-mesh-"),
            (long.as_str(), "", "has 162 bytes, and a socket's may have 107"),
            (long.as_str(), long.as_str(), "and a socket's may have 107"),
        ] {
            let environment = Environment::from([("XDG_RUNTIME_DIR", runtime)]);
            let outcome = match Socket::path(Path::new(dir), &environment) {
                Ok(path) => path.display().to_string(),
                Err(error) => error.to_string(),
            };
            assert!(outcome.contains(expected), "{dir} beside {runtime}: {outcome}");
        }
    }

    #[tokio::test]
    async fn only_a_socket_that_nobody_listens_at_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        let bound = |outcome: Result<Socket, SocketError>| outcome.map(|_| ()).map_err(|error| error.to_string());
        std::fs::write(&path, "notes").expect("a file");
        assert!(bound(Socket::bind(&path).await).is_err_and(|error| error.contains("is not a socket")));
        std::fs::remove_file(&path).expect("a file");
        // A killed process leaves its socket file behind.
        drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
        let first = Socket::bind(&path).await.expect("the stale one is replaced");
        let mode = std::fs::metadata(&path).expect("a socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(bound(Socket::bind(&path).await).is_err_and(|error| error.contains("another process listens")));
        drop(first);
        assert!(!path.exists(), "it goes with its server");
    }
}
