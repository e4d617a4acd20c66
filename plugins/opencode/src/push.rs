//! The route to a session over HTTP, if its OpenCode serves it. The connector inside OpenCode is the better route
//! and delivers to its sessions while it runs, so this one is for when it does not run.
//!
//! A message that is already in the session, because the process that delivered it ended before it could report
//! that, is never delivered again.

use relay_mesh_sdk::push::{Carries, DeliveryStatus, Receipt, Route};
use relay_mesh_sdk::{Activity, Error, Mail, Priority, Push, Session};
use serde_json::{Value, json};

use crate::payload::Server;
use crate::{OpenCode, http};

/// The route's name in receipts.
const ROUTE: &str = "prompt_async";
/// OpenCode takes prompts of any length; the mesh limits a body and its envelope to less.
const ROOM: u32 = 300_000;
/// A turn starts within a second, or after the session's current step.
const TIMEOUT_MS: u32 = 15_000;
/// How many of the latest messages are searched.
const LATEST: usize = 30;

impl Push for OpenCode {
    fn routes(to: &Session) -> Result<Vec<Route>, Error> {
        let route = Route {
            name: ROUTE.into(),
            carries: Carries::Message,
            proves: DeliveryStatus::Shown,
            // A busy session takes the mail between two steps. Its activity is known from the connector, so without
            // one "busy" may be out of date.
            when: vec![Activity::Idle, Activity::Busy],
            least: Priority::Normal,
            max_bytes: ROOM,
            timeout_ms: TIMEOUT_MS,
        };
        Ok(server_of(to).map(|_| route).into_iter().collect())
    }

    fn deliver(to: &Session, route: &str, mail: &Mail) -> Result<Receipt, Error> {
        let server = the_server(to, route)?;
        let messages = latest(&server, to)?;
        if let Some(found) = standing(&messages, &mail.ids) {
            return Ok(found);
        }
        let Settings { agent, model, variant } = settings_of(&messages);
        let mut body = json!({"parts": [{"type": "text", "text": mail.text, "metadata": {"relay-mesh": mail.ids}}]});
        for (name, value) in [("agent", agent), ("model", model), ("variant", variant)] {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        http::post(&server, &format!("/session/{}/prompt_async", http::encoded(&to.id)), &to.workdir, &body)?;
        Ok(Receipt { status: DeliveryStatus::Accepted, evidence: Some(json!({"messages": mail.ids}).to_string()) })
    }

    fn confirm(to: &Session, route: &str, sent: Receipt) -> Result<Receipt, Error> {
        let server = the_server(to, route)?;
        let evidence: Value = serde_json::from_str(sent.evidence.as_deref().unwrap_or_default()).unwrap_or_default();
        let ids: Vec<String> = serde_json::from_value(evidence["messages"].clone()).unwrap_or_default();
        let found = standing(&latest(&server, to)?, &ids);
        Ok(found.filter(|found| found.status == DeliveryStatus::Shown).unwrap_or(sent))
    }
}

/// With which agent and model a session speaks.
pub(crate) struct Settings {
    pub(crate) agent: Option<Value>,
    /// `providerID` and `modelID`.
    pub(crate) model: Option<Value>,
    pub(crate) variant: Option<Value>,
}

/// The settings of the session's latest prompt. Without them OpenCode would use its defaults, and a session that
/// plans would start to build.
pub(crate) fn settings_of(messages: &[Value]) -> Settings {
    let last = messages.iter().rfind(|message| is_role(message, "user")).map(|message| &message["info"]);
    let field = |name: &str| last.and_then(|info| info.get(name)).filter(|value| !value.is_null()).cloned();
    let model = field("model").map(|model| json!({"providerID": model["providerID"], "modelID": model["modelID"]}));
    let variant = field("variant").or_else(|| Some(field("model")?.get("variant")?.clone()));
    Settings { agent: field("agent"), model, variant }
}

/// The session's server, as the connector reported it.
pub(crate) fn server_of(session: &Session) -> Option<Server> {
    serde_json::from_str(session.route_hint.as_deref()?).ok()
}

fn the_server(session: &Session, route: &str) -> Result<Server, Error> {
    match server_of(session) {
        Some(server) if route == ROUTE => Ok(server),
        Some(_) => Err(Error::NotFound(format!("OpenCode has no route named `{route}`"))),
        None => Err(Error::NotFound("this OpenCode serves no HTTP".into())),
    }
}

pub(crate) fn latest(server: &Server, session: &Session) -> Result<Vec<Value>, Error> {
    let path = format!("/session/{}/message?limit={LATEST}", http::encoded(&session.id));
    match http::get(server, &path, &session.workdir)? {
        Value::Array(messages) => Ok(messages),
        _ => Err(Error::Failed(format!("the program on port {} is not OpenCode", server.port))),
    }
}

/// Whether mail is already in a session: shown if the model has begun to answer it.
fn standing(messages: &[Value], ids: &[String]) -> Option<Receipt> {
    let carries = |message: &Value| {
        let parts = message["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        let holds = |id: &String| {
            let opening = format!("<relay-mesh-message id=\"{id}\"");
            parts.iter().any(|part| part["text"].as_str().is_some_and(|text| text.contains(&opening)))
        };
        is_role(message, "user") && !ids.is_empty() && ids.iter().all(holds)
    };
    let prompt = messages.iter().find(|message| carries(message))?["info"]["id"].as_str()?;
    // A turn names the prompt that it answers, and ids grow with time, so an earlier turn proves nothing.
    let answers = |message: &Value| message["info"]["parentID"].as_str().is_some_and(|answered| answered >= prompt);
    // OpenCode makes the turn before it asks its model; the first part comes with the answer.
    let begun = |message: &Value| message["parts"].as_array().is_some_and(|parts| !parts.is_empty());
    let turn = messages.iter().find(|message| is_role(message, "assistant") && answers(message) && begun(message));
    Some(match turn {
        Some(turn) => Receipt {
            status: DeliveryStatus::Shown,
            evidence: Some(json!({"messages": ids, "prompt": prompt, "turn": turn["info"]["id"]}).to_string()),
        },
        None => Receipt {
            status: DeliveryStatus::Accepted,
            evidence: Some(json!({"messages": ids, "prompt": prompt}).to_string()),
        },
    })
}

pub(crate) fn is_role(message: &Value, role: &str) -> bool {
    message["info"]["role"] == role
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use relay_mesh_sdk::http::Response;
    use relay_mesh_sdk::testing::{FakeHost, Fakes, mail};

    use super::*;

    const TEXT: &str =
        "<relay-mesh-message id=\"01JD0000000000000000000000\" from=\"bob\">\nhello\n</relay-mesh-message>";

    fn session(hint: &str) -> Session {
        Session { route_hint: Some(hint.to_owned()), ..Session::new("ses_1", "/w") }
    }

    /// What was posted: each path with its body.
    type Posted = Rc<RefCell<Vec<(String, Value)>>>;

    /// An OpenCode whose session has these messages; it records what is posted.
    fn serving(messages: Value) -> (FakeHost, Posted) {
        let posted = Posted::default();
        let kept = Rc::clone(&posted);
        let host = Fakes::default()
            .origin("opencode", move |request| {
                let body = match request.method.as_str() {
                    "POST" => {
                        let body = serde_json::from_slice(&request.body).expect("JSON");
                        kept.borrow_mut().push((request.path.clone(), body));
                        String::new()
                    }
                    _ => messages.to_string(),
                };
                Response { status: 200, headers: Vec::new(), body: body.into_bytes() }
            })
            .start();
        (host, posted)
    }

    fn user(id: &str, text: &str) -> Value {
        json!({"info": {"id": id, "role": "user", "agent": "plan", "model": {"providerID": "p", "modelID": "m"}},
               "parts": [{"type": "text", "text": text}]})
    }

    fn assistant(id: &str, answers: &str) -> Value {
        json!({"info": {"id": id, "role": "assistant", "parentID": answers}, "parts": [{"type": "step-start"}]})
    }

    fn unasked(id: &str, answers: &str) -> Value {
        json!({"info": {"id": id, "role": "assistant", "parentID": answers}, "parts": []})
    }

    #[test]
    fn a_session_that_is_served_has_a_way_and_others_have_none() {
        let ways = |hint: &str| OpenCode::routes(&session(hint)).expect("routes").len();
        assert_eq!(ways(r#"{"port":4096}"#), 1);
        assert_eq!(ways("null"), 0);
        assert_eq!(OpenCode::routes(&Session::new("ses_1", "/w")).expect("routes").len(), 0);
    }

    #[test]
    fn a_wake_keeps_the_sessions_agent_and_model() {
        let (_host, posted) = serving(json!([user("msg_1", "plan this"), assistant("msg_2", "msg_1")]));
        let to = session(r#"{"port":4096}"#);
        let sent = OpenCode::deliver(&to, ROUTE, &mail(TEXT)).expect("delivered");
        assert_eq!(sent.status, DeliveryStatus::Accepted);
        let posted = posted.borrow();
        let (path, body) = &posted[0];
        assert_eq!(path, "/session/ses_1/prompt_async?directory=/w");
        assert_eq!((&body["agent"], &body["model"]), (&json!("plan"), &json!({"providerID": "p", "modelID": "m"})));
        assert_eq!(body["parts"][0]["text"], TEXT);
    }

    #[track_caller]
    fn check(messages: Value, expected: DeliveryStatus) {
        let (_host, posted) = serving(messages);
        let receipt = OpenCode::deliver(&session(r#"{"port":4096}"#), ROUTE, &mail(TEXT)).expect("delivered");
        assert_eq!((receipt.status, posted.borrow().len()), (expected, 0), "nothing is put there twice");
    }

    #[test]
    fn what_stands_in_the_session_already_is_not_put_there_again() {
        check(json!([user("msg_1", TEXT), assistant("msg_2", "msg_1")]), DeliveryStatus::Shown);
        check(json!([user("msg_1", TEXT)]), DeliveryStatus::Accepted);
        check(json!([user("msg_1", TEXT), unasked("msg_2", "msg_1")]), DeliveryStatus::Accepted);
        let late = json!([user("msg_1", "before"), user("msg_2", TEXT), assistant("msg_3", "msg_1")]);
        check(late, DeliveryStatus::Accepted);
    }

    #[test]
    fn a_turn_after_the_prompt_proves_that_it_was_shown() {
        let to = session(r#"{"port":4096}"#);
        let sent = Receipt {
            status: DeliveryStatus::Accepted,
            evidence: Some(json!({"messages": ["01JD0000000000000000000000"]}).to_string()),
        };
        let (_host, _) = serving(json!([user("msg_1", TEXT)]));
        assert_eq!(OpenCode::confirm(&to, ROUTE, sent.clone()).expect("looked").status, DeliveryStatus::Accepted);
        let (_host, _) = serving(json!([user("msg_1", TEXT), assistant("msg_2", "msg_1")]));
        let proven = OpenCode::confirm(&to, ROUTE, sent).expect("looked");
        assert_eq!(proven.status, DeliveryStatus::Shown);
        assert!(proven.evidence.expect("evidence").contains("\"turn\":\"msg_2\""));
    }
}
