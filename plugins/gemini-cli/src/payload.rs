//! What Gemini CLI writes to a hook's standard input, parsed once.

use relay_mesh_sdk::hooks::Call;
use relay_mesh_sdk::payload::Fields;
use relay_mesh_sdk::{Error, Session, servers};
use serde_json::{Map, Value};

/// What Gemini CLI gives for the answer of a model that has said nothing.
const NOTHING_SAID: &str = "[no response text]";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Payload {
    pub(crate) session: Session,
    /// The process of its window, which runs the hooks.
    pub(crate) window: Option<String>,
    /// The file in which the session is recorded.
    pub(crate) transcript: Option<String>,
    pub(crate) event: Event,
}

/// What happened, with the fields that we need.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    SessionStart(Source),
    BeforeAgent {
        prompt: String,
    },
    BeforeTool(Tool),
    AfterTool(Tool),
    /// `again` if a hook has already kept this turn going. Not `answered` if the model has said nothing: its user stopped
    /// it before.
    AfterAgent {
        again: bool,
        answered: bool,
    },
    /// `asks` if the user has to allow a tool.
    Notification {
        asks: bool,
    },
    /// `by_person` for `/compress`. The other kind comes before every request, even if nothing is compressed.
    PreCompress {
        by_person: bool,
    },
    /// `cleared` if another session follows in the same window.
    SessionEnd {
        cleared: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Startup,
    Resume,
    Clear,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tool {
    /// A tool of our server: its name there, and its arguments.
    Ours(String, Map<String, Value>),
    /// A tool of Gemini CLI's own that writes a file.
    Writes(String),
    /// Any other tool.
    Other,
}

impl Payload {
    /// Parses a call. Returns `unsupported` for an unknown event and `failed` for a payload of another shape.
    pub(crate) fn parse(call: &Call) -> Result<Payload, Error> {
        let fields = Fields::of(call)?;
        let event = event(&call.name, &fields)?;
        let workdir = fields.optional("cwd").or_else(|| call.variable("GEMINI_CWD").map(str::to_owned));
        let session = Session::new(fields.required("session_id")?, workdir.unwrap_or_default());
        Ok(Payload {
            session: Session { process: call.process_id(), ..session },
            window: call.process.clone(),
            transcript: fields.optional("transcript_path"),
            event,
        })
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
        "AfterAgent" => Event::AfterAgent {
            again: fields.flag("stop_hook_active")?,
            answered: fields.optional("prompt_response").is_none_or(|said| said != NOTHING_SAID),
        },
        "Notification" => Event::Notification { asks: fields.required("notification_type")? == "ToolPermission" },
        "PreCompress" => Event::PreCompress { by_person: fields.required("trigger")? == "manual" },
        "SessionEnd" => Event::SessionEnd { cleared: fields.required("reason")? == "clear" },
        other => return Err(Error::Unsupported(format!("Gemini CLI's hook `{other}` has no meaning for the mesh"))),
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

/// Whether a tool is our server's, by the command that Gemini CLI started or by our path on loopback. The server's
/// name does not prove it: another server's name may start like ours.
fn is_our_server(server: &Value) -> bool {
    let url = server.get("url").and_then(Value::as_str);
    let by_url = url.and_then(|url| url.strip_prefix("http://")).is_some_and(|rest| {
        let loopback = ["127.0.0.1:", "localhost:", "[::1]:"].iter().any(|host| rest.starts_with(host));
        loopback && rest.ends_with("/mcp")
    });
    servers::is_ours(server) || by_url
}
