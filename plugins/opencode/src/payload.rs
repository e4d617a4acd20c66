//! What the connector says of an event, parsed once at the edge. The events are OpenCode's own; their
//! payload is cut to what the mesh needs by `assets/connector.ts`, which is the other half of this file.

use relay_mesh_sdk::hooks::Call;
use relay_mesh_sdk::payload;
use relay_mesh_sdk::{Activity, Error, Session};
use serde::{Deserialize, Serialize};

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Payload {
    pub(crate) session: Session,
    /// Where OpenCode serves HTTP, where it does.
    pub(crate) server: Option<Server>,
    pub(crate) event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A session is there, and does this where the connector knows it.
    Created(Option<Activity>),
    /// Another agent is bound to it.
    Bound,
    Busy,
    Idle,
    /// It asked its person something.
    Asked,
    /// A prompt came, from a person or put there by the mesh.
    Prompted {
        injected: bool,
    },
    /// One of OpenCode's own tools is about to write these files, absolute.
    ToolBegins {
        edits: Vec<String>,
    },
    /// A tool came to its end; the mesh's own registration or another one.
    ToolDone {
        registered: bool,
    },
    Deleted,
}

/// An OpenCode that serves HTTP on this machine: what a route needs, and what never leaves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Server {
    pub(crate) port: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) username: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) password: Option<String>,
}

/// The connector's words, as they are written.
#[derive(Deserialize)]
struct Written {
    session: String,
    parent: Option<String>,
    #[serde(default)]
    directory: String,
    process: Option<u32>,
    server: Option<Server>,
    activity: Option<String>,
    #[serde(default)]
    injected: bool,
    #[serde(default)]
    registered: bool,
    /// The file that a tool is about to write.
    file: Option<String>,
    /// The patch that it is about to apply, in Codex's format.
    patch: Option<String>,
}

impl Payload {
    /// Parses a call. An event that we do not know is `unsupported`, a payload of another shape `failed`.
    pub(crate) fn parse(call: &Call) -> Result<Payload, Error> {
        let written: Written = serde_json::from_str(&call.payload)
            .map_err(|error| Error::Failed(format!("the payload of {} is not the connector's: {error}", call.name)))?;
        if written.session.is_empty() {
            return Err(Error::Failed(format!("the payload of {} names no session", call.name)));
        }
        let event = match call.name.as_str() {
            "session.created" => Event::Created(written.activity.as_deref().and_then(activity)),
            "session.bound" => Event::Bound,
            "session.busy" => Event::Busy,
            "session.idle" => Event::Idle,
            "permission.asked" => Event::Asked,
            "chat.message" => Event::Prompted { injected: written.injected },
            "tool.execute.before" => Event::ToolBegins {
                edits: written
                    .file
                    .into_iter()
                    .chain(written.patch.iter().flat_map(|patch| payload::files_in_patch(patch)))
                    .map(|path| payload::absolute(&path, &written.directory))
                    .collect(),
            },
            "tool.execute.after" => Event::ToolDone { registered: written.registered },
            "session.deleted" => Event::Deleted,
            other => return Err(Error::Unsupported(format!("OpenCode's event `{other}` says nothing to the mesh"))),
        };
        // Where there is no server now, an older one is forgotten.
        let hint = serde_json::to_string(&written.server).unwrap_or_else(|_| "null".to_owned());
        let session = Session {
            id: written.session,
            parent: written.parent,
            workdir: written.directory,
            process: written.process,
            route_hint: Some(hint),
        };
        Ok(Payload { session, server: written.server, event })
    }
}

/// What a session does, by the event that said so last.
fn activity(event: &str) -> Option<Activity> {
    match event {
        "session.busy" => Some(Activity::Busy),
        "session.idle" => Some(Activity::Idle),
        "permission.asked" => Some(Activity::AwaitingHuman),
        _ => None,
    }
}
