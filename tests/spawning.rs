//! `relay-mesh spawn`, with the real clients and scripted models: an agent is started, talks with its user and with other
//! agents, and is dismissed; whichever process is killed, no prompt is lost or repeated unmarked, and no process is left.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::{
    ModelAnswer, Script, Spawning, Terminal, Victim, drive_observed, each_once_or_marked, isolated, presence_of,
    send_with, unread, wait_for, wait_or_show,
};

/// A command that sleeps until the project has a file `go`.
const UNTIL_GO: &str = "until test -e go; do sleep 0.1; done; echo slept";

/// The harnesses that let words join the turn that runs.
const LET_WORDS_JOIN: [&str; 2] = ["claude-code", "codex"];

/// A call of a harness's shell.
fn shell(harness: &str, command: &str) -> ModelAnswer {
    let (tool, input) = match harness {
        "codex" => ("exec_command", json!({"cmd": command, "yield_time_ms": 200_000})),
        "claude-code" => ("Bash", json!({"command": command, "description": "It waits"})),
        "copilot" | "opencode" => ("bash", json!({"command": command, "description": "It waits"})),
        _ => ("run_shell_command", json!({"command": command})),
    };
    ModelAnswer::Call { tool: tool.to_owned(), input }
}

/// The same, beyond what its sandbox allows where it has one.
fn beyond(harness: &str, command: &str) -> ModelAnswer {
    match shell(harness, command) {
        ModelAnswer::Call { tool, mut input } if harness == "codex" => {
            input["sandbox_permissions"] = json!("require_escalated");
            input["justification"] = json!("to try it");
            ModelAnswer::Call { tool, input }
        }
        other => other,
    }
}

/// What a harness can while its agent is driven, as its run shows it: for the table in docs/driving.md.
fn what_it_can(harness: &'static str) {
    let script = Script::new()
        .say("Say hello", "Hello.")
        .answer_with("Sleep shortly", move |_| shell(harness, UNTIL_GO))
        .answer_with("Sleep long", move |_| shell(harness, "tail -f /dev/null"))
        .answer_with("Ask first", move |_| beyond(harness, "touch asked"))
        .say("join this", "The words came.")
        .say("are you there", "I am here.")
        .otherwise(|_| ModelAnswer::Say("Done.".to_owned()));
    let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), harness, script);
    let spawned = scene.spawn("helper", &["Say hello", "--wait", "--reach", "work"]);
    scene.stage.relay_ok(&["register", "alice"]);
    let id = send_with(&scene.stage, "helper", "for your records", &["--from", "alice"]);
    let answered = || (scene.status(&id) == "acknowledged").then_some(());
    wait_or_show("the mail is answered", answered, || scene.told());
    let history = scene.ok(&["message", &id]);
    let statuses = history["recipients"][0]["history"].as_array().expect("a history").iter();
    let statuses: Vec<&str> = statuses.filter_map(|step| step["status"].as_str()).collect();
    let receipts = statuses.iter().filter(|status| ["notified", "accepted", "shown"].contains(status));
    let receipts = receipts.copied().collect::<Vec<_>>().join(", ");

    let line = ["attach", "helper"].map(str::to_owned);
    let line = [vec![scene.stage.binary().display().to_string()], line.to_vec()].concat();
    let terminal = Terminal::start(&scene.stage.folder, &scene.stage.project, &scene.environment(), &line);
    let joins = || {
        let screen = terminal.screen();
        let own = screen.contains("Hello.").then_some("its own terminal");
        screen.contains("shown line by line").then_some("line by line").or(own)
    };
    let joins = wait_or_show("its user sees it", joins, || terminal.screen());
    terminal.close();

    // Words that come while a command runs.
    let runs = |command: &str| scene.ours().iter().any(|line| line.contains(command));
    let question = || scene.ok(&["asks"])["asks"].as_array().and_then(|asks| asks.first().cloned());
    let answer = |ask: &Value, answer: &str| {
        let answered = scene.relay(&["asks", "answer", ask["id"].as_str().expect("an id"), answer]);
        assert_eq!(answered.code, Some(0), "{answered:?}");
    };
    // Where it asks for every command, it is allowed.
    let begins = |prompt: &str, command: &str| {
        let begun = scene.relay(&["steer", "helper", "--next", prompt]);
        assert_eq!(begun.code, Some(0), "{begun:?} {}", scene.told());
        let goes_on = || {
            if runs(command) {
                return Some(());
            }
            if let Some(ask) = question() {
                answer(&ask, "allow");
            }
            None
        };
        wait_or_show(command, goes_on, || format!("{:?} {}", scene.ours(), scene.told()));
    };
    begins("Sleep shortly", "sleep 0.1");
    says_meanwhile(&scene);
    let has = |words: &str| {
        wait_or_show(words, || scene.told().contains(words).then_some(()), || scene.told());
    };
    has("The words came.");
    let told = scene.told();
    let since = told.rsplit_once("Sleep shortly").map_or("", |(_, rest)| rest);
    let until = since.split_once("The words came.").map_or("", |(before, _)| before);
    let turns = until.matches("\"event\":\"turn-started\"").count();
    let steer = if turns <= 1 { "in that turn" } else { "in the next turn" };

    let idle = || (presence_of(&scene.stage, "helper").as_deref() == Some("idle")).then_some(());
    wait_or_show("it is idle", idle, || scene.told());
    begins("Sleep long", "tail -f /dev/null");
    scene.ok(&["interrupt", "helper"]);
    wait_or_show("the command ends", || (!runs("tail -f /dev/null")).then_some(()), || format!("{:?}", scene.ours()));
    wait_or_show("it is idle", idle, || scene.told());
    assert_eq!(scene.relay(&["down"]).code, Some(0));
    scene.ok(&["steer", "helper", "--next", "are you there"]);
    has("I am here.");
    // Gemini CLI does not always find a session of its own again.
    let told = scene.told();
    let goes_on = told.contains("\"resumed\":true");
    assert!(goes_on || (harness == "gemini-cli" && told.contains("begins a new one")), "{told}");
    wait_or_show("it is idle", idle, || scene.told());

    let begun = scene.relay(&["steer", "helper", "--next", "Ask first"]);
    assert_eq!(begun.code, Some(0), "{begun:?} {}", scene.told());
    let is_done = || scene.told().rsplit("Ask first").next().is_some_and(|rest| rest.contains("\"turn-ended\""));
    let asked =
        wait_or_show("a question, or the end", || question().map(Some).or(is_done().then_some(None)), || scene.told());
    if let Some(ask) = &asked {
        assert!(ask.to_string().contains("touch asked"), "the whole command: {ask}");
        answer(ask, "refuse");
        wait_or_show("the turn ends", || is_done().then_some(()), || scene.told());
    }
    scene.ok(&["dismiss", "helper"]);
    scene.nothing_is_left();
    let connection = spawned["connection"].as_str().unwrap_or_default();
    drive_observed(
        &scene.stage,
        harness,
        &json!({
            "connection": connection,
            "receipts": receipts,
            "steer": steer,
            "interrupt": "ends the turn and its command",
            "asks": if asked.is_some() { "yes" } else { "no" },
            "resume": if harness == "gemini-cli" { "not always" } else { "yes" },
            "join": joins,
        }),
    );
}

/// Says something while the command of the turn waits for its file, which it gets once the harness has taken the words,
/// or once they are kept if it takes them with its next turn alone.
fn says_meanwhile(scene: &Spawning) {
    let log = scene.stage.folder.join("steer.log");
    let steers = scene.stage.relay(&["steer", "helper", "join this"]).envs(scene.environment());
    let mut steers = steers.start(&log);
    let is_there = || {
        if steers.child.try_wait().expect("a child can be asked").is_some() {
            return Some(());
        }
        let record = scene.record("helper");
        let kept = record["requests"].as_array()?.iter().find(|kept| kept["kind"]["text"] == "join this")?;
        let is_taken = |given: &Value| given["prompt"] == kept["id"] && given["status"].is_string();
        let is_taken = record["given"].as_array()?.iter().any(is_taken);
        (is_taken || !LET_WORDS_JOIN.contains(&scene.harness)).then_some(())
    };
    wait_or_show("the words are there", is_there, || format!("{} {}", scene.record("helper"), scene.told()));
    std::fs::write(scene.stage.project.join("go"), "").expect("the project is writable");
    let code = steers.ended();
    assert_eq!(code, Some(0), "{} {}", std::fs::read_to_string(&log).unwrap_or_default(), scene.told());
}

#[test]
fn what_codex_can() {
    isolated(|| what_it_can("codex"));
}

#[test]
fn what_claude_code_can() {
    isolated(|| what_it_can("claude-code"));
}

#[test]
fn what_opencode_can() {
    isolated(|| what_it_can("opencode"));
}

#[test]
fn what_gemini_cli_can() {
    isolated(|| what_it_can("gemini-cli"));
}

#[test]
fn what_copilot_can() {
    isolated(|| what_it_can("copilot"));
}

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
    wait_for("its turn is over", || (presence_of(&scene.stage, "helper").as_deref() == Some("idle")).then_some(()));

    scene.stage.relay_ok(&["register", "alice"]);
    let sent = scene.stage.relay_ok(&["send", "helper", "how is the build?", "--from", "alice", "--json"]);
    let sent: Value = serde_json::from_str(&sent).expect("JSON");
    let id = sent["id"].as_str().expect("an id").to_owned();
    wait_for("the reply", || {
        unread(&scene.stage, "alice").iter().any(|mail| mail.contains("The build is green.")).then_some(())
    });
    // The receipt comes after the reply.
    let acknowledged = || (scene.status(&id) == "acknowledged").then_some(());
    wait_or_show("the reply acknowledges", acknowledged, || scene.told());
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
fn d4_codex_from_its_first_prompt_to_its_end() {
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

#[test]
fn copilot_from_its_first_prompt_to_its_end() {
    isolated(|| an_agent_from_its_first_prompt_to_its_end("copilot"));
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
        scene.driven("helper");
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
    each_once_or_marked(&scene, &sent);
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
fn copilot_when_the_host_is_killed() {
    isolated(|| no_prompt_is_lost_or_repeated_unmarked("copilot", Victim::Host));
}

#[test]
fn copilot_when_it_is_killed_itself() {
    isolated(|| no_prompt_is_lost_or_repeated_unmarked("copilot", Victim::Harness));
}

#[test]
fn copilot_when_the_host_and_the_guard_are_killed() {
    isolated(|| no_prompt_is_lost_or_repeated_unmarked("copilot", Victim::HostAndGuard));
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
