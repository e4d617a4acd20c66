//! What Claude Code writes to a hook's standard input, parsed once at the edge.

use relay_mesh_sdk::hooks::Call;
use relay_mesh_sdk::{Error, Session};
use serde_json::Value;

/// One hook call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    /// The session of the window.
    pub(crate) session_id: String,
    /// The subagent that the hook speaks of, where it speaks of one.
    pub(crate) agent_id: Option<String>,
    pub(crate) cwd: String,
    /// The harness's process, from the hook's environment.
    pub(crate) process: Option<u32>,
    /// Whether a person sits before the session. A `-p` run is driven by a script.
    pub(crate) attended: bool,
    pub(crate) event: Event,
}

/// What happened, with the fields that matter to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    SessionStart(Source),
    UserPromptSubmit {
        prompt: String,
    },
    PreToolUse {
        tool: String,
        tool_use_id: Option<String>,
        path: Option<String>,
    },
    PostToolUse {
        tool: String,
    },
    PermissionRequest,
    Elicitation,
    ElicitationResult,
    Notification {
        kind: String,
    },
    Stop {
        again: bool,
    },
    /// `internal` for an agent of the client's own, such as the one that compacts: it has no type.
    SubagentStop {
        internal: bool,
    },
    FileChanged {
        path: String,
        gone: bool,
    },
    SessionEnd {
        reason: String,
    },
}

/// Why a session starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Startup,
    Resume,
    Clear,
    Compact,
    Fork,
}

impl Payload {
    /// Parses a call. An event that we do not know is `unsupported`, a payload of another shape `failed`.
    pub(crate) fn parse(call: &Call) -> Result<Payload, Error> {
        let value: Value = serde_json::from_str(&call.payload)
            .map_err(|error| Error::Failed(format!("the payload of {} is not JSON: {error}", call.name)))?;
        let fields = Fields { event: &call.name, value: &value };
        let event = event(&call.name, &fields)?;
        Ok(Payload {
            session_id: fields.required("session_id")?,
            agent_id: fields.optional("agent_id"),
            cwd: fields
                .optional("cwd")
                .or_else(|| call.variable("CLAUDE_PROJECT_DIR").map(str::to_owned))
                .unwrap_or_default(),
            process: call.variable("CLAUDE_PID").and_then(|pid| pid.parse().ok()),
            attended: call.variable("CLAUDE_CODE_SESSION_ATTENDED") != Some("0"),
            event,
        })
    }

    /// The session that the hook speaks for. A subagent is one of its own: its id is only sure to be
    /// its own within its window, so the window's comes before it.
    pub(crate) fn session(&self) -> Session {
        let root = Session { process: self.process, ..Session::new(&self.session_id, &self.cwd) };
        match &self.agent_id {
            None => root,
            Some(agent) => {
                Session { id: format!("{}.{agent}", self.session_id), parent: Some(self.session_id.clone()), ..root }
            }
        }
    }
}

fn event(name: &str, fields: &Fields<'_>) -> Result<Event, Error> {
    Ok(match name {
        "SessionStart" => Event::SessionStart(match fields.required("source")?.as_str() {
            "startup" => Source::Startup,
            "resume" => Source::Resume,
            "clear" => Source::Clear,
            "compact" => Source::Compact,
            "fork" => Source::Fork,
            other => return Err(Error::Failed(format!("SessionStart has an unknown source `{other}`"))),
        }),
        "UserPromptSubmit" => Event::UserPromptSubmit { prompt: fields.required("prompt")? },
        "PreToolUse" => Event::PreToolUse {
            tool: fields.required("tool_name")?,
            tool_use_id: fields.optional("tool_use_id"),
            path: fields.written_path(),
        },
        "PostToolUse" => Event::PostToolUse { tool: fields.required("tool_name")? },
        "PermissionRequest" => Event::PermissionRequest,
        "Elicitation" => Event::Elicitation,
        "ElicitationResult" => Event::ElicitationResult,
        "Notification" => Event::Notification { kind: fields.required("notification_type")? },
        "Stop" => Event::Stop { again: fields.flag("stop_hook_active")? },
        "SubagentStop" => Event::SubagentStop { internal: fields.optional("agent_type").is_none() },
        "FileChanged" => Event::FileChanged {
            path: fields.required("file_path")?,
            gone: fields.optional("event").as_deref() == Some("unlink"),
        },
        "SessionEnd" => Event::SessionEnd { reason: fields.required("reason")? },
        other => return Err(Error::Unsupported(format!("Claude Code's hook `{other}` says nothing to the mesh"))),
    })
}

struct Fields<'a> {
    event: &'a str,
    value: &'a Value,
}

impl Fields<'_> {
    fn optional(&self, name: &str) -> Option<String> {
        self.value.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    fn required(&self, name: &str) -> Result<String, Error> {
        let found = self.value.get(name).and_then(Value::as_str).map(str::to_owned);
        found.ok_or_else(|| Error::Failed(format!("the payload of {} has no text `{name}`", self.event)))
    }

    fn flag(&self, name: &str) -> Result<bool, Error> {
        let found = self.value.get(name).and_then(Value::as_bool);
        found.ok_or_else(|| Error::Failed(format!("the payload of {} has no flag `{name}`", self.event)))
    }

    /// The file that a tool is about to write, absolute or from the session's folder.
    fn written_path(&self) -> Option<String> {
        let name = match self.value.get("tool_name")?.as_str()? {
            "Edit" | "Write" | "MultiEdit" => "file_path",
            "NotebookEdit" => "notebook_path",
            _ => return None,
        };
        self.value.get("tool_input")?.get(name)?.as_str().map(str::to_owned)
    }
}
