//! Connects to a Unix socket at any path. A socket address holds about a hundred bytes, too few for a deep folder; on
//! Linux the opened folder gives it a shorter path.

use std::io;
use std::path::Path;

use tokio::net::UnixStream;

/// The longest path that fits into an address, with the zero that ends it: 108 bytes on Linux, 104 on macOS
/// and the BSDs.
const LONGEST: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// Connects to the socket at a path of any length.
#[cfg(target_os = "linux")]
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{Mode, OFlags, open};

    if length(path) <= LONGEST {
        return UnixStream::connect(path).await;
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    // Only a base for the path: the folder need not be readable, and stays open until we are connected.
    let folder = open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
    if length(&short) > LONGEST {
        return Err(too_long("the name of its file alone is too long for a socket's address"));
    }
    UnixStream::connect(short).await
}

/// Connects to a socket. This system gives an open folder no path, so a path that is too long is refused.
#[cfg(not(target_os = "linux"))]
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    if length(path) > LONGEST {
        return Err(too_long("the socket's path is too long for this system: move it to a shorter path"));
    }
    UnixStream::connect(path).await
}

fn length(path: &Path) -> usize {
    path.as_os_str().len()
}

fn too_long(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{what} ({LONGEST} bytes fit)"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use tokio::net::UnixListener;

    use super::*;

    /// The result of connecting by this path to the socket that listens in the temporary folder.
    async fn check(path: impl FnOnce(&Path, &Path) -> PathBuf, expected: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let path = path(folder.path(), &socket);
        let outcome = match connect(&path).await {
            Ok(_) => {
                listener.accept().await.expect("a peer");
                "connected".to_owned()
            }
            Err(error) => error.to_string(),
        };
        assert!(outcome.contains(expected), "{}: {outcome}", path.display());
    }

    /// A folder so deep that no socket address can hold a path in it.
    fn deep(folder: &Path) -> PathBuf {
        let deep = folder.join("d".repeat(LONGEST)).join("and deeper");
        fs::create_dir_all(&deep).expect("folders");
        deep
    }

    /// A link to the socket, in a folder.
    fn linked(folder: &Path, socket: &Path) -> PathBuf {
        let link = folder.join("link");
        std::os::unix::fs::symlink(socket, &link).expect("a link");
        link
    }

    #[tokio::test]
    async fn a_socket_with_an_address_is_reached() {
        check(|_, socket| socket.to_path_buf(), "connected").await;
        check(linked, "connected").await;
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn a_socket_that_lies_too_deep_for_an_address_is_reached() {
        check(|folder, socket| linked(&deep(folder), socket), "connected").await;
        let moved = |folder: &Path, socket: &Path| {
            let path = deep(folder).join("moved");
            fs::rename(socket, &path).expect("it is moved");
            path
        };
        check(moved, "connected").await;
    }

    #[tokio::test]
    #[cfg(not(target_os = "linux"))]
    async fn a_socket_that_lies_too_deep_for_an_address_is_refused_with_advice() {
        check(|folder, socket| linked(&deep(folder), socket), "move it to a shorter path").await;
    }

    #[tokio::test]
    async fn where_nobody_listens_is_told_at_any_depth() {
        check(|folder, _| folder.join("none"), "No such file").await;
        #[cfg(target_os = "linux")]
        {
            check(|folder, _| deep(folder).join("none"), "No such file").await;
            check(|folder, _| folder.join("x".repeat(120)).join("none"), "No such file").await;
            check(|folder, _| folder.join("n".repeat(LONGEST)), "the name of its file alone is too long").await;
        }
    }
}
