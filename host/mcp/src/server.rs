//! The MCP server: its instructions, the tools it lists, and how it answers a call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use mesh::Mesh;
use mesh::messages::protocol::protocol_for;
use mesh::sessions::Transport;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CompleteRequestParams, CompleteResult,
    ContentBlock, CreateTaskResult, CustomRequest, CustomResult, DiscoverResult, ErrorCode, ErrorData, GetTaskParams,
    GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    RequestId, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;

use crate::audit;
use crate::caller::{self, CallOrigin, Proof};
use crate::connection::{Connection, OutgoingMail, Turn};
use crate::http::reply::Reply;
use crate::lease_tracker::{Fate, LeaseTracker, PendingLease};
use crate::profile::{Group, Profile};
use crate::run_host::RunHost;
use crate::spawn_host::SpawnHost;
use crate::thread_host::ThreadHost;
use crate::tool_error::ToolError;
use crate::tools::{self, KeyArgument, ListedTool, ToolCall, WaitControl};

/// How long a client may take to name its roots. After that it is served without.
const ROOTS_TIMEOUT: Duration = Duration::from_millis(500);

/// What a server serves.
#[derive(Clone)]
pub struct Service {
    /// The mesh.
    pub mesh: Arc<Mesh>,
    /// What starts runs, if this server does.
    pub runs: Option<Arc<dyn RunHost>>,
    /// What starts agents, if this server does.
    pub spawns: Option<Arc<dyn SpawnHost>>,
    /// What talks with other agents, if this server does.
    pub threads: Option<Arc<dyn ThreadHost>>,
}

impl From<Arc<Mesh>> for Service {
    /// The mesh alone: runs and agents are refused.
    fn from(mesh: Arc<Mesh>) -> Service {
        Service { mesh, runs: None, spawns: None, threads: None }
    }
}

/// Serves every connection of one transport. Cheap to clone; it has no connection of its own: each
/// request carries its [`Connection`].
#[derive(Clone)]
pub(crate) struct Server(Arc<Shared>);

struct Shared {
    mesh: Arc<Mesh>,
    runs: Option<Arc<dyn RunHost>>,
    spawns: Option<Arc<dyn SpawnHost>>,
    threads: Option<Arc<dyn ThreadHost>>,
    /// Whether calls about mail are audited.
    audits: bool,
    leases: LeaseTracker,
    origin: CallOrigin,
    /// The process of the only client, if it started this one.
    client: Option<u32>,
    /// The tools for clients with a connection.
    tools: BTreeMap<&'static str, ListedTool>,
    /// The tools for clients that can only identify themselves by a key.
    keyed: BTreeMap<&'static str, ListedTool>,
}

impl Server {
    pub(crate) fn new(service: Service, leases: LeaseTracker, origin: CallOrigin, profile: Profile) -> Server {
        let (tools, keyed) = (tools::tools(profile, KeyArgument::Hidden), tools::tools(profile, KeyArgument::Shown));
        let Service { mesh, runs, spawns, threads } = service;
        let audits = [Group::Codex, Group::Subagents, Group::Atm].into_iter().any(|group| profile.shows(group));
        Server(Arc::new(Shared { mesh, runs, spawns, threads, audits, leases, origin, client: None, tools, keyed }))
    }

    /// The same server for the one client that started this process.
    pub(crate) fn started_by(mut self, client: Option<u32>) -> Server {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.client = client;
        }
        self
    }

    /// Looks for sessions that the client has opened again. Their user need not have typed anything yet.
    fn look_for_reopened(&self, client: &Implementation, context: &RequestContext<RoleServer>) {
        let Some((process, connection)) = self.0.client.zip(context.extensions.get::<Connection>()) else { return };
        let mut call = caller::call(&self.0.origin, "", &JsonObject::new(), &Proof::default(), context, None);
        call.caller.tool = None;
        call.caller.client_name = Some(client.name.clone());
        let (mesh, id, closing) = (Arc::clone(&self.0.mesh), connection.id.clone(), connection.closing.clone());
        tokio::spawn(async move {
            closing.run_until_cancelled(mesh.find_reopened(&call.caller, &id, process)).await;
        });
    }

    async fn answer(
        &self,
        tool: &ListedTool,
        mut arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<tools::ToolAnswer, ToolError> {
        let call = self.call(&tool.listing.name, &mut arguments, context).await?;
        if let Some(audited) = audit::of_mail(&tool.listing.name, &arguments).filter(|_| self.0.audits) {
            audit::note(&call.mesh, &call.caller, audited).await;
        }
        (tool.run)(call, Value::Object(arguments)).await
    }

    /// A call with everything that a tool needs, and its arguments without what says who calls.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &mut JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<ToolCall, ToolError> {
        let shared = &self.0;
        let proof = caller::take_proof(arguments)?;
        let root = root_of(context).await;
        let call = caller::call(&shared.origin, tool, arguments, &proof, context, root);
        let caller = shared.mesh.identify(&call).await?;
        let connection = context.extensions.get::<Connection>();
        let progress = context.meta.get_progress_token().map(|token| (context.peer.clone(), token));
        let wait = WaitControl {
            cancelled: context.ct.clone(),
            closing: connection.map(|connection| connection.closing.clone()).unwrap_or_default(),
            reader_gone: reply_of(context).map(|reply| reply.over.clone()).unwrap_or_default(),
            progress,
        };
        Ok(ToolCall {
            mesh: Arc::clone(&shared.mesh),
            caller,
            ticket: proof.ticket,
            wait,
            runs: shared.runs.clone(),
            spawns: shared.spawns.clone(),
            threads: shared.threads.clone(),
            mail: shared.leases.mail(),
        })
    }

    /// The time, as the protocol writes it.
    pub(crate) fn now(&self) -> String {
        view::rfc3339(self.0.mesh.machine().now())
    }

    /// The instructions for a client that connects; with its agent's name if its session is known already.
    async fn instructions(&self, context: &RequestContext<RoleServer>, client: Option<Implementation>) -> String {
        let mut call = caller::call(&self.0.origin, "", &JsonObject::new(), &Proof::default(), context, None);
        call.caller.tool = None;
        call.caller.arguments = None;
        if let Some(client) = client {
            call.caller.client_name = Some(client.name);
            call.caller.client_version = Some(client.version);
        }
        match self.0.mesh.identify(&call).await {
            Ok(caller) => protocol_for(caller.agent()),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "a client is greeted without its name");
                protocol_for(None)
            }
        }
    }
}

/// Tells the connection's ledger that a tool has ended, also if its call is dropped.
struct Running<'a> {
    connection: Option<&'a Connection>,
    id: &'a RequestId,
}

impl Running<'_> {
    /// The tool ended with mail in its answer.
    fn ends_with(mut self, mail: OutgoingMail) -> Result<(), OutgoingMail> {
        match self.connection.take() {
            Some(connection) => {
                connection.ledger.answered(self.id, Some(mail));
                Ok(())
            }
            None => Err(mail),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection {
            connection.ledger.answered(self.id, None);
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut server = Implementation::new("relay-mesh", env!("CARGO_PKG_VERSION"));
        server.title = Some("relay-mesh".to_owned());
        let capabilities = ServerCapabilities::builder().enable_tools();
        // Tools that begin tasks are shown, and something starts them.
        let has_tasks = self.0.runs.is_some() && self.0.tools.values().any(|tool| tool.begin.is_some());
        ServerConfig::new(if has_tasks { capabilities.enable_tasks().build() } else { capabilities.build() })
            .with_server_info(server)
            .with_instructions(protocol_for(None))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        self.look_for_reopened(&request.client_info, &context);
        result.instructions = Some(self.instructions(&context, Some(request.client_info)).await);
        Ok(result)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let mut info = self.get_info();
        info.instructions = Some(self.instructions(&context, None).await);
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), info))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = match context.extensions.get::<Connection>() {
            Some(_) => &self.0.tools,
            None => &self.0.keyed,
        };
        Ok(ListToolsResult::with_all_items(tools.values().map(|tool| tool.listing.clone()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(turn) = context.extensions.get::<Turn>() {
            turn.comes(&context.ct).await;
        }
        let shared = &self.0;
        let running = Running { connection: context.extensions.get::<Connection>(), id: &context.id };
        let Some(tool) = shared.tools.get(request.name.as_ref()) else {
            let name: String = request.name.chars().filter(|c| !c.is_control()).take(80).collect();
            return Err(ErrorData::invalid_params(format!("no tool is named `{name}`"), None));
        };
        let wants_task = context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks());
        if let Some(begin) = tool.begin.filter(|_| wants_task) {
            return Ok(match self.begin(tool, begin, request.arguments.unwrap_or_default(), &context).await {
                Ok(task) => CallToolResponse::Task(CreateTaskResult::new(task)),
                Err(error) => error.into_result().into(),
            });
        }
        let answer = match self.answer(tool, request.arguments.unwrap_or_default(), &context).await {
            Ok(answer) => answer,
            Err(error) => return Ok(error.into_result().into()),
        };
        if let Some(lease) = answer.lease {
            let reply = reply_of(&context).cloned();
            if let Err(mail) = running.ends_with(OutgoingMail { lease, reply })
                && let Some(lease) = mail.attach()
            {
                shared.leases.settle(lease, Fate::Lost).await;
                return Ok(ToolError::new("the connection of this call is gone", "Fetch again.").into_result().into());
            }
        }
        let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
        result.structured_content = Some(answer.structured);
        Ok(result.into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let task = self.task(&request.task_id, &context).await;
        task.map(GetTaskResult::new).map_err(|error| ErrorData::invalid_params(error.text(), None))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let stopped = async {
            let call = self.call("", &mut JsonObject::new(), &context).await?;
            Ok::<(), ToolError>(call.runs()?.stop(&call.caller, &request.task_id).await?)
        };
        stopped.await.map_err(|error| ErrorData::invalid_params(error.text(), None))
    }

    /// Answers requests that the protocol does not know, or whose parameters do not match it.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let has_handshake = context.meta.protocol_version().is_none_or(|era| era.has_initialize());
        let method: String = request.method.chars().filter(|c| !c.is_control()).take(80).collect();
        Err(match method.as_str() {
            "tools/call" => {
                ErrorData::invalid_params("tools/call takes a `name`, which is text, and `arguments`, an object", None)
            }
            "initialize" | "ping" if !has_handshake => no_method(&method),
            "initialize" | "tools/list" | "ping" | "server/discover" => {
                ErrorData::invalid_params(format!("the parameters of {method} do not match the protocol"), None)
            }
            _ => no_method(&method),
        })
    }

    // rmcp answers these with empty lists, whether or not the capability is declared.

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(no_method("completion/complete"))
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(no_method("prompts/list"))
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(no_method("resources/list"))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(no_method("resources/templates/list"))
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        if let Some(connection) = context.extensions.get::<Connection>() {
            *connection.root.lock().expect("no holder of this lock panics") = None;
        }
    }
}

impl OutgoingMail {
    /// Attaches mail directly to the HTTP response, for a call without a connection. Gives it back if
    /// that response is over.
    fn attach(self) -> Option<PendingLease> {
        match self.reply {
            Some(reply) => reply.attach(self.lease).err(),
            None => Some(self.lease),
        }
    }
}

/// The error for a method that this server does not have.
fn no_method(method: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}` here"), None)
}

/// The HTTP response that will hold the answer, if the call came over HTTP.
fn reply_of(context: &RequestContext<RoleServer>) -> Option<&Reply> {
    context.extensions.get::<Parts>()?.extensions.get::<Reply>()
}

/// The first root of the client, if it names any. Asked once per connection.
#[expect(deprecated, reason = "roots are on their way out of the protocol, and clients of today still have them")]
async fn root_of(context: &RequestContext<RoleServer>) -> Option<String> {
    let connection = context.extensions.get::<Connection>()?;
    let offers = context.client_capabilities().is_some_and(|capabilities| capabilities.roots.is_some());
    let asks = context.protocol_version().is_some_and(|version| version < ProtocolVersion::V_2026_07_28);
    if !offers || !asks {
        return None;
    }
    if let Some(root) = connection.root.lock().expect("no holder of this lock panics").clone() {
        return root;
    }
    let root = match tokio::time::timeout(ROOTS_TIMEOUT, context.peer.list_roots()).await {
        Ok(Ok(listed)) => listed.roots.iter().find_map(|root| caller::path_of(&root.uri)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a client that offers roots does not name them");
            None
        }
        Err(_) => None,
    };
    *connection.root.lock().expect("no holder of this lock panics") = Some(root.clone());
    root
}

/// The origin of calls to a server that one client started.
pub(crate) fn origin_of_stdio(environment: Vec<(String, String)>, workdir: Option<String>) -> CallOrigin {
    CallOrigin { transport: Transport::Stdio, environment, workdir }
}

/// The origin of calls to a server that many clients share: its own environment belongs to none of them.
pub(crate) fn origin_of_http() -> CallOrigin {
    CallOrigin { transport: Transport::Http, environment: Vec::new(), workdir: None }
}
