//! A real nats-server of a test's own, dropped with it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server.
pub struct Server {
    process: Child,
    folder: tempfile::TempDir,
    /// Where it listens.
    pub url: String,
}

impl Server {
    /// Starts one on a free port, with JetStream in a folder of its own.
    pub fn start() -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        let mut process = Command::new(program())
            .args(["--addr", "127.0.0.1", "--port", "-1", "--jetstream"])
            .arg("--store_dir")
            .arg(folder.path().join("jetstream"))
            .arg("--ports_file_dir")
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server starts");
        let ports = folder.path().join(format!("nats-server_{}.ports", process.id()));
        let begun = Instant::now();
        let url = loop {
            let known = std::fs::read(&ports).ok().and_then(|text| {
                let ports: serde_json::Value = serde_json::from_slice(&text).ok()?;
                ports["nats"][0].as_str().map(str::to_owned)
            });
            if let Some(url) = known {
                break url;
            }
            if let Some(ended) = process.try_wait().expect("a process") {
                panic!("nats-server ended: {ended}");
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "nats-server says where it listens");
            std::thread::sleep(Duration::from_millis(10));
        };
        Server { process, folder, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; its folder goes either way.
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
        let _kept_until_now = &self.folder;
    }
}

/// The server that the tests' setup installs, or the machine's own.
fn program() -> PathBuf {
    let installed = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/.venv/bin/nats-server");
    if installed.is_file() { installed } else { PathBuf::from("nats-server") }
}
