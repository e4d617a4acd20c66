//! The servers of harnesses that `relay-mesh up --with` keeps running, one for each harness. A process of ours,
//! `serve-harness`, has the harness's server on a leash, so that it ends with that process, and keeps the record.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mesh::ports::machine::{Machine, Process};
use serde::{Deserialize, Serialize};
use store::Durability;
use tokio::net::TcpStream;

use super::ServerError;
use super::background::{end, last_words, spawn};
use crate::atomic_write;
use crate::config::Settings;
use crate::unix::{self, OpenOptionsExt};

/// Timeout until a harness's server listens. A first start may compile and fetch.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Timeout until it has ended, with what it started.
const STOP_PATIENCE: Duration = Duration::from_secs(20);
/// Poll interval.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes of a log beyond which the next start begins a new one.
const LOG_LENGTH: u64 = 1 << 20;

/// A harness's server that runs for a data folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HarnessServerRecord {
    /// The harness, as users type it.
    pub(crate) harness: String,
    /// Its name for display.
    pub(crate) title: String,
    /// Our process that holds the leash. It includes the start time, so that a later one does not match.
    pub(crate) process: Process,
    /// The harness's own process.
    pub(crate) pid: u32,
    /// The machine on which they run.
    pub(crate) machine: String,
    /// The port on loopback. A later start prefers it.
    pub(crate) port: u16,
}

impl HarnessServerRecord {
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The last server of a harness, whether or not it still runs.
    pub(crate) fn last(dir: &Path, harness: &str) -> Result<Option<HarnessServerRecord>, ServerError> {
        let path = record_path(dir, harness);
        match fs::read(&path) {
            // We write it by rename, so an unparsable file is not ours.
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ServerError::Record { path, source }),
        }
    }

    /// The running server of a harness. A record of an ended process counts as none.
    pub(crate) fn find(
        dir: &Path,
        harness: &str,
        machine: &dyn Machine,
    ) -> Result<Option<HarnessServerRecord>, ServerError> {
        Ok(HarnessServerRecord::last(dir, harness)?.filter(|record| record.runs(machine)))
    }

    /// Every record of this machine, also of servers that were killed since.
    pub(crate) fn all(dir: &Path, machine: &dyn Machine) -> Result<Vec<HarnessServerRecord>, ServerError> {
        let folder = folder(dir);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(ServerError::Record { path: folder, source }),
        };
        let mut all = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(harness) = name.to_str().and_then(|name| name.strip_suffix(".json")) else { continue };
            all.extend(HarnessServerRecord::last(dir, harness)?.filter(|record| record.machine == machine.name()));
        }
        all.sort_by(|one, other| one.harness.cmp(&other.harness));
        Ok(all)
    }

    pub(crate) fn runs(&self, machine: &dyn Machine) -> bool {
        self.machine == machine.name() && !machine.has_ended(self.process)
    }

    /// Whether something takes connections at its port.
    pub(crate) async fn listens(&self) -> bool {
        let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        matches!(tokio::time::timeout(Duration::from_secs(2), connected).await, Ok(Ok(_)))
    }

    pub(crate) fn write(&self, dir: &Path) -> Result<(), ServerError> {
        let path = record_path(dir, &self.harness);
        let write = || {
            let text = serde_json::to_string(self).map_err(io::Error::from)? + "\n";
            atomic_write::replace(&path, text.as_bytes(), 0o600, Durability::Process)
        };
        write().map_err(|source| ServerError::Record { path: path.clone(), source })
    }

    /// Removes this record, and no other process's.
    pub(crate) fn remove(&self, dir: &Path) -> Result<(), ServerError> {
        if HarnessServerRecord::last(dir, &self.harness)?.as_ref() != Some(self) {
            return Ok(());
        }
        let path = record_path(dir, &self.harness);
        fs::remove_file(&path).map_err(|source| ServerError::Record { path, source })
    }
}

/// The folder of records, logs, and what the guards write.
pub(crate) fn folder(dir: &Path) -> PathBuf {
    dir.join("harness-servers")
}

/// Makes that folder.
pub(crate) fn make_folder(dir: &Path) -> Result<PathBuf, ServerError> {
    let folder = folder(dir);
    let made = unix::make_private_folder(&folder);
    made.map_err(|source| ServerError::Record { path: folder.clone(), source })?;
    Ok(folder)
}

fn record_path(dir: &Path, harness: &str) -> PathBuf {
    folder(dir).join(format!("{harness}.json"))
}

fn log_path(dir: &Path, harness: &str) -> PathBuf {
    folder(dir).join(format!("{harness}.log"))
}

/// Starts a harness's server in the background, and returns once it listens. If another process starts it at the same
/// time, that one counts.
pub(crate) async fn start(
    settings: &Settings,
    harness: &str,
    machine: &dyn Machine,
) -> Result<HarnessServerRecord, ServerError> {
    let dir = &settings.dir.value;
    make_folder(dir)?;
    let log = log_path(dir, harness);
    let (file, began_at) = open_log(&log).map_err(ServerError::Spawn)?;
    let mut child = spawn(&arguments(settings, harness), file).map_err(ServerError::Spawn)?;
    let began = Instant::now();
    loop {
        if let Some(record) = HarnessServerRecord::find(dir, harness, machine)?
            && record.listens().await
        {
            return Ok(record);
        }
        if let Some(status) = child.try_wait().map_err(ServerError::Spawn)?.filter(|status| !status.success()) {
            return Err(ServerError::Start { why: last_words(&log, began_at).unwrap_or(status.to_string()), log });
        }
        if began.elapsed() > START_PATIENCE {
            return Err(ServerError::Start { why: format!("no answer within {} s", START_PATIENCE.as_secs()), log });
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Stops a harness's server, and returns once everything that it started has ended.
pub(crate) async fn stop(record: &HarnessServerRecord, machine: &dyn Machine) -> Result<(), ServerError> {
    end(record.process, STOP_PATIENCE, machine).await
}

/// The port that a server gets: the last one or the one that its users expect, else any that is free.
pub(crate) fn free_port(preferred: &[u16]) -> io::Result<u16> {
    let free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| listener.local_addr());
    let found = preferred.iter().find_map(|port| free(*port).ok());
    Ok(found.map_or_else(|| free(0), Ok)?.port())
}

fn open_log(log: &Path) -> io::Result<(File, u64)> {
    let length = fs::metadata(log).map(|about| about.len()).unwrap_or_default();
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    if length > LOG_LENGTH {
        return Ok((options.write(true).truncate(true).open(log)?, 0));
    }
    Ok((options.append(true).open(log)?, length))
}

fn arguments(settings: &Settings, harness: &str) -> Vec<String> {
    let mut arguments = vec!["serve-harness".to_owned(), harness.to_owned(), "--background".to_owned()];
    arguments.extend(["--dir".to_owned(), settings.dir.value.display().to_string()]);
    for folder in &settings.plugins.value {
        arguments.extend(["--plugins".to_owned(), folder.display().to_string()]);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::ThisMachine;

    fn record(machine: &ThisMachine) -> HarnessServerRecord {
        HarnessServerRecord {
            harness: "toad".to_owned(),
            title: "Toad".to_owned(),
            process: machine.this_process(),
            pid: 1,
            machine: machine.name().to_owned(),
            port: 4096,
        }
    }

    #[test]
    fn only_a_living_process_of_this_machine_holds_a_server() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path();
        let machine = ThisMachine::named_in(dir).expect("a machine");
        make_folder(dir).expect("made");
        assert_eq!(HarnessServerRecord::all(dir, &machine).expect("read"), []);
        let this = record(&machine);
        let dead = Process { start: this.process.start + 1, ..this.process };
        for (case, record, runs) in [
            ("a living one", this.clone(), true),
            ("one of another start", HarnessServerRecord { process: dead, ..this.clone() }, false),
            ("one of another machine", HarnessServerRecord { machine: "elsewhere".to_owned(), ..this.clone() }, false),
        ] {
            record.write(dir).expect("written");
            assert_eq!(HarnessServerRecord::find(dir, "toad", &machine).expect("read").is_some(), runs, "{case}");
        }
        this.write(dir).expect("written");
        HarnessServerRecord { pid: 2, ..this.clone() }.remove(dir).expect("looked at");
        assert_eq!(
            HarnessServerRecord::all(dir, &machine).expect("read"),
            std::slice::from_ref(&this),
            "another's stays"
        );
        this.remove(dir).expect("removed");
        assert_eq!(HarnessServerRecord::last(dir, "toad").expect("read"), None);
        fs::write(record_path(dir, "toad"), "{ torn").expect("a file");
        assert_eq!(HarnessServerRecord::find(dir, "toad", &machine).expect("read"), None, "a torn record is nobody's");
    }

    #[test]
    fn the_expected_port_is_taken_if_nobody_has_it() {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let taken = held.local_addr().expect("an address").port();
        assert_ne!(free_port(&[taken]).expect("a port"), taken);
        drop(held);
        assert_eq!(free_port(&[taken]).expect("a port"), taken);
    }
}
