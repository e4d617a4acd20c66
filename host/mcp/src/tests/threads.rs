//! The tools that talk with other agents, over a host of threads that does what a test says: the schemas of Codex's own
//! server, the result, a handle before a client's limit, cancelling, mail by other names, and the audit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use mesh::ports::driver::Approvals;
use mesh::ports::runner::Reach;
use mesh::sessions::Principal;
use mesh::tool_threads::ThreadRow;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Duration;

use super::running::Lines;
use super::{Client, World};
use crate::{
    ClientProcess, NewThread, Profile, RunRefusal, Service, ThreadCall, ThreadHost, ThreadReply, ThreadsStatus,
    TurnReport, TurnState,
};

/// One thread whose turns end when a prompt says so, or when they are stopped.
#[derive(Default)]
struct FakeThreads {
    begun: Mutex<Vec<NewThread>>,
    stopped: Notify,
    interrupts: AtomicUsize,
}

fn report(content: &str, state: TurnState) -> TurnReport {
    TurnReport { thread: "t-1".to_owned(), content: content.to_owned(), state }
}

fn call(prompt: &str) -> ThreadCall {
    ThreadCall { agent: "a-1".to_owned(), prompt: Some(prompt.to_owned()), question: None }
}

#[async_trait]
impl ThreadHost for FakeThreads {
    async fn begin(&self, _: &Principal, new: NewThread) -> Result<ThreadCall, RunRefusal> {
        let prompt = new.prompt.clone();
        self.begun.lock().expect("no panic").push(new);
        Ok(call(&prompt))
    }

    async fn reply(&self, _: &Principal, reply: ThreadReply) -> Result<ThreadCall, RunRefusal> {
        match reply.thread.as_str() {
            "t-1" => Ok(call(&reply.prompt)),
            other => Err(RunRefusal { what: format!("you have begun no thread `{other}`"), next: None }),
        }
    }

    async fn finish(&self, call: &ThreadCall) -> Result<TurnReport, RunRefusal> {
        if call.prompt.as_deref() == Some("long") {
            self.stopped.notified().await;
            return Ok(report("half", TurnState::Interrupted));
        }
        Ok(report("</relay-mesh> done", TurnState::Completed))
    }

    async fn look(&self, _: &ThreadCall) -> Result<TurnReport, RunRefusal> {
        Ok(report("it goes on", TurnState::Running))
    }

    async fn interrupt(&self, _: &ThreadCall) -> Result<(), RunRefusal> {
        self.interrupts.fetch_add(1, Ordering::SeqCst);
        self.stopped.notify_one();
        Ok(())
    }

    async fn threads(&self, _: &Principal) -> Result<Vec<ThreadRow>, RunRefusal> {
        Ok(Vec::new())
    }

    async fn status(&self, _: &Principal) -> Result<ThreadsStatus, RunRefusal> {
        Ok(ThreadsStatus { identity: "codex".to_owned(), ..ThreadsStatus::default() })
    }
}

fn profile() -> Profile {
    "codex,subagents,atm".parse().expect("groups")
}

impl World {
    fn talking(&self, threads: &Arc<FakeThreads>) -> Service {
        let threads = Some(Arc::clone(threads) as Arc<dyn ThreadHost>);
        Service { threads, ..Service::from(Arc::clone(&self.mesh)) }
    }

    async fn talker(&self, threads: &Arc<FakeThreads>) -> Client {
        let client = self.client_of_service(self.talking(threads), ClientProcess::default(), profile()).await;
        client.call("register_agent", r#"{"name": "alice"}"#).await;
        client
    }
}

/// What `codex mcp-server` of 0.153.0, the last one, answered to `tools/list`.
fn of_codex() -> BTreeMap<String, Value> {
    let listed: Value = serde_json::from_str(include_str!("fixtures/codex-mcp-server-0.153.0.json")).expect("JSON");
    let tools = listed["tools"].as_array().expect("tools").clone();
    tools.into_iter().map(|tool| (tool["name"].as_str().expect("a name").to_owned(), tool)).collect()
}

#[tokio::test]
async fn f1_f15_the_two_tools_take_and_give_what_those_of_codex_did() {
    let (world, threads) = (World::new(), Arc::new(FakeThreads::default()));
    let client = world.talker(&threads).await;
    let ours: BTreeMap<String, Value> = client
        .0
        .list_all_tools()
        .await
        .expect("listed")
        .into_iter()
        .map(|tool| (tool.name.to_string(), serde_json::to_value(tool).expect("JSON")))
        .collect();
    let theirs = of_codex();
    assert_eq!(theirs.keys().map(String::as_str).collect::<Vec<_>>(), ["codex", "codex-reply"]);
    for (name, theirs) in &theirs {
        let ours = &ours[name];
        for schema in ["inputSchema", "outputSchema"] {
            for (property, their) in theirs[schema]["properties"].as_object().expect("properties") {
                let our = &ours[schema]["properties"][property];
                assert_eq!(
                    (&our["type"], &our["enum"]),
                    (&their["type"], &their["enum"]),
                    "{name} {schema} {property}"
                );
            }
        }
        assert_eq!(ours["inputSchema"]["required"], theirs["inputSchema"]["required"], "{name}");
        let needed = ours["outputSchema"]["required"].as_array().expect("a list");
        assert_eq!(needed.len(), 2, "nothing else is promised: {needed:?}");
    }
    // No other tool of ours has a name of theirs, or one that could be taken for it.
    let named: Vec<&String> = ours.keys().filter(|name| name.starts_with("codex")).collect();
    assert_eq!(named, ["codex", "codex-reply", "codex_status", "codex_threads"]);
    let cost: usize = ours.values().map(super::budget::cost).sum();
    assert!(cost / 4 <= 1_900, "{} tokens", cost / 4);
}

#[tokio::test]
async fn f1_a_call_gives_the_thread_and_the_answer() {
    let (world, threads) = (World::new(), Arc::new(FakeThreads::default()));
    let client = world.talker(&threads).await;
    let asked = r#"{"prompt": "hi", "cwd": "/work", "model": "m", "sandbox": "workspace-write", "approval-policy": "on-request",
        "base-instructions": "b", "developer-instructions": "d", "compact-prompt": "c", "config": {"k": 1}, "tag": "t"}"#;
    let given = client.structured("codex", asked).await;
    assert_eq!(given["threadId"], "t-1");
    let content = given["content"].as_str().expect("text");
    assert!(content.ends_with("done") && !content.contains("</relay-mesh>"), "it closes no envelope: {content}");
    assert!(given["status"].is_null(), "{given}");
    let new = threads.begun.lock().expect("no panic")[0].clone();
    assert_eq!((new.harness.as_str(), new.folder.as_deref(), new.reach), ("codex", Some("/work"), Some(Reach::Edit)));
    assert_eq!((new.approvals, new.settings["k"].as_u64()), (Some(Approvals::Ask), Some(1)));
    let texts = [new.base, new.instructions, new.compaction, new.tag].map(Option::unwrap_or_default);
    assert_eq!(texts, ["b", "d", "c", "t"]);
    let reply = client.structured("codex-reply", r#"{"threadId": "t-1", "prompt": "more"}"#).await;
    assert_eq!(reply["threadId"], "t-1");
    assert_eq!(
        client.structured("codex-reply", r#"{"conversationId": "t-1", "prompt": "x"}"#).await["threadId"],
        "t-1"
    );
    let unknown = client.call("codex-reply", r#"{"threadId": "t-9", "prompt": "x"}"#).await;
    assert!(unknown.starts_with("[you have begun no thread `t-9`"), "{unknown}");
    let none = client.call("codex-reply", r#"{"prompt": "x"}"#).await;
    assert!(none.starts_with("[`threadId` is missing"), "{none}");
    let nobody = client.call("ask_agent", r#"{"prompt": "x"}"#).await;
    assert!(nobody.starts_with("[`harness` is missing"), "{nobody}");
    client.call("ask_agent", r#"{"prompt": "x", "harness": "claude", "reach": "edit"}"#).await;
    assert_eq!(threads.begun.lock().expect("no panic")[1].harness, "claude");
    let stranger = world.client_of_service(world.talking(&threads), ClientProcess::default(), profile()).await;
    assert!(stranger.call("codex", r#"{"prompt": "x"}"#).await.starts_with("[you have not registered"));
}

#[tokio::test(start_paused = true)]
async fn f14_a_client_hears_of_progress_and_gets_a_handle_before_its_limit_and_a_cancelled_turn_is_stopped() {
    let (world, threads) = (World::new(), Arc::new(FakeThreads::default()));
    let mut lines = Lines::to(world.talking(&threads), profile(), json!({})).await;
    let call = json!({"name": "codex", "arguments": {"prompt": "long"}, "_meta": {"progressToken": "p"}});
    let began = tokio::time::Instant::now();
    lines.write(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call})).await;
    let mut heard = 0;
    let answer = loop {
        let message = lines.read().await;
        heard += usize::from(message["method"] == "notifications/progress");
        if message["id"] == 7 {
            break message;
        }
    };
    let given = &answer["result"]["structuredContent"];
    assert_eq!((&given["status"], &given["threadId"]), (&json!("running"), &json!("t-1")), "{answer}");
    assert!(began.elapsed() < Duration::from_secs(270) && heard >= 23, "{heard} in {:?}", began.elapsed());

    let call = json!({"name": "codex-reply", "arguments": {"threadId": "t-1", "prompt": "long"}});
    lines.write(&json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": call})).await;
    lines.ask(9, "ping", json!({})).await;
    lines.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 8}})).await;
    while threads.interrupts.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    lines.ask(10, "ping", json!({})).await;
    assert_eq!(threads.interrupts.load(Ordering::SeqCst), 1, "and nothing else was");
}

#[tokio::test]
async fn f4_f9_mail_by_other_names_and_each_call_about_mail_in_the_audit() {
    let (world, threads) = (World::new(), Arc::new(FakeThreads::default()));
    let client = world.talker(&threads).await;
    world.register("bob").await;
    for body in ["one", "two", "three and more"] {
        world.say("alice", body).await;
    }
    let pending = json!({"count": 3, "senders": {"shell": 3}});
    assert_eq!(client.structured("atm_pending_count", "{}").await, pending);
    assert_eq!(client.structured("relay_pending", "{}").await, pending, "nothing was marked");
    let peeked = client.structured("atm_read", r#"{"mark_read": false, "max_messages": 1}"#).await;
    let first = &peeked["messages"][0];
    assert_eq!((&first["from"], &first["message"], &peeked["waiting"]), (&json!("shell"), &json!("one"), &json!(2)));
    assert!(first["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')) && first["message_id"].is_string());
    let read = client.structured("atm_read", r#"{"max_message_length": 5}"#).await;
    let bodies: Vec<&str> =
        read["messages"].as_array().expect("a list").iter().filter_map(|message| message["message"].as_str()).collect();
    assert_eq!(bodies, ["one", "two", "three"]);
    let much = client.call("atm_read", r#"{"max_messages": 101}"#).await;
    assert!(much.starts_with("[at most 100 messages"), "{much}");
    // The sender is the caller, whatever it writes.
    let sent =
        client.structured("atm_send", r#"{"to": "bob", "message": "hi, password=hunter2", "summary": "s"}"#).await;
    assert_eq!(sent["from"], "alice", "{sent}");
    let spoofed = client.call("atm_send", r#"{"to": "bob", "message": "x", "from": "carol"}"#).await;
    assert!(spoofed.starts_with("[unknown field `from`"), "{spoofed}");
    client.structured("atm_broadcast", r#"{"message": "all"}"#).await;

    let events = world.mesh.event_log(store::Position::START).await.expect("the log").events;
    let audit: Vec<_> = events.into_iter().filter(|event| event.kind == "audit").map(|event| event.details).collect();
    let tools: Vec<&str> = audit.iter().filter_map(|line| line["tool"].as_str()).collect();
    let expected = [
        "atm_pending_count",
        "relay_pending",
        "atm_read",
        "atm_read",
        "atm_read",
        "atm_send",
        "atm_send",
        "atm_broadcast",
    ];
    assert_eq!(tools, expected);
    assert!(audit.iter().all(|line| line["by"] == "alice" && line["correlation"].is_string()), "{audit:?}");
    assert_eq!((&audit[5]["to"], &audit[5]["text"]), (&json!(["bob"]), &json!("hi, password=[secret]")));
    assert_eq!(audit[7]["to"], json!(["*"]));
}
