//! The socket itself: where it lies, who may connect, and what is done about one that is there already.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use tokio::net::{UnixListener, UnixStream};

use crate::environment::Environment;

/// The file in the data folder.
const FILE: &str = "events.sock";
/// The longest path that the system's addresses hold, without the byte that ends it: 108 on Linux, 104 on the
/// others.
const LONGEST_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// Why events cannot be offered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    /// No path that the system takes.
    #[error(
        "events are not offered: the path `{}` has {} bytes, and a socket's may have {LONGEST_PATH}",
        path.display(), path.as_os_str().len()
    )]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// Somebody else listens there.
    #[error("events are not offered: another process listens at `{}`", .0.display())]
    InUse(PathBuf),
    /// What is there is no socket.
    #[error("events are not offered: `{}` is there and is no socket", .0.display())]
    NotASocket(PathBuf),
    /// The system refused.
    #[error("events are not offered at `{}`", path.display())]
    Bind {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl SocketError {
    /// What to do about it.
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

/// A socket that is listened at. Its file goes with it.
#[derive(Debug)]
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Where the socket of a data folder lies: in it, or by another name in the person's folder for such things
    /// where that path would be too long.
    pub(crate) fn path(dir: &Path, environment: &Environment) -> Result<PathBuf, SocketError> {
        let within = dir.join(FILE);
        if fits(&within) {
            return Ok(within);
        }
        let runtime = environment.get("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let mut hasher = DefaultHasher::new();
        dir.hash(&mut hasher);
        // The server's record names the path, so that it need not be the same in every release.
        let name = format!("relay-mesh-{:016x}.sock", hasher.finish());
        let aside = runtime.map(|folder| folder.join(name));
        match aside.filter(|path| fits(path)) {
            Some(path) => Ok(path),
            None => Err(SocketError::TooLong { path: within }),
        }
    }

    /// Listens there. A socket that nobody listens at any more is replaced; one that somebody does is left alone.
    pub(crate) async fn bind(path: &Path) -> Result<Socket, SocketError> {
        let failed = |source| SocketError::Bind { path: path.to_owned(), source };
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => match UnixStream::connect(path).await {
                Ok(_) => return Err(SocketError::InUse(path.to_owned())),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path).map_err(failed)?;
                }
                // A listener whose queue is full is alive as well.
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
        // The folder is the person's own, so that nobody else reaches it before this.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Socket { listener, path: path.to_owned() })
    }

    /// The next one who connects; none where that is another user's process.
    pub(crate) async fn accept(&self) -> io::Result<Option<UnixStream>> {
        let (stream, _) = self.listener.accept().await?;
        // It may have gone already.
        let is_ours = stream.peer_cred().is_ok_and(|peer| peer.uid() == geteuid().as_raw());
        Ok(is_ours.then_some(stream))
    }

    /// Where it lies.
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
        assert!(bound(Socket::bind(&path).await).is_err_and(|error| error.contains("is no socket")));
        std::fs::remove_file(&path).expect("a file");
        // A process that was killed leaves its file behind.
        drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
        let first = Socket::bind(&path).await.expect("the stale one is replaced");
        let mode = std::fs::metadata(&path).expect("a socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(bound(Socket::bind(&path).await).is_err_and(|error| error.contains("another process listens")));
        drop(first);
        assert!(!path.exists(), "it goes with its server");
    }
}
