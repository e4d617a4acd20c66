//! Runs over MCP, end to end: the tools of the groups `runners` and `runs` against the real binary, how each harness is
//! told of the server, and two harnesses that call each other by it. Nothing of a run is left, whichever side goes away first.

use std::path::Path;

use serde_json::{Value, json};
use test_support::{ClaudeCode, Client, Codex, Gemini, Model, Program, Script, Stage, StdioClient, isolated, wait_for};

/// Says what Claude Code says; the task tells it what to do.
const CLAUDE: &str = r#"#!/bin/sh
case "$*" in *--version*) echo '2.1.329 (Claude Code)'; exit 0;; *auth*) echo '{"loggedIn":true}'; exit 0;; esac
task=$(cat)
echo '{"type":"system","subtype":"init","session_id":"5e551011-0000-4000-8000-000000000001","cwd":"/","tools":[],"mcp_servers":[],"model":"m","permissionMode":"default"}'
answer=null
case "$task" in
    WAIT*) setsid sleep 300 & sleep 300 ;;
    *Review*) answer='{"findings":[]}' ;;
esac
printf '{"type":"result","subtype":"success","is_error":false,"result":"did %s","structured_output":%s,"session_id":"5e551011-0000-4000-8000-000000000001","num_turns":1,"duration_ms":1,"duration_api_ms":1,"total_cost_usd":0.001,"usage":{"input_tokens":3,"output_tokens":2,"cache_read_input_tokens":1,"cache_creation_input_tokens":0},"modelUsage":{"m":{"inputTokens":3,"outputTokens":2,"cacheReadInputTokens":1,"cacheCreationInputTokens":0,"costUSD":0.001,"contextWindow":1}},"permission_denials":[],"uuid":"u"}\n' "$(printf '%s' "$task" | head -n 1)" "$answer"
"#;

/// A stage with the script as `claude`, and what an agent named `caller` may.
fn stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.program("claude", CLAUDE);
    stage
}

fn client(stage: &Stage) -> StdioClient {
    let server = stage.relay(&["mcp", "--tools", "runs,runners"]).by_hand().start(&stage.folder.join("mcp.log"));
    StdioClient::connected(server, "a-client")
}

/// A client that has joined as `caller`, which may run Claude Code.
fn caller(stage: &Stage) -> StdioClient {
    stage.relay_ok(&["runs", "allow", "caller", "claude", "--reach", "edit"]);
    let mut client = client(stage);
    client.call("register_agent", json!({"name": "caller"}));
    client
}

/// The processes that carry the mark of a run of this stage.
fn of_runs(stage: &Stage) -> usize {
    let dir = format!("RELAY_DIR={}", stage.data.display()).into_bytes();
    let marks = |process: std::fs::DirEntry| {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let has = |what: &dyn Fn(&[u8]) -> bool| environment.split(|byte| *byte == 0).any(what);
        has(&|line| line.starts_with(b"RELAY_RUN=")) && has(&|line| line == dir)
    };
    std::fs::read_dir("/proc").expect("a list").flatten().map(marks).filter(|is| *is).count()
}

fn nothing_is_left(stage: &Stage) {
    wait_for("nothing of a run is left", || (of_runs(stage) == 0).then_some(()));
}

fn called(client: &mut StdioClient, tool: &str, arguments: Value) -> Value {
    client.request("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].clone()
}

#[test]
fn b7_a_runner_gives_the_whole_result_over_standard_input_and_output() {
    let stage = stage();
    let mut client = caller(&stage);
    let result = called(&mut client, "claude_run", json!({"prompt": "hello", "cwd": stage.project_path()}));
    let whole = &result["structuredContent"];
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run-result.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(schema).expect("a schema")).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let wrong: Vec<String> = schema.iter_errors(whole).map(|error| error.to_string()).collect();
    assert_eq!(wrong, [""; 0], "{result}");
    assert_eq!((&whole["agent"], &whole["mode"], &whole["ok"]), (&json!("claude"), &json!("headless"), &json!(true)));
    assert_eq!((&whole["structured"]["response"], &whole["by"]), (&json!("did hello"), &json!("caller")));
    assert!(whole["stdout"].as_str().is_some_and(|text| text.contains("\"type\":\"result\"")), "{whole}");
    let text = called(&mut client, "claude_run", json!({"prompt": "hi", "output_format": "text"}));
    assert_eq!(text["content"][0]["text"], "did hi");
    let late = called(&mut client, "claude_run", json!({"prompt": "WAIT", "timeout_s": 1}));
    assert_eq!(late["structuredContent"]["ended"], "time", "{late}");
    nothing_is_left(&stage);
    assert_eq!(client.close(), Some(0));
}

#[test]
fn only_an_agent_that_the_user_has_allowed_starts_a_run() {
    let stage = stage();
    let mut client = client(&stage);
    let told = |result: &Value| result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let nameless = called(&mut client, "claude_run", json!({"prompt": "hello"}));
    assert_eq!(nameless["isError"], true);
    assert!(told(&nameless).contains("has no agent") && told(&nameless).contains("register_agent"), "{nameless}");
    client.call("register_agent", json!({"name": "caller"}));
    let refused = called(&mut client, "claude_run", json!({"prompt": "hello"}));
    assert!(told(&refused).contains("relay-mesh runs allow caller claude-code"), "{refused}");
    drop(client);
    let mut client = caller(&stage);
    let far = called(&mut client, "start_run", json!({"harness": "claude", "task": "x", "reach": "work"}));
    assert!(told(&far).contains("with the reach `edit` at most"), "{far}");
    let other = called(&mut client, "codex_exec", json!({"task": "x"}));
    assert!(told(&other).contains("has not allowed `caller"), "{other}");
    // What another has started is unknown to it.
    let mine = stage.run(&["run", "claude", "hello", "--json"]);
    let mine: Value = serde_json::from_str(&mine.stdout).expect("JSON");
    let hidden = called(&mut client, "run_result", json!({"run": mine["run"]}));
    assert!(told(&hidden).contains("no run has the id"), "{hidden}");
    assert_eq!(client.close(), Some(0));
}

#[test]
fn a_run_ends_with_its_call_its_client_and_its_server() {
    let stage = stage();
    for ends in ["cancelled", "closed", "killed"] {
        let mut client = caller(&stage);
        let call = json!({"name": "claude_run", "arguments": {"prompt": "WAIT"}});
        client.write(&json!({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": call}).to_string());
        wait_for("the run has begun", || (of_runs(&stage) >= 3).then_some(()));
        match ends {
            "cancelled" => {
                let cancelled = json!({"method": "notifications/cancelled", "params": {"requestId": 99}});
                let mut message = cancelled;
                message["jsonrpc"] = json!("2.0");
                client.write(&message.to_string());
            }
            "closed" => assert_eq!(client.close(), Some(0)),
            _ => {
                Program::new("kill").args(["-KILL", &client.server.child.id().to_string()]).succeed();
                client.server.ended();
            }
        }
        nothing_is_left(&stage);
        let ended = wait_for("it has a result", || {
            let listed: Value = serde_json::from_str(&stage.relay_ok(&["runs", "list", "--json"])).expect("JSON");
            listed["runs"][0]["ended"].as_str().map(str::to_owned)
        });
        assert_eq!(ended, "stopped", "{ends}");
    }
}

#[test]
fn a_run_that_was_started_reports_by_mail_and_outlives_its_server() {
    let stage = stage();
    let mut client = caller(&stage);
    let begun = called(&mut client, "start_run", json!({"harness": "claude", "task": "hello"}));
    let id = begun["structuredContent"]["run"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    let mail = client.call("fetch_messages", json!({"wait_seconds": 60}));
    assert!(format!("{mail:?}").contains("did hello"), "the result comes by mail: {mail:?}");
    let result = called(&mut client, "run_result", json!({"run": id, "wait_seconds": 60}));
    let result = &result["structuredContent"]["result"];
    assert_eq!(
        (&result["ok"], &result["response"], &result["stdout"]),
        (&json!(true), &json!("did hello"), &Value::Null)
    );
    let begun = called(&mut client, "start_run", json!({"harness": "claude", "task": "WAIT"}));
    let id = begun["structuredContent"]["run"].as_str().expect("an id").to_owned();
    wait_for("it runs", || (of_runs(&stage) >= 3).then_some(()));
    let stopped = called(&mut client, "stop_run", json!({"run": id}));
    assert_eq!(stopped["structuredContent"]["result"]["ended"], "stopped", "{stopped}");
    nothing_is_left(&stage);
    called(&mut client, "start_run", json!({"harness": "claude", "task": "WAIT"}));
    wait_for("it runs", || (of_runs(&stage) >= 3).then_some(()));
    assert_eq!(client.close(), Some(0));
    assert!(of_runs(&stage) >= 3, "it goes on without the client");
    stage.relay_ok(&["runs", "stop", "last"]);
    nothing_is_left(&stage);
}

#[test]
fn changes_are_reviewed_over_mcp() {
    let stage = stage();
    std::fs::write(stage.project.join("new.py"), "x = 1\n").expect("written");
    let mut client = caller(&stage);
    let review = json!({"cwd": stage.project_path(), "by": "claude", "wait_seconds": 60});
    let begun = called(&mut client, "review_changes", review);
    let id = begun["structuredContent"]["run"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    let ended = wait_for("it has ended", || {
        let state = called(&mut client, "run_result", json!({"run": id, "wait_seconds": 20}));
        (state["structuredContent"]["state"] == "ended").then_some(state)
    });
    let result = &ended["structuredContent"]["result"];
    assert_eq!((&result["ok"], &result["findings"]), (&json!(true), &json!([])), "{ended}");
    assert_eq!(result["files"][0]["path"], "new.py");
    let mail = client.call("fetch_messages", json!({"wait_seconds": 60}));
    assert!(format!("{mail:?}").contains("0 findings stand"), "{mail:?}");
    assert_eq!(client.close(), Some(0));
}

/// `make demo-codex-calls-claude`
#[test]
fn b9_codex_calls_claude() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        println!("A user lets the agent `coder` run Claude Code, and sets Codex up with the tools of the runners.");
        print!("{}", stage.relay_ok(&["runs", "allow", "coder", "claude"]));
        let install = ["install", "codex", "--project", &stage.project_path(), "--tools", "runners", "--yes"];
        stage.relay_ok(&install);
        let model = Model::start(
            Script::new()
                .call("Ask Claude", &Codex::tool("register_agent"), json!({"name": "coder"}))
                .call("coder", &Codex::tool("claude_run"), json!({"prompt": "What is this project called?"}))
                .say("What is this project called?", "It is called `A project`.")
                .say("It is called `A project`.", "Claude says: it is called `A project`."),
        );
        let claude = ClaudeCode::new(&stage, &model);
        stage.client("claude", &ClaudeCode::program_path(), claude.environment(), "");
        println!("Codex is asked to ask Claude. Its model is scripted, everything else is real.");
        let answer = Client::Codex.ask(&stage, &model, "Ask Claude what this project is called.", None);
        println!("Codex: {}", answer.result);
        let told = || model.heard().last().map(test_support::Heard::news);
        assert_eq!(answer.result, "Claude says: it is called `A project`.", "{:?}", told());
        let listed: Value = serde_json::from_str(&stage.relay_ok(&["runs", "list", "--json"])).expect("JSON");
        println!("The run of Claude Code: {}", listed["runs"][0]);
        assert_eq!((&listed["runs"][0]["ended"], &listed["runs"][0]["by"]), (&json!("answered"), &json!("coder")));
        nothing_is_left(&stage);
        println!("No process of it is left.");
    });
}

/// `make demo-claude-calls-codex`
#[test]
fn b9_claude_calls_codex() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        println!("A user lets the agent `coder` run Codex, and sets Claude Code up with the tools of the runners.");
        print!("{}", stage.relay_ok(&["runs", "allow", "coder", "codex"]));
        let install = ["install", "claude-code", "--project", &stage.project_path(), "--tools", "runners", "--yes"];
        stage.relay_ok(&install);
        let tool = |name| Client::ClaudeCode.tool(name);
        let model = Model::start(
            Script::new()
                .call("Ask Codex", &tool("register_agent"), json!({"name": "coder"}))
                .call("coder", &tool("codex_exec"), json!({"task": "What is this project called?"}))
                .say("What is this project called?", "It is called `A project`.")
                .say("It is called `A project`.", "Codex says: it is called `A project`."),
        );
        let codex = Codex::new(&stage, &model);
        stage.client("codex", &stage.programs().join("codex"), codex.environment(), "");
        println!("Claude Code is asked to ask Codex. Its model is scripted, everything else is real.");
        let answer = Client::ClaudeCode.ask(&stage, &model, "Ask Codex what this project is called.", None);
        println!("Claude Code: {}", answer.result);
        let told = || model.heard().last().map(test_support::Heard::news);
        assert_eq!(answer.result, "Codex says: it is called `A project`.", "{:?}", told());
        let listed: Value = serde_json::from_str(&stage.relay_ok(&["runs", "list", "--json"])).expect("JSON");
        println!("The run of Codex: {}", listed["runs"][0]);
        assert_eq!((&listed["runs"][0]["ended"], &listed["runs"][0]["by"]), (&json!("answered"), &json!("coder")));
        nothing_is_left(&stage);
        println!("No process of it is left.");
    });
}

/// The text of a fenced block of docs/runs.md that follows this line.
fn block_after(line: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runs.md");
    let docs = std::fs::read_to_string(docs).expect("the page");
    let rest = docs.split_once(line).unwrap_or_else(|| panic!("docs/runs.md has no line `{line}`")).1;
    let block = rest.split("```").nth(1).expect("a block");
    block.split_once('\n').expect("lines").1.to_owned()
}

#[test]
fn b8_each_harness_is_told_of_the_server_as_the_page_says() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        let model = Model::start(
            Script::new()
                .call("Who is here?", &Gemini::tool("list_agents"), json!({}))
                .say("nobody", "Nobody is here."),
        );
        let (claude, codex, gemini) =
            (ClaudeCode::new(&stage, &model), Codex::new(&stage, &model), Gemini::new(&stage, &model));
        std::os::unix::fs::symlink(ClaudeCode::program_path(), stage.programs().join("claude")).expect("a link");
        let shell = |line: &str, environment: &[(String, String)]| {
            Program::new("sh").args(["-ec", line]).envs(environment.to_vec()).within(&stage.project).succeed()
        };
        shell(&block_after("For Codex:"), codex.environment());
        let listed = shell("codex mcp list", codex.environment());
        assert!(listed.contains("relay-mesh") && listed.contains("core,runners"), "{listed}");
        shell(&block_after("For Claude Code:"), claude.environment());
        let listed = shell("claude mcp list", claude.environment());
        assert!(listed.contains("relay-mesh") && listed.contains("Connected"), "{listed}");
        // Gemini CLI reads a file.
        let ours: Value = serde_json::from_str(&block_after("For Gemini CLI,")).expect("JSON");
        let file = stage.home.join(".gemini/settings.json");
        let mut settings: Value = serde_json::from_slice(&std::fs::read(&file).expect("settings")).expect("JSON");
        settings["mcpServers"] = ours["mcpServers"].clone();
        std::fs::write(&file, settings.to_string()).expect("written");
        let answer = gemini.ask("Who is here?", &[]);
        let tools = model
            .heard()
            .iter()
            .any(|heard| heard.everything().contains("who is here") || heard.body.to_string().contains("codex_exec"));
        assert!(tools, "its model is offered the runners: {:?}", answer.outcome);
    });
}
