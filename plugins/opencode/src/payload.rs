//! The connector's account of an event, parsed once. The events are OpenCode's own; `assets/connector.ts`, the
//! counterpart of this file, reduces their payload to what the mesh needs.

use relay_mesh_sdk::hooks::Call;
use relay_mesh_sdk::payload;
use relay_mesh_sdk::{Activity, Error, Session};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Payload {
    pub(crate) session: Session,
    /// Where OpenCode serves HTTP, if it does.
    pub(crate) server: Option<Server>,
    pub(crate) event: Event,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A session is alive, and does this if the connector knows it.
    Created(Option<Activity>),
    /// Another agent is bound to it.
    Bound,
    Busy,
    Idle,
    /// Its user stopped it, or refused what it was about to do.
    Stopped,
    /// It asked its user something.
    Asked,
    /// A prompt came, from the user or from the mesh.
    Prompted {
        injected: bool,
    },
    /// One of OpenCode's own tools is about to write these files, absolute.
    ToolBegins {
        edits: Vec<String>,
    },
    /// A tool ended: the mesh's own registration, or another one.
    ToolDone {
        registered: bool,
    },
    Deleted,
}

/// An OpenCode that serves HTTP on this machine. The host logs in to it (`grants.logins`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Server {
    pub(crate) port: u16,
}

/// The connector's JSON.
#[derive(Deserialize)]
struct ConnectorEvent {
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
    /// Parses a call. Returns `unsupported` for an unknown event and `failed` for a payload of another shape.
    pub(crate) fn parse(call: &Call) -> Result<Payload, Error> {
        let written: ConnectorEvent = serde_json::from_str(&call.payload).map_err(|error| {
            Error::Failed(format!("the payload of {} is not from the connector: {error}", call.name))
        })?;
        if written.session.is_empty() {
            return Err(Error::Failed(format!("the payload of {} names no session", call.name)));
        }
        let event = match call.name.as_str() {
            "session.created" => Event::Created(written.activity.as_deref().and_then(activity)),
            "session.bound" => Event::Bound,
            "session.busy" => Event::Busy,
            "session.idle" => Event::Idle,
            "session.stopped" => Event::Stopped,
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
            other => return Err(Error::Unsupported(format!("OpenCode's event `{other}` has no meaning for the mesh"))),
        };
        // If there is no server now, forget an older one.
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

/// What a session does, by the latest event.
fn activity(event: &str) -> Option<Activity> {
    match event {
        "session.busy" => Some(Activity::Busy),
        "session.idle" => Some(Activity::Idle),
        "permission.asked" => Some(Activity::NeedsInput),
        _ => None,
    }
}
