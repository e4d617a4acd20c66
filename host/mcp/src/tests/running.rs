//! Runs and reviews as tools, over a host of runs that does what a test says: schemas to the letter, progress, handles,
//! cancelling, tasks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use mesh::ports::runner::Reach;
use mesh::sessions::Principal;
use serde_json::{Value, json};
use tokio::time::Duration;

use super::{Client, World};
use crate::{ClientProcess, NewReview, NewRun, Profile, RunHost, RunKind, RunProgress, RunRefusal, Service, Tie};

/// Runs by id: what was asked for, and the result once there is one.
#[derive(Default)]
struct FakeRuns {
    runs: Mutex<HashMap<String, (NewRun, Option<Value>)>>,
}

impl FakeRuns {
    fn end(&self, id: &str, result: Value) {
        self.runs.lock().expect("no panic").get_mut(id).expect("begun").1 = Some(result);
    }

    fn run(&self, id: &str) -> NewRun {
        self.runs.lock().expect("no panic")[id].0.clone()
    }

    fn count(&self) -> usize {
        self.runs.lock().expect("no panic").len()
    }

    async fn begun(&self, count: usize) {
        while self.count() < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn ended(&self, id: &str) -> Value {
        loop {
            if let Some(result) = self.runs.lock().expect("no panic")[id].1.clone() {
                return result;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[async_trait]
impl RunHost for FakeRuns {
    async fn start(&self, caller: &Principal, run: NewRun) -> Result<String, RunRefusal> {
        if caller.agent().is_none() || run.harness == "nothing" {
            let next = Some("the user can run `relay-mesh runs allow`".to_owned());
            return Err(RunRefusal { what: "the user has not allowed it".to_owned(), next });
        }
        let mut runs = self.runs.lock().expect("no panic");
        let id = format!("run-{}", runs.len() + 1);
        let result = (run.task == "quick").then(|| result(&id, "answered", "done"));
        runs.insert(id.clone(), (run, result));
        Ok(id)
    }

    async fn review(&self, _: &Principal, review: NewReview) -> Result<String, RunRefusal> {
        let task = format!("{:?} by {:?}", review.subject, review.by);
        let run = NewRun { task, ..NewRun::default() };
        self.runs.lock().expect("no panic").insert("review-1".to_owned(), (run, None));
        Ok("review-1".to_owned())
    }

    async fn look(&self, _: &Principal, id: &str) -> Result<RunProgress, RunRefusal> {
        let runs = self.runs.lock().expect("no panic");
        let Some((_, result)) = runs.get(id) else {
            return Err(RunRefusal { what: format!("no run has the id `{id}`"), next: None });
        };
        let (doing, started) = ("reading".to_owned(), "2026-11-23T00:00:00Z".to_owned());
        Ok(RunProgress { id: id.to_owned(), kind: RunKind::Run, events: 3, doing, started, result: result.clone() })
    }

    async fn stop(&self, _: &Principal, id: &str) -> Result<(), RunRefusal> {
        self.end(id, result(id, "stopped", ""));
        Ok(())
    }
}

fn result(id: &str, ended: &str, response: &str) -> Value {
    json!({
        "run": id, "ok": ended == "answered", "ended": ended, "stdout": "raw", "why": null,
        "structured": {"response": response, "events": [{"event": "said", "text": response}]},
        "artifacts": {"files_written": ["a.rs"], "files_deleted": [], "git_diff": "+x\n"},
        "usage": {"input_tokens": 1}
    })
}

fn both() -> Profile {
    "runs,runners".parse().expect("groups")
}

impl World {
    async fn runner(&self, runs: &Arc<FakeRuns>, name: &str) -> Client {
        let service = Service {
            mesh: Arc::clone(&self.mesh),
            runs: Some(Arc::clone(runs) as Arc<dyn RunHost>),
            spawns: None,
            threads: None,
        };
        let client = self.client_of_service(service, ClientProcess::default(), both()).await;
        client.call("register_agent", &format!(r#"{{"name": "{name}"}}"#)).await;
        client
    }
}

#[tokio::test]
async fn b7_the_runners_have_the_schemas_of_the_specification() {
    let (world, runs) = (World::new(), Arc::new(FakeRuns::default()));
    let client = world.runner(&runs, "alice").await;
    let tools = client.0.list_all_tools().await.expect("listed");
    let schema = |name: &str| {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap_or_else(|| panic!("no {name}"));
        Value::Object((*tool.input_schema).clone())
    };
    let text = json!({"type": "string"});
    let timeout = json!({"type": "integer", "default": 120});
    let format = json!({"type": "string", "enum": ["json", "text"], "default": "json"});
    let flag = json!({"type": "boolean", "default": false});
    for (name, properties, required) in [
        ("claude_run", json!({"prompt": text, "cwd": text, "output_format": format, "timeout_s": timeout}), "prompt"),
        ("codex_exec", json!({"task": text, "cwd": text, "json_events": flag, "timeout_s": timeout}), "task"),
        ("gemini_run", json!({"prompt": text, "cwd": text, "timeout_s": timeout}), "prompt"),
    ] {
        let expected = json!({"type": "object", "properties": properties, "required": [required]});
        assert_eq!(schema(name), expected, "{name}");
    }
    for name in ["start_run", "run_result", "stop_run", "review_changes"] {
        schema(name);
    }
    let cost: usize = tools.iter().map(|tool| super::budget::cost(&serde_json::to_value(tool).expect("JSON"))).sum();
    assert!(cost / 4 <= 1_750, "{} tokens", cost / 4);
}

#[tokio::test]
async fn a_runner_gives_the_whole_result_and_never_a_handle() {
    let (world, runs) = (World::new(), Arc::new(FakeRuns::default()));
    let client = world.runner(&runs, "alice").await;
    let whole = client.structured("claude_run", r#"{"prompt": "quick", "cwd": "/work"}"#).await;
    assert_eq!(whole, result("run-1", "answered", "done"));
    let asked = runs.run("run-1");
    assert_eq!((asked.harness.as_str(), asked.folder.as_deref()), ("claude-code", Some("/work")));
    assert_eq!((asked.timeout, asked.tie, asked.reach), (Some(Duration::from_secs(120)), Tie::Server, Reach::Look));
    assert_eq!(client.call("claude_run", r#"{"prompt": "quick", "output_format": "text"}"#).await, "done");
    let silent = client.structured("codex_exec", r#"{"task": "quick"}"#).await;
    assert_eq!((&silent["structured"]["events"], &silent["stdout"]), (&json!([]), &json!("raw")));
    let loud = client.structured("codex_exec", r#"{"task": "quick", "json_events": true, "timeout_s": 5}"#).await;
    assert_eq!(loud["structured"]["events"].as_array().map(Vec::len), Some(1));
    assert_eq!(runs.run("run-4").timeout, Some(Duration::from_secs(5)));
    assert_eq!(client.structured("gemini_run", r#"{"prompt": "quick"}"#).await["ok"], true);
    let zero = client.call("gemini_run", r#"{"prompt": "quick", "timeout_s": 0}"#).await;
    assert!(zero.starts_with("[`timeout_s` is 0"), "{zero}");
    let huge = client.call("claude_run", r#"{"prompt": "quick", "timeout_s": 18446744073709551615}"#).await;
    assert!(huge.starts_with("[`timeout_s` is more than 604800"), "{huge}");
    let typo = client.call("gemini_run", r#"{"task": "quick"}"#).await;
    assert!(typo.contains("It takes") && typo.contains("prompt"), "{typo}");
}

#[tokio::test]
async fn a_handle_comes_at_once_and_the_result_when_it_is_there() {
    let (world, runs) = (World::new(), Arc::new(FakeRuns::default()));
    let client = world.runner(&runs, "alice").await;
    let begun = client.structured("start_run", r#"{"harness": "codex", "task": "long", "reach": "edit"}"#).await;
    assert_eq!((&begun["run"], &begun["state"]), (&json!("run-1"), &json!("running")));
    assert_eq!((runs.run("run-1").tie, runs.run("run-1").reach), (Tie::Free, Reach::Edit));
    let waits = client.structured("run_result", r#"{"run": "run-1"}"#).await;
    assert_eq!((&waits["state"], &waits["doing"]), (&json!("running"), &json!("reading")));
    runs.end("run-1", result("run-1", "answered", "done"));
    let short = client.structured("run_result", r#"{"run": "run-1", "wait_seconds": 5}"#).await;
    let short = &short["result"];
    assert_eq!(
        (&short["response"], &short["git_diff"], &short["stdout"]),
        (&json!("done"), &json!("+x\n"), &Value::Null)
    );
    let whole = client.structured("run_result", r#"{"run": "run-1", "whole": true}"#).await;
    assert_eq!(whole["result"]["stdout"], "raw");
    let unknown = client.call("run_result", r#"{"run": "run-9"}"#).await;
    assert!(unknown.starts_with("[no run has the id `run-9`"), "{unknown}");
    let review = client.structured("review_changes", r#"{"base": "main", "by": "codex"}"#).await;
    assert_eq!(
        (&review["run"], runs.run("review-1").task),
        (&json!("review-1"), r#"Base("main") by ["codex"]"#.to_owned())
    );
    let two = client.call("review_changes", r#"{"base": "main", "commit": "HEAD"}"#).await;
    assert!(two.contains("exclude each other"), "{two}");
    let stopped = client.structured("stop_run", r#"{"run": "review-1"}"#).await;
    assert_eq!(stopped["result"]["ended"], "stopped");
}

#[tokio::test]
async fn a_caller_without_an_agent_or_a_permission_starts_nothing() {
    let (world, runs) = (World::new(), Arc::new(FakeRuns::default()));
    let client = world.runner(&runs, "alice").await;
    let refused = client.call("start_run", r#"{"harness": "nothing", "task": "x"}"#).await;
    assert_eq!(refused, "[the user has not allowed it. The user can run `relay-mesh runs allow`.]");
    let service = Service {
        mesh: Arc::clone(&world.mesh),
        runs: Some(Arc::clone(&runs) as Arc<dyn RunHost>),
        spawns: None,
        threads: None,
    };
    let stranger = world.client_of_service(service, ClientProcess::default(), both()).await;
    let refused = stranger.call("start_run", r#"{"harness": "codex", "task": "x"}"#).await;
    assert!(refused.starts_with("[you have not registered"), "{refused}");
    assert_eq!(runs.count(), 0);
    let without = world.client_with("c", ClientProcess::default(), both()).await;
    let refused = without.call("claude_run", r#"{"prompt": "x"}"#).await;
    assert!(refused.starts_with("[this server starts no runs"), "{refused}");
}

/// One line to the server and what it says until an answer or a notification has this text.
pub(super) struct Lines(
    tokio::io::BufReader<tokio::io::ReadHalf<tokio::io::DuplexStream>>,
    tokio::io::WriteHalf<tokio::io::DuplexStream>,
);

impl Lines {
    /// A client of a service that has joined as `alice`.
    pub(super) async fn to(service: Service, profile: Profile, capabilities: Value) -> Lines {
        let (near, far) = tokio::io::duplex(super::PIPE);
        let stop = tokio_util::sync::CancellationToken::new();
        let serving = crate::serve_on(service, ClientProcess::default(), profile, tokio::io::split(far), stop);
        tokio::spawn(serving);
        let (read, write) = tokio::io::split(near);
        let mut lines = Lines(tokio::io::BufReader::new(read), write);
        let client = json!({"name": "lines", "version": "1"});
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client});
        lines.ask(1, "initialize", hello).await;
        lines.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        lines.ask(2, "tools/call", json!({"name": "register_agent", "arguments": {"name": "alice"}})).await;
        lines
    }

    pub(super) async fn write(&mut self, message: &Value) {
        use tokio::io::AsyncWriteExt as _;
        self.1.write_all(format!("{message}\n").as_bytes()).await.expect("the server reads");
    }

    pub(super) async fn read(&mut self) -> Value {
        use tokio::io::AsyncBufReadExt as _;
        let mut line = String::new();
        self.0.read_line(&mut line).await.expect("the server writes");
        serde_json::from_str(&line).expect("JSON")
    }

    pub(super) async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let answer = self.read().await;
            if answer["id"] == json!(id) {
                return answer;
            }
        }
    }
}

impl World {
    async fn lines(&self, runs: &Arc<FakeRuns>, capabilities: Value) -> Lines {
        let service = Service {
            mesh: Arc::clone(&self.mesh),
            runs: Some(Arc::clone(runs) as Arc<dyn RunHost>),
            spawns: None,
            threads: None,
        };
        Lines::to(service, both(), capabilities).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_hears_every_ten_seconds_and_gets_a_handle_before_its_limit() {
    let (world, runs) = (World::new(), Arc::new(FakeRuns::default()));
    let mut lines = world.lines(&runs, json!({})).await;
    let arguments = json!({"harness": "codex", "task": "long", "wait_seconds": 9_999});
    let call = json!({"name": "start_run", "arguments": arguments, "_meta": {"progressToken": "p"}});
    let began = tokio::time::Instant::now();
    lines.write(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call})).await;
    let mut heard = 0;
    let answer = loop {
        let message = lines.read().await;
        if message["method"] == "notifications/progress" {
            heard += 1;
            assert_eq!(message["params"]["message"], "run run-1: 3 events, reading");
        }
        if message["id"] == 7 {
            break message;
        }
    };
    assert_eq!(answer["result"]["structuredContent"]["state"], "running");
    assert!(began.elapsed() < Duration::from_secs(270), "Codex would have cancelled: {:?}", began.elapsed());
    assert!((23..=24).contains(&heard), "one every 10 s: {heard}");
    // A client that hears of no progress may have the usual limit of 60 s.
    let began = tokio::time::Instant::now();
    let arguments = json!({"run": "run-1", "wait_seconds": 9_999});
    lines.ask(8, "tools/call", json!({"name": "run_result", "arguments": arguments})).await;
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_cancelled_call_ends_its_run_and_a_client_that_leaves_too() {
    let (world, runs) = (World::new(), Arc::new(FakeRuns::default()));
    let mut lines = world.lines(&runs, json!({})).await;
    let call = |task: &str, tool: &str, key: &str| json!({"name": tool, "arguments": {key: task}});
    let run = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call("long", "codex_exec", "task")});
    lines.write(&run).await;
    runs.begun(1).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    lines.write(&cancelled).await;
    assert_eq!(runs.ended("run-1").await["ended"], "stopped");
    let run =
        json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": call("long", "claude_run", "prompt")});
    lines.write(&run).await;
    runs.begun(2).await;
    drop(lines);
    assert_eq!(runs.ended("run-2").await["ended"], "stopped");
}

#[tokio::test]
async fn a_client_that_declares_tasks_gets_one() {
    let (world, runs) = (World::new(), Arc::new(FakeRuns::default()));
    let mut lines = world.lines(&runs, json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})).await;
    let call = json!({"name": "claude_run", "arguments": {"prompt": "long"}});
    let begun = lines.ask(3, "tools/call", call.clone()).await;
    assert_eq!(
        (&begun["result"]["taskId"], &begun["result"]["status"]),
        (&json!("run-1"), &json!("working")),
        "{begun}"
    );
    let get = |id: &str| json!({"taskId": id});
    assert_eq!(lines.ask(4, "tasks/get", get("run-1")).await["result"]["status"], "working");
    runs.end("run-1", result("run-1", "answered", "done"));
    let done = lines.ask(5, "tasks/get", get("run-1")).await;
    assert_eq!(done["result"]["status"], "completed");
    assert_eq!(done["result"]["result"]["structuredContent"], result("run-1", "answered", "done"));
    lines.ask(6, "tools/call", call).await;
    lines.ask(7, "tasks/cancel", get("run-2")).await;
    assert_eq!(lines.ask(8, "tasks/get", get("run-2")).await["result"]["status"], "cancelled");
    assert!(lines.ask(9, "tasks/get", get("run-9")).await["error"]["message"].is_string());
    // One that does not declare them waits for the result itself.
    let mut plain = world.lines(&runs, json!({})).await;
    let whole = plain.ask(3, "tools/call", json!({"name": "claude_run", "arguments": {"prompt": "quick"}})).await;
    assert_eq!(whole["result"]["structuredContent"]["ok"], true, "{whole}");
}
