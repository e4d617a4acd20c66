//! Which thread makes a call, and which threads are alive.

use relay_mesh_sdk::sessions::{Caller, Detection, Transport};
use relay_mesh_sdk::{Activity, Error, Session, Sessions};
use serde_json::{Value, json};

use crate::app_server::{AppServer, Status, Thread};
use crate::{Codex, terminals};

impl Sessions for Codex {
    /// Certain if Codex names the thread in the `_meta` of this call. A variable counts only on a command line:
    /// Codex passes none to the servers that it starts, so one that reaches a server comes from an outer Codex.
    fn detect(seen: &Caller) -> Result<Option<Detection>, Error> {
        Ok(match seen.transport {
            Transport::Stdio | Transport::Http => match by_call(seen) {
                Some((session, trigger)) => {
                    if trigger.as_deref() == Some(HEADLESS) {
                        terminals::note_headless(&session.id)?;
                    }
                    Some(Detection::certain(session))
                }
                None => None,
            },
            Transport::CommandLine => by_shell(seen).map(Detection::inherited),
        })
    }

    /// The threads that the app server has loaded; none if terminals run without it.
    fn discover() -> Result<Vec<Session>, Error> {
        let mut server = match AppServer::connect() {
            Ok(server) => server,
            Err(Error::NotFound(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut sessions = Vec::new();
        for id in server.loaded()? {
            // A thread may be unloaded between the list and the request.
            match server.thread(&id) {
                Ok(thread) if !thread.is_internal && thread.status != Status::NotLoaded => {
                    sessions.push(session(thread));
                }
                Ok(_) | Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(sessions)
    }

    fn activity_of(id: &str) -> Result<Activity, Error> {
        match AppServer::connect()?.thread(id)?.status {
            Status::Idle => Ok(Activity::Idle),
            Status::Active => Ok(Activity::Busy),
            Status::NeedsInput => Ok(Activity::NeedsInput),
            // It may be alive in a terminal with its own app server.
            Status::NotLoaded => Err(Error::NotFound(format!("the app server has not loaded the thread {id}"))),
        }
    }
}

fn session(thread: Thread) -> Session {
    let parent = Some(thread.root).filter(|root| *root != thread.id);
    Session { parent, ..Session::new(thread.id, thread.cwd) }
}

/// Codex's name for what starts the turns of a headless run.
const HEADLESS: &str = "exec";

/// The thread that Codex names beside the arguments, and what started its turn.
fn by_call(seen: &Caller) -> Option<(Session, Option<String>)> {
    let meta: Value = serde_json::from_str(seen.meta.as_deref()?).ok()?;
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let thread = text(&meta, "threadId")?;
    // A call that a hook makes names no root.
    let parent = text(&meta, "sessionId").filter(|root| *root != thread);
    let turn = meta.get("x-codex-turn-metadata");
    let trigger = turn.and_then(|turn| text(turn, "turn_trigger"));
    let session = Session {
        parent,
        route_hint: trigger.as_deref().map(|trigger| json!({"headless": trigger == HEADLESS}).to_string()),
        ..Session::new(thread, seen.workdir.as_deref().unwrap_or_default())
    };
    Some((session, trigger))
}

/// The thread in whose shell a command line ran.
fn by_shell(seen: &Caller) -> Option<Session> {
    let thread = seen.variable("CODEX_THREAD_ID")?;
    let parent = seen.variable("CODEX_SESSION_ID").filter(|root| *root != thread).map(str::to_owned);
    Some(Session { parent, ..Session::new(thread, seen.workdir.as_deref().unwrap_or_default()) })
}
