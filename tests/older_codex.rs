//! What becomes of a Codex that is not the pinned one. The tools `codex` and `codex-reply` on an older Codex: the oldest that tells which prompt a turn has taken, which is
//! installed beside the pinned one, or another that `OLDER_CODEX` names by its program; and one that never tells.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::PathBuf;

use serde_json::{Value, json};
use test_support::{ModelAnswer, Program, Script, Spawning, StdioClient, isolated, wait_or_show};

#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs the test by hand says by this variable which program is tried"
)]
fn program() -> PathBuf {
    let named = std::env::var_os("OLDER_CODEX").map(PathBuf::from);
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    named.unwrap_or_else(|| root.join("tests/node_modules/codex-0.136/vendor/x86_64-unknown-linux-musl/bin/codex"))
}

fn called(client: &mut StdioClient, tool: &str, arguments: &Value) -> Value {
    client.request("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].clone()
}

#[test]
fn f1_an_older_codex_has_the_same_tools() {
    isolated(|| {
        let script = Script::new().otherwise(|news| {
            let last = news.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
            ModelAnswer::Say(format!("Said: {last}"))
        });
        let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), "codex", script);
        let link = scene.stage.programs().join("codex");
        std::fs::remove_file(&link).expect("the pinned one is only linked");
        std::os::unix::fs::symlink(program(), &link).expect("the home is writable");
        scene.ok(&["spawn", "allow", "lead", "codex"]);
        let server = scene.stage.relay(&["mcp", "--tools", "codex"]).envs(scene.environment()).by_hand();
        let mut lead = StdioClient::connected(server.start(&scene.stage.folder.join("lead.log")), "a-client");
        lead.call("register_agent", json!({"name": "lead"}));
        let first = called(&mut lead, "codex", &json!({"prompt": "The word is plum"}));
        let told = &first["structuredContent"];
        assert_eq!(told["content"], "Said: The word is plum", "{first}\n{}", scene.told());
        let reply = |prompt: &str| json!({"threadId": told["threadId"], "prompt": prompt});
        let second = called(&mut lead, "codex-reply", &reply("Which word?"));
        assert_eq!(second["structuredContent"]["content"], "Said: Which word?", "{second}\n{}", scene.told());
        println!("{}", called(&mut lead, "codex_status", &json!({}))["structuredContent"]);

        // Its program is killed: the next call says so, and the one after it goes on with the whole thread.
        let (_, program) = scene.running().expect("it runs");
        Program::new("kill").args(["-KILL", &program.to_string()]).succeed();
        wait_or_show("the end is noted", || scene.ours().is_empty().then_some(()), || scene.told());
        let dead = called(&mut lead, "codex-reply", &reply("Hello?"));
        assert_eq!(dead["isError"], true, "{dead}");
        let again = called(&mut lead, "codex-reply", &reply("Still there?"));
        assert_eq!(again["structuredContent"]["content"], "Said: Still there?", "{again}\n{}", scene.told());
        let heard = scene.model.heard().last().expect("it was asked").everything();
        assert!(heard.contains("The word is plum"), "{heard}");
        assert_eq!(lead.close(), Some(0));
        scene.nothing_is_left();
    });
}

/// The real Codex without its app server.
const WITHOUT_APP_SERVER: &str = r#"#!/bin/sh
case "$*" in *app-server*) echo "error: unrecognized subcommand 'app-server'" >&2; exit 2;; esac
exec "$(dirname "$0")/codex-itself" "$@"
"#;

/// The real Codex with an app server that says that it is an old one.
const WITH_AN_OLD_APP_SERVER: &str = r#"#!/usr/bin/env python3
import json, os, sys
if "app-server" not in sys.argv:
    itself = os.path.join(os.path.dirname(sys.argv[0]), "codex-itself")
    os.execv(itself, [itself, *sys.argv[1:]])
if any("unix:" in word for word in sys.argv):
    sys.exit("error: this one only talks over pipes")
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        print(json.dumps({"id": asked["id"], "result": {"userAgent": "relay-mesh/0.130.0 (Debian)"}}), flush=True)
"#;

#[test]
fn f1_a_codex_without_an_app_server_has_the_same_tools() {
    isolated(|| is_run_for_each_prompt(WITHOUT_APP_SERVER));
}

#[test]
fn f1_a_codex_whose_app_server_is_too_old_has_the_same_tools() {
    isolated(|| is_run_for_each_prompt(WITH_AN_OLD_APP_SERVER));
}

fn is_run_for_each_prompt(program: &str) {
    let script = Script::new().otherwise(|news| {
        let last = news.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        ModelAnswer::Say(format!("Said: {last}"))
    });
    let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), "codex", script);
    let programs = scene.stage.programs();
    std::fs::rename(programs.join("codex"), programs.join("codex-itself")).expect("the home is writable");
    scene.stage.program("codex", program);
    scene.ok(&["spawn", "allow", "lead", "codex"]);
    let server = scene.stage.relay(&["mcp", "--tools", "codex"]).envs(scene.environment()).by_hand();
    let mut lead = StdioClient::connected(server.start(&scene.stage.folder.join("lead.log")), "a-client");
    lead.call("register_agent", json!({"name": "lead"}));
    let first =
        called(&mut lead, "codex", &json!({"prompt": "The word is plum", "developer-instructions": "Be brief"}));
    let told = &first["structuredContent"];
    assert_eq!(told["content"], "Said: The word is plum", "{first}\n{}", scene.told());
    let reply = |prompt: &str| json!({"threadId": told["threadId"], "prompt": prompt});
    let second = called(&mut lead, "codex-reply", &reply("Which word?"));
    assert_eq!(second["structuredContent"]["content"], "Said: Which word?", "{second}\n{}", scene.told());
    let heard = scene.model.heard().last().expect("it was asked").everything();
    assert!(heard.contains("The word is plum") && heard.contains("Be brief"), "{heard}");
    let listed = called(&mut lead, "codex_threads", &json!({}))["structuredContent"]["threads"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed[0]["threadId"], told["threadId"], "{listed}");
    assert_eq!(lead.close(), Some(0));
    scene.nothing_is_left();
}

/// An app server that takes every prompt, ends its turn, and says of no text of its user whose prompt it is.
const TELLS_NOTHING: &str = r#"#!/usr/bin/env python3
import json, os, sys
if "--version" in sys.argv:
    print("codex-cli 9.9.9"); sys.exit()
if "app-server" not in sys.argv or any("unix:" in word for word in sys.argv):
    sys.exit("error: this one only talks over pipes")
def say(message):
    print(json.dumps(message), flush=True)
turns = 0
for line in sys.stdin:
    asked = json.loads(line)
    method, answer = asked.get("method"), {}
    if method == "initialize":
        answer = {"userAgent": "relay-mesh/9.9.9"}
    if method in ("thread/start", "thread/resume"):
        answer = {"thread": {"id": "thread-1"}}
    if method == "turn/start":
        turns += 1
        answer = {"turn": {"id": f"turn-{turns}"}}
    if method == "thread/turns/list":
        answer = {"data": []}
    if "id" in asked:
        say({"id": asked["id"], "result": answer})
    if method == "turn/start":
        open(os.path.expanduser("~/turns"), "a").write("x")
        about = {"threadId": "thread-1", "turn": {"id": f"turn-{turns}", "status": "completed"}}
        say({"method": "turn/started", "params": about})
        for item in ({"type": "userMessage", "id": "u"}, {"type": "agentMessage", "id": "a", "text": "Done."}):
            say({"method": "item/completed", "params": {"threadId": "thread-1", "item": item}})
        say({"method": "turn/completed", "params": about})
"#;

#[test]
fn a_harness_that_never_tells_what_it_was_shown_is_not_prompted_for_ever() {
    isolated(|| {
        let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), "codex", Script::new());
        std::fs::remove_file(scene.stage.programs().join("codex")).expect("the pinned one is only linked");
        scene.stage.program("codex", TELLS_NOTHING);
        scene.relay(&["spawn", "codex", "--name", "helper", "Do it"]);
        let ended = || {
            let listed = scene.ok(&["spawn", "list", "--all"]);
            listed.to_string().contains("told of none that it was shown").then_some(())
        };
        wait_or_show("it is given up", ended, || scene.told());
        let turns = std::fs::read_to_string(scene.stage.home.join("turns")).expect("it had turns");
        assert_eq!(turns, "xxx", "{}", scene.told());
        scene.nothing_is_left();
    });
}
