//! A data folder from before 0.1, made by that binary (commit 62019fd) with two shells, a session of Claude Code, mail
//! at every delivery status, and commands. Today's binary reads all of it and upgrades it once.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use test_support::Stage;

/// The session in that folder, below `sessions/claude-code/`.
const SESSION: &str = "sessions/claude-code/5d20e1e5-4937-4c69-a085-49c47ebb9562.json";

#[test]
fn mail_and_receipts_of_an_older_folder_are_there_in_the_words_of_today() {
    let stage = older_folder();
    for (id, expected) in [
        ("01M828QMESAY7C71NQV8PM73KP", ["stored", "read"].as_slice()),
        ("01M828QMJX0T6NF9JQV7FPT81D", &["stored", "read", "acknowledged"]),
        ("01M828QN9VQ5H5V59X5264W3BC", &["stored"]),
        ("01M828RQKTFQQQY59C65B55K5S", &["stored", "notified", "shown"]),
        ("01M828RQQJ5SQ4E8018NSKM0B3", &["stored", "notified"]),
    ] {
        let message = parse(&stage.relay_ok(&["message", id, "--json"]));
        let history = message["recipients"][0]["history"].as_array().expect("a history").iter();
        assert_eq!(
            history.map(|step| step["status"].as_str().unwrap_or_default()).collect::<Vec<_>>(),
            expected,
            "{id}"
        );
    }
    let unread = stage.relay_ok(&["read", "--agent", "bob", "--unread"]);
    assert!(unread.contains("unread one") && unread.contains("unread two"), "{unread}");
    assert!(!unread.contains("read one\n  read one") && !unread.contains("acknowledged one"), "{unread}");
    let events = stage.relay_ok(&["log", "--type", "registered", "--since", "3650d"]);
    assert_eq!(events.lines().filter(|line| line.contains("registered")).count(), 3, "{events}");

    stage.relay_ok(&["send", "bob", "of today", "--from", "alice"]);
    assert!(stage.relay_ok(&["read", "--agent", "bob", "--unread"]).contains("of today"), "the folder goes on");
}

#[test]
fn records_of_an_older_folder_are_rewritten_once_and_what_was_killed_in_between_goes_on() {
    let stage = older_folder();
    stage.relay_ok(&["agents"]);
    let at = |path: &str| parse(&read(&stage.data.join(path)))["value"].clone();
    assert_eq!(at(SESSION)["activity"], "needs-input");
    assert_eq!(at("agents/carol/meta.json")["profile"]["issue"], "RM-2");
    assert_eq!(at("agents/carol/meta.json")["machine"], json!(read(&stage.data.join("machine")).trim()));
    assert_eq!(at("commands/01M828QNE9YHQ46507ZW9P7FN1.json")["stage"]["is"], "running");
    assert!(!stage.data.join("host").exists(), "the machine's name has the name of today");

    let rewritten = read(&stage.data.join(SESSION));
    stage.relay_ok(&["agents"]);
    assert_eq!(read(&stage.data.join(SESSION)), rewritten, "once is enough");

    // As after a kill between the last record and the end.
    fs::rename(stage.data.join("machine"), stage.data.join("host")).expect("the stage is writable");
    stage.relay_ok(&["agents"]);
    assert_eq!(read(&stage.data.join(SESSION)), rewritten);
    assert!(stage.data.join("machine").exists());

    // As after a binary from before 0.1 has opened the upgraded folder, found no name, and made one up.
    let name = read(&stage.data.join("machine"));
    fs::write(stage.data.join("host"), "made-up-1").expect("the stage is writable");
    stage.relay_ok(&["agents"]);
    assert_eq!(read(&stage.data.join("machine")), name, "the machine stays who it is");
    assert!(!stage.data.join("host").exists());
}

#[test]
fn a_folder_of_a_later_version_is_refused_and_left_as_it_is() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.relay_ok(&["register", "alice"]);
    stage.relay_ok(&["send", "alice", "of today", "--from", "alice"]);
    fs::write(stage.data.join("format"), "2\n").expect("the stage is writable");
    let before = stage.tree(&stage.data);
    for arguments in [
        &["agents"][..],
        &["status"],
        &["register", "bob"],
        &["send", "alice", "one more", "--from", "alice"],
        &["read", "--agent", "alice"],
        &["gc"],
        &["mcp"],
        &["serve"],
        &["up"],
        &["listen", "--agent", "alice"],
        &["store", "size"],
    ] {
        let refused = stage.relay(arguments).run();
        assert_eq!(refused.code, Some(5), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains("of a later version: its format is `2`"), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains("hint: nothing was changed"), "{arguments:?}: {refused:?}");
    }
    // A harness is not to be kept from working.
    let payload = json!({"session_id": "s1", "hook_event_name": "SessionStart", "source": "startup", "cwd": "/"});
    let hook = stage.relay(&["hook", "claude-code", "SessionStart"]).input(payload.to_string()).run();
    assert_eq!(hook.code, Some(0), "{hook:?}");
    assert_eq!(stage.tree(&stage.data), before, "nothing was written");
    fs::write(stage.data.join("format"), "1\n").expect("the stage is writable");
    assert!(stage.relay_ok(&["read", "--agent", "alice"]).contains("of today"));
}

/// A stage with that data folder.
fn older_folder() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/data-folder-before-0.1"), &stage.data);
    stage
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the stage is writable");
    for entry in fs::read_dir(from).expect("the fixture can be read") {
        let entry = entry.expect("the fixture can be read");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("the stage is writable");
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
