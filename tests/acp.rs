//! `relay-mesh spawn NAME --acp COMMAND`: an agent of any program that speaks the Agent Client Protocol, here the real
//! OpenCode, once its user has allowed that command line.

use serde_json::{Value, json};
use test_support::{Script, Spawning, isolated, send_with, unread, wait_or_show};

#[test]
fn any_acp_agent_is_driven_once_its_user_has_allowed_its_command_line() {
    isolated(|| {
        let script = Script::new().say("Say hello", "Hello.").say("Is the door shut", "It is shut.");
        let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), "opencode", script);
        let program = scene.stage.programs().join("opencode").display().to_string();
        let spawn = ["spawn", "helper", "--acp", "opencode acp", "Say hello", "--reach", "unguarded"];
        let refused = scene.relay(&spawn);
        assert_eq!(refused.code, Some(4), "{refused:?}");
        assert!(refused.stderr.contains(&format!("you have not allowed `{program} acp`")), "{refused:?}");
        assert!(refused.stderr.contains("relay-mesh spawn acp allow 'opencode acp'"), "{refused:?}");

        // Nobody but the user allows it or names it: not a harness, not a run, not a driven agent.
        let allow = ["spawn", "acp", "allow", "opencode acp"];
        let (thread, id) = ("01a21262-0000-7000-8000-000000000001", "01JD8Z3K5V0000000000000000");
        for (mark, value) in [("CODEX_THREAD_ID", thread), ("RELAY_RUN", id), ("RELAY_SPAWN", id)] {
            for words in [&allow[..], &spawn[..]] {
                let below = scene.stage.relay(words).envs(scene.environment()).env(mark, value).run();
                assert!(below.code == Some(4) && below.stderr.contains("belongs to an agent"), "{mark}: {below:?}");
            }
        }
        let variables =
            ["OPENCODE_CONFIG", "OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_MODELS_PATH"];
        let named = variables.iter().flat_map(|name| ["--env", name]).collect::<Vec<_>>();
        let allowed = scene.ok(&[&allow[..], &named].concat());
        assert_eq!((&allowed["command"], &allowed["environment"]), (&json!([program, "acp"]), &json!(variables)));

        // It is allowed as a whole, and promises no guard.
        let other = scene.relay(&["spawn", "helper", "--acp", "opencode acp --print-logs", "--reach", "unguarded"]);
        assert!(other.code == Some(4) && other.stderr.contains("acp --print-logs`"), "{other:?}");
        let guarded = scene.relay(&["spawn", "helper", "--acp", "opencode acp"]);
        assert!(guarded.code == Some(1) && guarded.stderr.contains("say `--reach unguarded`"), "{guarded:?}");
        let nameless = scene.relay(&["spawn", "acp", "Say hello", "--reach", "unguarded"]);
        assert_eq!(nameless.code, Some(2), "{nameless:?}");

        let spawned = scene.ok(&[&spawn[..], &["--wait"]].concat());
        assert_eq!(spawned["answer"], "Hello.", "{spawned}");
        scene.stage.relay_ok(&["register", "alice"]);
        let id = send_with(&scene.stage, "helper", "Is the door shut?", &["--from", "alice"]);
        let replied = || unread(&scene.stage, "alice").into_iter().find(|mail| mail.contains("It is shut."));
        wait_or_show("its final words come back", replied, || scene.told());
        // The receipt comes after the reply.
        let acknowledged = || (scene.status(&id) == "acknowledged").then_some(());
        wait_or_show("the reply acknowledges", acknowledged, || scene.told());
        let listed: Value = scene.ok(&["spawn", "list"]);
        assert_eq!(listed["agents"][0]["harness"], "acp", "{listed}");
        assert_eq!(scene.relay(&["dismiss", "helper"]).code, Some(0));
        scene.nothing_is_left();

        assert_eq!(scene.relay(&["spawn", "acp", "disallow", "opencode acp"]).code, Some(0));
        assert_eq!(scene.relay(&spawn).code, Some(4), "it is taken back");
    });
}

/// An agent that does not survive a prompt.
const DYING: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "session/prompt":
        sys.exit(1)
    results = {
        "initialize": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}},
        "session/new": {"sessionId": "s1"},
        "session/load": {},
    }
    answer = {"jsonrpc": "2.0", "id": asked.get("id")}
    if asked.get("method") in results:
        answer["result"] = results[asked["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
"#;

#[test]
fn an_agent_whose_program_ends_at_each_prompt_is_given_up_and_its_mail_waits() {
    isolated(|| {
        let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), "opencode", Script::new());
        let file = scene.stage.folder.join("dying.py");
        std::fs::write(&file, DYING).expect("the stage is writable");
        let command = format!("python3 {}", file.display());
        scene.ok(&["spawn", "acp", "allow", &command]);
        scene.stage.relay_ok(&["register", "alice"]);
        scene.ok(&["spawn", "helper", "--acp", &command, "--reach", "unguarded"]);
        send_with(&scene.stage, "helper", "Is the door shut?", &["--from", "alice"]);
        let why = || scene.ok(&["spawn", "list", "--all"])["agents"][0]["why"].as_str().map(str::to_owned);
        let why = wait_or_show("it is given up", why, || scene.told());
        assert_eq!(why, "its program has ended 5 times in a row before a prompt was shown");
        assert!(unread(&scene.stage, "helper")[0].contains("Is the door shut?"), "{}", scene.told());
        scene.nothing_is_left();
    });
}
