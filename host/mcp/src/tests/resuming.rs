//! A client whose stream broke off goes on with it, by the id of the last event that it has.

use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::World;
use super::web::{Web, WebAnswer, WebSession};

/// A stream as a client reads it.
struct Reading {
    stream: Response<Incoming>,
    /// What it has read.
    text: String,
}

impl Reading {
    /// Calls a tool and reads until the answer's first event is here.
    async fn call(web: &Web, session: &WebSession<'_>, tool: &str, arguments: Value) -> Reading {
        let call = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        let request = web.request("POST", "/mcp", &session.headers(), call.to_string());
        let stream = web.connect().await.send_request(request).await.expect("a stream begins");
        let mut reading = Reading { stream, text: String::new() };
        while !reading.text.contains("\n\n") {
            reading.more().await.expect("an event");
        }
        reading
    }

    /// Reads a piece more; none if the stream has ended or broken off.
    async fn more(&mut self) -> Option<()> {
        let frame = self.stream.body_mut().frame().await?.ok()?;
        let data = frame.into_data().unwrap_or_default();
        self.text.push_str(&String::from_utf8_lossy(&data));
        Some(())
    }

    /// Reads to the end.
    async fn whole(mut self) -> String {
        while self.more().await.is_some() {}
        self.text
    }
}

/// The first id in a text of events.
fn first_id(events: &str) -> String {
    let id = events.lines().find_map(|line| line.strip_prefix("id:"));
    id.unwrap_or_else(|| panic!("no id: {events}")).trim().to_owned()
}

/// The event that holds the answer.
fn answer(events: &str) -> String {
    let mut events = events.split("\n\n");
    events.find(|event| event.contains(r#""id":9"#)).unwrap_or_default().to_owned()
}

async fn resume(web: &Web, session: &WebSession<'_>, last: &str) -> WebAnswer {
    let [id, era] = session.headers();
    web.send("GET", "/mcp", &[id, era, ("last-event-id", last)], String::new()).await
}

async fn joined<'a>(web: &'a Web, name: &str) -> WebSession<'a> {
    let session = web.session("2025-11-25").await;
    session.call("register_agent", json!({ "name": name })).await;
    session
}

#[tokio::test]
async fn an_answer_that_went_out_whole_comes_again_with_the_same_bytes() {
    let world = World::new();
    let web = Web::start(&world).await;
    let session = joined(&web, "alice").await;
    let id = world.say("alice", "hello").await;
    let first = Reading::call(&web, &session, "fetch_messages", json!({})).await.whole().await;
    world.reaches("alice", id, "read").await;
    assert!(answer(&first).contains("hello"), "{first}");
    for _ in 0..2 {
        let again = resume(&web, &session, &first_id(&first)).await;
        assert_eq!((again.status, answer(&again.body)), (200, answer(&first)));
    }
    assert_eq!(session.call("fetch_messages", json!({})).await, "no unread messages");
    let last = first_id(&answer(&first));
    let nothing = resume(&web, &session, &last).await;
    assert!(nothing.status == 400 && nothing.body.contains("nothing follows"), "{nothing:?}");
}

#[tokio::test]
async fn mail_of_an_answer_that_broke_off_comes_once_and_by_the_next_fetch() {
    let world = World::new();
    let web = Web::start(&world).await;
    let session = joined(&web, "alice").await;
    // More than the system buffers for a connection that is not read.
    for _ in 0..50 {
        world.say("alice", &"long ".repeat(50_000)).await;
    }
    let long = json!({"limit": 100, "max_length": 262_144});
    let reading = Reading::call(&web, &session, "fetch_messages", long.clone()).await;
    let last = first_id(&reading.text);
    // The client comes back before its old connection is known to be gone.
    let again = resume(&web, &session, &last).await;
    assert_eq!(again.status, 200);
    assert!(again.body.contains("was given back") && !again.body.contains("long long"), "{again:?}");
    drop(reading);
    world.waits_for("alice").await;
    let fetched = session.call("fetch_messages", long).await;
    assert_eq!(fetched.matches("</relay-mesh-message>").count(), 50);
    assert_eq!(fetched.matches(r#"repeated="perhaps""#).count(), 50, "they may have been in what the client had read");
}

#[tokio::test]
async fn a_call_that_its_client_left_is_answered_when_it_comes_back() {
    let world = World::new();
    let web = Web::start(&world).await;
    let session = joined(&web, "alice").await;
    let reading = Reading::call(&web, &session, "fetch_messages", json!({"wait_seconds": 300})).await;
    let last = first_id(&reading.text);
    assert!(!reading.text.contains("data: {"), "nothing but the id: {}", reading.text);
    drop(reading);
    let resumed = resume(&web, &session, &last).await;
    assert_eq!(resumed.status, 200);
    assert!(answer(&resumed.body).contains("no unread messages"), "{resumed:?}");
    world.say("alice", "hello").await;
    assert!(session.call("fetch_messages", json!({})).await.contains("hello"));
}

#[tokio::test]
async fn nobody_but_its_session_goes_on_with_a_stream() {
    let world = World::new();
    let web = Web::start(&world).await;
    let (alice, bob) = (joined(&web, "alice").await, joined(&web, "bob").await);
    let text = Reading::call(&web, &alice, "list_agents", json!({})).await.whole().await;
    let last = first_id(&text);
    for unknown in [last.as_str(), "0/3", "7", "x.1"] {
        let refused = resume(&web, &bob, unknown).await;
        assert_eq!(refused.status, 400, "{unknown}: {refused:?}");
        assert!(refused.body.contains("no stream of this session") && refused.body.contains("-32602"), "{refused:?}");
    }
    let [id, era] = alice.headers();
    let headers = [id, era, ("last-event-id", last.as_str()), ("authorization", "Bearer wrong")];
    assert_eq!(web.send("GET", "/mcp", &headers, String::new()).await.status, 401);
    assert_eq!(resume(&web, &alice, &last).await.status, 200);
    // A server that was started anew knows neither the session nor the event: the client begins again.
    let restarted = Web::start(&world).await;
    assert_eq!(resume(&restarted, &alice, &last).await.status, 404);
    assert_eq!(web.send("DELETE", "/mcp", &alice.headers(), String::new()).await.status, 204);
    assert_eq!(resume(&web, &alice, &last).await.status, 404);
}

#[tokio::test]
async fn a_cancelled_call_has_nothing_to_go_on_with() {
    let world = World::new();
    let web = Web::start(&world).await;
    let session = joined(&web, "alice").await;
    let reading = Reading::call(&web, &session, "fetch_messages", json!({"wait_seconds": 300})).await;
    let last = first_id(&reading.text);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}});
    assert_eq!(session.post(cancel).await.status, 202);
    assert_eq!(answer(&reading.whole().await), "");
    let refused = resume(&web, &session, &last).await;
    assert!(refused.status == 400 && refused.body.contains("nothing follows"), "{refused:?}");
}

#[tokio::test]
async fn clients_of_before_2025_11_25_get_no_event_without_data() {
    let world = World::new();
    let web = Web::start(&world).await;
    for (era, events) in [("2025-06-18", 1), ("2025-11-25", 2)] {
        let session = web.session(era).await;
        let text = Reading::call(&web, &session, "list_agents", json!({})).await.whole().await;
        assert_eq!(text.matches("id:").count(), events, "{era}: {text}");
        assert_eq!(text.contains("retry:"), events == 2, "{era}: {text}");
        assert!(answer(&text).contains("no agent is here"), "{era}: {text}");
    }
}
