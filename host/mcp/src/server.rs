//! The MCP server itself: what it says of itself, which tools it lists, and how a call is answered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use mesh::Mesh;
use mesh::protocol::protocol_for;
use mesh::session::Transport;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, DiscoverResult,
    ErrorCode, ErrorData, Implementation, InitializeRequestParams, InitializeResult, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, RequestId, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;

use crate::connection::{Link, Shipment};
use crate::http::reply::Reply;
use crate::keeper::{Carried, Fate, Keeper};
use crate::profile::Profile;
use crate::refusal::Refusal;
use crate::sighting::{self, Outlook, Proof};
use crate::tools::{self, Entry, Keyed, Visit, WaitingPatience};

/// How long a client may take to name its roots before it is served without.
const PATIENCE_FOR_ROOTS: Duration = Duration::from_millis(500);

/// Serves every connection of one transport. Cheap to clone; knows nothing of a single connection,
/// for each request brings its [`Link`] along.
#[derive(Clone)]
pub(crate) struct Server(Arc<Shared>);

struct Shared {
    mesh: Arc<Mesh>,
    keeper: Keeper,
    outlook: Outlook,
    /// The tools as clients with a connection see them.
    tools: BTreeMap<&'static str, Entry>,
    /// The tools as clients see them that have nothing but a key to say who they are.
    keyed: BTreeMap<&'static str, Entry>,
}

impl Server {
    /// A server over this mesh, for callers seen from there.
    pub(crate) fn new(mesh: Arc<Mesh>, keeper: Keeper, outlook: Outlook, profile: Profile) -> Server {
        let (tools, keyed) = (tools::tools(profile, Keyed::No), tools::tools(profile, Keyed::Yes));
        Server(Arc::new(Shared { mesh, keeper, outlook, tools, keyed }))
    }

    async fn answer(
        &self,
        tool: &Entry,
        mut arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<tools::Answer, Refusal> {
        let shared = &self.0;
        let proof = sighting::take_proof(&mut arguments)?;
        let root = root_of(context).await;
        let call = sighting::call(&shared.outlook, &tool.shown.name, &arguments, &proof, context, root);
        let caller = shared.mesh.identify(&call).await?;
        let link = context.extensions.get::<Link>();
        let progress = context.meta.get_progress_token().map(|token| (context.peer.clone(), token));
        let patience = WaitingPatience {
            given_up: context.ct.clone(),
            closing: link.map(|link| link.closing.clone()).unwrap_or_default(),
            unheard: reply_of(context).map(|reply| reply.over.clone()).unwrap_or_default(),
            progress,
        };
        let visit = Visit { mesh: Arc::clone(&shared.mesh), caller, ticket: proof.ticket, patience };
        (tool.run)(visit, Value::Object(arguments)).await
    }

    /// What an agent is told when its client connects. Where its session is known already, who it is.
    async fn instructions(&self, context: &RequestContext<RoleServer>, client: Option<Implementation>) -> String {
        let mut call = sighting::call(&self.0.outlook, "", &JsonObject::new(), &Proof::default(), context, None);
        call.sighting.tool = None;
        call.sighting.arguments = None;
        if let Some(client) = client {
            call.sighting.client_name = Some(client.name);
            call.sighting.client_version = Some(client.version);
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

/// Tells the connection's ledger that a tool has come to an end, whichever way it ends.
struct Running<'a> {
    link: Option<&'a Link>,
    id: &'a RequestId,
}

impl Running<'_> {
    /// It ended with mail in its answer.
    fn ends_with(mut self, shipment: Shipment) -> Result<(), Shipment> {
        match self.link.take() {
            Some(link) => {
                link.ledger.answered(self.id, Some(shipment));
                Ok(())
            }
            None => Err(shipment),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(link) = self.link {
            link.ledger.answered(self.id, None);
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut server = Implementation::new("relay-mesh", env!("CARGO_PKG_VERSION"));
        server.title = Some("relay-mesh".to_owned());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
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
        let tools = match context.extensions.get::<Link>() {
            Some(_) => &self.0.tools,
            None => &self.0.keyed,
        };
        Ok(ListToolsResult::with_all_items(tools.values().map(|entry| entry.shown.clone()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let shared = &self.0;
        let running = Running { link: context.extensions.get::<Link>(), id: &context.id };
        let Some(tool) = shared.tools.get(request.name.as_ref()) else {
            let name: String = request.name.chars().filter(|c| !c.is_control()).take(80).collect();
            return Err(ErrorData::invalid_params(format!("no tool is named `{name}`"), None));
        };
        let answer = match self.answer(tool, request.arguments.unwrap_or_default(), &context).await {
            Ok(answer) => answer,
            Err(refusal) => return Ok(refusal.into_result().into()),
        };
        if let Some(carried) = answer.carried {
            let reply = reply_of(&context).cloned();
            if let Err(shipment) = running.ends_with(Shipment { carried, reply })
                && let Some(carried) = shipment.board()
            {
                shared.keeper.settle(carried, Fate::Lost).await;
                return Ok(Refusal::new("the connection that asked is gone", "Fetch again.").into_result().into());
            }
        }
        let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
        result.structured_content = Some(answer.structured);
        Ok(result.into())
    }

    /// What is no request of the protocol, and what would be one but for its parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method: String = request.method.chars().filter(|c| !c.is_control()).take(80).collect();
        Err(match method.as_str() {
            "tools/call" => {
                ErrorData::invalid_params("tools/call takes a `name`, which is text, and `arguments`, an object", None)
            }
            "initialize" | "tools/list" | "ping" | "server/discover" => {
                ErrorData::invalid_params(format!("the parameters of {method} are not as the protocol has them"), None)
            }
            _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}` here"), None),
        })
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        if let Some(link) = context.extensions.get::<Link>() {
            *link.root.lock().expect("no holder of this lock panics") = None;
        }
    }
}

impl Shipment {
    /// Puts mail aboard the HTTP response where no connection stands between. Gives it back where
    /// that response is gone.
    fn board(self) -> Option<Carried> {
        match self.reply {
            Some(reply) => reply.carry(self.carried).err(),
            None => Some(self.carried),
        }
    }
}

/// The HTTP response that will hold the answer, where the call came that way.
fn reply_of(context: &RequestContext<RoleServer>) -> Option<&Reply> {
    context.extensions.get::<Parts>()?.extensions.get::<Reply>()
}

/// The folder that the client names as its first root, where it names any. Asked once per connection.
#[expect(deprecated, reason = "roots are on their way out of the protocol, and clients of today still have them")]
async fn root_of(context: &RequestContext<RoleServer>) -> Option<String> {
    let link = context.extensions.get::<Link>()?;
    let offers = context.client_capabilities().is_some_and(|capabilities| capabilities.roots.is_some());
    let asks = context.protocol_version().is_some_and(|version| version < ProtocolVersion::V_2026_07_28);
    if !offers || !asks {
        return None;
    }
    if let Some(root) = link.root.lock().expect("no holder of this lock panics").clone() {
        return root;
    }
    let root = match tokio::time::timeout(PATIENCE_FOR_ROOTS, context.peer.list_roots()).await {
        Ok(Ok(listed)) => listed.roots.iter().find_map(|root| sighting::path_of(&root.uri)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a client that offers roots does not name them");
            None
        }
        Err(_) => None,
    };
    *link.root.lock().expect("no holder of this lock panics") = Some(root.clone());
    root
}

/// How calls come to a server that one client started.
pub(crate) fn beside(environment: Vec<(String, String)>, workdir: Option<String>) -> Outlook {
    Outlook { transport: Transport::Stdio, environment, workdir }
}

/// How calls come to a server that many clients share: its own environment belongs to none of them.
pub(crate) fn shared() -> Outlook {
    Outlook { transport: Transport::Http, environment: Vec::new(), workdir: None }
}
