//! A machine whose mesh is kept in files, on one server or on a cluster of three.

use serde_json::{Value, json};

use crate::mcp_stdio::StdioClient;
use crate::nats_server::NatsServer;
use crate::stage::Stage;
use crate::waiting::wait_for;

/// A machine, and the servers that its mesh uses.
pub struct Deployment {
    /// The machine.
    pub stage: Stage,
    /// The servers; none on files.
    pub servers: Vec<NatsServer>,
}

/// A test for each of the three, from a function that takes a `Deployment`.
#[macro_export]
macro_rules! on_every_store {
    ($binary:expr; $($scenario:ident),+ $(,)?) => {
        mod on_files {
            $(#[test] fn $scenario() { super::$scenario(&mut $crate::Deployment::on_files($binary)); })+
        }
        mod on_one_server {
            $(#[test] fn $scenario() { super::$scenario(&mut $crate::Deployment::on_one_server($binary)); })+
        }
        mod on_three_servers {
            $(#[test] fn $scenario() { super::$scenario(&mut $crate::Deployment::on_three_servers($binary)); })+
        }
    };
}

impl Deployment {
    /// One whose mesh is a folder.
    pub fn on_files(binary: &str) -> Deployment {
        Deployment { stage: Stage::new(binary), servers: Vec::new() }
    }

    /// One whose mesh is on a server.
    pub fn on_one_server(binary: &str) -> Deployment {
        Deployment::on(binary, vec![NatsServer::start()])
    }

    /// One whose mesh is on three servers that keep three copies.
    pub fn on_three_servers(binary: &str) -> Deployment {
        Deployment::on(binary, NatsServer::cluster(3))
    }

    /// One whose mesh is on these servers.
    pub fn on(binary: &str, servers: Vec<NatsServer>) -> Deployment {
        let place = Deployment { stage: Stage::new(binary), servers };
        place.joins(&place.stage);
        place
    }

    /// Another machine on the same servers.
    pub fn another_machine(&self) -> Stage {
        let stage = Stage::new(&self.stage.binary().display().to_string());
        self.joins(&stage);
        stage
    }

    fn joins(&self, stage: &Stage) {
        let urls: Vec<String> = self.servers.iter().map(NatsServer::url).collect();
        let replicas = self.servers.len();
        stage.configure(&format!("store = '{}'\n[nats]\nreplicas = {replicas}\n", urls.join(",")));
        // Servers that have just started elect a leader first.
        wait_for("the streams are made", || (stage.run(&["doctor", "--store"]).code == Some(0)).then_some(()));
    }

    /// A client of the MCP server.
    pub fn session(&self, log: &str) -> StdioClient {
        let process = self.stage.relay(&["mcp"]).by_hand().start(&self.stage.folder.join(log));
        StdioClient::connected(process, "a-plain-client")
    }

    /// What a command prints as JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let printed = self.stage.relay_ok(&[arguments, &["--json"]].concat());
        serde_json::from_str(&printed).expect("JSON")
    }

    /// The name that the machine has on the servers.
    pub fn machine(&self) -> String {
        std::fs::read_to_string(self.stage.data.join("machine")).expect("it has a name").trim().to_owned()
    }

    /// Overwrites a value of the store with one that is no record, as this machine would.
    pub fn damage(&self, key: &str) {
        match self.servers.first() {
            None => {
                let file = self.stage.data.join(format!("{key}.json"));
                std::fs::create_dir_all(file.parent().expect("a folder")).expect("the folder is writable");
                std::fs::write(file, "{\"revision\":9,\"value\":\"torn\"}").expect("the folder is writable");
            }
            Some(server) => {
                let subject = format!("$KV.RELAY_MAP.{}.{}", self.machine(), key.replace('/', "."));
                let answer = server.request(&subject, &json!("torn"));
                assert!(answer["error"].is_null(), "{answer}");
            }
        }
    }
}
