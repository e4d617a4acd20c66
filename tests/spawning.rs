//! `relay-mesh spawn`, with the real clients and scripted models: an agent is started, talks with its user and with other
//! agents, and is dismissed; whichever process is killed, no prompt is lost or repeated unmarked, and no process is left.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::{
    REPEATED, Script, Spawning, Victim, isolated, presence_of, send_with, unread, wait_for, wait_or_show,
};

/// Its user's prompt, mail of another agent and the reply to it, a further word of its user, and its end.
fn an_agent_from_its_first_prompt_to_its_end(harness: &'static str) {
    let script = Script::new()
        .say("Say hello", "Hello.")
        .say("how is the build", "The build is green.")
        .say("look at the docs", "The docs are fine.")
        .say("Sum up", "I said hello and looked at the docs.")
        .say("", "Done.");
    let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), harness, script);
    let spawned = scene.spawn("helper", &["Say hello", "--wait"]);
    assert_eq!((&spawned["name"], &spawned["answer"]), (&json!("helper"), &json!("Hello.")), "{}", scene.told());
    assert_eq!(presence_of(&scene.stage, "helper").as_deref(), Some("idle"), "{}", scene.told());

    scene.stage.relay_ok(&["register", "alice"]);
    let sent = scene.stage.relay_ok(&["send", "helper", "how is the build?", "--from", "alice", "--json"]);
    let sent: Value = serde_json::from_str(&sent).expect("JSON");
    let id = sent["id"].as_str().expect("an id").to_owned();
    wait_for("the reply", || {
        unread(&scene.stage, "alice").iter().any(|mail| mail.contains("The build is green.")).then_some(())
    });
    assert_eq!(scene.status(&id), "acknowledged", "a reply acknowledges");
    let history = scene.ok(&["message", &id]).to_string();
    assert!(history.contains("shown") && history.contains("driver:"), "{history}");

    scene.ok(&["steer", "helper", "--next", "look at the docs"]);
    wait_for("it was said", || scene.told().contains("The docs are fine.").then_some(()));
    let shown = scene.relay(&["spawn", "show", "helper"]).stdout;
    for expected in ["you: Say hello", "says: Hello.", "from alice: <relay-mesh-message", "turn ends"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let dismissed = scene.ok(&["dismiss", "helper", "--summary"]);
    assert_eq!(dismissed["summary"], "I said hello and looked at the docs.", "{}", scene.told());
    assert_eq!(presence_of(&scene.stage, "helper").as_deref(), Some("offline"));
    let listed = scene.ok(&["spawn", "list", "--all"]);
    assert_eq!(listed["agents"][0]["state"], "ended", "{listed}");
    scene.nothing_is_left();
    assert_eq!(scene.model.times_told("how is the build?"), 1, "each prompt was shown once");
}

#[test]
fn claude_code_from_its_first_prompt_to_its_end() {
    isolated(|| an_agent_from_its_first_prompt_to_its_end("claude-code"));
}

#[test]
fn codex_from_its_first_prompt_to_its_end() {
    isolated(|| an_agent_from_its_first_prompt_to_its_end("codex"));
}

#[test]
fn opencode_from_its_first_prompt_to_its_end() {
    isolated(|| an_agent_from_its_first_prompt_to_its_end("opencode"));
}

#[test]
fn gemini_cli_from_its_first_prompt_to_its_end() {
    isolated(|| an_agent_from_its_first_prompt_to_its_end("gemini-cli"));
}

/// Kills somebody at growing times after a message was sent. Each message is shown once, or again with its mark.
fn no_prompt_is_lost_or_repeated_unmarked(harness: &'static str, victim: Victim) {
    let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), harness, Script::new().say("", "Done."));
    scene.spawn("helper", &["Say hello", "--wait"]);
    scene.stage.relay_ok(&["register", "alice"]);
    let mut sent = Vec::new();
    // OpenCode takes seconds to begin.
    let delays: &[u64] = if harness == "opencode" { &[0, 30, 300] } else { &[0, 4, 10, 20, 40, 80, 160, 320] };
    for (round, delay) in delays.iter().enumerate() {
        wait_for("it is driven", || {
            scene.ok(&["spawn", "list"]);
            scene.host().zip(scene.running())
        });
        let id = send_with(&scene.stage, "helper", &format!("task number {round}"), &["--from", "alice"]);
        std::thread::sleep(Duration::from_millis(*delay));
        scene.kill(victim);
        // The next command resumes them.
        let shown = || {
            scene.ok(&["spawn", "list"]);
            ["shown", "acknowledged"].contains(&scene.status(&id).as_str()).then_some(())
        };
        wait_or_show(&format!("round {round}: {id} is shown"), shown, || {
            format!("{}\n{}\n{:?}", scene.told(), scene.ok(&["message", &id]), scene.ours())
        });
        sent.push(id);
    }
    let last = send_with(&scene.stage, "helper", "the last one", &["--from", "alice"]);
    let answered = || {
        scene.ok(&["spawn", "list"]);
        (scene.status(&last) == "acknowledged").then_some(())
    };
    wait_or_show("the last one is answered", answered, || {
        format!("{}\n{}\n{:?}", scene.told(), scene.ok(&["message", &last]), scene.ours())
    });
    let heard = scene.model.heard();
    let everything = heard.last().expect("it was asked").everything();
    for id in &sent {
        let envelope = format!("id=\\\"{id}\\\"");
        let plain = format!("id=\"{id}\"");
        let times = |text: &str| text.matches(&envelope).count() + text.matches(&plain).count();
        let (now, ever) = (times(&everything), heard.iter().filter(|heard| times(&heard.everything()) > 0).count());
        assert!(ever > 0, "{id} was never in a request: {}", scene.told());
        let marked = everything.split("<relay-mesh-message").filter(|part| times(part) > 0 && part.contains(REPEATED));
        assert!(now <= 1 + marked.count(), "{id} is there {now} times: {everything}");
    }
    scene.ok(&["dismiss", "helper"]);
    scene.nothing_is_left();
}

#[test]
fn codex_when_the_host_is_killed() {
    isolated(|| no_prompt_is_lost_or_repeated_unmarked("codex", Victim::Host));
}

#[test]
fn codex_when_it_is_killed_itself() {
    isolated(|| no_prompt_is_lost_or_repeated_unmarked("codex", Victim::Harness));
}

#[test]
fn codex_when_the_host_and_the_guard_are_killed() {
    isolated(|| no_prompt_is_lost_or_repeated_unmarked("codex", Victim::HostAndGuard));
}

#[test]
fn claude_code_when_the_host_is_killed() {
    isolated(|| no_prompt_is_lost_or_repeated_unmarked("claude-code", Victim::Host));
}

#[test]
fn claude_code_when_it_is_killed_itself() {
    isolated(|| no_prompt_is_lost_or_repeated_unmarked("claude-code", Victim::Harness));
}

#[test]
fn claude_code_when_the_host_and_the_guard_are_killed() {
    isolated(|| no_prompt_is_lost_or_repeated_unmarked("claude-code", Victim::HostAndGuard));
}

#[test]
fn opencode_when_the_host_is_killed() {
    isolated(|| no_prompt_is_lost_or_repeated_unmarked("opencode", Victim::Host));
}

#[test]
fn opencode_when_it_is_killed_itself() {
    isolated(|| no_prompt_is_lost_or_repeated_unmarked("opencode", Victim::Harness));
}

#[test]
fn opencode_when_the_host_and_the_guard_are_killed() {
    isolated(|| no_prompt_is_lost_or_repeated_unmarked("opencode", Victim::HostAndGuard));
}
