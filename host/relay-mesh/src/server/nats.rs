//! This machine's own nats-server, for `relay-mesh up --nats`: on loopback, with its token and its data in the data
//! folder.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mesh::ports::machine::{Life, Machine, Process};
use serde::{Deserialize, Serialize};
use store::{Durability, Key};

use super::ServerError;
use crate::atomic_write;
use crate::unix;

/// Timeout until the server listens.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// Timeout until it has flushed its data and ended.
const STOP_PATIENCE: Duration = Duration::from_secs(20);
/// Poll interval.
const LOOK: Duration = Duration::from_millis(20);

/// The nats-server started for a data folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NatsRecord {
    /// Includes the start time, so that a later process with the same id does not match.
    pub(crate) process: Process,
    /// The machine that `process` runs on.
    pub(crate) host: String,
    /// The port on loopback. A later start reuses it.
    pub(crate) port: u16,
}

impl NatsRecord {
    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The last server of a folder, whether or not it still runs.
    fn last(dir: &Path) -> Result<Option<NatsRecord>, ServerError> {
        let path = record_path(dir);
        match fs::read(&path) {
            // We write it by rename, so an unparsable file is not ours.
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ServerError::Record { path, source }),
        }
    }

    /// The running server of a folder. A record of an ended process counts as none. One in another PID namespace counts
    /// as running: a second server would write to the same files.
    pub(crate) fn find(dir: &Path, machine: &dyn Machine) -> Result<Option<NatsRecord>, ServerError> {
        let last = NatsRecord::last(dir)?;
        Ok(last.filter(|record| record.host == machine.name() && !machine.has_ended(record.process)))
    }
}

/// The file with the clients' login token.
pub(crate) fn token_path(dir: &Path) -> PathBuf {
    folder(dir).join("token")
}

pub(crate) fn log_path(dir: &Path) -> PathBuf {
    folder(dir).join("server.log")
}

/// The first executable nats-server in `path`.
pub(crate) fn program(path: &str) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| unix::is_program(file);
    std::env::split_paths(path).map(|folder| folder.join("nats-server")).find(is_program)
}

pub(crate) async fn start(dir: &Path, program: &Path, machine: &dyn Machine) -> Result<NatsRecord, ServerError> {
    let folder = folder(dir);
    let prepared = |source| ServerError::Record { path: folder.clone(), source };
    unix::make_private_folder(&folder).map_err(prepared)?;
    let token = kept_token(&token_path(dir), machine).map_err(prepared)?;
    let last = NatsRecord::last(dir)?.map(|record| record.port);
    let port = free_port(last).map_err(prepared)?;
    let configuration = folder.join("nats.conf");
    let text = format!(
        "# Written by `relay-mesh up --nats`.\nlisten: \"127.0.0.1:{port}\"\nauthorization {{ token: \"{token}\" }}\n\
         jetstream {{ store_dir: \"{}\" }}\nmax_payload: 2MB\n",
        folder.join("jetstream").display()
    );
    write_private(&configuration, &text).map_err(prepared)?;
    let log = log_path(dir);
    let file = unix::append_to_private_file(&log).map_err(prepared)?;
    let mut child = spawn(program, &configuration, file).map_err(ServerError::Spawn)?;
    // Noted at once, so that one that takes long, or whose `up` is killed, is found by the next command and by `down`.
    let outcome = note(dir, &mut child, port, machine).map_err(prepared);
    let outcome = match outcome {
        Ok(record) => {
            let ended = || child.try_wait().ok().flatten().map(|status| format!("nats-server ended with {status}"));
            listens(port, &log, ended).await.map(|()| record)
        }
        Err(error) => Err(error),
    };
    if outcome.is_err() {
        // It may have ended by itself.
        let _ended = child.kill().and_then(|()| child.wait());
        let _gone = fs::remove_file(record_path(dir));
    }
    outcome
}

/// Notes what was started.
fn note(dir: &Path, child: &mut Child, port: u16, machine: &dyn Machine) -> io::Result<NatsRecord> {
    let process = machine.process(child.id()).ok_or_else(|| io::Error::other("nats-server ended at once"))?;
    let record = NatsRecord { process, host: machine.name().to_owned(), port };
    write_private(&record_path(dir), &format!("{}\n", serde_json::to_string(&record)?))?;
    Ok(record)
}

/// Waits until a server that was found listens: it may have been started just now.
pub(crate) async fn answers(dir: &Path, record: &NatsRecord, machine: &dyn Machine) -> Result<(), ServerError> {
    let ended = || (machine.life(record.process) == Life::Ended).then(|| "nats-server has ended".to_owned());
    listens(record.port, &log_path(dir), ended).await
}

async fn listens(port: u16, log: &Path, mut ended: impl FnMut() -> Option<String>) -> Result<(), ServerError> {
    let failed = |why| ServerError::Start { why, log: log.to_owned() };
    let began = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if let Some(why) = ended() {
            return Err(failed(why));
        }
        if began.elapsed() > START_PATIENCE {
            return Err(failed(format!("nats-server does not listen at port {port}")));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Held while one is looked for and started.
pub(crate) fn lease() -> Key {
    "nats-server".parse().expect("a constant of this file is a key")
}

/// Stops a server, and returns once its process is gone.
pub(crate) async fn stop(record: &NatsRecord, machine: &dyn Machine) -> Result<(), ServerError> {
    super::background::end(record.process, STOP_PATIENCE, machine).await
}

fn folder(dir: &Path) -> PathBuf {
    dir.join("nats")
}

fn record_path(dir: &Path) -> PathBuf {
    folder(dir).join("server.json")
}

/// A free port: preferably the last one, so that settings that name it keep working.
fn free_port(last: Option<u16>) -> io::Result<u16> {
    let free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| listener.local_addr());
    match last.map(free) {
        Some(Ok(address)) => Ok(address.port()),
        Some(Err(_)) | None => free(0).map(|address| address.port()),
    }
}

/// The stored token, or a new one.
fn kept_token(path: &Path, machine: &dyn Machine) -> io::Result<String> {
    match fs::read_to_string(path) {
        Ok(token) if !token.trim().is_empty() => Ok(token.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(_) | Err(_) => {
            // Starts with letters, because the server parses a word of digits as a number.
            let token = format!("relay-{}", hex::encode(machine.random()));
            write_private(path, &format!("{token}\n"))?;
            Ok(token)
        }
    }
}

/// Atomically writes a file that only its owner may read.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    atomic_write::replace(path, text.as_bytes(), 0o600, Durability::Synced)
}

#[expect(clippy::disallowed_methods, reason = "this is the file that starts nats-server")]
fn spawn(program: &Path, configuration: &Path, log: File) -> io::Result<Child> {
    let errors = log.try_clone()?;
    let mut command = Command::new(program);
    command.arg("--config").arg(configuration).stdin(Stdio::null()).stdout(log).stderr(errors);
    // So that signals from the terminal do not end it.
    unix::process::in_own_group(&mut command).spawn()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unix::PermissionsExt as _;

    #[test]
    fn a_port_is_taken_again_unless_somebody_else_has_it() {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let taken = held.local_addr().expect("an address").port();
        assert_ne!(free_port(Some(taken)).expect("a port"), taken);
        drop(held);
        assert_eq!(free_port(Some(taken)).expect("a port"), taken);
    }

    #[test]
    fn only_a_file_that_can_be_run_is_the_program() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("nats-server");
        let path = folder.path().display().to_string();
        assert_eq!(program(&path), None);
        fs::write(&file, "").expect("a file");
        assert_eq!(program(&path), None);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).expect("its mode");
        assert_eq!(program(&format!("/nowhere:{path}")), Some(file));
    }
}
