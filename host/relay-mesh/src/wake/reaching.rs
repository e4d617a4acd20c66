//! Wakes an agent or listener: a message over the routes of the agent's harness, then the methods of the settings,
//! in order.

use std::time::Duration;

use mesh::messages::Draft;
use mesh::messages::receipt::{DeliveryHistory, DeliveryStatus};
use mesh::names::{AgentName, MessageId};
use mesh::sessions::Principal;

use super::{Tried, WakeSettings, bring, unit};
use crate::compose::Open;
use crate::config::Method;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::shapes::wake::{TriedShape, WokenShape};

/// The message's text if the user gives none.
const NUDGE: &str = "Please look at your mail and go on.";
/// How long to wait for an agent without a session: a `relay-mesh listen` may take its mail.
const WITHOUT_SESSION: Duration = Duration::from_secs(1);

/// What is to be reached.
#[derive(Debug, Default)]
pub(crate) struct Reaching {
    /// What to say.
    pub(crate) text: String,
    /// The agent's address; none if only the methods of the settings are tried.
    pub(crate) to: Option<String>,
    /// The only methods, in this order; those of the settings if none.
    pub(crate) methods: Vec<Method>,
    /// The agent for which this speaks.
    pub(crate) from: Option<AgentName>,
}

/// Tries one method after the other until one works.
pub(crate) async fn reach(wanted: Reaching, context: &Context, open: &Open) -> Result<WokenShape, CommandError> {
    let text = wanted.text;
    let ways = WakeSettings::of(&context.settings);
    let (text, to) = match wanted.to {
        // Who writes an agent's name alone means that agent.
        None if is_agent(open, &text).await? => (String::new(), Some(text)),
        to => (text, to),
    };
    let order = order(wanted.methods, to.as_deref(), &ways)?;
    let caller = context.principal(open, wanted.from).await?;
    let to = match &to {
        Some(address) => Some(open.mesh.resolve(address, caller.agent()).await?),
        None => None,
    };
    let mut shape = WokenShape {
        woken: false,
        method: None,
        to: to.as_ref().map(ToString::to_string),
        message: None,
        tried: Vec::new(),
    };
    let mut about: Option<MessageId> = None;
    for method in order {
        let outcome = match (method, &to) {
            (Method::Routes, Some(to)) => {
                let (id, outcome) = by_routes(open, &caller, to, &text, ways.timeout).await?;
                about = Some(id);
                shape.message = Some(id.to_string());
                outcome
            }
            // Only an agent has routes; without one `order` has none.
            (Method::Routes, None) => continue,
            (Method::Gateway | Method::Socket | Method::File, _) => {
                let wake = open.mesh.wake(&caller, to.as_ref(), about, &text)?;
                Routed::Tried(match method {
                    Method::Gateway => ways.try_gateway(&wake).await,
                    Method::Socket => ways.try_socket(&wake).await,
                    Method::File | Method::Routes => ways.try_file(&wake, unit::watcher(context)),
                })
            }
        };
        let (worked, detail) = match &outcome {
            Routed::Tried(Tried::Worked(detail)) => (true, detail),
            Routed::Tried(Tried::Failed(detail)) | Routed::Held(detail) => (false, detail),
        };
        shape.tried.push(TriedShape { method: method.as_str(), worked, detail: detail.clone() });
        shape.woken = worked;
        shape.method = worked.then_some(method.as_str());
        if worked || matches!(outcome, Routed::Held(_)) {
            break;
        }
    }
    let wake = open.mesh.wake(&caller, to.as_ref(), about, &text)?;
    open.mesh.note_wake(&wake, shape.method).await;
    Ok(shape)
}

/// Whether a text is the name of an agent that is known here.
async fn is_agent(open: &Open, text: &str) -> Result<bool, CommandError> {
    match text.parse::<AgentName>() {
        Ok(name) => Ok(open.mesh.agent(&name).await?.is_some()),
        Err(_) => Ok(false),
    }
}

/// The methods to try, in order.
fn order(named: Vec<Method>, to: Option<&str>, ways: &WakeSettings) -> Result<Vec<Method>, CommandError> {
    if named.is_empty() {
        return Ok(ways.order.iter().copied().filter(|method| *method != Method::Routes || to.is_some()).collect());
    }
    if named.contains(&Method::Routes) && to.is_none() {
        return Err(Failure {
            what: "only an agent has routes".to_owned(),
            hint: Some("say which by `--to AGENT`".to_owned()),
            exit: Exit::Usage,
            source: None,
        }
        .into());
    }
    Ok(named)
}

/// The outcome of a method.
enum Routed {
    Tried(Tried),
    /// The loop guard forbids waking now, so no other method is tried either.
    Held(String),
}

/// Sends the text and tries every route of the agent's harness.
async fn by_routes(
    open: &Open,
    caller: &Principal,
    to: &AgentName,
    text: &str,
    timeout: Duration,
) -> Result<(MessageId, Routed), CommandError> {
    let body = if text.trim().is_empty() { NUDGE } else { text };
    let draft = Draft { body: body.to_owned(), ..Draft::default() };
    let sent = open.mesh.send(caller, &[to.to_string()], draft).await?;
    if let Some(reason) = sent.recipients.iter().find_map(|recipient| recipient.held.clone()) {
        return Ok((sent.id, Routed::Held(format!("waking is held back: {reason}"))));
    }
    let has_session = open.mesh.agent(to).await?.is_some_and(|seen| seen.agent.session.is_some());
    let timeout = if has_session { timeout } else { timeout.min(WITHOUT_SESSION) };
    let status = bring(open, caller, sent.id, timeout).await?;
    let history = status.recipients.into_iter().map(|recipient| recipient.history).next().unwrap_or_default();
    let why_not = if has_session { "no process took it" } else { "it has no session, and no process listens for it" };
    let routed = match &history.hold {
        Some(hold) => Routed::Held(format!("waking is held back: {}", hold.reason)),
        None => Routed::Tried(judged(&history, why_not, timeout)),
    };
    Ok((sent.id, routed))
}

/// Whether a route took the message, by its delivery history.
fn judged(history: &DeliveryHistory, why_not: &str, timeout: Duration) -> Tried {
    let status = history.status();
    let route = history.reached.get(&status).map(|step| step.route.as_str()).unwrap_or_default();
    if status >= DeliveryStatus::Accepted {
        return Tried::Worked(format!("{} by {route}", status.as_str()));
    }
    let mut words = vec![format!("{why_not} within {}", humantime::format_duration(timeout))];
    if status == DeliveryStatus::Notified {
        words.push(format!("notified by {route}"));
    }
    words.extend(history.refused.iter().map(|(route, reason, _)| format!("{route}: {reason}")));
    Tried::Failed(words.join("; "))
}
