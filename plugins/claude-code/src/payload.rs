//! What Claude Code writes to a hook's standard input, parsed once.

use relay_mesh_sdk::hooks::Call;
use relay_mesh_sdk::payload::Fields;
use relay_mesh_sdk::{Error, Session};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    /// The window's session.
    pub(crate) session_id: String,
    /// The subagent that the hook belongs to, if any.
    pub(crate) agent_id: Option<String>,
    pub(crate) cwd: String,
    /// The harness's process, from the hook's environment.
    pub(crate) process: Option<u32>,
    /// The record of the session, or of the subagent if the hook names that one. None while it is not known.
    pub(crate) transcript: Option<String>,
    /// Whether a user types in the session. A script drives a `-p` run.
    pub(crate) attended: bool,
    pub(crate) event: Event,
}

/// What happened, with the fields that we need.
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
    /// `internal` for one of the client's own agents, such as the one that compacts: those have no type.
    SubagentStop {
        internal: bool,
    },
    /// A command of the session's shell ended in another folder.
    CwdChanged,
    FileChanged {
        path: String,
        gone: bool,
    },
    SessionEnd {
        reason: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Startup,
    Resume,
    Clear,
    Compact,
    Fork,
}

impl Payload {
    /// Parses a call; none if Cursor made it. Returns `unsupported` for an unknown event and `failed` for a payload
    /// of another shape.
    pub(crate) fn parse(call: &Call) -> Result<Option<Payload>, Error> {
        let fields = Fields::of(call)?;
        if is_run_by_cursor(call, &fields) {
            return Ok(None);
        }
        let event = event(&call.name, &fields)?;
        // A subagent's texts are in a record of its own, which only some hooks name.
        let agent_id = fields.optional("agent_id");
        let transcript = match agent_id {
            Some(_) => fields.optional("agent_transcript_path"),
            None => fields.optional("transcript_path"),
        };
        Ok(Some(Payload {
            transcript,
            session_id: fields.required("session_id")?,
            agent_id,
            cwd: fields
                .optional("cwd")
                .or_else(|| call.variable("CLAUDE_PROJECT_DIR").map(str::to_owned))
                .unwrap_or_default(),
            process: call.variable("CLAUDE_PID").and_then(|pid| pid.parse().ok()),
            attended: call.variable("CLAUDE_CODE_SESSION_ATTENDED") != Some("0"),
            event,
        }))
    }

    /// The session of the hook. A subagent's session id starts with the window's, because a subagent's id is unique
    /// only within its window.
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

/// Whether Cursor made the call: it also runs the hooks in Claude Code's settings, but has an adapter of its own,
/// and its mail must not be shown twice. A payload with Cursor's version is Cursor's. The variable alone does not
/// prove it, because a Claude Code started from one of Cursor's shells inherits it; that one names its own process.
fn is_run_by_cursor(call: &Call, fields: &Fields) -> bool {
    let by_variable = call.variable("CURSOR_VERSION").is_some() && call.variable("CLAUDE_PID").is_none();
    by_variable || fields.optional("cursor_version").is_some()
}

fn event(name: &str, fields: &Fields) -> Result<Event, Error> {
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
            path: written_path(fields.value()),
        },
        "PostToolUse" => Event::PostToolUse { tool: fields.required("tool_name")? },
        "PermissionRequest" => Event::PermissionRequest,
        "Elicitation" => Event::Elicitation,
        "ElicitationResult" => Event::ElicitationResult,
        "Notification" => Event::Notification { kind: fields.required("notification_type")? },
        "Stop" => Event::Stop { again: fields.flag("stop_hook_active")? },
        "SubagentStop" => Event::SubagentStop { internal: fields.optional("agent_type").is_none() },
        "CwdChanged" => Event::CwdChanged,
        "FileChanged" => Event::FileChanged {
            path: fields.required("file_path")?,
            gone: fields.optional("event").as_deref() == Some("unlink"),
        },
        "SessionEnd" => Event::SessionEnd { reason: fields.required("reason")? },
        other => return Err(Error::Unsupported(format!("Claude Code's hook `{other}` has no meaning for the mesh"))),
    })
}

/// The file that a tool is about to write, absolute or relative to the session's folder.
fn written_path(payload: &Value) -> Option<String> {
    let name = match payload.get("tool_name")?.as_str()? {
        "Edit" | "Write" | "MultiEdit" => "file_path",
        "NotebookEdit" => "notebook_path",
        _ => return None,
    };
    payload.get("tool_input")?.get(name)?.as_str().map(str::to_owned)
}
