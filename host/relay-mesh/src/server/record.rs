//! The file `server.json` in the data folder: the server's process and address.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mesh::ports::machine::{Life, Machine, Process};
use serde::{Deserialize, Serialize};
use store::{Durability, Key};

use super::ServerError;
use crate::atomic_write;
use crate::config::{Settings, TokenUse};
use crate::shapes::server::ServerShape;

/// The content of `server.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerRecord {
    /// Includes the start time, so that a later process with the same id does not match.
    pub(crate) process: Process,
    /// The machine that `process` runs on.
    #[serde(alias = "host")]
    pub(crate) machine: String,
    /// As in `127.0.0.1:7423`.
    pub(crate) listen: String,
    /// The URL for MCP clients.
    pub(crate) url: String,
    /// The Unix socket for events, if the server offers one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<PathBuf>,
    /// The store of shared data, without secrets; none in a record of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<String>,
    /// How it serves; none in a record of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) serves: Option<Serves>,
    pub(crate) version: String,
}

/// How a server serves, where `up` may ask for something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Serves {
    /// The groups of tools, as in `core,runs`.
    pub(crate) tools: String,
    /// Whether clients over HTTP must show its token.
    pub(crate) asks_for_token: bool,
    /// The folders with further adapters.
    pub(crate) plugins: Vec<String>,
}

impl Serves {
    /// How a server with these settings serves.
    pub(crate) fn of(settings: &Settings) -> Serves {
        Serves {
            tools: settings.tools.value.to_string(),
            asks_for_token: settings.token.value == TokenUse::Required,
            plugins: settings.plugins.value.iter().map(|folder| folder.display().to_string()).collect(),
        }
    }
}

/// The store key that the only server of a data folder holds.
pub(crate) fn lease() -> Key {
    "serve".parse().expect("a constant of this file is a key")
}

impl ServerRecord {
    pub(crate) fn path(dir: &Path) -> PathBuf {
        dir.join("server.json")
    }

    /// The running server of a folder. A record of an ended process counts as none. A server in another PID namespace
    /// runs while it holds the folder's lock.
    pub(crate) fn find(dir: &Path, machine: &dyn Machine) -> Result<Option<ServerRecord>, ServerError> {
        let path = ServerRecord::path(dir);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ServerError::Record { path, source }),
        };
        // We write it by rename, so an unparsable file is not ours.
        let record = serde_json::from_slice::<ServerRecord>(&bytes).ok();
        let runs = |record: &ServerRecord| match machine.life(record.process) {
            Life::Runs => true,
            Life::Ended => false,
            Life::Unknown => store::files::is_held(dir, &lease()).unwrap_or(true),
        };
        Ok(record.filter(|record| record.machine == machine.name() && runs(record)))
    }

    /// Records this server as running.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), ServerError> {
        let path = ServerRecord::path(dir);
        let write = || {
            let text = serde_json::to_string(self).map_err(io::Error::from)? + "\n";
            atomic_write::replace(&path, text.as_bytes(), 0o600, Durability::Process)
        };
        write().map_err(|source| ServerError::Record { path: path.clone(), source })
    }

    /// Removes this server's record. The record of another server stays.
    pub(crate) fn remove(&self, dir: &Path, machine: &dyn Machine) -> Result<(), ServerError> {
        match ServerRecord::find(dir, machine)? {
            Some(found) if found.process.is(&self.process) => {
                let path = ServerRecord::path(dir);
                fs::remove_file(&path).map_err(|source| ServerError::Record { path, source })
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn shape(found: Option<&ServerRecord>) -> ServerShape {
        match found {
            Some(record) => ServerShape {
                running: true,
                pid: Some(record.process.pid),
                url: Some(record.url.clone()),
                events: record.events.as_ref().map(|path| path.display().to_string()),
                version: Some(record.version.clone()),
            },
            None => ServerShape { running: false, pid: None, url: None, events: None, version: None },
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
        let this = ServerRecord {
            process: machine.this_process(),
            machine: machine.name().to_owned(),
            listen: "127.0.0.1:1".to_owned(),
            url: "http://127.0.0.1:1/mcp".to_owned(),
            events: None,
            store: None,
            serves: None,
            version: "0.1.0".to_owned(),
        };
        let dead = Process { start: this.process.start + 1, ..this.process };
        for (case, record, expected) in [
            ("a living one", this.clone(), true),
            ("one of another start", ServerRecord { process: dead, ..this.clone() }, false),
            ("one of another machine", ServerRecord { machine: "elsewhere".to_owned(), ..this.clone() }, false),
        ] {
            record.write(dir).expect("a record");
            assert_eq!(ServerRecord::find(dir, &machine).expect("a folder").is_some(), expected, "{case}");
        }
        this.write(dir).expect("a record");
        this.remove(dir, &machine).expect("a removal");
        assert_eq!(ServerRecord::find(dir, &machine).expect("a folder"), None);
        fs::write(ServerRecord::path(dir), "{ torn").expect("a file");
        assert_eq!(ServerRecord::find(dir, &machine).expect("a folder"), None, "a torn record is nobody's");
    }
}
