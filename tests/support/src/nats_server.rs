//! A real nats-server per test, stopped when dropped. The tests of store-nats include this file, because they do not
//! depend on this crate.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]
#![expect(clippy::disallowed_methods, reason = "the server is started here, and nowhere else in these tests")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Timeout until a server reports its port.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that can be killed and restarted, with JetStream in its own folder.
pub struct NatsServer {
    process: Option<Child>,
    folder: ServerFolder,
    name: String,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    port: u16,
}

/// Where a server has its data, its log and its configuration.
enum ServerFolder {
    /// Deleted with the server.
    Temporary(tempfile::TempDir),
    /// Stays.
    Kept(PathBuf),
}

impl ServerFolder {
    fn path(&self) -> &Path {
        match self {
            ServerFolder::Temporary(folder) => folder.path(),
            ServerFolder::Kept(path) => path,
        }
    }
}

impl NatsServer {
    /// Starts one on a free port.
    pub fn start() -> NatsServer {
        NatsServer::with("alone", &[])
    }

    /// Starts one on a free port whose data is in this folder, and stays there.
    pub fn kept_in(folder: &Path) -> NatsServer {
        std::fs::create_dir_all(folder).expect("the folder is writable");
        let mut server = NatsServer::waiting("alone", ServerFolder::Kept(folder.to_owned()), &["--jetstream"]);
        server.restart();
        server
    }

    /// Starts one that listens on all interfaces, for other machines.
    pub fn for_machines() -> NatsServer {
        NatsServer::with("alone", &["--addr", "0.0.0.0"])
    }

    /// Starts one with this configuration, in which `$NAME` stands for a variable.
    pub fn configured(configuration: &str, variables: &[(&str, &str)]) -> NatsServer {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("nats.conf");
        std::fs::write(&file, configuration).expect("the folder is writable");
        let mut server = NatsServer::waiting("alone", folder, &["--config", &file.display().to_string()]);
        server.variables = owned(variables);
        server.restart();
        server
    }

    /// Starts one for other machines that requires a token.
    pub fn asking_for(word: &str) -> NatsServer {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("nats.conf").display().to_string();
        let arguments = ["--jetstream", "--addr", "0.0.0.0", "--config", &file];
        let mut server = NatsServer::waiting("alone", folder, &arguments);
        server.write_word(word);
        server.restart();
        server
    }

    /// Changes the token, also for connected clients.
    pub fn ask_for(&self, word: &str) {
        self.write_word(word);
        let process = self.process.as_ref().expect("it runs");
        let told = Command::new("kill").args(["-HUP", &process.id().to_string()]).status();
        assert!(told.expect("kill is everywhere").success(), "the server reads its configuration again");
    }

    fn write_word(&self, word: &str) {
        let config = format!("server_name: {}\nauthorization {{ token: \"{word}\" }}\n", self.name);
        std::fs::write(self.folder.path().join("nats.conf"), config).expect("the folder is writable");
    }

    /// Sends a request as the operator and returns the answer.
    pub fn request(&self, subject: &str, body: &serde_json::Value) -> serde_json::Value {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        let body = body.to_string();
        let mut lines = BufReader::new(stream.try_clone().expect("a second handle"));
        write!(
            &stream,
            "CONNECT {{\"verbose\":false}}\r\nSUB _INBOX.operator 1\r\nPUB {subject} _INBOX.operator {}\r\n{body}\r\n",
            body.len()
        )
        .expect("the server reads");
        loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).expect("the server answers") > 0, "the server hung up");
            assert!(!line.starts_with("-ERR"), "{line}");
            if line.starts_with("MSG ") {
                let length = line.split_whitespace().next_back().and_then(|length| length.parse().ok());
                let mut answer = vec![0; length.expect("a length")];
                lines.read_exact(&mut answer).expect("the whole answer");
                return serde_json::from_slice(&answer).expect("an answer in JSON");
            }
        }
    }

    /// Starts a cluster of `size` servers.
    pub fn cluster(size: usize) -> Vec<NatsServer> {
        NatsServer::cluster_at("127.0.0.1", size)
    }

    /// The same, reachable from other machines.
    pub fn cluster_for_machines(size: usize) -> Vec<NatsServer> {
        NatsServer::cluster_at("0.0.0.0", size)
    }

    fn cluster_at(address: &str, size: usize) -> Vec<NatsServer> {
        let ports: Vec<u16> = free_ports(size);
        let routes: Vec<String> = ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let routes = routes.join(",");
        let start = |(number, port): (usize, &u16)| {
            let listen = format!("nats://127.0.0.1:{port}");
            let arguments = ["--addr", address, "--cluster_name", "relay", "--cluster", &listen, "--routes", &routes];
            NatsServer::with(&format!("node-{number}"), &arguments)
        };
        ports.iter().enumerate().map(start).collect()
    }

    /// Starts a cluster with this configuration, in which `$NAME` stands for a variable.
    pub fn configured_cluster(configuration: &str, variables: &[(&str, &str)], size: usize) -> Vec<NatsServer> {
        let ports = free_ports(size);
        let routes: Vec<String> = ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let start = |(number, port): (usize, &u16)| {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("nats.conf");
            std::fs::write(&file, configuration).expect("the folder is writable");
            let (file, listen) = (file.display().to_string(), format!("nats://127.0.0.1:{port}"));
            let cluster = ["--cluster_name", "relay", "--cluster", &listen, "--routes", &routes.join(",")];
            let arguments = [&["--config", &file], &cluster[..]].concat();
            let mut server = NatsServer::waiting(&format!("node-{number}"), folder, &arguments);
            server.variables = owned(variables);
            server.restart();
            server
        };
        ports.iter().enumerate().map(start).collect()
    }

    /// The same server, reachable from other machines.
    pub fn open_to_machines(mut self) -> NatsServer {
        self.arguments.extend(["--addr".to_owned(), "0.0.0.0".to_owned()]);
        self.restart();
        self
    }

    /// The log file.
    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// A free port.
    pub fn free_port() -> u16 {
        free_ports(1)[0]
    }

    fn with(name: &str, arguments: &[&str]) -> NatsServer {
        let folder = tempfile::tempdir().expect("a folder");
        let mut server = NatsServer::waiting(name, folder, &[&["--jetstream"], arguments].concat());
        server.restart();
        server
    }

    fn waiting(name: &str, folder: impl Into<ServerFolder>, arguments: &[&str]) -> NatsServer {
        NatsServer {
            process: None,
            folder: folder.into(),
            name: name.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            variables: Vec::new(),
            port: free_ports(1)[0],
        }
    }

    /// The folder of the nats-server program.
    pub fn folder() -> PathBuf {
        program().parent().map(Path::to_owned).unwrap_or_default()
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its name in a cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its memory use in bytes.
    pub fn memory(&self) -> u64 {
        let process = self.process.as_ref().expect("it runs");
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
        let kilobytes: u64 = line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number");
        kilobytes * 1_024
    }

    /// Kills it, as if its machine failed.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("a process");
            process.wait().expect("a process");
        }
    }

    /// Kills it and deletes its stored data, as if its disk was replaced.
    pub fn lose_data(&mut self) {
        self.kill();
        std::fs::remove_dir_all(self.folder.path().join("jetstream")).expect("its data is there");
    }

    /// Restarts it on the same port with its stored data.
    pub fn restart(&mut self) {
        self.kill();
        let log = self.folder.path().join("log");
        let mut command = Command::new(program());
        // Relative paths in a configuration start at the server's working folder.
        let configuration = std::fs::read_to_string(self.folder.path().join("nats.conf")).unwrap_or_default();
        if !configuration.contains("store_dir") {
            command.arg("--store_dir").arg(self.folder.path().join("jetstream"));
        }
        let process = command
            .current_dir(self.folder.path())
            .args(["--addr", "127.0.0.1", "--port", &self.port.to_string(), "--name", &self.name])
            .arg("--log")
            .arg(&log)
            .args(&self.arguments)
            .envs(self.variables.iter().cloned())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server starts: tests/setup installs it");
        let process = self.process.insert(process);
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Some(ended) = process.try_wait().expect("a process") {
                panic!("nats-server ended with {ended}: {}", told(&log));
            }
            assert!(begun.elapsed() < PATIENCE, "nats-server listens: {}", told(&log));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl From<tempfile::TempDir> for ServerFolder {
    fn from(folder: tempfile::TempDir) -> ServerFolder {
        ServerFolder::Temporary(folder)
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        if let (ServerFolder::Kept(_), Some(process)) = (&self.folder, &mut self.process) {
            // It writes where its messages are, which the next one would have to look up in all of them.
            let asked = Command::new("kill").arg(process.id().to_string()).status();
            if asked.is_ok_and(|status| status.success()) {
                let _ = process.wait();
            }
        }
        self.kill();
    }
}

fn owned(variables: &[(&str, &str)]) -> Vec<(String, String)> {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn told(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}

/// Free ports. This process is never given one twice: a server of a cluster may not be up yet at the port that it was
/// given for its routes, when the next one asks for a port for its clients.
fn free_ports(count: usize) -> Vec<u16> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().expect("nobody panics while asking for a port");
    let (mut ports, mut listeners) = (Vec::new(), Vec::new());
    while ports.len() < count {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        listeners.push(listener);
        if given.insert(port) {
            ports.push(port);
        }
    }
    ports
}

/// The program that the tests' setup installs, else the machine's own.
fn program() -> PathBuf {
    let own =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("tests/.venv/bin/nats-server"));
    own.into_iter().find(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("nats-server"))
}
