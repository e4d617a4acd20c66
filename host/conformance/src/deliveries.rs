//! Deliveries by each recorded route: first with a peer that answers as recorded, then with no peer, and with peers
//! that hang up, talk nonsense, refuse, or never answer.

use std::io;

use mesh::messages::Priority;
use mesh::messages::receipt::DeliveryStatus;
use mesh::ports::harness::{Carries, Delivered, Harness as _, HarnessError, Mail, Route};
use mesh::sessions::Session;
use serde_json::Value;

use crate::fake_peer::{FakePeer, Fault, FaultPlan};
use crate::fixtures::{DeliveryOutcome, Named, RecordedDelivery};
use crate::report::Check;
use crate::scratch::{Clock, Stage, StageOptions};
use crate::{Bench, garbage, is_fault};

/// A message as the host words it.
const ID: &str = "01JD0000000000000000000000";
const MESSAGE: &str = "<relay-mesh-message id=\"01JD0000000000000000000000\" from=\"bob\" at=\"noon\">\nThe \"kit\" wrote \\ \
                      this: $(id) é🥊\n</relay-mesh-message>";
/// The notification of a waiting message, as the host words it.
const NEWS: &str = "A relay-mesh message from bob waits. Call fetch_messages to read it.";

const FAULTS: [Fault; 5] = [Fault::Deserted, Fault::HangsUp, Fault::Nonsense, Fault::Refuses, Fault::Silent];

/// Every recorded delivery, and the routes that have no recording.
pub(crate) async fn checks(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    let mut checks = Vec::new();
    let mut recorded = Vec::new();
    for delivery in &bench.fixtures.deliveries {
        recorded.push(delivery.content.route.as_str());
        checks.extend(delivered(bench, delivery).await?);
    }
    checks.extend(others(bench, &recorded).await?);
    if checks.iter().any(|check| !matches!(check.outcome, crate::report::CheckOutcome::Absent { .. })) {
        checks.push(unknown(bench).await?);
    }
    Ok(checks)
}

/// The result of one delivery.
pub(crate) struct Sent {
    pub(crate) route: Option<Route>,
    pub(crate) outcome: Result<Delivered, HarnessError>,
    confirmed: Option<Result<Delivered, HarnessError>>,
    heard: Vec<String>,
}

/// Delivers by a recorded route on a fresh stage. The inner error is about the fixture's own script.
pub(crate) async fn send(
    bench: &Bench<'_>,
    without: Option<String>,
    delivery: &RecordedDelivery,
    faults: FaultPlan,
) -> io::Result<Result<Sent, String>> {
    let stage = bench.scratch.stage_on(&StageOptions { without, clock: Clock::Running })?;
    let sent = send_on(bench, &stage, delivery, faults).await;
    stage.close().await?;
    Ok(sent)
}

async fn send_on(
    bench: &Bench<'_>,
    stage: &Stage<'_>,
    delivery: &RecordedDelivery,
    faults: FaultPlan,
) -> Result<Sent, String> {
    let serving = match &delivery.endpoint {
        Some(end) => Some(FakePeer::start(stage, &bench.scratch.manifest, end, faults).await?),
        None => None,
    };
    let to = delivery.to(serving.as_ref().and_then(|serving| serving.port));
    let adapter = stage.adapter().await.map_err(|error| error.to_string())?;
    let routes = adapter.routes(&to).await.map_err(|error| error.to_string())?;
    let route = routes.into_iter().find(|route| route.name == delivery.route);
    let mail = mail(route.as_ref());
    let outcome = adapter.deliver(&to, &delivery.route, &mail).await;
    let confirmed = match &outcome {
        Ok(sent) if delivery.confirms.is_some() => Some(adapter.confirm(&to, &delivery.route, sent).await),
        Ok(_) | Err(_) => None,
    };
    let heard = serving.map(|serving| serving.heard()).unwrap_or_default();
    Ok(Sent { route, outcome, confirmed, heard })
}

/// Mail of at least the priority that a route asks for.
fn mail(route: Option<&Route>) -> Mail {
    let text = match route.map(|route| route.carries) {
        Some(Carries::Notification) => NEWS,
        Some(Carries::Message) | None => MESSAGE,
    };
    let priority = route.map_or(Priority::Normal, |route| route.least.max(Priority::Normal));
    Mail { ids: ID.parse().into_iter().collect(), text: text.to_owned(), priority }
}

/// One recorded delivery, without a fault and with each fault at each exchange.
async fn delivered(bench: &Bench<'_>, delivery: &Named<RecordedDelivery>) -> io::Result<Vec<Check>> {
    let Named { name, content } = delivery;
    let sent = match send(bench, None, content, FaultPlan::None).await? {
        Ok(sent) => sent,
        Err(got) => return Ok(vec![Check::failed(name, "a delivery", got, "see docs/fixtures.md")]),
    };
    let good = judge(name, content, &sent);
    let carrier = carrier(&sent);
    let mut checks = vec![good];
    let Some(last) = carrier.filter(|_| content.endpoint.is_some()) else { return Ok(checks) };
    for fault in FAULTS {
        let from = if fault == Fault::Deserted { 0..=0 } else { 0..=last };
        let mut tried = Vec::new();
        let mut failure = None;
        for exchange in from {
            let faults = FaultPlan::From(exchange, fault);
            match send(bench, None, content, faults).await? {
                Err(why) => tried.push(format!("says {why}")),
                Ok(sent) => match claims(bench, &sent) {
                    Ok(told) => tried.push(told),
                    Err(got) => {
                        failure = Some((exchange, got));
                        break;
                    }
                },
            }
        }
        let name = format!("{name} {}", fault.as_str());
        checks.push(match failure {
            None => Check::held(name, tried.join("; ")),
            Some((exchange, got)) => Check::failed(
                name,
                "an error, or no more than `notified`",
                got,
                format!("exchange {} failed: report only a status that the peer confirmed", exchange + 1),
            ),
        });
    }
    Ok(checks)
}

/// The exchange that carried the text, else the last one. If that exchange fails, nothing has arrived.
fn carrier(sent: &Sent) -> Option<usize> {
    let text = mail(sent.route.as_ref()).text;
    sent.heard.iter().position(|came| carries(came, &text)).or_else(|| sent.heard.len().checked_sub(1))
}

/// Whether a request holds a text, as it is or in a JSON string.
fn carries(came: &str, text: &str) -> bool {
    fn within(value: &Value, text: &str) -> bool {
        match value {
            Value::String(string) => string.contains(text),
            Value::Array(items) => items.iter().any(|item| within(item, text)),
            Value::Object(fields) => fields.values().any(|field| within(field, text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    let body = came.split_once("\r\n\r\n").map_or(came, |(_, body)| body);
    came.contains(text) || serde_json::from_str(body).is_ok_and(|value| within(&value, text))
}

fn judge(name: &str, delivery: &RecordedDelivery, sent: &Sent) -> Check {
    let Some(route) = &sent.route else {
        let hint = "`routes` must offer it for the session that the fixture names";
        return Check::failed(name, format!("a route `{}`", delivery.route), "it is not offered", hint);
    };
    if let Some(got) = misfit(route) {
        return Check::failed(name, "a route that says what it is", got, "see `route` in the interface");
    }
    let got = worded(&sent.outcome);
    if got != delivery.outcome.as_str() {
        let got = match &sent.outcome {
            Err(error) => format!("{got}: {error}"),
            Ok(_) => format!("{got}, after {}", sent.heard.join(" | ")),
        };
        return Check::failed(name, delivery.outcome.as_str(), got, "the fixture says what comes of it");
    }
    if let Ok(delivered) = &sent.outcome {
        if delivered.status > route.proves {
            let got = format!("{:?}, and the route proves {:?}", delivered.status, route.proves);
            return Check::failed(name, "no status above what the route proves", got, "raise `proves`, or claim less");
        }
        let text = mail(Some(route)).text;
        let must = route.carries == Carries::Message && delivery.endpoint.is_some();
        if must && !sent.heard.iter().any(|came| carries(came, &text)) {
            let got = format!("what came there: {}", sent.heard.join(" | "));
            return Check::failed(name, "the mail's text at the other end, whole", got, "place it as it is");
        }
    }
    if let (Some(expected), Some(confirmed)) = (delivery.confirms, &sent.confirmed) {
        let got = worded(confirmed);
        if got != expected.as_str() {
            let got = confirmed.as_ref().map_or_else(|error| format!("{got}: {error}"), |_| got.to_owned());
            return Check::failed(name, format!("confirmed as {}", expected.as_str()), got, "see `confirm`");
        }
    }
    Check::held(name, format!("{} by `{}`", delivery.outcome.as_str(), route.name))
}

/// What is wrong with a route, if anything.
fn misfit(route: &Route) -> Option<String> {
    match (route.carries, route.max_bytes) {
        (Carries::Message, 0) => Some("a message without max-bytes".to_owned()),
        (Carries::Notification, 1..) => Some(format!("a wake file with room for {} bytes", route.max_bytes)),
        _ if route.when.is_empty() => Some("it fits no activity".to_owned()),
        _ if route.name.is_empty() => Some("it has no name".to_owned()),
        _ => None,
    }
}

fn worded(outcome: &Result<Delivered, HarnessError>) -> &'static str {
    let outcome = match outcome {
        Ok(delivered) => return status(delivered.status),
        Err(HarnessError::Busy(_)) => DeliveryOutcome::Busy,
        Err(HarnessError::NotFound(_)) => DeliveryOutcome::NotFound,
        Err(HarnessError::Denied(_)) => DeliveryOutcome::Denied,
        Err(HarnessError::Unsupported(_)) => DeliveryOutcome::Unsupported,
        Err(HarnessError::Failed(_)) => DeliveryOutcome::Failed,
    };
    outcome.as_str()
}

fn status(status: DeliveryStatus) -> &'static str {
    match status {
        DeliveryStatus::Notified => DeliveryOutcome::Notified.as_str(),
        DeliveryStatus::Accepted => DeliveryOutcome::Accepted.as_str(),
        DeliveryStatus::Shown => DeliveryOutcome::Shown.as_str(),
        // The interface has no case that converts to one of these.
        DeliveryStatus::Queued | DeliveryStatus::Stored | DeliveryStatus::Read | DeliveryStatus::Acknowledged => {
            "a status that is the host's"
        }
    }
}

/// An error if the adapter claims more than a faulty peer can have confirmed.
fn claims(bench: &Bench<'_>, sent: &Sent) -> Result<String, String> {
    match &sent.outcome {
        Ok(delivered) if delivered.status > DeliveryStatus::Notified => Err(format!("`{}`", status(delivered.status))),
        Ok(delivered) => Ok(status(delivered.status).to_owned()),
        Err(error) if is_fault(&bench.scratch.manifest.name, error) => Err(error.to_string()),
        Err(_) => Ok(worded(&sent.outcome).to_owned()),
    }
}

/// Routes without a recording, and sessions with strange hints. There is no peer, so an adapter may claim nothing.
async fn others(bench: &Bench<'_>, recorded: &[&str]) -> io::Result<Vec<Check>> {
    let mut checks = Vec::new();
    let mut seen: Vec<String> = recorded.iter().map(|route| (*route).to_owned()).collect();
    let hints = std::iter::once(None).chain(garbage::TEXTS.iter().map(|text| Some((*text).to_owned())));
    let known = bench.fixtures.deliveries.iter().map(|delivery| delivery.content.to(Some(1)));
    let strange = hints.map(|route_hint| Session {
        id: "kit-session".to_owned(),
        parent: None,
        workdir: "/scratch".to_owned(),
        process: None,
        route_hint,
    });
    let stage = bench.scratch.stage_on(&StageOptions { without: None, clock: Clock::Running })?;
    let mut tried = 0;
    for to in known.chain(strange) {
        tried += 1;
        let routes = match stage.adapter().await {
            Ok(adapter) => adapter.routes(&to).await,
            Err(error) => Err(error),
        };
        match routes {
            Ok(routes) => {
                for route in routes.into_iter().filter(|route| !seen.contains(&route.name)).collect::<Vec<_>>() {
                    seen.push(route.name.clone());
                    checks.push(unrecorded(bench, &stage, &to, &route).await);
                }
            }
            Err(error) if is_fault(&bench.scratch.manifest.name, &error) => {
                let got = format!("{error}, for a session with the hint {:?}", to.route_hint);
                checks.push(Check::failed("routes", "routes, or none", got, "a hint may be of another version"));
                break;
            }
            Err(_) => {}
        }
    }
    stage.close().await?;
    if seen.is_empty() && checks.is_empty() {
        checks.push(Check::absent("routes", format!("{tried} sessions, and no route to any of them")));
    }
    Ok(checks)
}

async fn unrecorded(bench: &Bench<'_>, stage: &Stage<'_>, to: &Session, route: &Route) -> Check {
    let name = format!("{} without a peer", route.name);
    if let Some(got) = misfit(route) {
        return Check::failed(name, "a route that says what it is", got, "see `route` in the interface");
    }
    let outcome = match stage.adapter().await {
        Ok(adapter) => adapter.deliver(to, &route.name, &mail(Some(route))).await,
        Err(error) => Err(error),
    };
    let sent = Sent { route: Some(route.clone()), outcome, confirmed: None, heard: Vec::new() };
    match claims(bench, &sent) {
        Err(got) => Check::failed(name, "an error, or no more than `notified`", got, "nothing was there to take it"),
        Ok(told) => match route.carries {
            Carries::Notification => Check::held(name, told),
            Carries::Message => {
                Check::untried(name, format!("{told}; record what the harness answers, in push/*.json"))
            }
        },
    }
}

/// A route that no version of this adapter has.
async fn unknown(bench: &Bench<'_>) -> io::Result<Check> {
    const NAME: &str = "an unknown route";
    let stage = bench.scratch.stage()?;
    let to = match bench.fixtures.deliveries.first() {
        Some(delivery) => delivery.content.to(Some(1)),
        None => Session {
            id: "kit-session".to_owned(),
            parent: None,
            workdir: String::new(),
            process: None,
            route_hint: None,
        },
    };
    let outcome = match stage.adapter().await {
        Ok(adapter) => adapter.deliver(&to, "no-such-route", &mail(None)).await,
        Err(error) => Err(error),
    };
    stage.close().await?;
    let hint = "answer `not-found` for a route that you do not have";
    Ok(match outcome {
        Ok(delivered) => Check::failed(NAME, "an error", status(delivered.status), hint),
        Err(error) if is_fault(&bench.scratch.manifest.name, &error) => {
            Check::failed(NAME, "not-found", error.to_string(), hint)
        }
        Err(error) => Check::held(NAME, error.to_string()),
    })
}
