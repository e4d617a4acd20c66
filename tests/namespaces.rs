//! Processes of several PID namespaces share one data folder, as those of a devcontainer and of the machine itself do.
//! The namespaces are real.

use serde_json::{Value, json};
use test_support::{HttpClient, NatsServer, Program, Running, Stage, StdioClient, isolated, wait_for};

/// relay-mesh in a PID namespace of its own, which ends with the process that is started here.
fn in_container(stage: &Stage, arguments: &[&str]) -> Program {
    apart(stage, &["--pid", "--fork", "--kill-child", "--mount-proc"], arguments)
}

/// The same, where `/proc` is still that of the outer namespace.
fn in_sandbox(stage: &Stage, arguments: &[&str]) -> Program {
    apart(stage, &["--pid", "--fork", "--kill-child"], arguments)
}

fn apart(stage: &Stage, how: &[&str], arguments: &[&str]) -> Program {
    Program::new("unshare")
        .args(how)
        .arg(stage.binary())
        .args(arguments)
        .envs(stage.environment())
        .within(&stage.project)
}

/// An agent that is idle behind a client over standard input and output.
fn agent(program: Program, stage: &Stage, name: &str) -> StdioClient {
    let mut client = StdioClient::connected(program.start(&stage.folder.join(format!("{name}.log"))), "an editor");
    let joined = client.call("register_agent", json!({"name": name}));
    assert_eq!(joined.structured["name"], name, "{joined:?}");
    client
}

/// What a listing says of an agent, as `presence: evidence`.
fn seen(listing: &Listing<'_>, name: &str) -> String {
    let told: Value = serde_json::from_str(&listing.0()).expect("JSON");
    let all = told["agents"].as_array().expect("a list");
    let one = all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name} is not listed: {told}"));
    format!("{}: {}", one["presence"].as_str().unwrap_or_default(), one["evidence"].as_str().unwrap_or_default())
}

/// `relay-mesh agents --json`, run somewhere.
struct Listing<'a>(Box<dyn Fn() -> String + 'a>);

fn here(stage: &Stage) -> Listing<'_> {
    Listing(Box::new(|| stage.relay_ok(&["agents", "--json"])))
}

fn there(stage: &Stage) -> Listing<'_> {
    Listing(Box::new(|| in_container(stage, &["agents", "--json"]).succeed()))
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

#[test]
fn agents_of_two_namespaces_see_each_other_and_take_nothing_of_each_other() {
    isolated(|| see_each_other_and_take_nothing(&stage()));
}

/// The same machine and data folder, with what could be shared on a server.
#[test]
fn on_a_server_too_agents_of_two_namespaces_take_nothing_of_each_other() {
    isolated(|| {
        let server = NatsServer::start();
        let stage = stage();
        stage.configure(&format!("store = \"{}\"\n", server.url()));
        see_each_other_and_take_nothing(&stage);
        assert!(!stage.data.join("agents").exists(), "what could be shared lies on the server");
    });
}

fn see_each_other_and_take_nothing(stage: &Stage) {
    let mut alice = agent(stage.relay(&["mcp"]), stage, "alice");
    let mut bob = agent(in_container(stage, &["mcp"]), stage, "bob");
    for (mesh, name) in [(here(stage), "alice"), (here(stage), "bob"), (there(stage), "alice"), (there(stage), "bob")] {
        assert!(seen(&mesh, name).starts_with("idle: waits"), "{name}: {}", seen(&mesh, name));
    }
    // Mail goes both ways, and to nobody else who asks for the name.
    for (from, to) in [(&mut alice, "bob"), (&mut bob, "alice")] {
        let sent = from.call("send_message", json!({"to": [to], "body": format!("hello {to}")}));
        assert!(!sent.failed, "{sent:?}");
    }
    let start =
        |program: Program, log: &str| StdioClient::connected(program.start(&stage.folder.join(log)), "an editor");
    for (mut other, name) in [
        (start(in_container(stage, &["mcp"]), "c.log"), "alice"),
        (start(stage.relay(&["mcp"]), "d.log"), "bob"),
        (start(in_sandbox(stage, &["mcp"]), "e.log"), "alice"),
    ] {
        let joined = other.call("register_agent", json!({"name": name}));
        assert_ne!(joined.structured["name"], name, "{joined:?}");
        assert!(!joined.text.contains("reclaimed"), "{joined:?}");
        assert!(!other.call("fetch_messages", json!({})).text.contains("hello"), "somebody else's mail");
    }
    for (client, name) in [(&mut alice, "alice"), (&mut bob, "bob")] {
        assert!(client.call("fetch_messages", json!({})).text.contains(&format!("hello {name}")));
    }
    in_container(stage, &["gc"]).succeed();
    stage.relay_ok(&["gc"]);
    assert!(seen(&here(stage), "bob").starts_with("idle") && seen(&there(stage), "alice").starts_with("idle"));
}

#[test]
fn who_died_in_another_namespace_falls_silent_while_the_living_go_on() {
    isolated(|| {
        let stage = stage();
        stage.configure("away-after = \"12s\"\n");
        let alice = agent(stage.relay(&["mcp"]), &stage, "alice");
        let bob = agent(in_container(&stage, &["mcp"]), &stage, "bob");
        let _dave = agent(in_container(&stage, &["mcp"]), &stage, "dave");
        drop(bob);
        // Only silence shows it here, and it never counts as gone by that.
        wait_for("bob is away", || seen(&here(&stage), "bob").starts_with("away: nothing heard").then_some(()));
        assert!(seen(&here(&stage), "bob").contains("in another PID namespace"), "{}", seen(&here(&stage), "bob"));
        // It lives, so it is heard of again however late that is.
        wait_for("dave is here", || seen(&here(&stage), "dave").starts_with("idle").then_some(()));
        drop(alice);
        // A client that closes says so itself; a killed one is seen by its own side.
        wait_for("alice is gone", || seen(&here(&stage), "alice").starts_with("offline").then_some(()));
    });
}

#[test]
fn an_agent_in_a_sandbox_with_the_outer_proc_is_alive_to_itself_and_to_others() {
    isolated(|| {
        let stage = stage();
        let mut erin = agent(in_sandbox(&stage, &["mcp"]), &stage, "erin");
        let own = erin.call("list_agents", json!({}));
        assert!(own.text.contains("erin") && !own.text.contains("offline"), "{own:?}");
        assert!(seen(&here(&stage), "erin").starts_with("idle"), "{}", seen(&here(&stage), "erin"));
        assert!(seen(&there(&stage), "erin").starts_with("idle"), "{}", seen(&there(&stage), "erin"));
    });
}

#[test]
fn what_an_agent_of_another_namespace_has_reserved_is_not_edited() {
    isolated(|| {
        let stage = stage();
        let mut bob = StdioClient::connected(
            in_container(&stage, &["mcp", "--tools", "core,reservations"]).start(&stage.folder.join("bob.log")),
            "an editor",
        );
        bob.call("register_agent", json!({"name": "bob"}));
        let held = bob.call("reserve_paths", json!({"patterns": ["src/**"], "reason": "a rewrite"}));
        assert!(!held.failed, "{held:?}");
        let edit = json!({
            "session_id": "s", "cwd": stage.project, "hook_event_name": "PreToolUse", "tool_name": "Write",
            "tool_input": {"file_path": stage.project.join("src/a.rs"), "content": "x"}, "transcript_path": "",
        });
        let hook = ["hook", "claude-code", "PreToolUse", "--timeout", "60"];
        let answer = stage.relay(&hook).input(edit.to_string()).run();
        assert!(answer.stdout.contains("held by bob"), "{answer:?}");
    });
}

#[test]
fn a_server_in_another_namespace_is_used_and_not_doubled_and_not_stopped_from_outside() {
    isolated(|| {
        let stage = stage();
        let address = "127.0.0.1:7431";
        let mut server: Running =
            in_container(&stage, &["serve", "--http", address]).start(&stage.folder.join("serve.log"));
        let probe = HttpClient::new(7431, None);
        wait_for("the server answers", || probe.get("/healthz").filter(|answer| answer.status == 200));
        let status = || -> Value { serde_json::from_str(&stage.relay_ok(&["status", "--json"])).expect("JSON") };
        let running =
            wait_for("its record is there", || Some(status()).filter(|told| told["server"]["running"] == true));
        assert_eq!(running["server"]["url"], format!("http://{address}/mcp"), "{running}");
        let started = stage.run(&["up", "--json"]);
        assert!(started.stdout.contains("\"running\"") && started.stdout.contains(address), "{started:?}");
        let stopped = stage.run(&["down"]);
        assert_eq!(stopped.code, Some(1), "{stopped:?}");
        assert!(stopped.stderr.contains("in another PID namespace"), "{stopped:?}");
        assert!(probe.get("/healthz").is_some_and(|answer| answer.status == 200), "it runs still");
        let token = std::fs::read_to_string(stage.data.join("http.token")).expect("a token");
        let mut client = HttpClient::connected(7431, token.trim(), "a-client");
        assert_eq!(client.call("register_agent", json!({"name": "hank"})).structured["name"], "hank");
        server.kill();
        wait_for("its lock is free", || (status()["server"]["running"] == false).then_some(()));
        let again = stage.relay_ok(&["up", "--json"]);
        assert!(again.contains("\"started\""), "{again}");
        stage.relay_ok(&["down"]);
    });
}
