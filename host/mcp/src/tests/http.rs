//! The HTTP server: which requests it rejects, how its sessions end, and the fate of mail in responses.

use std::time::Duration;

use http_body_util::BodyExt;
use mesh::agents::Presence;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::World;
use super::lines::hello;
use super::web::{TOKEN, Web};
use crate::http::identity::{IDENTITY, proves};
use crate::http::{BindError, HttpSettings, Listener};

fn initialize() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello("2025-11-25")}).to_string()
}

#[tokio::test]
async fn who_has_no_business_here_is_turned_away_with_a_sentence() {
    let world = World::new();
    let web = Web::start(&world).await;
    // The change to a good request, the status, and part of the error text.
    let (own, other) = (format!("http://{}", web.address), "http://localhost:6274");
    let cases: [(&str, &str, u16, &str); 10] = [
        ("x-harmless", "header", 200, ""),
        ("authorization", "", 401, "Authorization: Bearer TOKEN"),
        ("authorization", "Bearer of bad news", 401, "install"),
        ("host", "evil.example:7423", 403, "127.0.0.1 or localhost"),
        ("origin", "http://evil.example", 403, "web pages"),
        ("origin", "null", 403, "web pages"),
        ("origin", &own, 200, ""),
        ("origin", other, 403, "`origins` of [http]"),
        ("content-type", "text/plain", 415, "application/json"),
        ("accept", "text/html", 406, "text/event-stream"),
    ];
    for (header, value, status, sentence) in cases {
        let answer = web.send("POST", "/mcp", &[(header, value)], initialize()).await;
        assert_eq!(answer.status, status, "{header}: {value}: {answer:?}");
        assert!(answer.body.contains(sentence), "{header}: {value}: {answer:?}");
        assert_eq!(answer.headers.contains_key("www-authenticate"), status == 401, "{answer:?}");
        assert!(!answer.body.contains(TOKEN), "{answer:?}");
    }
}

#[tokio::test]
async fn whoever_reaches_the_port_learns_that_it_is_us_and_nothing_more() {
    let world = World::new();
    world.register("alice").await;
    let web = Web::start(&world).await;
    let health = web.send("GET", "/healthz", &[("authorization", "")], String::new()).await;
    assert_eq!(
        (health.status, health.body),
        (200, format!(r#"{{"name":"relay-mesh","version":"{}"}}"#, env!("CARGO_PKG_VERSION")))
    );
    let elsewhere = web.send("GET", "/", &[("authorization", "")], String::new()).await;
    assert_eq!(elsewhere.status, 404, "{elsewhere:?}");
    for path in ["/healthz", "/", "/mcp"] {
        let rebound = web.send("GET", path, &[("host", "evil.example")], String::new()).await;
        assert_eq!(rebound.status, 403, "{path}: {rebound:?}");
    }
}

#[tokio::test]
async fn a_server_proves_whose_it_is_without_being_shown_its_token() {
    let world = World::new();
    let settings = || HttpSettings { token: Some(TOKEN.to_owned()), ..HttpSettings::default() };
    let web = Web::with(&world, HttpSettings { identity: Some(TOKEN.to_owned()), ..settings() }).await;
    let ask = async |web: &Web, nonce: &str| {
        web.send("GET", &format!("{IDENTITY}{nonce}"), &[("authorization", "")], String::new()).await
    };
    let answer = ask(&web, "0123456789abcdef").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let told: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
    let shown = told["proof"].as_str().expect("a proof");
    assert!(proves(TOKEN, web.address, "0123456789abcdef", shown), "{told}");
    assert!(!answer.body.contains(TOKEN));
    // What passes the question on to it from another port gets a proof for our port and not for its own.
    let elsewhere = std::net::SocketAddr::new(web.address.ip(), web.address.port() ^ 1);
    assert!(!proves(TOKEN, elsewhere, "0123456789abcdef", shown));
    assert_eq!(ask(&web, "short").await.status, 404);
    let rebound = web.send("GET", "/identity/0123456789abcdef", &[("host", "evil.example")], String::new()).await;
    assert_eq!(rebound.status, 403, "{rebound:?}");
    let silent = Web::with(&world, settings()).await;
    assert_eq!(ask(&silent, "0123456789abcdef").await.status, 404, "it has nothing to prove it by");
}

#[tokio::test]
async fn bodies_that_are_no_message_are_told_so() {
    let world = World::new();
    let web = Web::start(&world).await;
    for body in ["{not json", "", "[]", r#"{"jsonrpc": "2.0"}"#] {
        let answer = web.send("POST", "/mcp", &[], body.to_owned()).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(answer.body.contains("-32700"), "{body}: {answer:?}");
    }
    let enormous = web.send("POST", "/mcp", &[], "x".repeat(3 * 1024 * 1024)).await;
    assert_eq!(enormous.status, 413, "{enormous:?}");
    let session = web.session("2025-11-25").await;
    session.call("register_agent", json!({"name": "alice"})).await;
    // The longest body, with each of its bytes escaped, is still accepted.
    let long = session.call("send_message", json!({"to": "alice", "body": "\u{1}".repeat(256 * 1024)})).await;
    assert!(long.contains("alice: "), "{long}");
    let too_long = session.call("send_message", json!({"to": "alice", "body": "x".repeat(256 * 1024 + 1)})).await;
    assert!(too_long.contains("262144"), "{too_long}");
}

#[tokio::test]
async fn sessions_are_asked_for_and_end_when_told() {
    let world = World::new();
    let web = Web::start(&world).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let without = web.send("POST", "/mcp", &[("mcp-protocol-version", "2025-11-25")], list.clone()).await;
    assert_eq!(without.status, 400, "{without:?}");
    let unknown = web.send("POST", "/mcp", &[("mcp-session-id", "nobody")], list.clone()).await;
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let session = web.session("2025-11-25").await;
    session.call("register_agent", json!({"name": "alice"})).await;
    let ended = web.send("DELETE", "/mcp", &session.headers(), String::new()).await;
    assert_eq!(ended.status, 204, "{ended:?}");
    let seen = world.mesh.agent(&"alice".parse().expect("a name")).await.expect("read").expect("there");
    assert_eq!(seen.presence, Presence::Offline, "{}", seen.evidence);
    assert_eq!(session.post(serde_json::from_str(&list).expect("JSON")).await.status, 404);
}

#[tokio::test]
async fn one_session_too_many_ends_the_quietest() {
    let world = World::new();
    let settings = HttpSettings { token: Some(TOKEN.to_owned()), most_sessions: 2, ..HttpSettings::default() };
    let web = Web::with(&world, settings).await;
    let first = web.session("2025-11-25").await;
    let second = web.session("2025-11-25").await;
    first.ask("ping", json!({})).await;
    let third = web.session("2025-11-25").await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let alive =
        [first.post(ping.clone()).await.status, second.post(ping.clone()).await.status, third.post(ping).await.status];
    assert_eq!(alive, [200, 404, 200]);
}

#[tokio::test]
async fn a_session_whose_client_holds_a_stream_open_ends_only_if_all_do() {
    let world = World::new();
    let settings = HttpSettings { token: Some(TOKEN.to_owned()), most_sessions: 2, ..HttpSettings::default() };
    let web = Web::with(&world, settings).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let first = web.session("2025-11-25").await;
    let mut sender = web.connect().await;
    let stream = sender.send_request(web.request("GET", "/mcp", &first.headers(), String::new()));
    let _held = stream.await.expect("a stream of events begins");
    let second = web.session("2025-11-25").await;
    let third = web.session("2025-11-25").await;
    assert_eq!(second.post(ping.clone()).await.status, 404, "the first was quiet for longer, and has a stream");
    let mut sender = web.connect().await;
    let stream = sender.send_request(web.request("GET", "/mcp", &third.headers(), String::new()));
    let _held = stream.await.expect("a stream of events begins");
    let fourth = web.session("2025-11-25").await;
    let alive = [first.post(ping.clone()).await.status, third.post(ping.clone()).await.status];
    assert_eq!((alive, fourth.post(ping).await.status), ([404, 200], 200));
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let listen = taken.local_addr().expect("bound");
    let error = Listener::bind(HttpSettings { listen, ..HttpSettings::default() }).await.expect_err("taken");
    assert!(matches!(error, BindError::InUse(_)), "{error:?}");
    assert!(error.to_string().contains(&listen.port().to_string()) && error.hint().contains("--http"), "{error}");
}

#[tokio::test]
async fn mail_in_a_response_that_broke_off_waits_again() {
    let world = World::new();
    let web = Web::start(&world).await;
    let session = web.session("2025-11-25").await;
    session.call("register_agent", json!({"name": "alice"})).await;
    // More than the system buffers for a connection that is not read.
    let mut last = None;
    for _ in 0..50 {
        last = Some(world.say("alice", &"long ".repeat(50_000)).await);
    }
    let last = last.expect("sent");
    let fetch = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {
        "name": "fetch_messages", "arguments": {"limit": 100, "max_length": 262_144}}});
    let request = web.request("POST", "/mcp", &session.headers(), fetch.to_string());
    let mut sender = web.connect().await;
    let mut answer = sender.send_request(request).await.expect("an answer begins");
    answer.body_mut().frame().await.expect("a first piece").expect("a piece");
    assert_eq!(world.status(last).await, "stored", "most of the answer is still here");
    drop((answer, sender));
    world.waits_for("alice").await;
    assert_eq!(world.status(last).await, "stored");
    let fetched = session.call("fetch_messages", json!({"limit": 100, "max_length": 262_144})).await;
    assert_eq!(fetched.matches("</relay-mesh-message>").count(), 50);
    world.reaches("alice", last, "read").await;
}

#[tokio::test]
async fn a_waiting_call_whose_client_is_gone_takes_nothing() {
    let world = World::new();
    let web = Web::start(&world).await;
    let session = web.session("2025-11-25").await;
    session.call("register_agent", json!({"name": "alice"})).await;
    let fetch = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {
        "name": "fetch_messages", "arguments": {"wait_seconds": 300}}});
    let mut stream = TcpStream::connect(web.address).await.expect("somebody listens");
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nMcp-Session-Id: {}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{fetch}",
        session.id,
        fetch.to_string().len()
    );
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("a stream of events begins");
    assert_eq!(&answer, b"HTTP/1.1 200");
    // The server closes once it has noticed that the client is gone.
    stream.shutdown().await.expect("closed");
    stream.read_to_end(&mut Vec::new()).await.expect("read");
    let id = world.say("alice", "hello").await;
    let fetched = session.call("fetch_messages", json!({})).await;
    assert!(fetched.contains("hello"), "{fetched}");
    world.reaches("alice", id, "read").await;
}

#[tokio::test]
async fn a_call_cancelled_over_http_takes_nothing() {
    let world = World::new();
    let web = Web::start(&world).await;
    let session = web.session("2025-11-25").await;
    session.call("register_agent", json!({"name": "alice"})).await;
    let fetch = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {
        "name": "fetch_messages", "arguments": {"wait_seconds": 300}}});
    let request = web.request("POST", "/mcp", &session.headers(), fetch.to_string());
    let mut sender = web.connect().await;
    let answer = sender.send_request(request).await.expect("a stream of events begins");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}});
    assert_eq!(session.post(cancel).await.status, 202);
    let rest = answer.into_body().collect().await.expect("the stream ends").to_bytes();
    assert!(!String::from_utf8_lossy(&rest).contains("\"id\":9"), "a cancelled call is not answered");
    world.say("alice", "hello").await;
    let fetched = session.call("fetch_messages", json!({})).await;
    assert!(fetched.contains("hello"), "{fetched}");
}

#[tokio::test]
async fn it_stops_while_somebody_waits() {
    let world = World::new();
    let web = Web::start(&world).await;
    let session = web.session("2025-11-25").await;
    session.call("register_agent", json!({"name": "alice"})).await;
    let fetch = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {
        "name": "fetch_messages", "arguments": {"wait_seconds": 300}}});
    let request = web.request("POST", "/mcp", &session.headers(), fetch.to_string());
    let mut sender = web.connect().await;
    let answer = sender.send_request(request).await.expect("a stream of events begins");
    let began = std::time::Instant::now();
    web.stop.cancel();
    web.serving.await.expect("no panic").expect("no failure");
    assert!(began.elapsed() < Duration::from_secs(60), "it took {:?}", began.elapsed());
    drop(answer);
}

#[tokio::test]
async fn a_client_that_left_without_a_word_gives_its_name_back() {
    let world = World::new();
    let web = Web::start(&world).await;
    let session = web.session("2025-11-25").await;
    session.call("register_agent", json!({"name": "alice"})).await;
    let mut sender = web.connect().await;
    let stream = sender.send_request(web.request("GET", "/mcp", &session.headers(), String::new()));
    let stream = stream.await.expect("a stream of events begins");
    assert_eq!(stream.status(), 200);
    drop((stream, sender));
    // From here on a minute passes at once.
    tokio::time::pause();
    let mut watch = world.mesh.watch_sessions("generic").await.expect("watched");
    let alice = "alice".parse().expect("a name");
    while world.mesh.agent(&alice).await.expect("read").expect("there").presence != Presence::Offline {
        watch.changed().await.expect("watched");
    }
    tokio::time::resume();
    let again = web.session("2025-11-25").await;
    assert!(again.call("register_agent", json!({"name": "alice"})).await.starts_with("you are `alice`, whose former"));
    let late = session.call("fetch_messages", json!({})).await;
    assert!(late.contains("Call register_agent first."), "{late}");
}

#[tokio::test]
async fn a_quiet_client_is_here_for_as_long_as_it_holds_a_stream() {
    let world = World::new();
    let web = Web::start(&world).await;
    let presence = async |name: &str| {
        let seen = world.mesh.agent(&name.parse().expect("a name")).await.expect("read").expect("there");
        format!("{}: {}", seen.presence.as_str(), seen.evidence)
    };
    let calls = web.session("2025-11-25").await;
    calls.call("register_agent", json!({"name": "alice"})).await;
    let listens = web.session("2025-11-25").await;
    let mut sender = web.connect().await;
    let stream = sender.send_request(web.request("GET", "/mcp", &listens.headers(), String::new()));
    let stream = stream.await.expect("a stream of events begins");
    listens.call("register_agent", json!({"name": "bob"})).await;
    world.machine.pass(11 * 60_000);
    assert_eq!(presence("alice").await, "away: nothing heard for 11 min, and its client holds no stream open");
    assert_eq!(presence("bob").await, "idle: waits, heard 11 min ago");

    // A call is a sign of life, and so is a new stream.
    calls.call("list_agents", json!({})).await;
    assert_eq!(presence("alice").await, "idle: waits, heard 0 s ago");
    let mut late = web.connect().await;
    let opened = late.send_request(web.request("GET", "/mcp", &calls.headers(), String::new())).await;
    let opened = opened.expect("a stream of events begins");
    world.machine.pass(11 * 60_000);
    assert_eq!(presence("alice").await, "idle: waits, heard 11 min ago");
    let mut watch = world.mesh.watch_sessions("generic").await.expect("watched");
    drop((stream, sender));
    while presence("bob").await.starts_with("idle: waits, heard 2") {
        watch.changed().await.expect("watched");
    }
    world.machine.pass(11 * 60_000);
    assert_eq!(presence("bob").await, "away: nothing heard for 11 min, and its client holds no stream open");
    drop(opened);
}

/// Sends bytes on a connection of their own and returns all that comes back until the server closes it.
async fn until_closed(web: &Web, parts: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(web.address).await.expect("connected");
    for part in parts {
        stream.write_all(part).await.expect("sent");
    }
    let mut answer = Vec::new();
    // A reset is an end too.
    let _reset = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await.expect("closed");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn half_a_head_and_half_a_body_are_not_waited_for() {
    let world = World::new();
    let within = |timeout| HttpSettings { token: Some(TOKEN.to_owned()), timeout, ..HttpSettings::default() };
    let web = Web::with(&world, within(Duration::from_millis(300))).await;
    assert_eq!(until_closed(&web, &[]).await, "", "a client that says nothing");
    assert_eq!(until_closed(&web, &[b"POST /mcp HT"]).await, "");
    let whole = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let second = until_closed(&web, &[whole, b"GET /hea"]).await;
    assert!(second.starts_with("HTTP/1.1 200"), "half a head after a whole request: {second}");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: \
         application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: 100\r\n\r\n"
    );
    let body = until_closed(&web, &[head.as_bytes(), b"{\"jsonrpc\""]).await;
    assert!(body.starts_with("HTTP/1.1 408") && body.contains("did not arrive in time"), "{body}");
    // A stream and a connection that rests between two requests stay. The server waits long enough for a slow client.
    let web = Web::with(&world, within(Duration::from_secs(2))).await;
    let session = web.session("2025-11-25").await;
    session.ask("ping", json!({})).await;
    let mut resting = TcpStream::connect(web.address).await.expect("connected");
    for _ in 0..2 {
        resting.write_all(whole).await.expect("sent");
        let mut answer = [0; 1024];
        let read = resting.read(&mut answer).await.expect("answered");
        assert!(answer[..read].starts_with(b"HTTP/1.1 200"), "{:?}", &answer[..read]);
        let quiet = tokio::time::timeout(Duration::from_secs(3), resting.read(&mut answer)).await;
        assert!(quiet.is_err(), "it was closed between two requests: {quiet:?}");
    }
}

#[tokio::test]
async fn a_body_of_100_mb_in_chunks_is_too_large_and_its_sender_is_told_so() {
    let world = World::new();
    let web = Web::start(&world).await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: \
         application/json\r\naccept: application/json, text/event-stream\r\nconnection: close\r\ntransfer-encoding: \
         chunked\r\n\r\n"
    );
    let chunk = [b"100000\r\n".as_slice(), &vec![b'x'; 0x10_0000], b"\r\n"].concat();
    let mut parts: Vec<&[u8]> = vec![head.as_bytes()];
    parts.extend(std::iter::repeat_n(chunk.as_slice(), 100));
    parts.push(b"0\r\n\r\n");
    let answer = until_closed(&web, &parts).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("may have"), "{answer}");
}

#[tokio::test]
async fn a_page_that_the_user_has_allowed_may_call_and_read_the_answer() {
    let world = World::new();
    let page = "http://localhost:6274";
    let (token, origins) = (Some(TOKEN.to_owned()), vec![page.to_owned()]);
    let web = Web::with(&world, HttpSettings { token, origins, ..HttpSettings::default() }).await;
    let asks = [("access-control-request-method", "POST"), ("authorization", "")];
    let preflight =
        |origin: &'static str| -> Vec<(&str, &str)> { asks.into_iter().chain([("origin", origin)]).collect() };
    let allowed = web.send("OPTIONS", "/mcp", &preflight(page), String::new()).await;
    assert_eq!((allowed.status, allowed.headers["access-control-allow-origin"].to_str().ok()), (204, Some(page)));
    assert!(
        allowed.headers["access-control-allow-headers"].to_str().is_ok_and(|names| names.contains("authorization"))
    );
    let stranger = web.send("OPTIONS", "/mcp", &preflight("http://evil.example"), String::new()).await;
    assert_eq!(stranger.status, 403, "{stranger:?}");
    assert!(!stranger.headers.contains_key("access-control-allow-origin"), "{stranger:?}");
    let answer = web.send("POST", "/mcp", &[("origin", page)], initialize()).await;
    assert_eq!((answer.status, answer.headers["access-control-allow-origin"].to_str().ok()), (200, Some(page)));
    assert_eq!(answer.headers["access-control-expose-headers"], "mcp-session-id");
    let without = web.send("POST", "/mcp", &[("origin", page), ("authorization", "")], initialize()).await;
    assert_eq!(without.status, 401, "it needs the token all the same: {without:?}");
}
