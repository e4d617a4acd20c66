//! Third-party clients, over both transports and in every protocol era that we support, and unwelcome clients.

use serde_json::{Value, json};
use test_support::{
    Breaks, BrokenLine, Host, HttpClient, Official, Reach, Sdk, Stage, StdioClient, handshake, isolated,
};

/// The tools that every client sees.
const CORE: [&str; 8] = [
    "bind_session",
    "broadcast",
    "fetch_messages",
    "find_agents",
    "list_agents",
    "message_status",
    "register_agent",
    "send_message",
];

/// Each official SDK in each protocol era that it supports.
const SPOKEN: [(Sdk, &str, &str); 5] = [
    (Sdk::TypeScript, "2025-06-18", "2025-06-18"),
    (Sdk::TypeScript, "2025-11-25", "2025-11-25"),
    (Sdk::TypeScript, "2026-07-28", "2026-07-28"),
    (Sdk::Python, "legacy", "2025-11-25"),
    (Sdk::Python, "auto", "2026-07-28"),
];

#[test]
fn official_clients_talk_over_stdio() {
    isolated(|| {
        for (sdk, asked, agreed) in SPOKEN {
            let stage = stage();
            converses(&stage, sdk, asked, agreed, Reach::Stdio);
        }
    });
}

#[test]
fn official_clients_talk_over_http() {
    isolated(|| {
        for (sdk, asked, agreed) in SPOKEN {
            let stage = stage();
            let host = Host::start(&stage);
            converses(&stage, sdk, asked, agreed, Reach::Http(&host));
        }
    });
}

#[test]
fn official_clients_go_on_with_an_answer_whose_connection_broke() {
    isolated(|| {
        for (sdk, asked, _) in [SPOKEN[1], SPOKEN[3]] {
            for at in [Breaks::After("retry:"), Breaks::Before("structuredContent")] {
                let told = format!("{sdk:?}, {at:?}");
                let stage = stage();
                let host = Host::start(&stage);
                let line = BrokenLine::to(host.port, "wait_seconds", at);
                let mut client = Official::connect(&stage, sdk, asked, Reach::By(&host, line.port));
                client.call("register_agent", json!({"name": "alice"}));
                let fetched = std::thread::scope(|scope| {
                    let fetching =
                        scope.spawn(|| client.call("fetch_messages", json!({"wait_seconds": 60, "acknowledge": true})));
                    line.begun.recv().expect("the answer begins");
                    stage.relay_ok(&["send", "alice", "Hello, Alice."]);
                    fetching.join().expect("it is answered")
                });
                assert!(line.has_broken(), "{told}: {fetched:?}");
                // A call that waits ends with its connection. What went out whole comes again as it was.
                let again = client.call("fetch_messages", json!({}));
                let had = [&fetched, &again].map(|answer| answer.text.contains("Hello, Alice."));
                match at {
                    Breaks::After(_) => assert_eq!(had.iter().filter(|had| **had).count(), 1, "{told}: {fetched:?}"),
                    Breaks::Before(_) => assert_eq!(had, [true, false], "{told}: {fetched:?}, {again:?}"),
                }
            }
        }
    });
}

#[test]
fn a_stdio_client_is_told_what_it_did_wrong_and_can_go_on() {
    isolated(|| {
        let stage = stage();
        let mut client = StdioClient::new(stage.relay(&["mcp"]).start(&stage.folder.join("mcp.log")));
        client.write("this is not JSON");
        client.write("{\"jsonrpc\": \"2.0\", \"id\": 7}");
        let hello = client.request("initialize", &handshake("2025-11-25", "plain"));
        assert_eq!(hello["result"]["protocolVersion"], "2025-11-25", "{hello}");
        client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);

        let unknown = client.request("tools/call", &json!({"name": "teleport", "arguments": {}}));
        assert!(unknown["error"]["message"].as_str().is_some_and(|text| text.contains("teleport")), "{unknown}");
        let method = client.request("mesh/teleport", &json!({}));
        assert_eq!(method["error"]["code"], -32601, "{method}");

        let unregistered = client.call("send_message", json!({"to": "nobody", "body": "hello"}));
        assert!(unregistered.failed && unregistered.text.contains("register_agent"), "{unregistered:?}");
        client.call("register_agent", json!({"name": "carol"}));
        let nobody = client.call("send_message", json!({"to": "carl", "body": "hello"}));
        assert!(nobody.failed && nobody.text.contains("carol"), "near names are told: {nobody:?}");
        let shapeless = client.call("send_message", json!({"to": "carol"}));
        assert!(shapeless.failed && shapeless.text.contains("body"), "{shapeless:?}");
        let enormous = client.call("send_message", json!({"to": "carol", "body": "x".repeat(256 * 1024 + 1)}));
        assert!(enormous.failed && enormous.text.contains("262144"), "{enormous:?}");
        assert_eq!(client.close(), Some(0), "a client that leaves is no failure");
    });
}

#[test]
fn who_has_no_business_with_the_host_is_turned_away() {
    isolated(|| {
        let stage = stage();
        let host = Host::start(&stage);
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": handshake("2025-11-25", "x")});
        // The difference from a good request, and the response's status.
        let cases: [(&str, Option<&str>, u16); 6] = [
            ("authorization", Some("Bearer of bad news"), 401),
            ("authorization", None, 401),
            ("host", Some("evil.example:7423"), 403),
            ("origin", Some("http://evil.example"), 403),
            ("origin", Some("null"), 403),
            ("x-harmless", Some("header"), 200),
        ];
        for (header, value, status) in cases {
            let mut client = HttpClient::new(host.port, Some(&host.token));
            client.header(header, value);
            let answer = client.post("/mcp", &hello.to_string());
            assert_eq!(answer.status, status, "{header}: {value:?} was answered with {answer:?}");
            assert!(status == 200 || !answer.body.is_empty(), "{header}: {value:?} was turned away without a word");
        }
        let client = HttpClient::new(host.port, Some(&host.token));
        let garbage = client.post("/mcp", "{not json");
        assert!((400..500).contains(&garbage.status), "{garbage:?}");
        let elsewhere = client.post("/elsewhere", "{}");
        assert_eq!(elsewhere.status, 404, "{elsewhere:?}");
        let open = HttpClient::new(host.port, None).get("/healthz").expect("the host still answers");
        assert_eq!(open.status, 200);
        assert!(!open.body.contains(&host.token) && !open.body.contains(&stage.data.display().to_string()), "{open:?}");
    });
}

/// An official client registers, sends itself a message under another name, waits for it, and queries its delivery.
fn converses(stage: &Stage, sdk: Sdk, asked: &str, agreed: &str, reach: Reach<'_>) {
    let told = format!("{sdk:?} asking for {asked}");
    let mut client = Official::connect(stage, sdk, asked, reach);
    assert_eq!(client.era, agreed, "{told}");

    let tools = client.order(&json!({"do": "tools"}));
    let tools = tools["tools"].as_array().unwrap_or_else(|| panic!("{told}: {tools}"));
    let mut names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, CORE, "{told}");
    assert!(tools.iter().all(|tool| tool["outputSchema"].is_object()), "{told}: every tool says what it gives");
    let instructions = client.order(&json!({"do": "instructions"}));
    assert!(instructions["instructions"].as_str().is_some_and(|text| text.contains("register_agent")), "{told}");

    let registered = client.call("register_agent", json!({"name": "alice"}));
    assert!(!registered.failed && registered.text.contains("alice"), "{told}: {registered:?}");
    let key = registered.structured["agent_key"].as_str().map(str::to_owned);
    // If neither connection nor session identifies the caller, the key does.
    let with_key = |mut arguments: Value| {
        if let Some(key) = &key {
            arguments["agent_key"] = json!(key);
        }
        arguments
    };
    stage.relay_ok(&["register", "bob"]);
    let listed = stage.relay_ok(&["agents"]);
    let typed: Vec<&str> = listed.lines().filter(|line| line.contains("command line")).collect();
    assert!(matches!(typed[..], [bob] if bob.starts_with("bob ")), "{told}: a client is no command line: {listed}");
    let sent = client.call("send_message", with_key(json!({"to": "bob", "body": "Hello, Bob."})));
    assert!(!sent.failed, "{told}: {sent:?}");
    let id = sent.structured["id"].as_str().unwrap_or_else(|| panic!("{told}: {sent:?}"));
    let read = stage.relay_ok(&["read", "--agent", "bob", "--unread", "--json"]);
    assert!(read.contains("Hello, Bob.") && read.contains("\"from\""), "{told}: {read}");
    stage.relay_ok(&["send", "alice", "Hello, Alice.", "--from", "bob", "--reply-to", id]);

    let fetched = client.call("fetch_messages", with_key(json!({"wait_seconds": 20, "acknowledge": true})));
    assert!(!fetched.failed && fetched.text.contains("Hello, Alice."), "{told}: {fetched:?}");
    let again = client.call("fetch_messages", with_key(json!({})));
    assert!(!again.text.contains("Hello, Alice."), "{told}: nothing is shown twice: {again:?}");
    let status = client.call("message_status", with_key(json!({"id": id})));
    assert!(status.text.contains("acknowledged"), "{told}: a reply acknowledges: {status:?}");

    let unknown = client.order(&json!({"do": "call", "tool": "teleport", "arguments": {}}));
    assert!(unknown["error"]["message"].as_str().is_some_and(|text| text.contains("teleport")), "{told}: {unknown}");
    let nobody = client.call("send_message", with_key(json!({"to": "alic", "body": "Hello?"})));
    assert!(nobody.failed && nobody.text.contains("alice"), "{told}: {nobody:?}");
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}
