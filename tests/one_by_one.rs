//! Driven agents of a harness that cannot be driven live: it is run for one prompt at a time. A shell script is in Claude
//! Code's place, which knows tasks and no conversation, as an old version of a harness does.

use test_support::{Script, Spawning, Victim, isolated, send_with, unread, wait_or_show};

/// Says what Claude Code says of a task, and notes its words and the task.
const CLAUDE: &str = r#"#!/bin/sh
case "$*" in
    *--version*) echo '2.1.329 (Claude Code)'; exit 0;;
    *auth*) echo '{"loggedIn":true}'; exit 0;;
    *--input-format*) echo "error: unknown option '--input-format'" >&2; exit 1;;
esac
task=$(cat)
for word in "$@"; do case "$word" in --session-id=*|--resume=*) session=${word#*=}; how=${word%%=*};; esac; done
printf '%s %s\n%s\n' "$how" "$session" "$task" >> "$HOME/told"
printf '{"type":"system","subtype":"init","session_id":"%s","cwd":"/","tools":[],"mcp_servers":[],"model":"m"}\n' "$session"
case "$task" in
    *"Go on for ever"*)
        printf '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I begin."}]}}\n'
        setsid tail -f /dev/null & wait;;
    *"Be silent for ever"*) setsid tail -f /dev/null & wait;;
    *"Fail at once"*) echo 'no such flag' >&2; exit 1;;
esac
said=$(printf '%s' "$task" | tail -n 1 | cut -c 1-40 | tr -d '"<>\\')
printf '{"type":"result","subtype":"success","is_error":false,"result":"did %s","session_id":"%s","num_turns":1,"total_cost_usd":0,"usage":{},"modelUsage":{},"permission_denials":[]}\n' "$said" "$session"
"#;

#[test]
fn d9_a_harness_that_cannot_be_driven_is_run_for_one_prompt_at_a_time() {
    isolated(|| {
        let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), "claude-code", Script::new());
        std::fs::remove_file(scene.stage.programs().join("claude")).expect("the real one is only linked");
        scene.stage.program("claude", CLAUDE);
        let told = || std::fs::read_to_string(scene.stage.home.join("told")).unwrap_or_default();
        let spawned = scene.spawn("helper", &["the first", "--wait", "--reach", "work"]);
        assert_eq!(
            (&spawned["answer"], &spawned["connection"]),
            (&"did the first".into(), &"exec".into()),
            "{spawned}"
        );
        let session = spawned["session"].as_str().expect("a session").to_owned();
        assert_eq!(told(), format!("--session-id {session}\nthe first\n"));

        // Mail is a turn in the same session, and its final words go back.
        scene.stage.relay_ok(&["register", "alice"]);
        let id = send_with(&scene.stage, "helper", "Look at the door", &["--from", "alice"]);
        let replied = || unread(&scene.stage, "alice").into_iter().find(|mail| mail.contains("did "));
        wait_or_show("its final words come back", replied, || scene.told());
        // The receipt comes after the reply.
        let acknowledged = || (scene.status(&id) == "acknowledged").then_some(());
        wait_or_show("the reply acknowledges", acknowledged, || scene.told());
        assert_eq!(told().matches(&format!("--resume {session}\n")).count(), 1, "{}", told());

        // A turn is stopped with all that it runs; what is to join it begins the next one.
        let runs = || scene.ours().iter().any(|line| line.contains("tail -f /dev/null"));
        scene.ok(&["steer", "helper", "--next", "Go on for ever"]);
        wait_or_show("it works", || runs().then_some(()), || scene.told());
        assert_eq!(scene.relay(&["interrupt", "helper"]).code, Some(0), "{}", scene.told());
        wait_or_show("nothing of the turn is left", || (!runs()).then_some(()), || scene.told());
        scene.ok(&["steer", "helper", "the second"]);
        wait_or_show("it goes on", || scene.told().contains("did the second").then_some(()), || scene.told());

        // A run that fails is a turn that has failed. It is not tried for ever.
        scene.ok(&["steer", "helper", "--next", "Fail at once"]);
        wait_or_show("it has failed", || scene.told().contains("no such flag").then_some(()), || scene.told());
        scene.ok(&["steer", "helper", "the third"]);
        wait_or_show("it goes on", || scene.told().contains("did the third").then_some(()), || scene.told());
        assert_eq!(told().matches("Fail at once").count(), 1, "{}", told());

        // Whoever is killed: what its model had begun to answer is not told again, and what nobody knows of comes again,
        // marked. Nothing runs on.
        let stops = || {
            assert_eq!(scene.relay(&["interrupt", "helper"]).code, Some(0), "{}", scene.told());
            wait_or_show("nothing of the turn is left", || (!runs()).then_some(()), || scene.told());
        };
        for victim in [Victim::Host, Victim::HostAndGuard, Victim::Harness] {
            scene.ok(&["steer", "helper", "--next", "Go on for ever"]);
            let before = told().matches("Go on for ever").count();
            wait_or_show("it works", || runs().then_some(()), || scene.told());
            scene.kill(victim);
            let is_over = || {
                scene.ok(&["spawn", "list"]);
                (!runs()).then_some(())
            };
            wait_or_show("nothing of the turn is left", is_over, || {
                format!("{victim:?} {} {:?} {}", scene.told(), scene.ours(), scene.record("helper"))
            });
            scene.ok(&["steer", "helper", "after the break"]);
            assert_eq!(told().matches("Go on for ever").count(), before, "{victim:?}: {}", told());
        }
        for victim in [Victim::Host, Victim::HostAndGuard] {
            let marked = || told().matches("perhaps you have seen this before").count();
            let before = marked();
            let words = ["steer", "helper", "--next", "Be silent for ever"];
            let steers = scene.stage.relay(&words).envs(scene.environment());
            let mut steers = steers.start(&scene.stage.folder.join("steers.log"));
            wait_or_show("it works", || runs().then_some(()), || scene.told());
            scene.kill(victim);
            scene.ok(&["spawn", "list"]);
            let again = || (marked() > before && runs()).then_some(());
            wait_or_show("it comes again, marked", again, || format!("{victim:?} {} {}", told(), scene.told()));
            stops();
            steers.kill();
        }
        assert_eq!(scene.relay(&["dismiss", "helper"]).code, Some(0), "{}", scene.told());
        scene.nothing_is_left();
    });
}

#[test]
fn a_harness_that_does_not_work_at_all_is_not_run_that_way_either() {
    isolated(|| {
        let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), "claude-code", Script::new());
        std::fs::remove_file(scene.stage.programs().join("claude")).expect("the real one is only linked");
        scene.stage.program("claude", "#!/bin/sh\necho broken >&2\nexit 1\n");
        let refused = scene.relay(&["spawn", "claude-code", "hello"]);
        assert!(refused.code == Some(1) && refused.stderr.contains("it could not be had"), "{refused:?}");
        scene.nothing_is_left();
    });
}
