//! The file `http.token` in the data folder: the token that HTTP clients must show. Created once and readable only by
//! its owner; settings that a team commits only refer to it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mesh::ports::machine::Machine;

use super::ServerError;
use crate::unix::{self, MetadataExt, OpenOptionsExt, PermissionsExt};

pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join("http.token")
}

/// The token; created if there is none.
pub(crate) fn read_or_make(dir: &Path, machine: &dyn Machine) -> Result<String, ServerError> {
    let path = path(dir);
    let outcome = match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(&path, machine),
        outcome => outcome,
    };
    outcome.map_err(|source| ServerError::Token { path, source })
}

/// The token; none if no server of the folder has run.
pub(crate) fn existing(dir: &Path) -> Result<Option<String>, ServerError> {
    let path = path(dir);
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some).map_err(|source| ServerError::Token { path, source }),
    }
}

fn read(path: &Path) -> io::Result<String> {
    let about = fs::metadata(path)?;
    if about.uid() != unix::user() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if about.permissions().mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "the token could be read by others; it is closed to them now");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    let token = fs::read_to_string(path)?;
    let token = token.trim();
    if token.len() < 32 || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it holds no token; remove it and a new one is made"));
    }
    Ok(token.to_owned())
}

/// Two processes may do this at once, also in two PID namespaces where both have the same id: each writes its own file
/// with a token in full, and the first to link it wins.
fn make(path: &Path, machine: &dyn Machine) -> io::Result<String> {
    let token = hex::encode([machine.random(), machine.random()].concat());
    let draft = hex::encode(machine.random());
    let own = path.with_extension(format!("token.{draft}"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&own)?;
    let written = writeln!(file, "{token}").and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&own, path));
    // Also if the disk was full.
    fs::remove_file(&own)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => read(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::ThisMachine;

    #[test]
    fn a_token_is_made_once_and_closed_to_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let machine = ThisMachine::named_in(folder.path()).expect("a machine");
        let token = read_or_make(folder.path(), &machine).expect("a token");
        assert_eq!(token.len(), 64);
        let mode = || fs::metadata(path(folder.path())).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        fs::set_permissions(path(folder.path()), fs::Permissions::from_mode(0o644)).expect("a mode");
        assert_eq!(read_or_make(folder.path(), &machine).expect("a token"), token, "the same one again");
        assert_eq!(mode(), 0o600, "and closed again");
        fs::write(path(folder.path()), "short\n").expect("a file");
        assert!(read_or_make(folder.path(), &machine).is_err(), "an unfit token is not used");
    }
}
