//! The ways to a thread: a turn by the app server, or a break into one; the news by Codex's own queue; a
//! notification.

use relay_mesh_sdk::push::{Load, Receipt, Route, Rung};
use relay_mesh_sdk::{Activity, Error, Mail, Priority, Push, Session, notices, programs};
use serde_json::{Value, json};

use crate::Codex;
use crate::app_server::{AppServer, NUDGE, Status, Trouble};
use crate::hooks::has_hooks;

/// As much as Codex keeps of a tool's output without cutting it.
const ROOM: u32 = 9_000;
/// A busy thread takes a letter up behind its current response, which may be a long one.
const LETTER_PATIENCE_MS: u32 = 30_000;
/// A terminal looks into the queue every few seconds, and the agent has to fetch then.
const QUEUE_PATIENCE_MS: u32 = 30_000;
/// How long a thread is left alone whose person has to answer, or whose hooks will show the mail.
const BUSY_MS: u32 = 2_000;

impl Push for Codex {
    fn routes(to: &Session) -> Result<Vec<Route>, Error> {
        let letter = |name: &str, when, least| Route {
            name: name.into(),
            load: Load::Letter,
            proves: Rung::Shown,
            when: vec![when],
            least,
            room: ROOM,
            patience_ms: LETTER_PATIENCE_MS,
        };
        let mut routes = vec![
            letter("app-server", Activity::Idle, Priority::Normal),
            letter("steer", Activity::Busy, Priority::Urgent),
        ];
        // Nobody takes from the queue of a headless run: what lies there comes up when a person opens
        // the thread, days later perhaps. A subagent takes no prompts but its parent's.
        if !is_headless(to) && to.parent.is_none() {
            routes.push(Route { when: vec![Activity::Idle], ..Route::bell("queue", QUEUE_PATIENCE_MS) });
        }
        routes.push(Route::bell("notification", 0));
        Ok(routes)
    }

    fn deliver(to: &Session, route: &str, mail: &Mail) -> Result<Receipt, Error> {
        match route {
            "app-server" | "steer" => give(to, mail),
            "queue" => queue(to, mail),
            "notification" => {
                notices::mail_waits("Codex", to, mail)?;
                Ok(Receipt::at(Rung::Offered))
            }
            other => Err(Error::NotFound(format!("Codex has no route named `{other}`"))),
        }
    }

    /// Looks whether the letter stands in its turn by now.
    fn confirm(to: &Session, route: &str, sent: Receipt) -> Result<Receipt, Error> {
        let evidence: Value =
            sent.evidence.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let (Some(turn), Some(message)) = (evidence["turn"].as_str(), evidence["message"].as_str()) else {
            return Ok(sent);
        };
        if !matches!(route, "app-server" | "steer") || !AppServer::connect()?.stands_in(&to.id, turn, message)? {
            return Ok(sent);
        }
        Ok(Receipt { rung: Rung::Shown, ..sent })
    }
}

/// A turn with the letter as the output of a tool, so that it has no person's authority. The terminal
/// shows nothing of it, so the person is told that it came.
fn give(to: &Session, mail: &Mail) -> Result<Receipt, Error> {
    let mut server = AppServer::connect()?;
    let thread = server.thread(&to.id)?;
    match thread.status {
        Status::Idle => {}
        Status::AwaitingHuman => return Err(Error::Busy(BUSY_MS)),
        Status::Active if mail.priority == Priority::Urgent => return steer(server, to, mail),
        // Its hooks show the mail between tools or at the turn's end. Where they do not speak, the turn
        // that runs takes it up.
        Status::Active if has_hooks(&to.id)? => return Err(Error::Busy(BUSY_MS)),
        Status::Active => {}
        Status::NotLoaded => return Err(Error::NotFound("the app server has not loaded this thread".to_owned())),
    }
    if !thread.takes_input {
        return Err(Error::NotFound("this thread takes no turns from outside".to_owned()));
    }
    let given = server.give(&to.id, &mail.text);
    if given.is_ok()
        && let Err(error) = notices::mail_waits("Codex", to, mail)
    {
        relay_mesh_sdk::debug!("the person is not told of the turn: {error:?}");
    }
    taken(given, mail)
}

/// Urgent mail breaks into the turn that runs. The terminal shows our prompt, so nobody is told apart.
fn steer(mut server: AppServer, to: &Session, mail: &Mail) -> Result<Receipt, Error> {
    let Some(turn) = server.running_turn(&to.id)? else { return Err(Error::Busy(BUSY_MS)) };
    let steered = server.steer(&to.id, &turn, &mail.text, first_of(mail));
    taken(steered.map(|()| turn), mail)
}

fn first_of(mail: &Mail) -> &str {
    mail.ids.first().map(String::as_str).unwrap_or_default()
}

/// What may be said of a letter that the app server was handed for a turn.
fn taken(outcome: Result<String, Trouble>, mail: &Mail) -> Result<Receipt, Error> {
    match outcome {
        Ok(turn) => {
            let evidence = json!({"turn": turn, "message": first_of(mail)}).to_string();
            Ok(Receipt { rung: Rung::Accepted, evidence: Some(evidence) })
        }
        Err(Trouble::Refused(error)) => Err(error),
        // It may have begun: nobody else may show the letter until that has become unlikely.
        Err(Trouble::Unanswered(error)) => {
            relay_mesh_sdk::warn!("a turn was asked for and not confirmed: {error:?}");
            Ok(Receipt { rung: Rung::Offered, evidence: Some(json!({"unanswered": true}).to_string()) })
        }
    }
}

/// Leaves the news with Codex. That it was taken says nothing of when it will be read, if ever.
fn queue(to: &Session, mail: &Mail) -> Result<Receipt, Error> {
    let outcome = programs::run("codex-queue", &[to.id.clone(), mail.text.clone()], &[])?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().last().unwrap_or_default().trim().to_owned();
    match outcome.exit_code {
        0 => Ok(Receipt { rung: Rung::Offered, evidence: Some(json!({"queue": said(&outcome.stdout)}).to_string()) }),
        code => Err(Error::Failed(format!("codex queue ended with {code}: {}", said(&outcome.stderr)))),
    }
}

/// Whether a prompt is ours: the news that the host words for bells, which came back by the queue, or what
/// steers a turn.
pub(crate) fn is_bell(prompt: &str) -> bool {
    let prompt = prompt.trim();
    prompt == NUDGE || prompt.contains("relay-mesh message") && prompt.contains("Call fetch_messages to read ")
}

/// Whether the thread's last call came from a run without a terminal.
fn is_headless(to: &Session) -> bool {
    let hint: Option<Value> = to.route_hint.as_deref().and_then(|hint| serde_json::from_str(hint).ok());
    hint.is_some_and(|hint| hint["headless"] == json!(true))
}
