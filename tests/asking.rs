//! Questions to the user through the real binary: asked by scripts, agents and the real Claude Code, answered from
//! another process. The first answer wins, no agent answers, and what nobody waits for is gone.

use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};
use test_support::{ClaudeCode, Model, Outcome, Program, Script, Stage, StdioClient, isolated, presence_of, wait_for};

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The ids of the open questions, oldest first.
fn open(stage: &Stage) -> Vec<String> {
    let listed = json_of(&stage.relay_ok(&["asks", "--json"]));
    let all = listed["asks"].as_array().expect("a list").iter();
    all.map(|ask| ask["id"].as_str().expect("an id").to_owned()).collect()
}

/// The id of the one question, as soon as it is open.
fn the_question(stage: &Stage) -> String {
    wait_for("the question is open", || open(stage).pop())
}

fn asked(stage: &Stage, words: &[&str]) -> String {
    let told = json_of(&stage.relay(&["ask", "--json"]).args(words).succeed());
    told["id"].as_str().expect("an id").to_owned()
}

fn check(outcome: &Outcome, code: i32, words: &str) {
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    assert!(outcome.stderr.contains(words), "{words}: {outcome:?}");
    assert!(outcome.stderr.contains("hint: ") || outcome.stderr.contains("For more information"), "{outcome:?}");
}

#[test]
fn a_script_asks_and_the_user_answers_from_another_process() {
    let stage = stage();
    thread::scope(|scope| {
        let asker = scope.spawn(|| stage.run(&["ask", "Which port?", "--wait"]));
        let id = the_question(&stage);
        let listed = stage.relay_ok(&["asks"]);
        assert!(listed.contains("  | Which port?") && listed.contains("answer with: TEXT, refuse"), "{listed}");
        assert!(listed.lines().all(|line| line.chars().count() <= 80), "{listed}");
        let answered = stage.relay_ok(&["asks", "answer", &id[..20], "port", "8080"]);
        assert!(answered.contains("answered: port 8080"), "{answered}");
        let asker = asker.join().expect("the asker ends");
        assert_eq!((asker.code, asker.stdout.as_str()), (Some(0), "port 8080\n"), "{asker:?}");
    });
    assert!(open(&stage).is_empty());
    // A refusal and a timeout have exit codes of their own.
    thread::scope(|scope| {
        let asker = scope.spawn(|| stage.run(&["ask", "Deploy?", "--choices", "yes,no", "--wait"]));
        stage.relay_ok(&["asks", "answer", &the_question(&stage), "refuse", "not on a Friday"]);
        let asker = asker.join().expect("the asker ends");
        assert_eq!((asker.code, asker.stdout.as_str()), (Some(4), ""), "{asker:?}");
        assert!(asker.stderr.contains("the user refused: not on a Friday"), "{asker:?}");
    });
    let late = stage.run(&["ask", "Anybody?", "--wait", "--timeout", "1s"]);
    assert_eq!(late.code, Some(7), "{late:?}");
    stage.configure("ask-patience = '1s'\n");
    assert_eq!(stage.run(&["ask", "Anybody?", "--wait"]).code, Some(7), "as long as the user's settings say");
    let all = stage.relay_ok(&["asks", "--all"]);
    assert_eq!(all.matches("no answer came in time").count(), 2, "{all}");
}

#[test]
fn of_two_processes_that_answer_at_once_the_first_wins() {
    let stage = stage();
    for round in 0..5 {
        let id = asked(&stage, &[&format!("Round {round}?")]);
        let outcomes: Vec<Outcome> = thread::scope(|scope| {
            let answer = |word: &'static str| {
                scope.spawn({
                    let (stage, id) = (&stage, &id);
                    move || stage.run(&["asks", "answer", id, word])
                })
            };
            let both = [answer("one"), answer("two")];
            both.into_iter().map(|answer| answer.join().expect("it ends")).collect()
        });
        let won: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.code == Some(0)).collect();
        let lost: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.code == Some(6)).collect();
        assert_eq!((won.len(), lost.len()), (1, 1), "{outcomes:?}");
        let winner = if won[0].stdout.contains("answered: one") { "one" } else { "two" };
        check(lost[0], 6, &format!("has been answered already: `{winner}`, on a command line, by process"));
    }
}

#[test]
fn what_cannot_be_asked_or_answered_is_refused_with_a_hint() {
    let stage = stage();
    let long = "x".repeat(1_000_000);
    for (words, code, expected) in [
        (vec!["ask", ""], 2, "the question is empty"),
        (vec!["ask", "a\u{1b}[2Jb"], 2, "control character U+001B"),
        (vec!["ask", "Which?", "--choices", "a,a"], 2, "`a` is no choice"),
        (vec!["ask", "Which?", "--timeout", "0s"], 2, "between a second and a day"),
        (vec!["ask", "Which?", "--timeout", "2d"], 2, "between a second and a day"),
        (vec!["ask", "Which?", "--choices", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21"], 2, "21 choices"),
        (vec!["asks", "answer", "01JD8Z3K5V0000000000000000", "yes"], 3, "no question to the user has the id"),
        (vec!["asks", "show", "number-one"], 2, "is not an id"),
    ] {
        check(&stage.run(&words), code, expected);
    }
    // An argument of a megabyte is more than a system takes, so most of it comes by the environment of a shell.
    let script = format!("exec \"$0\" ask \"$(head -c {} /dev/zero | tr '\\0' x)\"", 100_000);
    let big =
        Program::new("sh").args(["-c", &script]).arg(stage.binary()).envs(stage.environment()).within(&stage.project);
    check(&big.run(), 2, "the question has 100000 bytes and may have 8192");
    let mut client = StdioClient::connected(
        stage.relay(&["mcp", "--tools", "asks"]).by_hand().start(&stage.folder.join("mcp.log")),
        "x",
    );
    client.call("register_agent", json!({"name": "alice"}));
    let refused = client.call("ask_user", json!({"question": long}));
    assert!(refused.failed && refused.text.contains("1000000 bytes"), "{refused:?}");
    assert!(open(&stage).is_empty(), "nothing was stored");

    let one = asked(&stage, &["Which?", "--choices", "red,blue"]);
    let two = asked(&stage, &["Which?"]);
    check(&stage.run(&["asks", "answer", &one, "green"]), 2, "does not offer `green`");
    let ambiguous = stage.run(&["asks", "answer", &one[..6], "red"]);
    check(&ambiguous, 2, "may mean");
    assert!(ambiguous.stderr.contains(&one) && ambiguous.stderr.contains(&two), "{ambiguous:?}");
    stage.relay_ok(&["asks", "answer", &one, "red"]);
    check(&stage.run(&["asks", "answer", &one, "blue"]), 6, "has been answered already: `red`");
    check(&stage.run(&["asks", "answer", &two, "a\u{1b}b"]), 2, "the answer holds the control character");
    assert_eq!(open(&stage), [two]);
}

#[test]
fn what_is_asked_is_shown_whole_and_forges_no_screen() {
    let stage = stage();
    let forged =
        format!("{}01JD8Z3K5V0000000000000000  alice  question  open\n01JD8Z3K5V you said yes", " ".repeat(76));
    asked(&stage, &[&forged, "--reason", "two\nlines"]);
    let listed = stage.relay_ok(&["asks"]);
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("ID") && lines.iter().skip(2).all(|line| line.starts_with("  ")), "{listed}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{listed}");
    assert!(listed.contains("you said yes") && listed.contains("lines"), "{listed}");
}

#[test]
fn who_is_killed_while_asking_leaves_no_question() {
    isolated(|| {
        let stage = stage();
        let mut asker = stage.relay(&["ask", "Which port?", "--wait"]).start(&stage.folder.join("asker.log"));
        let id = the_question(&stage);
        asker.kill();
        check(&stage.run(&["asks", "answer", &id, "8080"]), 3, "the process that asked has ended");
        assert!(open(&stage).is_empty());
        // One that is asked to stop says so itself.
        let mut asker = stage.relay(&["ask", "Which port?", "--wait"]).start(&stage.folder.join("asker.log"));
        let id = the_question(&stage);
        assert_eq!(asker.stop(), Some(1));
        check(&stage.run(&["asks", "answer", &id, "8080"]), 3, "the asker waits no more");
        // From another PID namespace nobody can tell, and it is answered as any other.
        let apart = |words: &[&str]| {
            let unshare = Program::new("unshare").args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
            unshare.arg(stage.binary()).args(words).envs(stage.environment()).within(&stage.project)
        };
        let mut asker = apart(&["ask", "Which host?", "--wait"]).start(&stage.folder.join("apart.log"));
        let id = the_question(&stage);
        assert_eq!(open(&stage).as_slice(), std::slice::from_ref(&id), "nothing shows that it has ended");
        stage.relay_ok(&["asks", "answer", &id, "localhost"]);
        assert_eq!(asker.ended(), Some(0));
        // The other way round.
        thread::scope(|scope| {
            let asker = scope.spawn(|| stage.run(&["ask", "Which user?", "--wait"]));
            let id = the_question(&stage);
            apart(&["asks", "answer", &id, "root"]).succeed();
            assert_eq!(asker.join().expect("it ends").stdout, "root\n");
        });
    });
}

#[test]
fn an_agent_never_answers_for_its_user() {
    let stage = stage();
    let id = asked(&stage, &["Deploy?"]);
    for (name, value) in [("RELAY_OPENCODE_SESSION", "ses_1"), ("RELAY_RUN", "01JD8Z3K5V0000000000000000")] {
        let refused = stage.relay(&["asks", "answer", &id, "yes"]).env(name, value).run();
        check(&refused, 4, "an agent cannot answer for its user");
    }
    assert_eq!(open(&stage), [id]);
}

#[test]
fn a_tool_asks_and_the_agent_needs_input_until_the_user_has_answered() {
    let stage = Arc::new(stage());
    let mut client = StdioClient::connected(
        stage.relay(&["mcp", "--tools", "asks"]).by_hand().start(&stage.folder.join("mcp.log")),
        "a client",
    );
    client.call("register_agent", json!({"name": "alice"}));
    assert_eq!(presence_of(&stage, "alice").as_deref(), Some("idle"));
    let user = thread::spawn({
        let stage = Arc::clone(&stage);
        move || {
            let id = the_question(&stage);
            assert_eq!(presence_of(&stage, "alice").as_deref(), Some("needs-input"));
            stage.relay_ok(&["asks", "answer", &id, "blue"]);
        }
    });
    let answer = client.call("ask_user", json!({"question": "Which colour?", "choices": ["red", "blue"]}));
    user.join().expect("the user answers");
    assert_eq!((&answer.structured["state"], &answer.structured["answer"]), (&json!("answered"), &json!("blue")));
    assert_eq!(answer.text, "your user answered: blue");
    assert_eq!(presence_of(&stage, "alice").as_deref(), Some("idle"));
    assert_eq!(client.close(), Some(0));
}

#[test]
fn an_agent_that_asked_without_waiting_gets_the_answer_as_mail() {
    let stage = stage();
    stage.relay_ok(&["register", "alice"]);
    let id = asked(&stage, &["Which port?", "--from", "alice"]);
    stage.relay_ok(&["asks", "answer", &id, "8080"]);
    let mail = stage.relay_ok(&["read", "--agent", "alice"]);
    assert!(mail.contains("Your user answered: 8080") && mail.contains("Which port?"), "{mail}");
}

/// The model of the real Claude Code asks by its tool; the answer comes from another terminal. Its own shell cannot give it.
#[test]
fn the_real_claude_code_asks_its_user() {
    isolated(|| {
        let stage = Arc::new(stage());
        let install = ["install", "claude-code", "--project", &stage.project_path(), "--tools", "core,asks", "--yes"];
        stage.relay_ok(&install);
        let answer = format!(
            "{} asks answer \"$({} asks --json | grep -o '\"id\":\"[^\"]*' | cut -d'\"' -f4)\" red",
            stage.binary().display(),
            stage.binary().display()
        );
        let bare = format!(
            "env -i PATH=\"$PATH\" HOME=\"$HOME\" RELAY_DIR='{}' sh -c '{}'",
            stage.data.display(),
            answer.replace('\'', "'\\''")
        );
        let command = format!(
            "{} ask 'By the shell?'; {answer}; echo first $?; {bare}; echo second $?",
            stage.binary().display()
        );
        let script = Script::new()
            .call("Join as alice", "mcp__relay-mesh__register_agent", json!({"name": "alice"}))
            .call(
                "outcome",
                "mcp__relay-mesh__ask_user",
                json!({"question": "Which colour?", "choices": ["red", "blue"]}),
            )
            .call("answered", "Bash", json!({"command": command, "description": "Answers itself"}))
            .say("second 4", "It is blue, and I cannot answer myself.");
        let model = Model::start(script);
        let user = thread::spawn({
            let stage = Arc::clone(&stage);
            move || {
                let id = the_question(&stage);
                assert_eq!(presence_of(&stage, "alice").as_deref(), Some("needs-input"));
                let listed = stage.relay_ok(&["asks"]);
                assert!(listed.contains("alice") && listed.contains("Which colour?"), "{listed}");
                stage.relay_ok(&["asks", "answer", &id, "blue"]);
            }
        });
        let asked = ClaudeCode::new(&stage, &model).ask("Join as alice, and ask which colour.", &[]);
        user.join().expect("the user answers");
        let told = model.heard().iter().map(test_support::Heard::news).collect::<Vec<_>>().join("\n");
        assert!(told.contains("first 4") && told.contains("second 4"), "{told}: {:?}", asked.outcome);
        assert_eq!(told.matches("an agent cannot answer for its user").count(), 2, "{told}");
    });
}
