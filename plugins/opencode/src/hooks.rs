//! The connector's events: `read` says what one means, `answer` writes what the connector does next, as JSON with
//! `agent`, `protocol`, `mail` and `refusal`, each only if present.

use relay_mesh_sdk::hooks::{Call, Event as Happened, Findings, Hooks, Reading, Reply};
use relay_mesh_sdk::{Activity, Error, Occasion};
use serde_json::{Map, Value};

use crate::payload::{Event, Payload};
use crate::{OpenCode, servers, sessions};

/// Room for several messages, and still little beside what tools return.
const ROOM: u32 = 8_000;

impl Hooks for OpenCode {
    fn read(call: &Call) -> Result<Reading, Error> {
        let payload = Payload::parse(call)?;
        let session = payload.session.clone();
        let id = session.id.clone();
        let is_subagent = session.parent.is_some();
        let spoken = |events: Vec<Happened>| Reading { speaker: Some(session.clone()), events, ..Reading::nothing() };
        let does = |activity: Activity| Happened::Activity((id.clone(), activity));
        Ok(match payload.event {
            Event::Created(activity) => {
                sessions::plugins_are_loaded()?;
                servers::remember(payload.server.as_ref())?;
                let now = activity.map(does).into_iter();
                let events = std::iter::once(Happened::Alive(session.clone())).chain(now).collect();
                Reading { occasion: Some(Occasion::Start), ..spoken(events) }
            }
            Event::Bound => Reading { occasion: Some(Occasion::Registration), ..spoken(Vec::new()) },
            Event::Busy => spoken(vec![does(Activity::Busy)]),
            // A subagent ends with its turn. If its parent continues it, another event reports it.
            Event::Idle if is_subagent => Reading { events: vec![Happened::Ended(id)], ..Reading::nothing() },
            Event::Idle => spoken(vec![does(Activity::Idle)]),
            Event::Stopped if is_subagent => Reading::nothing(),
            Event::Stopped => spoken(vec![Happened::Stopped(id)]),
            Event::Asked => spoken(vec![does(Activity::NeedsInput)]),
            // A subagent's prompts come from its parent, and a wake-up is not from the user either.
            Event::Prompted { injected } if injected || is_subagent => spoken(vec![does(Activity::Busy)]),
            Event::Prompted { .. } => Reading {
                attended: true,
                max_bytes: ROOM,
                ..spoken(vec![does(Activity::Busy), Happened::UserSpoke(id.clone())])
            },
            Event::ToolBegins { edits } => Reading { edits, ..spoken(vec![does(Activity::Busy)]) },
            Event::ToolDone { registered } => Reading {
                max_bytes: ROOM,
                occasion: registered.then_some(Occasion::Registration),
                ..spoken(vec![does(Activity::Busy)])
            },
            Event::Deleted => Reading { events: vec![Happened::Ended(id)], ..Reading::nothing() },
        })
    }

    fn answer(call: &Call, found: Findings) -> Result<Reply, Error> {
        // Pass on everything that the host found; the connector knows where it goes.
        Payload::parse(call)?;
        let Findings { agent, mail, protocol, refusal, .. } = found;
        let mail = mail.map(|mail| mail.text).filter(|text| !text.is_empty());
        let shows_mail = mail.is_some();
        let fields = [("agent", agent), ("protocol", protocol), ("mail", mail), ("refusal", refusal)];
        let told: Map<String, Value> =
            fields.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into()))).collect();
        Ok(Reply::stdout(Value::Object(told).to_string()).showing(shows_mail))
    }
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::testing::{Fakes, hook, mail, nothing_found, reading};
    use serde_json::json;

    use super::*;

    fn call(name: &str, more: Value) -> Call {
        let mut payload = json!({"session": "ses_1", "directory": "/w", "process": 7});
        for (key, value) in more.as_object().cloned().unwrap_or_default() {
            payload[key] = value;
        }
        Call::new(name, payload.to_string())
    }

    /// Compares what an event means.
    #[track_caller]
    fn check(name: &str, more: Value, expected: &str) {
        let _host = Fakes::default().start();
        let read = match OpenCode::read(&call(name, more)) {
            Ok(read) => reading(&read, |id| id.replace("ses_", "s")),
            Err(error) => format!("refused: {error}"),
        };
        let fits = read == expected || (read.starts_with("refused: ") && read.contains(expected));
        assert!(fits, "{name}: {read}");
    }

    #[test]
    fn each_event_means_something_to_the_mesh() {
        check("session.created", json!({}), "s1; alive s1; protocol Start");
        check("session.created", json!({"activity": "session.busy"}), "s1; alive s1; s1 Busy; protocol Start");
        check("session.busy", json!({}), "s1; s1 Busy");
        check("session.idle", json!({}), "s1; s1 Idle");
        check("session.stopped", json!({}), "s1; user stopped s1");
        check("session.stopped", json!({"parent": "ses_0"}), "nobody");
        check("permission.asked", json!({}), "s1; s1 NeedsInput");
        check("chat.message", json!({}), "s1; s1 Busy; user spoke in s1; fits 8000; attended");
        check("tool.execute.after", json!({}), "s1; s1 Busy; fits 8000");
        check("tool.execute.after", json!({"registered": true}), "s1; s1 Busy; protocol Registration; fits 8000");
        check("tool.execute.before", json!({"file": "a.rs"}), "s1; s1 Busy; edits /w/a.rs");
        let patch = "*** Begin Patch\n*** Update File: a.rs\n*** Move to: b.rs\n*** End Patch";
        check("tool.execute.before", json!({"patch": patch}), "s1; s1 Busy; edits /w/a.rs; edits /w/b.rs");
        check("session.bound", json!({}), "s1; protocol Registration");
        check("session.deleted", json!({}), "nobody; s1 ended");
    }

    #[test]
    fn neither_a_wake_nor_a_parent_is_a_person() {
        check("chat.message", json!({"injected": true}), "s1; s1 Busy");
        check("chat.message", json!({"parent": "ses_0"}), "s1 of s0; s1 Busy");
    }

    #[test]
    fn a_subagent_ends_with_its_turn() {
        check("session.idle", json!({"parent": "ses_0"}), "nobody; s1 ended");
    }

    #[test]
    fn what_is_not_the_connectors_is_refused() {
        check("session.shared", json!({}), "has no meaning for the mesh");
        check("session.idle", json!({"session": ""}), "names no session");
        check("session.idle", json!({"process": "x"}), "is not from the connector");
    }

    #[test]
    fn the_connector_is_told_what_the_host_found() {
        let _host = Fakes::default().start();
        let found = |_: &Reading| Findings {
            agent: Some("alice".into()),
            mail: Some(mail("<relay-mesh-message>hello</relay-mesh-message>")),
            protocol: Some("You are `alice`.".into()),
            ..nothing_found()
        };
        let (_, reply) =
            hook::<OpenCode>(&call("tool.execute.after", json!({"registered": true})), found).expect("answered");
        let expected = r#"{"agent":"alice","protocol":"You are `alice`.","mail":"<relay-mesh-message>hello</relay-mesh-message>"}"#;
        assert_eq!((reply.stdout.as_deref(), reply.shows_mail), (Some(expected), true));
        let refused = |_: &Reading| Findings { refusal: Some("a.rs is held by `bob`".into()), ..nothing_found() };
        let (_, reply) =
            hook::<OpenCode>(&call("tool.execute.before", json!({"file": "a.rs"})), refused).expect("answered");
        assert_eq!(reply.stdout.as_deref(), Some(r#"{"refusal":"a.rs is held by `bob`"}"#));
        let (_, reply) = hook::<OpenCode>(&call("session.idle", json!({})), |_| nothing_found()).expect("answered");
        assert_eq!((reply.stdout.as_deref(), reply.shows_mail), (Some("{}"), false));
    }

    #[test]
    fn the_way_back_is_handed_to_the_host_and_taken_back() {
        let _host = Fakes::default().start();
        let hint = |more: Value| {
            let reading = OpenCode::read(&call("session.idle", more)).expect("read");
            reading.speaker.and_then(|speaker| speaker.route_hint)
        };
        // A connector of before told the password too, and it is not written down.
        let served = json!({"server": {"port": 5555, "password": "secret"}});
        assert_eq!(hint(served).as_deref(), Some(r#"{"port":5555}"#));
        assert_eq!(hint(json!({})).as_deref(), Some("null"));
    }
}
