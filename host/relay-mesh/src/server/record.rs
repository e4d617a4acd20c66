//! The file `server.json` in the data folder: which process is the server, and where it listens.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mesh::machine::{Machine, Process};
use serde::{Deserialize, Serialize};
use store::Durability;

use super::HostError;
use crate::atomic_write;
use crate::shapes::host::HostShape;

/// The server that runs on a data folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostRecord {
    /// Its process, told apart from a later one of the same number.
    pub(crate) process: Process,
    /// The machine on which that process runs.
    #[serde(alias = "host")]
    pub(crate) machine: String,
    /// The address, as in `127.0.0.1:7423`.
    pub(crate) listen: String,
    /// Where MCP clients reach it.
    pub(crate) url: String,
    /// The Unix socket at which it tells of events, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<PathBuf>,
    /// Where it keeps what machines share, without secrets; none in a record of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<String>,
    /// Its version.
    pub(crate) version: String,
}

impl HostRecord {
    /// Where it lies.
    pub(crate) fn path(dir: &Path) -> PathBuf {
        dir.join("server.json")
    }

    /// The server that runs on a folder now. A record of a process that ended is none.
    pub(crate) fn find(dir: &Path, machine: &dyn Machine) -> Result<Option<HostRecord>, HostError> {
        let path = HostRecord::path(dir);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(HostError::Record { path, source }),
        };
        // It is written by rename, so that what cannot be parsed is nobody's.
        let record = serde_json::from_slice::<HostRecord>(&bytes).ok();
        Ok(record.filter(|record| record.machine == machine.name() && machine.lives(record.process)))
    }

    /// Says that this server runs.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), HostError> {
        let path = HostRecord::path(dir);
        let write = || {
            let text = serde_json::to_string(self).map_err(io::Error::from)? + "\n";
            atomic_write::replace(&path, text.as_bytes(), 0o600, Durability::Process)
        };
        write().map_err(|source| HostError::Record { path: path.clone(), source })
    }

    /// Says that it no longer runs. The record of another server stays.
    pub(crate) fn remove(&self, dir: &Path, machine: &dyn Machine) -> Result<(), HostError> {
        match HostRecord::find(dir, machine)? {
            Some(found) if found.process == self.process => {
                let path = HostRecord::path(dir);
                fs::remove_file(&path).map_err(|source| HostError::Record { path, source })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// As people and programs see it.
    pub(crate) fn shape(found: Option<&HostRecord>) -> HostShape {
        match found {
            Some(record) => HostShape {
                running: true,
                pid: Some(record.process.pid),
                url: Some(record.url.clone()),
                events: record.events.as_ref().map(|path| path.display().to_string()),
                version: Some(record.version.clone()),
            },
            None => HostShape { running: false, pid: None, url: None, events: None, version: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::ThisMachine;

    #[test]
    fn only_a_living_process_of_this_machine_is_the_host() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path();
        let machine = ThisMachine::named_in(dir).expect("a machine");
        let this = HostRecord {
            process: machine.this_process(),
            machine: machine.name().to_owned(),
            listen: "127.0.0.1:1".to_owned(),
            url: "http://127.0.0.1:1/mcp".to_owned(),
            events: None,
            store: None,
            version: "0.1.0".to_owned(),
        };
        let dead = Process { start: this.process.start + 1, ..this.process };
        for (case, record, expected) in [
            ("a living one", this.clone(), true),
            ("one of another start", HostRecord { process: dead, ..this.clone() }, false),
            ("one of another machine", HostRecord { machine: "elsewhere".to_owned(), ..this.clone() }, false),
        ] {
            record.write(dir).expect("a record");
            assert_eq!(HostRecord::find(dir, &machine).expect("a folder").is_some(), expected, "{case}");
        }
        this.write(dir).expect("a record");
        this.remove(dir, &machine).expect("a removal");
        assert_eq!(HostRecord::find(dir, &machine).expect("a folder"), None);
        fs::write(HostRecord::path(dir), "{ torn").expect("a file");
        assert_eq!(HostRecord::find(dir, &machine).expect("a folder"), None, "a torn record is nobody's");
    }
}
