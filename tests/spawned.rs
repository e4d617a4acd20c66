//! Driven agents beyond the usual: what is refused, questions to the user, words that join a turn, a turn that is
//! stopped, budgets, and the end of everything by `down`. With the real Codex and Claude Code, and scripted models.

use serde_json::json;
use test_support::{
    ModelAnswer, Program, Script, Spawning, Victim, isolated, presence_of, send_with, unread, wait_or_show,
};

/// A command that sleeps until the project has a file `go`.
const UNTIL_GO: &str = "until test -e go; do sleep 0.1; done";

fn codex(script: Script) -> Spawning {
    Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), "codex", script)
}

#[test]
fn what_cannot_be_started_is_refused_and_leaves_nothing() {
    isolated(|| {
        let scene = codex(Script::new().say("", "Done."));
        let check = |words: &[&str], code: i32, expected: &str| {
            let outcome = scene.relay(words);
            assert_eq!(outcome.code, Some(code), "{words:?}: {outcome:?}");
            assert!(outcome.stderr.contains(expected), "{words:?}: {}", outcome.stderr);
        };
        check(&["spawn"], 2, "the harness is missing");
        check(&["spawn", "toad", "hello"], 3, "toad");
        check(&["spawn", "cursor", "hello"], 1, "drives no agents");
        check(&["spawn", "codex", "hello", "--cwd", "/nowhere"], 3, "`/nowhere` is not a folder");
        check(&["spawn", "codex", "hello", "--budget-turns", "0"], 2, "at least 1");
        check(&["spawn", "codex", "hello", "--for", "0s"], 2, "it must be more than zero");
        check(&["spawn", "codex", "--wait"], 2, "there is nothing to wait for");
        check(&["spawn", "codex", "hello", "--worktree", "--cwd", "/"], 3, "repository");
        check(&["steer", "nobody", "hello"], 3, "no driven agent is named `nobody`");
        check(&["interrupt", "nobody"], 3, "no driven agent is named `nobody`");
        check(&["dismiss", "nobody"], 3, "no driven agent is named `nobody`");
        assert_eq!(scene.ok(&["spawn", "list", "--all"])["agents"], json!([]));
        let folders = std::fs::read_dir(scene.stage.data.join("spawned")).into_iter().flatten().count();
        assert_eq!(folders, 0, "nothing half-begun is left");

        scene.spawn("helper", &["Say hello", "--wait"]);
        check(&["spawn", "codex", "again", "--name", "helper"], 6, "belongs to an agent that is here");
        check(&["steer", "helper", " "], 2, "the text is empty");
        check(&["interrupt", "helper"], 1, "no turn runs");
        // A shell below a harness is no user.
        let below =
            scene.stage.relay(&["dismiss", "helper"]).env("CODEX_THREAD_ID", "01a21262-0000-7000-8000-000000000001");
        let outcome = below.run();
        assert_eq!(outcome.code, Some(4), "{outcome:?}");
        let marked =
            scene.stage.relay(&["spawn", "codex", "hello"]).env("RELAY_SPAWN", "01M896SYEDWG214KKT8B0ME5QD").run();
        assert_eq!(marked.code, Some(4), "{marked:?}");
        let of_a_run =
            scene.stage.relay(&["spawn", "codex", "hello"]).env("RELAY_RUN", "01M896SYEDWG214KKT8B0ME5QD").run();
        assert_eq!(of_a_run.code, Some(4), "also of one that is over: {of_a_run:?}");
        assert!(of_a_run.stderr.contains("a run that is over"), "{of_a_run:?}");
        scene.ok(&["dismiss", "helper"]);
        check(&["steer", "helper", "are you there?"], 3, "`helper` has ended: it was dismissed");
        scene.nothing_is_left();
    });
}

#[test]
fn d5_d12_a_message_of_another_agent_joins_a_turn_and_its_command_stops_one() {
    isolated(|| {
        let sleeps = |_: &str| test_support::ModelAnswer::Call {
            tool: "exec_command".to_owned(),
            input: json!({"cmd": "tail -f /dev/null", "yield_time_ms": 200_000}),
        };
        let scene = codex(
            Script::new()
                .say("Say hello", "Hello.")
                .answer_with("Go to sleep", sleeps)
                .answer_with("Sleep again", sleeps)
                .call("Sleep shortly", "exec_command", json!({"cmd": UNTIL_GO, "yield_time_ms": 200_000}))
                .say("Wake up", "I am up.")
                .otherwise(|_| test_support::ModelAnswer::Say("Done.".to_owned())),
        );
        scene.spawn("helper", &["Say hello", "--wait"]);
        scene.stage.relay_ok(&["register", "lead"]);
        let runs = || scene.ours().iter().any(|line| line.contains("tail -f /dev/null"));
        let sleeps = |task: &str| {
            scene.ok(&["steer", "helper", "--next", task]);
            wait_or_show(task, || runs().then_some(()), || scene.told());
        };
        let order = || scene.relay(&["cmd", "helper", "/interrupt", "--from", "lead"]);
        let newest = || scene.ok(&["cmd", "list", "--all"])["commands"].as_array().and_then(|all| all.last().cloned());
        let is_over = || wait_or_show("its turn is stopped", || (!runs()).then_some(()), || scene.told());

        // Nobody has allowed it: the turn goes on, and the command waits and says so.
        sleeps("Go to sleep");
        order();
        let waits = || newest()?["waits"].as_str().map(str::to_owned);
        let why = wait_or_show("it waits", waits, || scene.told());
        assert!(why.contains("the user of `helper` has not allowed it") && runs(), "{why}");
        scene.stage.relay_ok(&["cmd", "allow", "lead", "/interrupt", "--to", "helper"]);
        is_over();
        let done = || (newest()?["status"] == "done").then_some(());
        wait_or_show("the command is done", done, || scene.told());

        // Allowed, it is carried out at once; without a turn it has nothing to do, and says so.
        sleeps("Sleep again");
        order();
        is_over();
        let idle = || (presence_of(&scene.stage, "helper").as_deref() == Some("idle")).then_some(());
        wait_or_show("it is idle", idle, || scene.told());
        order();
        let failed = || newest().filter(|one| one["status"] == "failed");
        let failed = wait_or_show("the last one has failed", failed, || scene.told());
        assert!(failed.to_string().contains("no turn runs"), "{failed}");

        scene.ok(&["steer", "helper", "--next", "Sleep shortly"]);
        let sleeps = || scene.ours().iter().any(|line| line.contains("sleep 0.1")).then_some(());
        wait_or_show("it sleeps", sleeps, || scene.told());
        let id = send_with(&scene.stage, "helper", "Wake up", &["--from", "lead", "--priority", "urgent"]);
        // Codex has it before the command ends, after which it looks for what has joined the turn.
        let is_taken = || (!["stored", "notified"].contains(&scene.status(&id).as_str())).then_some(());
        wait_or_show("it is taken", is_taken, || scene.told());
        std::fs::write(scene.stage.project.join("go"), "").expect("the project is writable");
        wait_or_show("it has read it", || scene.told().contains("I am up.").then_some(()), || scene.told());
        let told = scene.told();
        let turn = told.rsplit_once("Sleep shortly").and_then(|(_, since)| since.split_once("I am up."));
        assert_eq!(turn.map(|(turn, _)| turn.matches("\"event\":\"turn-started\"").count()), Some(1), "{told}");

        // D12, as far as it can be tried: a key that is refused costs the turn, and the next one goes on.
        scene.model.behaves(Some(test_support::Behaviour::Refuses(401)));
        scene.ok(&["steer", "helper", "--next", "Say more"]);
        let failed = || scene.told().contains("\"failed\"").then_some(());
        wait_or_show("the turn has failed", failed, || scene.told());
        scene.model.behaves(None);
        scene.ok(&["steer", "helper", "--next", "Are you there"]);
        wait_or_show("it goes on", || scene.told().contains("Done.").then_some(()), || scene.told());
        assert_eq!(scene.relay(&["dismiss", "helper"]).code, Some(0));
        scene.nothing_is_left();
    });
}

#[test]
fn a_question_is_answered_from_another_terminal() {
    isolated(|| {
        let escalates = |file: &str| {
            let command = format!("echo made > {file}");
            json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "to make it"})
        };
        let folder = tempfile::tempdir().expect("a folder");
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        let [first, second] = [&one, &two].map(|path| path.display().to_string());
        let script = Script::new()
            .call("Make the first", "exec_command", escalates(&first))
            .call("Make the second", "exec_command", escalates(&second))
            .say("", "Done.");
        let scene = codex(script);
        scene.spawn("helper", &[]);
        for (prompt, answer, file) in [("Make the first", "refuse", &one), ("Make the second", "allow", &two)] {
            let outcome = scene.relay(&["steer", "helper", prompt, "--next"]);
            assert_eq!(outcome.code, Some(0), "{outcome:?} {}", scene.told());
            let ask = wait_or_show(
                "a question",
                || scene.ok(&["asks"])["asks"].as_array().and_then(|asks| asks.first().cloned()),
                || scene.told(),
            );
            assert!(ask.to_string().contains(&file.display().to_string()), "the whole command: {ask}");
            assert_eq!(presence_of(&scene.stage, "helper").as_deref(), Some("needs-input"));
            assert!(!file.exists(), "nothing happens before the answer");
            // Words after the answer are its reason.
            let answered = scene.relay(&["asks", "answer", ask["id"].as_str().expect("an id"), answer]);
            assert_eq!(answered.code, Some(0), "{answered:?}");
            wait_or_show(
                "the turn ends",
                || (presence_of(&scene.stage, "helper").as_deref() == Some("idle")).then_some(()),
                || scene.told(),
            );
            assert_eq!(file.exists(), answer == "allow", "{}", scene.told());
        }
        scene.ok(&["dismiss", "helper"]);
        scene.nothing_is_left();
    });
}

#[test]
fn an_open_question_goes_with_its_program_and_a_second_host_drives_nothing() {
    isolated(|| {
        let escalates =
            json!({"cmd": "touch /made", "sandbox_permissions": "require_escalated", "justification": "why"});
        let script = Script::new().otherwise(move |news| match news.contains("Make it") {
            true => ModelAnswer::Call { tool: "exec_command".to_owned(), input: escalates.clone() },
            false => ModelAnswer::Say("Done.".to_owned()),
        });
        let scene = codex(script);
        scene.spawn("helper", &["Say hello", "--wait"]);
        let asked = || scene.ok(&["asks"])["asks"].as_array().and_then(|asks| asks.first().cloned());
        for victim in [Victim::Harness, Victim::Host, Victim::HostAndGuard] {
            assert_eq!(scene.relay(&["steer", "helper", "Make it", "--next"]).code, Some(0), "{}", scene.told());
            let ask = wait_or_show("a question", asked, || scene.told());
            scene.kill(victim);
            let gone = || {
                scene.ok(&["spawn", "list"]);
                asked().is_none().then_some(())
            };
            wait_or_show(&format!("{victim:?}: the question is gone"), gone, || scene.told());
            let late = scene.relay(&["asks", "answer", ask["id"].as_str().expect("an id"), "allow"]);
            assert_ne!(late.code, Some(0), "{victim:?}: {late:?}");
            scene.ok(&["steer", "helper", "Go on", "--next"]);
            let idle = || (presence_of(&scene.stage, "helper").as_deref() == Some("idle")).then_some(());
            wait_or_show(&format!("{victim:?}: it goes on"), idle, || scene.told());
        }
        let host = scene.host();
        let second = scene.relay(&["spawn", "work"]);
        assert_eq!((second.code, scene.host()), (Some(0), host), "{second:?}");
        scene.ok(&["dismiss", "helper"]);
        scene.nothing_is_left();
    });
}

#[test]
fn a_budget_ends_an_agent_and_mail_waits() {
    isolated(|| {
        let scene = codex(Script::new().say("", "Done."));
        scene.spawn("helper", &["Say hello", "--wait", "--budget-turns", "1"]);
        let ended = || (scene.ok(&["spawn", "list", "--all"])["agents"][0]["state"] == "ended").then_some(());
        wait_or_show("it is over", ended, || scene.told());
        let why = scene.ok(&["spawn", "list", "--all"])["agents"][0]["why"].clone();
        assert_eq!(why, "its budget of 1 turns is spent");
        scene.stage.relay_ok(&["register", "alice"]);
        send_with(&scene.stage, "helper", "too late", &["--from", "alice"]);
        assert!(unread(&scene.stage, "helper")[0].contains("too late"));
        scene.nothing_is_left();
    });
}

/// Stopped by a signal, the program cannot stop its turn, whoever asks it to.
#[test]
fn a_turn_that_does_not_stop_ends_with_its_program_when_time_is_up() {
    isolated(|| {
        let scene = codex(Script::new().talk("Talk", "And so on."));
        scene.spawn("helper", &["Talk", "--for", "20s"]);
        scene.model.wait_for_news("Talk");
        let (_, program) = scene.driven("helper");
        Program::new("kill").args(["-STOP".to_owned(), program.to_string()]).succeed();
        let ended = || {
            let listed = scene.ok(&["spawn", "list", "--all"]);
            listed["agents"][0]["why"].as_str().map(str::to_owned)
        };
        let why = wait_or_show("it is over", ended, || scene.told());
        assert_eq!(why, "its time is up");
        scene.nothing_is_left();
    });
}

#[test]
fn down_ends_everything_and_up_goes_on() {
    isolated(|| {
        let scene = codex(Script::new().say("", "Done."));
        scene.spawn("helper", &["Say hello", "--wait"]);
        scene.stage.relay_ok(&["register", "alice"]);
        let outcome = scene.relay(&["down"]);
        assert!(outcome.stderr.contains("1 agent that you started rests"), "{outcome:?}");
        scene.nothing_is_left();
        let id = send_with(&scene.stage, "helper", "while you rest", &["--from", "alice"]);
        scene.stage.relay_ok(&["agents"]);
        assert!(scene.ours().is_empty(), "nothing starts by itself: {:?}", scene.ours());
        assert_eq!(scene.status(&id), "stored");
        scene.ok(&["steer", "helper", "Go on"]);
        wait_or_show("the mail is answered", || (scene.status(&id) == "acknowledged").then_some(()), || scene.told());
        scene.ok(&["dismiss", "helper"]);
        scene.nothing_is_left();
    });
}

#[test]
fn a_paused_agent_gets_no_turn_and_goes_on_with_what_waited() {
    isolated(|| {
        let scene = codex(Script::new().say("", "Done."));
        scene.spawn("helper", &["Say hello", "--wait"]);
        scene.stage.relay_ok(&["register", "alice"]);
        scene.ok(&["pause", "helper"]);
        let id = send_with(&scene.stage, "helper", "while you are paused", &["--from", "alice"]);
        let urgent = send_with(&scene.stage, "helper", "even this", &["--from", "alice", "--priority", "urgent"]);
        std::thread::sleep(std::time::Duration::from_millis(500));
        assert_eq!([&id, &urgent].map(|id| scene.status(id)), ["stored", "stored"], "{}", scene.told());
        scene.ok(&["resume", "helper"]);
        // They come in one turn, whose final words answer the last of them.
        wait_or_show("they are shown", || (scene.status(&id) == "acknowledged").then_some(()), || scene.told());
        assert_eq!(scene.status(&urgent), "shown");

        scene.ok(&["pause", "helper"]);
        let kept = scene.relay(&["steer", "helper", "Look here"]);
        let told = "`helper` has not taken it, because its user has paused it";
        assert!(kept.code == Some(7) && kept.stderr.contains(told), "it says so at once: {kept:?}");
        scene.ok(&["resume", "helper"]);
        scene.model.wait_for_news("Look here");
        scene.ok(&["dismiss", "helper"]);
        scene.nothing_is_left();
    });
}
