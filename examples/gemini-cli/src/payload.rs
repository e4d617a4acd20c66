//! What Gemini CLI writes to a hook's standard input, parsed once at the edge.

use relay_mesh_sdk::hooks::Call;
use relay_mesh_sdk::payload::Fields;
use relay_mesh_sdk::{Error, Session, servers};
use serde_json::{Map, Value};

/// One hook call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Payload {
    pub(crate) session: Session,
    pub(crate) event: Event,
}

/// What happened, with the fields that matter to us.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    SessionStart(Source),
    BeforeAgent {
        prompt: String,
    },
    BeforeTool(Tool),
    AfterTool(Tool),
    /// `again` where this end follows one that was put off.
    AfterAgent {
        again: bool,
    },
    /// `asks` where a person has to allow a tool.
    Notification {
        asks: bool,
    },
    /// `by_person` for `/compress`. The other kind comes before every request, whether anything is
    /// compressed or not.
    PreCompress {
        by_person: bool,
    },
    /// `cleared` where another session follows in the same window.
    SessionEnd {
        cleared: bool,
    },
}

/// Why a session starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Startup,
    Resume,
    Clear,
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tool {
    /// Of our server: the tool's name there, and its arguments.
    Ours(String, Map<String, Value>),
    /// One of Gemini CLI's own that writes a file.
    Writes(String),
    /// Any other.
    Other,
}

impl Payload {
    /// Parses a call. An event that we do not know is `unsupported`, a payload of another shape `failed`.
    pub(crate) fn parse(call: &Call) -> Result<Payload, Error> {
        let fields = Fields::of(call)?;
        let event = event(&call.name, &fields)?;
        let workdir = fields.optional("cwd").or_else(|| call.variable("GEMINI_CWD").map(str::to_owned));
        Ok(Payload { session: Session::new(fields.required("session_id")?, workdir.unwrap_or_default()), event })
    }
}

fn event(name: &str, fields: &Fields) -> Result<Event, Error> {
    Ok(match name {
        "SessionStart" => Event::SessionStart(match fields.required("source")?.as_str() {
            "startup" => Source::Startup,
            "resume" => Source::Resume,
            "clear" => Source::Clear,
            other => return Err(Error::Failed(format!("SessionStart has an unknown source `{other}`"))),
        }),
        "BeforeAgent" => Event::BeforeAgent { prompt: fields.required("prompt")? },
        "BeforeTool" => Event::BeforeTool(Tool::read(fields)?),
        "AfterTool" => Event::AfterTool(Tool::read(fields)?),
        "AfterAgent" => Event::AfterAgent { again: fields.flag("stop_hook_active")? },
        "Notification" => Event::Notification { asks: fields.required("notification_type")? == "ToolPermission" },
        "PreCompress" => Event::PreCompress { by_person: fields.required("trigger")? == "manual" },
        "SessionEnd" => Event::SessionEnd { cleared: fields.required("reason")? == "clear" },
        other => return Err(Error::Unsupported(format!("Gemini CLI's hook `{other}` says nothing to the mesh"))),
    })
}

impl Tool {
    fn read(fields: &Fields) -> Result<Tool, Error> {
        let name = fields.required("tool_name")?;
        let arguments = fields.value().get("tool_input").and_then(Value::as_object);
        let server = fields.value().get("mcp_context");
        let tool = server.filter(|server| is_our_server(server)).and_then(|server| server.get("tool_name")?.as_str());
        let path = || arguments.and_then(|arguments| arguments.get("file_path")?.as_str());
        Ok(match (tool, name.as_str()) {
            (Some(tool), _) => Tool::Ours(tool.to_owned(), arguments.cloned().unwrap_or_default()),
            (None, "write_file" | "replace") => path().map_or(Tool::Other, |path| Tool::Writes(path.to_owned())),
            (None, _) => Tool::Other,
        })
    }
}

/// Whether Gemini CLI has this tool from our server: by the command that it started, or by our path on
/// loopback. Not by the server's name, which may begin like ours and be somebody else's.
fn is_our_server(server: &Value) -> bool {
    let url = server.get("url").and_then(Value::as_str);
    let by_url = url.and_then(|url| url.strip_prefix("http://")).is_some_and(|rest| {
        let loopback = ["127.0.0.1:", "localhost:", "[::1]:"].iter().any(|host| rest.starts_with(host));
        loopback && rest.ends_with("/mcp")
    });
    servers::is_ours(server) || by_url
}
