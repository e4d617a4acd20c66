//! Looking back through the real binary: threads with both halves, search, export, what one sent; on files, on one server
//! and on three. The user sees the whole mesh and an agent only its own; nothing is changed by it.

use std::fs;

use serde_json::{Value, json};
use test_support::{Deployment, Stage};

test_support::on_every_store! { env!("CARGO_BIN_EXE_relay-mesh");
    both_halves_are_shown_with_what_became_of_each,
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn json_of(stage: &Stage, arguments: &[&str]) -> Value {
    let line = stage.relay_ok(&[arguments, &["--json"]].concat());
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn sent(stage: &Stage, words: &[&str]) -> String {
    json_of(stage, &[&["send"], words].concat())["id"].as_str().expect("an id").to_owned()
}

/// The values of a field in a list.
fn each<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().expect("a list").iter().filter_map(|one| one[field].as_str()).collect()
}

/// Alice asks bob, he answers; carol tells both of something else.
fn talk(stage: &Stage) -> (String, String) {
    for agent in ["alice", "bob", "carol"] {
        stage.relay_ok(&["register", agent]);
    }
    let question = sent(stage, &["bob", "Which port does the server use?", "--from", "alice"]);
    stage.relay_ok(&["read", "--agent", "bob", "--unread"]);
    let answer = sent(stage, &["alice", "It is 8080.", "--from", "bob", "--reply-to", &question]);
    sent(stage, &["alice,bob", "the <b>build</b> is red", "--from", "carol", "--thread", "build"]);
    (question, answer)
}

fn both_halves_are_shown_with_what_became_of_each(place: &mut Deployment) {
    let stage = &place.stage;
    let (question, answer) = talk(stage);
    let thread = json_of(stage, &["thread", &answer]);
    assert_eq!((&thread["thread"], &thread["earlier"]), (&json!(question), &json!(0)));
    assert_eq!(each(&thread["messages"], "body"), ["Which port does the server use?", "It is 8080."]);
    let statuses: Vec<Vec<&str>> = thread["messages"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|message| each(&message["recipients"], "status"))
        .collect();
    assert_eq!(statuses, [["acknowledged"], ["stored"]]);
    let build = json_of(stage, &["thread", "build"]);
    assert_eq!(each(&build["messages"][0]["recipients"], "to"), ["alice", "bob"], "once, with both recipients");

    let threads = json_of(stage, &["threads"]);
    assert_eq!(each(&threads["threads"], "thread"), ["build", &question]);
    assert_eq!(threads["threads"][1]["agents"], json!(["alice", "bob"]));
    assert_eq!(threads["threads"][1]["waiting"], 1);
    let pairs = json_of(stage, &["threads", "--pairs"]);
    assert_eq!(pairs["pairs"].as_array().map(Vec::len), Some(4), "{pairs}");

    let found = json_of(stage, &["search", "PORT"]);
    assert_eq!((&found["found"], &found["hits"][0]["thread"]), (&json!(1), &json!(question)));
    let built = json_of(stage, &["search", "build", "--from", "carol"]);
    assert_eq!(built["hits"][0]["recipients"], json!(["alice", "bob"]));
    let sent = json_of(stage, &["read", "--sent", "--agent", "carol"]);
    assert_eq!(each(&sent["messages"][0]["recipients"], "to"), ["alice", "bob"]);
    // Another machine sees the same.
    if !place.servers.is_empty() {
        let other = place.another_machine();
        assert_eq!(json_of(&other, &["thread", &question]), thread);
        assert_eq!(json_of(&other, &["search", "8080"])["hits"][0]["id"], json!(answer));
    }
}

#[test]
fn people_read_it_without_json() {
    let stage = stage();
    let (question, answer) = talk(&stage);
    let thread = stage.relay_ok(&["thread", &question[..20]]);
    assert!(thread.starts_with(&format!("{question}  alice → bob  ")), "{thread}");
    assert!(thread.contains("\n  Which port does the server use?\n  · bob: acknowledged 20"), "{thread}");
    assert!(thread.contains(&format!("answers {question}\n  It is 8080.\n  · alice: stored 20")), "{thread}");
    let threads = stage.relay_ok(&["threads"]);
    assert!(
        threads.lines().nth(1).is_some_and(|line| line.starts_with("build") && line.contains("carol")),
        "{threads}"
    );
    let found = stage.relay_ok(&["search", "8080"]);
    assert!(found.starts_with(&answer) && found.ends_with("  It is 8080.\n"), "{found}");
    let listed = stage.relay_ok(&["read", "--list", "--agent", "alice"]);
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let sent = stage.relay_ok(&["read", "--sent", "--list", "--agent", "carol"]);
    assert!(sent.lines().skip(1).all(|line| line.contains("  stored  ")) && sent.lines().count() == 3, "{sent}");
    let short = stage.run(&["threads", "--last", "1"]);
    assert!(short.stderr.contains("1 conversation besides"), "{short:?}");
    for (arguments, code, words) in [
        (&["thread", "nothing"][..], 3, "no thread and no message that you know of is called `nothing`"),
        (&["export", "nothing", "--format", "md"], 3, "relay-mesh threads"),
        (&["search", " "], 2, "there is no word to look for"),
        (&["search", "nothing-like-it"], 0, "no message has these words"),
        (&["search", "port", "--to", "nobody"], 0, "no agent named `nobody` has joined"),
        (&["read", "--sent"], 2, "it is not clear for which agent you ask"),
        (&["read", "--sent", "--unread"], 2, "cannot be used with"),
    ] {
        let outcome = stage.run(arguments);
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert!(outcome.stderr.contains(words), "{arguments:?}: {}", outcome.stderr);
    }
}

#[test]
fn looking_back_counts_as_reading_nothing() {
    let stage = stage();
    let (question, _) = talk(&stage);
    for arguments in [
        &["thread", question.as_str()][..],
        &["thread", question.as_str(), "--agent", "alice"],
        &["threads"],
        &["search", "8080", "--agent", "alice"],
        &["read", "--list", "--agent", "alice"],
        &["read", "--sent", "--agent", "bob"],
        &["export", question.as_str(), "--format", "md"],
    ] {
        stage.relay_ok(arguments);
    }
    let unread = json_of(&stage, &["read", "--unread", "--agent", "alice"]);
    assert_eq!(each(&unread["messages"], "status"), ["stored", "stored"], "{unread}");
}

#[test]
fn an_agent_sees_its_own_mail_and_its_user_sees_all() {
    let stage = stage();
    let (question, _) = talk(&stage);
    let as_carol = |arguments: &[&str]| stage.run(&[arguments, &["--agent", "carol"]].concat());
    for arguments in [&["thread", question.as_str()][..], &["export", question.as_str(), "--format", "json"]] {
        let refused = as_carol(arguments);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(3), ""), "{refused:?}");
    }
    assert_eq!(as_carol(&["search", "port"]).stdout, "");
    assert_eq!(as_carol(&["threads"]).stdout.lines().count(), 2, "the one that she began");
    // In the shell of a session that has a name, without a word about it.
    let session = [("RELAY_OPENCODE_SESSION", "ses_1")];
    stage.relay(&["register", "dora"]).envs(session).succeed();
    stage.relay_ok(&["send", "dora", "for dora alone", "--from", "alice"]);
    let seen = stage.relay(&["search", "the"]).envs(session).run();
    assert_eq!((seen.code, seen.stdout.as_str()), (Some(0), ""), "{seen:?}");
    assert!(stage.relay(&["search", "dora"]).envs(session).succeed().contains("for dora alone"));
    let other = stage.relay(&["search", "port", "--agent", "dora"]).run();
    assert_eq!((other.code, other.stdout.as_str()), (Some(0), ""), "the user looks as dora: {other:?}");
    // Of a shell that is an agent's and has no name, nobody can say what is its own.
    for (name, value) in [("RELAY_OPENCODE_SESSION", "ses_2"), ("RELAY_RUN", "01JD8Z3K5V0000000000000000")] {
        for arguments in [&["threads"][..], &["search", "port"], &["thread", &question]] {
            let refused = stage.relay(arguments).env(name, value).run();
            assert_eq!((refused.code, refused.stdout.as_str()), (Some(4), ""), "{refused:?}");
            assert!(refused.stderr.contains("an agent cannot look at everybody's mail for its user"), "{refused:?}");
        }
    }
}

#[test]
fn an_exported_file_is_whole_or_not_there_and_only_the_user_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let stage = stage();
    talk(&stage);
    let file = stage.folder.join("build.html");
    let path = file.display().to_string();
    let arguments = ["export", "build", "--format", "html", "--out", &path];
    let killed = stage.run_killed_at("rename", 1, arguments);
    assert_eq!(killed.code, None, "{killed:?}");
    assert!(!file.exists(), "a file that was not finished is not there");
    stage.relay_ok(&arguments);
    let page = fs::read_to_string(&file).expect("written");
    assert!(page.contains("the &lt;b&gt;build&lt;/b&gt; is red") && page.ends_with("</html>\n"), "{page}");
    assert_eq!(fs::metadata(&file).expect("written").permissions().mode() & 0o777, 0o600);
    assert_eq!(
        fs::read_dir(&stage.folder)
            .expect("a folder")
            .flatten()
            .filter(|one| { one.file_name().to_string_lossy().contains(".relay-mesh-new.") })
            .count(),
        0,
        "what the killed process left is gone"
    );
    let markdown = stage.relay_ok(&["export", "build", "--format", "md"]);
    assert!(markdown.contains("```text\nthe <b>build</b> is red\n```"), "{markdown}");
    let exported: Value =
        serde_json::from_str(&stage.relay_ok(&["export", "build", "--format", "json"])).expect("JSON");
    assert_eq!(exported, json_of(&stage, &["thread", "build"]));
    let nowhere = stage.run(&["export", "build", "--format", "md", "--out", "/nonexistent/file.md"]);
    assert!(nowhere.code == Some(1) && nowhere.stderr.contains("could not be written"), "{nowhere:?}");
}
