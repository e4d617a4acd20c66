//! The server over the memory store, tested as clients use it: with rmcp's own client, with lines on a
//! pipe, and over HTTP. Only `World` calls the API.

mod budget;
mod coordinating;
mod eras;
mod fetching;
mod http;
mod lines;

mod resuming;
mod running;
mod talking;
mod threads;
mod web;

use std::sync::Arc;

use mesh::messages::Draft;
use mesh::names::MessageId;
use mesh::testing::{FakeHarnesses, FakeMachine, shell_call};
use mesh::{Limits, Mesh, Parts, Registration};
use rmcp::model::{CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, JsonObject};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceError, ServiceExt};
use serde_json::Value;
use store::Store;
use store::memory::MemoryStore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{ClientProcess, Profile, Service, StdioError, serve_on};

/// Buffer size of a pipe, in bytes.
const PIPE: usize = 64 * 1024;

/// One mesh, and everything that a test can change.
struct World {
    mesh: Arc<Mesh>,
    machine: Arc<FakeMachine>,
}

impl World {
    fn new() -> World {
        let store = Arc::new(MemoryStore::new());
        let machine = Arc::new(FakeMachine::default());
        let mesh = Arc::new(Mesh::new(Parts {
            shared: Arc::clone(&store) as Arc<dyn Store>,
            local: store,
            machine: Arc::clone(&machine) as Arc<dyn mesh::ports::machine::Machine>,
            harnesses: Arc::new(FakeHarnesses::default()),
            limits: Limits::default(),
        }));
        World { mesh, machine }
    }

    /// A connection over pipes of this size, served until its client leaves.
    fn pipe(
        &self,
        size: usize,
        process: ClientProcess,
    ) -> (tokio::io::DuplexStream, JoinHandle<Result<(), StdioError>>) {
        self.pipe_with(size, process, Profile::default())
    }

    fn pipe_with(
        &self,
        size: usize,
        process: ClientProcess,
        profile: Profile,
    ) -> (tokio::io::DuplexStream, JoinHandle<Result<(), StdioError>>) {
        let (near, far) = tokio::io::duplex(size);
        let serving =
            serve_on(Arc::clone(&self.mesh), process, profile, tokio::io::split(far), CancellationToken::new());
        (near, tokio::spawn(serving))
    }

    /// rmcp's own client, connected by the handshake of 2025-11-25.
    async fn client(&self, name: &str) -> Client {
        self.client_of(name, ClientProcess::default()).await
    }

    async fn client_of(&self, name: &str, process: ClientProcess) -> Client {
        self.client_with(name, process, Profile::default()).await
    }

    async fn client_of_service(&self, service: Service, process: ClientProcess, profile: Profile) -> Client {
        let (near, far) = tokio::io::duplex(PIPE);
        tokio::spawn(serve_on(service, process, profile, tokio::io::split(far), CancellationToken::new()));
        let config = ClientConfig::new(ClientCapabilities::default(), Implementation::new("a-client", "1.0"));
        Client(config.serve(near).await.expect("the handshake succeeds"))
    }

    async fn client_with(&self, name: &str, process: ClientProcess, profile: Profile) -> Client {
        let (near, _serving) = self.pipe_with(PIPE, process, profile);
        let config = ClientConfig::new(ClientCapabilities::default(), Implementation::new(name, "1.0"));
        Client(config.serve(near).await.expect("the handshake succeeds"))
    }

    /// A client registered under this name.
    async fn joined(&self, name: &str) -> Client {
        let client = self.client("a-client").await;
        assert_eq!(
            client.call("register_agent", &format!(r#"{{"name": "{name}"}}"#)).await,
            format!("you are `{name}`")
        );
        client
    }

    /// An agent of the command line.
    async fn register(&self, name: &str) {
        let caller = self.mesh.identify(&shell_call(None)).await.expect("identified");
        let name = Some(name.parse().expect("a name"));
        self.mesh.register(&caller, Registration { name, ..Registration::default() }).await.expect("registered");
    }

    /// Sends from the anonymous command line.
    async fn say(&self, to: &str, body: &str) -> MessageId {
        let caller = self.mesh.identify(&shell_call(None)).await.expect("identified");
        let draft = Draft { body: body.to_owned(), ..Draft::default() };
        self.mesh.send(&caller, &[to.to_owned()], draft).await.expect("sent").id
    }

    /// The highest status of a message with its one recipient.
    async fn status(&self, id: MessageId) -> &'static str {
        let caller = self.mesh.identify(&shell_call(None)).await.expect("identified");
        self.mesh.message_status(&caller, id).await.expect("known").recipients[0].history.status().as_str()
    }

    /// Waits until a message has reached a status.
    async fn reaches(&self, agent: &str, id: MessageId, status: &str) {
        let mut watch = self.mesh.watch_inbox(&agent.parse().expect("a name")).await.expect("watched");
        while self.status(id).await != status {
            watch.changed().await.expect("watched");
        }
    }

    /// Waits until a message for this agent waits without a lease.
    async fn waits_for(&self, agent: &str) {
        self.mesh.mail_waits(&agent.parse().expect("a name")).await.expect("waited");
    }
}

struct Client(RunningService<RoleClient, ClientConfig>);

impl Client {
    /// Calls a tool and returns its text; an error in brackets.
    async fn call(&self, tool: &str, arguments: &str) -> String {
        let (failed, text, _) = self.outcome(tool, arguments).await;
        if failed { format!("[{text}]") } else { text }
    }

    /// Calls a tool and returns its typed output.
    async fn structured(&self, tool: &str, arguments: &str) -> Value {
        let (failed, text, structured) = self.outcome(tool, arguments).await;
        assert!(!failed, "{tool}: {text}");
        structured.unwrap_or_else(|| panic!("{tool} gave no structured content"))
    }

    async fn outcome(&self, tool: &str, arguments: &str) -> (bool, String, Option<Value>) {
        let result = self.try_call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
        let text: Vec<&str> =
            result.content.iter().filter_map(|block| block.as_text()).map(|block| block.text.as_str()).collect();
        (result.is_error == Some(true), text.join("\n"), result.structured_content)
    }

    async fn try_call(&self, tool: &str, arguments: &str) -> Result<rmcp::model::CallToolResult, ServiceError> {
        let arguments: JsonObject = serde_json::from_str(arguments).expect("arguments are an object");
        let mut call = CallToolRequestParams::new(tool.to_owned());
        call.arguments = Some(arguments);
        self.0.call_tool(call).await
    }
}
