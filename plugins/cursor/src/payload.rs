//! What Cursor writes to a hook's standard input, parsed once.

use relay_mesh_sdk::hooks::Call;
use relay_mesh_sdk::payload::Fields;
use relay_mesh_sdk::{Error, Session};
use serde_json::{Map, Value};

/// The prefix of an MCP server's tool in the hooks around any tool.
const MCP: &str = "MCP:";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Payload {
    /// A subagent has a conversation of its own. No payload says which conversation started it.
    pub(crate) conversation: String,
    /// The folders that the window has open.
    pub(crate) workspaces: Vec<String>,
    pub(crate) event: Event,
}

/// What happened, with the fields that we need.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    SessionStart,
    BeforeSubmitPrompt { prompt: String },
    PreToolUse(ToolCall),
    BeforeMcpExecution { call: ToolCall, server: Server },
    PostToolUse(ToolCall),
    PostToolUseFailure(ToolCall),
    PreCompact,
    Stop { how: Ending, loop_count: u64 },
    SessionEnd,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Completed,
    /// Its user stopped it.
    Aborted,
    Failed,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolCall {
    /// The tool of an MCP server, without Cursor's prefix; none for Cursor's own tools.
    pub(crate) mcp: Option<String>,
    /// May contain a line break.
    pub(crate) use_id: Option<String>,
    pub(crate) arguments: Map<String, Value>,
    /// The file that one of Cursor's own tools is about to write.
    pub(crate) writes: Option<String>,
}

/// Whose tool it is, as the hook before an MCP call says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    Ours,
    Another,
    Untold,
}

impl Payload {
    /// Parses a call. Returns `unsupported` for an unknown event and `failed` for a payload of another shape.
    pub(crate) fn parse(call: &Call) -> Result<Payload, Error> {
        let fields = Fields::of(call)?;
        let event = event(&call.name, &fields)?;
        let conversation = fields.optional("conversation_id").or_else(|| fields.optional("session_id"));
        let mut workspaces: Vec<String> = match fields.value().get("workspace_roots").and_then(Value::as_array) {
            Some(roots) => roots.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            None => Vec::new(),
        };
        if workspaces.is_empty() {
            workspaces.extend(call.variable("CURSOR_PROJECT_DIR").map(str::to_owned));
        }
        Ok(Payload {
            conversation: match conversation {
                Some(conversation) => conversation,
                None => fields.required("conversation_id")?,
            },
            workspaces,
            event,
        })
    }

    /// The window's first folder.
    pub(crate) fn workdir(&self) -> &str {
        self.workspaces.first().map_or("", String::as_str)
    }

    pub(crate) fn session(&self) -> Session {
        Session::new(&self.conversation, self.workdir())
    }
}

fn event(name: &str, fields: &Fields) -> Result<Event, Error> {
    Ok(match name {
        "sessionStart" => Event::SessionStart,
        "beforeSubmitPrompt" => Event::BeforeSubmitPrompt { prompt: fields.required("prompt")? },
        "preToolUse" => Event::PreToolUse(ToolCall::read(fields)?),
        // This hook is only for MCP tools and names them without the prefix.
        "beforeMCPExecution" => {
            let call = ToolCall::read(fields)?;
            let mcp = match call.mcp {
                Some(mcp) => mcp,
                None => fields.required("tool_name")?,
            };
            Event::BeforeMcpExecution {
                call: ToolCall { mcp: Some(mcp), writes: None, ..call },
                server: Server::read(fields),
            }
        }
        "postToolUse" => Event::PostToolUse(ToolCall::read(fields)?),
        "postToolUseFailure" => Event::PostToolUseFailure(ToolCall::read(fields)?),
        "preCompact" => Event::PreCompact,
        "stop" => Event::Stop {
            how: match fields.required("status")?.as_str() {
                "completed" => Ending::Completed,
                "aborted" => Ending::Aborted,
                _ => Ending::Failed,
            },
            loop_count: fields.value().get("loop_count").and_then(Value::as_u64).unwrap_or(0),
        },
        "sessionEnd" => Event::SessionEnd,
        other => return Err(Error::Unsupported(format!("Cursor's hook `{other}` has no meaning for the mesh"))),
    })
}

impl ToolCall {
    fn read(fields: &Fields) -> Result<ToolCall, Error> {
        let name = fields.required("tool_name")?;
        let arguments = match fields.value().get("tool_input") {
            Some(Value::Object(arguments)) => arguments.clone(),
            // Before an MCP call the arguments are a JSON object as text.
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            Some(_) | None => Map::new(),
        };
        // Some builds put the server's name in between.
        let mcp = name.strip_prefix(MCP).map(|tool| tool.rsplit(':').next().unwrap_or(tool).to_owned());
        let path = ["file_path", "path", "target_file"].iter().find_map(|field| arguments.get(*field)?.as_str());
        let writes = path.filter(|_| is_writer(&name)).map(str::to_owned);
        Ok(ToolCall { mcp, use_id: fields.optional("tool_use_id"), writes, arguments })
    }
}

impl Server {
    fn read(fields: &Fields) -> Server {
        let told: Vec<String> = ["mcp_server_name", "mcp_server_url", "command", "url"]
            .iter()
            .filter_map(|name| fields.optional(name))
            .collect();
        match told.iter().any(|told| told.contains("relay")) {
            true => Server::Ours,
            false if told.is_empty() => Server::Untold,
            false => Server::Another,
        }
    }
}

/// Whether one of Cursor's own tools changes files.
fn is_writer(tool: &str) -> bool {
    WRITERS.contains(&tool)
}

/// The tools that change files. `Write` and `Delete` are documented, the others were seen in older builds. A name
/// that does not exist does no harm.
pub(crate) const WRITERS: &[&str] = &["Write", "Delete", "StrReplace", "Edit", "MultiEdit", "EditNotebook"];
