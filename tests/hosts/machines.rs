//! Machines whose mesh is on servers, what they send, and what came of it.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use test_support::{Machine, NatsServer, Outcome, Program, StdioClient, Transcript};

/// A machine whose mesh is on the server.
pub struct Host {
    pub machine: Machine,
    pub server: String,
}

impl Host {
    pub fn new(number: u8, server: &NatsServer) -> Host {
        Host::of_many(number, std::slice::from_ref(server))
    }

    /// The same with several servers, on each of which every message lies.
    pub fn of_many(number: u8, servers: &[NatsServer]) -> Host {
        let machine = Machine::new(number, env!("CARGO_BIN_EXE_relay-mesh"));
        let urls: Vec<String> = servers.iter().map(|server| format!("nats://{}", machine.at(server.port()))).collect();
        let server = urls.join(",");
        machine.stage.configure(&format!("store = \"{server}\"\n[nats]\nreplicas = {}\n", servers.len()));
        Host { machine, server }
    }

    pub fn pair(server: &NatsServer) -> (Host, Host) {
        let (one, other) = (Host::new(1, server), Host::new(2, server));
        one.ok(&["register", "alice"]);
        other.ok(&["register", "bob"]);
        (one, other)
    }

    pub fn relay(&self, arguments: &[&str]) -> Program {
        self.machine.stage.relay(arguments)
    }

    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.machine.within(|| self.relay(arguments).run())
    }

    pub fn ok(&self, arguments: &[&str]) -> String {
        self.machine.within(|| self.relay(arguments).succeed())
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        parse(&self.ok(&[arguments, &["--json"]].concat()))
    }

    /// An agent that is a program of its own, with the server of the mesh that its harness would start.
    pub fn agent(&self, name: &str) -> StdioClient {
        let log = self.machine.stage.folder.join(format!("{name}.log"));
        let process = self.machine.within(|| self.relay(&["mcp"]).start(&log));
        let mut client = StdioClient::connected(process, "a-plain-client");
        let registered = client.call("register_agent", json!({"name": name}));
        assert!(!registered.failed, "{registered:?}");
        client
    }

    /// How often each text lies in an agent's inbox.
    pub fn texts(&self, agent: &str) -> BTreeMap<String, usize> {
        let mail = self.json(&["read", "--agent", agent, "--peek", "--last", "100000"]);
        let mut texts = BTreeMap::new();
        for message in mail["messages"].as_array().cloned().unwrap_or_default() {
            *texts.entry(message["body"].as_str().unwrap_or_default().to_owned()).or_insert(0) += 1;
        }
        texts
    }

    /// How many sendings wait here.
    pub fn waiting(&self) -> usize {
        let outcome = self.run(&["status", "--json"]);
        assert!(!outcome.stdout.is_empty(), "status answers, whatever becomes of the servers: {}", outcome.stderr);
        parse(&outcome.stdout)["queued"].as_array().map_or(0, Vec::len)
    }
}

/// What came of sending.
#[derive(Default)]
pub struct Figures {
    pub sent: usize,
    pub stored: Vec<String>,
    pub queued: Vec<String>,
    pub refused: usize,
}

impl Figures {
    pub fn note(&mut self, text: String, status: Option<&str>) {
        self.sent += 1;
        match status {
            Some("queued") => self.queued.push(text),
            Some(_) => self.stored.push(text),
            None => self.refused += 1,
        }
    }

    /// Compares what was acknowledged with what is there.
    pub fn check(&self, what: &str, there: &BTreeMap<String, usize>) {
        let acknowledged = self.stored.len() + self.queued.len();
        let lost: Vec<_> = self.stored.iter().chain(&self.queued).filter(|text| !there.contains_key(*text)).collect();
        let twice: Vec<_> = there.iter().filter(|(_, times)| **times > 1).collect();
        let mut transcript = Transcript::new();
        let figures = format!(
            "sent {}, acknowledged {acknowledged} (of them queued {}), refused {}, delivered {}, lost {}, twice {}",
            self.sent,
            self.queued.len(),
            self.refused,
            there.len(),
            lost.len(),
            twice.len()
        );
        transcript.step("fault", what, &figures);
        transcript.show();
        assert!(lost.is_empty(), "{what}: {lost:?}");
        assert!(twice.is_empty(), "{what}: {twice:?}");
    }
}

/// Sends as an agent; gives how far it got, none where it was refused.
pub fn send(client: &mut StdioClient, to: &str, text: &str) -> Option<String> {
    let answer = client.call("send_message", json!({"to": to, "body": text}));
    answer.structured["recipients"][0]["status"].as_str().map(str::to_owned)
}

pub fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("--json writes JSON: {error}: {text}"))
}
