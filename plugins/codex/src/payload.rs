//! What Codex writes to a hook's standard input, parsed once.

use relay_mesh_sdk::hooks::Call;
use relay_mesh_sdk::payload::{Fields, absolute, files_in_patch};
use relay_mesh_sdk::{Error, Session};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    /// The root thread.
    session_id: String,
    /// The thread of the subagent that the hook belongs to, if any.
    agent_id: Option<String>,
    cwd: String,
    /// The process that runs the hooks: a terminal's own Codex, or the app server that terminals share.
    pub(crate) process: Option<String>,
    pub(crate) event: Event,
}

/// What happened, with the fields that we need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    SessionStart(Source),
    UserPromptSubmit {
        prompt: String,
    },
    /// `edits` are the files that a patch is about to write, absolute.
    PreToolUse {
        edits: Vec<String>,
    },
    /// `compacts` if it is no request of a turn: one that only compacts the thread is followed by no hook that says
    /// that it has ended.
    PreModelRequest {
        compacts: bool,
    },
    PermissionRequest,
    /// `registers` if this was our own registration and it succeeded.
    PostToolUse {
        registers: bool,
    },
    SubagentStart,
    SubagentStop,
    Stop {
        again: bool,
    },
    /// The user stopped the turn.
    Interrupt,
    SessionEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Startup,
    Resume,
    Clear,
    Compact,
}

impl Payload {
    /// Parses a call. Returns `unsupported` for an unknown event and `failed` for a payload of another shape.
    pub(crate) fn parse(call: &Call) -> Result<Payload, Error> {
        let fields = Fields::of(call)?;
        let cwd = fields.optional("cwd").unwrap_or_default();
        let event = event(&call.name, &fields, &cwd)?;
        Ok(Payload {
            session_id: fields.required("session_id")?,
            agent_id: fields.optional("agent_id"),
            cwd,
            process: call.process.clone(),
            event,
        })
    }

    /// The session of the hook. A subagent's session is its own thread.
    pub(crate) fn session(&self) -> Session {
        match &self.agent_id {
            None => Session::new(&self.session_id, &self.cwd),
            Some(thread) => Session { parent: Some(self.session_id.clone()), ..Session::new(thread, &self.cwd) },
        }
    }
}

fn event(name: &str, fields: &Fields, cwd: &str) -> Result<Event, Error> {
    Ok(match name {
        "SessionStart" => Event::SessionStart(match fields.required("source")?.as_str() {
            "startup" => Source::Startup,
            "resume" => Source::Resume,
            "clear" => Source::Clear,
            "compact" => Source::Compact,
            other => return Err(Error::Failed(format!("SessionStart has an unknown source `{other}`"))),
        }),
        "UserPromptSubmit" => Event::UserPromptSubmit { prompt: fields.required("prompt")? },
        "PreToolUse" => {
            let tool = fields.required("tool_name")?;
            let patch = fields.value().pointer("/tool_input/command").and_then(|patch| patch.as_str());
            let edits = patch.filter(|_| tool == "apply_patch").map(files_in_patch).unwrap_or_default();
            Event::PreToolUse { edits: edits.iter().map(|path| absolute(path, cwd)).collect() }
        }
        "PreModelRequest" => {
            let kind = fields.optional("kind");
            Event::PreModelRequest { compacts: kind.is_some_and(|kind| kind.ends_with("compaction")) }
        }
        "PermissionRequest" => Event::PermissionRequest,
        "PostToolUse" => {
            let failed = fields.value().pointer("/tool_response/isError").and_then(|flag| flag.as_bool());
            let registers = fields.required("tool_name")?.ends_with("__register_agent") && failed != Some(true);
            Event::PostToolUse { registers }
        }
        "SubagentStart" => Event::SubagentStart,
        "SubagentStop" => Event::SubagentStop,
        "Stop" => Event::Stop { again: fields.flag("stop_hook_active")? },
        "Interrupt" => Event::Interrupt,
        "SessionEnd" => Event::SessionEnd,
        other => return Err(Error::Unsupported(format!("Codex's hook `{other}` has no meaning for the mesh"))),
    })
}
