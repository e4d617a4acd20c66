//! Each era of the protocol, in raw JSON-RPC, over both transports.

use serde_json::{Value, json};

use super::lines::{Lines, hello, modern, text};
use super::web::Web;
use super::{ClientProcess, PIPE, World};

const HANDSHAKES: [&str; 2] = ["2025-06-18", "2025-11-25"];

fn lines(world: &World) -> Lines {
    Lines::new(world.pipe(PIPE, ClientProcess::default()).0)
}

fn check_list(era: &str, answer: &Value) {
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{era}: {answer}"));
    assert_eq!(tools.len(), 8, "{era}");
    for tool in tools {
        assert_eq!(tool["annotations"]["destructiveHint"], false, "{era}: {tool}");
        assert!(tool["outputSchema"].is_object(), "{era}: {tool}");
    }
}

fn check_call(era: &str, answer: &Value) {
    assert_eq!(text(answer).lines().next(), Some("you are `alice`"), "{era}: {answer}");
    assert_eq!(answer["result"]["structuredContent"]["name"], "alice", "{era}: {answer}");
}

#[tokio::test]
async fn eras_with_a_handshake_over_a_pipe() {
    for era in HANDSHAKES {
        let world = World::new();
        let mut lines = Lines::connected(world.pipe(PIPE, ClientProcess::default()).0, era).await;
        check_list(era, &lines.ask(1, "tools/list", json!({})).await);
        let register = json!({"name": "register_agent", "arguments": {"name": "alice"}});
        check_call(era, &lines.ask(2, "tools/call", register).await);
        assert_eq!(lines.ask(3, "ping", json!({})).await["result"], json!({}), "{era}");
        let unknown = lines.ask(4, "mesh/teleport", json!({})).await;
        assert_eq!(unknown["error"]["code"], -32601, "{era}: {unknown}");
        assert_eq!(unknown["error"]["message"], "there is no method `mesh/teleport` here", "{era}");
        for params in [json!({"name": 5}), json!({"name": "list_agents", "arguments": []}), json!([])] {
            lines
                .write(&json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}).to_string())
                .await;
            let wrong = lines.next().await;
            let code = if params.is_array() { -32600 } else { -32602 };
            assert_eq!(wrong["error"]["code"], code, "{era}: {params}: {wrong}");
        }
    }
}

#[tokio::test]
async fn the_era_without_a_handshake_over_a_pipe() {
    let world = World::new();
    let mut lines = lines(&world);
    let found = lines.ask(1, "server/discover", json!({"_meta": modern()})).await;
    assert!(found["result"]["instructions"].as_str().is_some_and(|text| text.contains("register_agent")), "{found}");
    check_list("2026-07-28", &lines.ask(2, "tools/list", json!({"_meta": modern()})).await);
    let register = json!({"name": "register_agent", "arguments": {"name": "alice"}, "_meta": modern()});
    let registered = lines.ask(3, "tools/call", register).await;
    check_call("2026-07-28", &registered);
    assert!(registered["result"]["structuredContent"]["agent_key"].is_null(), "a pipe is a connection in any era");
    let fetch = json!({"name": "fetch_messages", "arguments": {}, "_meta": modern()});
    assert_eq!(text(&lines.ask(4, "tools/call", fetch).await), "no unread messages");
}

#[tokio::test]
async fn a_client_that_looks_for_the_new_era_first_may_fall_back() {
    let world = World::new();
    let mut lines = lines(&world);
    lines.ask(1, "server/discover", json!({"_meta": modern()})).await;
    // Some clients cancel requests that were answered already.
    lines.cancel(1).await;
    let answer = lines.ask(2, "initialize", hello("2025-11-25")).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
}

#[tokio::test]
async fn a_first_message_that_is_garbage_does_not_end_the_connection() {
    let world = World::new();
    let mut lines = lines(&world);
    lines.write("this is not JSON").await;
    lines.write(r#"{"jsonrpc": "2.0", "id": 7}"#).await;
    let malformed = lines.next().await;
    assert_eq!(malformed["error"]["code"], -32600, "{malformed}");
    lines.write(r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#).await;
    lines.write(r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#).await;
    let early = lines.ask(8, "tools/list", json!({})).await;
    assert!(early["error"]["message"].is_string(), "{early}");
    let answer = lines.ask(9, "initialize", hello("1999-01-01")).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "an unknown era is answered with ours: {answer}");
}

#[tokio::test]
async fn a_pipe_carries_nothing_but_the_protocol() {
    let world = World::new();
    let mut lines = Lines::connected(world.pipe(PIPE, ClientProcess::default()).0, "2025-11-25").await;
    lines.begin(1, "register_agent", r#"{"name": "alice"}"#).await;
    lines.begin(2, "list_agents", "{}").await;
    for line in lines.rest().await.lines() {
        let message: Value = serde_json::from_str(line).expect("each line is JSON");
        assert_eq!(message["jsonrpc"], "2.0");
    }
}

#[tokio::test]
async fn eras_with_a_handshake_over_http() {
    for era in HANDSHAKES {
        let world = World::new();
        let web = Web::start(&world).await;
        let session = web.session(era).await;
        check_list(era, &session.ask("tools/list", json!({})).await);
        let register = json!({"name": "register_agent", "arguments": {"name": "alice"}});
        let registered = session.ask("tools/call", register).await;
        check_call(era, &registered);
        assert!(registered["result"]["structuredContent"]["agent_key"].is_null(), "a session is a connection");
        assert_eq!(session.call("fetch_messages", json!({})).await, "no unread messages", "{era}");
    }
}

#[tokio::test]
async fn the_era_without_a_handshake_over_http_speaks_by_key() {
    let world = World::new();
    let web = Web::start(&world).await;
    let found = web.stateless("server/discover", json!({})).await;
    assert!(found["result"]["instructions"].is_string(), "{found}");
    let register = json!({"name": "register_agent", "arguments": {"name": "alice"}});
    let registered = web.stateless("tools/call", register).await;
    check_call("2026-07-28", &registered);
    let key = registered["result"]["structuredContent"]["agent_key"].as_str().expect("a key").to_owned();
    let id = world.say("alice", "hello").await;
    let fetch = |key: Value| json!({"name": "fetch_messages", "arguments": {"agent_key": key}});
    let fetched = web.stateless("tools/call", fetch(json!(key))).await;
    assert!(text(&fetched).contains("hello"), "{fetched}");
    world.reaches("alice", id, "read").await;
    let again = web.stateless("tools/call", fetch(json!(key))).await;
    assert_eq!(text(&again), "no unread messages");
    for (wrong, expected) in
        [(json!("alice.00"), "register_agent gave you"), (Value::Null, "Call register_agent first")]
    {
        let refused = web.stateless("tools/call", fetch(wrong)).await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        assert!(text(&refused).contains(expected), "{refused}");
    }
}

#[tokio::test]
async fn what_is_not_declared_is_no_method() {
    let undeclared = ["prompts/list", "resources/list", "resources/templates/list", "completion/complete"];
    let complete = json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}});
    let params = |method: &str| if method == "completion/complete" { complete.clone() } else { json!({}) };
    for era in HANDSHAKES {
        let world = World::new();
        let mut lines = Lines::connected(world.pipe(PIPE, ClientProcess::default()).0, era).await;
        let web = Web::start(&world).await;
        let session = web.session(era).await;
        for (id, method) in (1..).zip(undeclared) {
            let over_pipe = lines.ask(id, method, params(method)).await;
            let over_http = session.ask(method, params(method)).await;
            for answer in [over_pipe, over_http] {
                assert_eq!(answer["error"]["code"], -32601, "{era} {method}: {answer}");
            }
        }
    }
}

#[tokio::test]
async fn the_era_without_a_handshake_refuses_one() {
    let world = World::new();
    let mut lines = lines(&world);
    let mut params = hello("2026-07-28");
    params["_meta"] = modern();
    let refused = lines.ask(1, "initialize", params.clone()).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    check_list("2026-07-28", &lines.ask(2, "tools/list", json!({"_meta": modern()})).await);

    let web = Web::start(&world).await;
    for params in [params, json!({"_meta": modern()})] {
        for headers in [
            &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "initialize")] as &[(&str, &str)],
            &[("mcp-protocol-version", "2026-07-28")],
        ] {
            let body = json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params});
            let answer = web.send("POST", "/mcp", headers, body.to_string()).await;
            assert_eq!(answer.status, 404, "{answer:?}");
            let told: Value = serde_json::from_str(&answer.body).expect("JSON");
            assert_eq!((&told["id"], &told["error"]["code"]), (&json!(7), &json!(-32601)), "{told}");
            assert!(!answer.headers.contains_key("mcp-session-id"), "{answer:?}");
        }
    }
    // A client of an older era that asks for the newest one is offered what has a handshake.
    let mut older = self::lines(&world);
    let offered = older.ask(1, "initialize", hello("2026-07-28")).await;
    assert_eq!(offered["result"]["protocolVersion"], "2025-11-25", "{offered}");
}

#[tokio::test]
async fn calls_that_follow_a_registration_know_who_speaks() {
    for _ in 0..20 {
        let world = World::new();
        let mut lines = Lines::connected(world.pipe(PIPE, ClientProcess::default()).0, "2025-11-25").await;
        lines.begin(1, "register_agent", r#"{"name": "alice"}"#).await;
        lines.begin(2, "fetch_messages", "{}").await;
        lines.begin(3, "send_message", r#"{"to": "alice", "body": "to myself"}"#).await;
        let mut answers = std::collections::BTreeMap::new();
        for _ in 0..3 {
            let answer = lines.next().await;
            answers.insert(answer["id"].as_u64(), text(&answer));
        }
        assert_eq!(answers[&Some(1)], "you are `alice`");
        assert!(!answers[&Some(2)].contains("you have not registered"), "{answers:?}");
        assert!(answers[&Some(3)].starts_with("sent "), "{answers:?}");
    }
}

#[tokio::test]
async fn a_registration_that_is_cancelled_or_fails_holds_nobody_up() {
    let world = World::new();
    let mut lines = Lines::connected(world.pipe(PIPE, ClientProcess::default()).0, "2025-11-25").await;
    lines.begin(1, "register_agent", r#"{"name": "no name!"}"#).await;
    lines.begin(2, "list_agents", "{}").await;
    let answers = [lines.next().await, lines.next().await];
    assert!(answers.iter().any(|answer| answer["id"] == 2 && text(answer) == "no agent is here"), "{answers:?}");
    lines.begin(3, "register_agent", r#"{"name": "alice"}"#).await;
    lines.cancel(3).await;
    lines.begin(4, "list_agents", "{}").await;
    loop {
        if lines.next().await["id"] == 4 {
            break;
        }
    }
}
