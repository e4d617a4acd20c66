//! The routes to a thread: the app server starts or interrupts a turn; Codex's own queue carries a notification; a
//! desktop notification tells the user.

use relay_mesh_sdk::push::{Carries, DeliveryStatus, Receipt, Route};
use relay_mesh_sdk::{Activity, Error, Mail, Priority, Push, Session, notices, programs};
use serde_json::{Value, json};

use crate::Codex;
use crate::app_server::{AppServer, NUDGE, Status, Trouble};
use crate::hooks::has_hooks;

/// As much as Codex keeps of a tool's output without cutting it.
const ROOM: u32 = 9_000;
/// A busy thread takes a message after its current response, which may be long.
const MESSAGE_TIMEOUT_MS: u32 = 30_000;
/// A terminal reads the queue every few seconds, and the agent must then read its mail.
const QUEUE_TIMEOUT_MS: u32 = 30_000;
/// How long to wait for a thread whose user has to answer, or whose hooks will show the mail.
const BUSY_MS: u32 = 2_000;

impl Push for Codex {
    fn routes(to: &Session) -> Result<Vec<Route>, Error> {
        let message = |name: &str, when, least| Route {
            name: name.into(),
            carries: Carries::Message,
            proves: DeliveryStatus::Shown,
            when: vec![when],
            least,
            max_bytes: ROOM,
            timeout_ms: MESSAGE_TIMEOUT_MS,
        };
        let mut routes = vec![
            message("app-server", Activity::Idle, Priority::Normal),
            message("steer", Activity::Busy, Priority::Urgent),
        ];
        // Nothing reads the queue of a headless run: its prompts would appear when a user opens the thread, perhaps
        // days later. A subagent takes prompts only from its parent.
        if !is_headless(to) && to.parent.is_none() {
            routes.push(Route { when: vec![Activity::Idle], ..Route::notification("queue", QUEUE_TIMEOUT_MS) });
        }
        routes.push(Route::notification("notification", 0));
        Ok(routes)
    }

    fn deliver(to: &Session, route: &str, mail: &Mail) -> Result<Receipt, Error> {
        match route {
            "app-server" | "steer" => give(to, mail),
            "queue" => queue(to, mail),
            "notification" => {
                notices::mail_waits("Codex", to, mail)?;
                Ok(Receipt::at(DeliveryStatus::Notified))
            }
            other => Err(Error::NotFound(format!("Codex has no route named `{other}`"))),
        }
    }

    /// Checks whether the message is part of its turn now.
    fn confirm(to: &Session, route: &str, sent: Receipt) -> Result<Receipt, Error> {
        let evidence: Value =
            sent.evidence.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let (Some(turn), Some(message)) = (evidence["turn"].as_str(), evidence["message"].as_str()) else {
            return Ok(sent);
        };
        if !matches!(route, "app-server" | "steer") || !AppServer::connect()?.stands_in(&to.id, turn, message)? {
            return Ok(sent);
        }
        Ok(Receipt { status: DeliveryStatus::Shown, ..sent })
    }
}

/// Starts a turn with the message as a tool's output, so it does not have the user's authority. The terminal shows
/// nothing of it, so a desktop notification tells the user.
fn give(to: &Session, mail: &Mail) -> Result<Receipt, Error> {
    let mut server = AppServer::connect()?;
    let thread = server.thread(&to.id)?;
    match thread.status {
        Status::Idle => {}
        Status::NeedsInput => return Err(Error::Busy(BUSY_MS)),
        Status::Active if mail.priority == Priority::Urgent => return steer(server, to, mail),
        // The thread's hooks show the mail between tools or at the turn's end. If the hooks do not run, the running
        // turn takes the mail.
        Status::Active if has_hooks(&to.id)? => return Err(Error::Busy(BUSY_MS)),
        Status::Active => {}
        Status::NotLoaded => return Err(Error::NotFound("the app server has not loaded this thread".to_owned())),
    }
    if !thread.takes_input {
        return Err(Error::NotFound("this thread takes no turns from other programs".to_owned()));
    }
    let given = server.give(&to.id, &mail.text);
    if given.is_ok()
        && let Err(error) = notices::mail_waits("Codex", to, mail)
    {
        relay_mesh_sdk::debug!("the user was not told about the turn: {error:?}");
    }
    taken(given, mail)
}

/// Urgent mail interrupts the running turn. The terminal shows our prompt, so no desktop notification is needed.
fn steer(mut server: AppServer, to: &Session, mail: &Mail) -> Result<Receipt, Error> {
    let Some(turn) = server.running_turn(&to.id)? else { return Err(Error::Busy(BUSY_MS)) };
    let steered = server.steer(&to.id, &turn, &mail.text, first_of(mail));
    taken(steered.map(|()| turn), mail)
}

fn first_of(mail: &Mail) -> &str {
    mail.ids.first().map(String::as_str).unwrap_or_default()
}

/// The receipt for a message that the app server got for a turn.
fn taken(outcome: Result<String, Trouble>, mail: &Mail) -> Result<Receipt, Error> {
    match outcome {
        Ok(turn) => {
            let evidence = json!({"turn": turn, "message": first_of(mail)}).to_string();
            Ok(Receipt { status: DeliveryStatus::Accepted, evidence: Some(evidence) })
        }
        Err(Trouble::Refused(error)) => Err(error),
        // The turn may have started, so no other route may show the message until that has become unlikely.
        Err(Trouble::Unanswered(error)) => {
            relay_mesh_sdk::warn!("Codex did not confirm a turn that was requested: {error:?}");
            Ok(Receipt { status: DeliveryStatus::Notified, evidence: Some(json!({"unanswered": true}).to_string()) })
        }
    }
}

/// Puts a notification into Codex's queue. That Codex took it does not say when the agent reads it, if ever.
fn queue(to: &Session, mail: &Mail) -> Result<Receipt, Error> {
    let outcome = programs::run("codex-queue", &[to.id.clone(), mail.text.clone()], &[])?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().last().unwrap_or_default().trim().to_owned();
    match outcome.exit_code {
        0 => Ok(Receipt {
            status: DeliveryStatus::Notified,
            evidence: Some(json!({"queue": said(&outcome.stdout)}).to_string()),
        }),
        code => Err(Error::Failed(format!("codex queue ended with {code}: {}", said(&outcome.stderr)))),
    }
}

/// Whether a prompt is ours: a notification that the host wrote and that came back from the queue, or the prompt
/// that steers a turn.
pub(crate) fn is_notification(prompt: &str) -> bool {
    let prompt = prompt.trim();
    prompt == NUDGE || prompt.contains("relay-mesh message") && prompt.contains("Call fetch_messages to read ")
}

/// Whether the thread's last call came from a run without a terminal.
fn is_headless(to: &Session) -> bool {
    let hint: Option<Value> = to.route_hint.as_deref().and_then(|hint| serde_json::from_str(hint).ok());
    hint.is_some_and(|hint| hint["headless"] == json!(true))
}
