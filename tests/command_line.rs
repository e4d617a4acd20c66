//! Two shells talk and a script reads the output: the real binary's exit code, standard output and standard error
//! together.

use std::fs::File;
use std::path::PathBuf;

use serde_json::Value;
use test_support::{Outcome, Program, Stage, wait_for};

/// Replaces what differs between runs.
const FILTERS: &[(&str, &str)] = &[
    (r"\b[0-9A-HJKMNP-TV-Z]{26}\b", "[ID]"),
    (r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z", "[TIME]"),
    (r"just now|\d+ s ago", "[AGO]"),
    // Column widths depend on the longest path or age.
    (r"(\S) {2,}", "$1  "),
];

/// Compares what a script of commands printed with the snapshot of that name.
macro_rules! check {
    ($stage:expr, $name:literal, $outcomes:expr) => {{
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/snapshots"));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.add_filter(&$stage.folder.display().to_string().replace('.', r"\."), "[STAGE]");
        for (pattern, word) in FILTERS {
            settings.add_filter(pattern, *word);
        }
        settings.bind(|| insta::assert_snapshot!($name, $outcomes));
    }};
}

#[test]
fn a_dash_in_the_place_of_the_text_is_standard_input() {
    let stage = stage();
    stage.relay_ok(&["register", "dash"]);
    stage.relay(&["send", "dash", "-"]).input("from a pipe").succeed();
    let read = stage.relay_ok(&["read", "--agent", "dash", "--unread", "--peek"]);
    assert!(read.contains("from a pipe"), "{read}");
    let twice = stage.relay(&["send", "dash", "text", "--stdin"]).input("from a pipe").run();
    assert_eq!(twice.code, Some(2), "{twice:?}");
}

#[test]
fn two_shells_talk() {
    let stage = stage();
    let mut told = String::new();
    let mut run = |arguments: &[&str]| {
        let outcome = stage.run(arguments);
        told.push_str(&shown(arguments, &outcome));
        outcome
    };
    run(&["agents"]);
    run(&["register", "alice", "--role", "writes the parser"]);
    run(&["register", "bob", "--task", "reviews"]);
    let sent =
        run(&["send", "bob", "Please look at the parser.\nIt is on the branch.", "--from", "alice", "--tag", "review"]);
    run(&["read", "--agent", "bob"]);
    run(&["read", "--agent", "bob", "--unread"]);
    let id = id_in(&sent.stdout);
    run(&["send", "alice", "It looks right.", "--from", "bob", "--reply-to", &id]);
    run(&["message", &id, "--agent", "alice"]);
    run(&["read", "--agent", "alice", "--unread", "--mark-read"]);
    run(&["status"]);
    check!(stage, "two-shells-talk", told);
}

#[test]
fn a_script_reads_along_in_json() {
    let stage = stage();
    let json = |arguments: &[&str]| -> Value {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        let line = stage.relay_ok(&arguments);
        assert_eq!(line.lines().count(), 1, "one value on one line: {line}");
        serde_json::from_str(&line).expect("JSON")
    };
    assert_eq!(json(&["register", "alice"])["outcome"], "new");
    json(&["register", "bob"]);
    let sent = json(&["send", "bob", "one", "--from", "alice", "--priority", "high"]);
    assert_eq!((&sent["from"], &sent["recipients"][0]["status"]), (&"alice".into(), &"stored".into()));
    let mail = json(&["read", "--agent", "bob"]);
    let message = &mail["messages"][0];
    assert_eq!((&message["id"], &message["priority"], &message["body"]), (&sent["id"], &"high".into(), &"one".into()));
    assert_eq!(message["status"], "stored", "where it stood before it was read");
    let id = sent["id"].as_str().expect("an id");
    let acknowledged = json(&["ack", id, "--agent", "bob"]);
    assert_eq!(acknowledged["acknowledged"][0]["again"], false);
    assert_eq!(json(&["ack", id, "--agent", "bob"])["acknowledged"][0]["again"], true);
    let history = json(&["message", id]);
    let statuses: Vec<&Value> =
        history["recipients"][0]["history"].as_array().expect("history").iter().map(|step| &step["status"]).collect();
    assert_eq!(statuses, ["stored", "read", "acknowledged"]);
    assert_eq!(json(&["status"])["waiting"], 0);
    assert_eq!(json(&["version"])["version"], env!("CARGO_PKG_VERSION"));
    let refused = stage.run(&["--json", "send", "carol", "hi"]);
    let error: Value = serde_json::from_str(&refused.stderr).expect("JSON");
    assert_eq!((refused.code, &error["exit"]), (Some(3), &3.into()), "{error}");
}

#[test]
fn a_command_line_that_is_not_well_formed_is_told_in_json_too() {
    let stage = stage();
    let check = |arguments: &[&str], wrong: &str, hint: &str| {
        let outcome = stage.run(arguments);
        let error: Value = serde_json::from_str(&outcome.stderr).expect("one value");
        assert_eq!((outcome.code, &error["exit"]), (Some(2), &2.into()), "{arguments:?}");
        assert_eq!((&error["error"], &error["hint"]), (&wrong.into(), &hint.into()), "{arguments:?}");
    };
    let see = "see what `--help` says of this command";
    check(
        &["--json", "message", "01"],
        "invalid value '01' for '<ID>': `01` is not an id: one is 26 letters and digits, as in 01JD8Z3K5V0000000000000000, and at least its first 6 are needed",
        see,
    );
    check(
        &["send", "bob", "x", "--json", "--priority", "loud"],
        "invalid value 'loud' for '--priority <PRIORITY>' [possible values: low, normal, high, urgent]",
        "a similar value exists: 'low'",
    );
    let mistyped = stage.run(&["--json", "agent"]);
    let error: Value = serde_json::from_str(&mistyped.stderr).expect("one value");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("'agents'")), "{error}");
    let asked_for = stage.run(&["send", "--json", "--help"]);
    assert!(asked_for.code == Some(0) && asked_for.stdout.contains("Usage:"), "help is help");
    let of_the_text = stage.run(&["send", "--nope", "--", "--json"]);
    assert!(of_the_text.stderr.starts_with("error: unexpected argument"), "{}", of_the_text.stderr);
}

#[test]
fn the_same_key_is_stored_once() {
    let stage = stage();
    for name in ["alice", "bob"] {
        stage.relay_ok(&["register", name]);
    }
    let send = || stage.relay_ok(&["send", "bob", "deployed", "--from", "alice", "--idempotency-key", "deploy-7"]);
    let (first, second) = (send(), send());
    assert_eq!(id_in(&first), id_in(&second));
    assert!(second.contains("had been sent before"), "{second}");
    let other = |to| stage.run(&["send", to, "rolled back", "--from", "alice", "--idempotency-key", "deploy-7"]);
    let refused = other("bob");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let (error, hint) = refused.stderr.split_once("\nhint: ").expect("an error and a hint");
    let id = id_in(&first);
    assert_eq!(error, format!("error: the idempotency key `deploy-7` stands for another message to `bob`, `{id}`"));
    assert!(hint.starts_with("use a new key for a new message"), "{hint}");
    stage.relay_ok(&["register", "anna"]);
    let half = other("anna,bob");
    assert_eq!(half.code, Some(1), "something was done: {half:?}");
    assert!(half.stderr.contains("hint: it was stored for `anna`; use a new key for a new message"), "{half:?}");
    let read = stage.relay_ok(&["read", "--agent", "bob"]);
    assert_eq!((read.matches("deployed").count(), read.matches("rolled back").count()), (1, 0), "{read}");
}

#[test]
fn a_name_is_in_the_team_that_it_says_or_nothing_is_registered() {
    let stage = stage();
    let refused = stage.run(&["register", "anna@red", "--team", "blue"]);
    let expected = "error: the name `anna@red` already has a team, which is not `blue`\n\
        hint: leave `--team` out, or write `anna@blue`\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (Some(2), expected));
    assert_eq!(stage.relay_ok(&["agents", "--json"]).matches("anna").count(), 0, "nobody was registered");
    assert!(stage.relay_ok(&["register", "anna@red", "--team", "red"]).contains("anna@red"));
    let usual = stage.relay(&["register", "bob@red"]).env("RELAY_TEAM", "blue").succeed();
    assert!(usual.contains("bob@red"), "what is usual gives way to what a name says: {usual}");
}

#[test]
fn a_message_whose_id_cannot_be_printed_is_said_to_be_stored() {
    let stage = stage();
    stage.relay_ok(&["register", "bob"]);
    let script = "exec \"$0\" send bob 'only once' >/dev/full";
    let unsaid = Program::new("sh").args(["-c", script]).arg(stage.binary()).envs(stage.environment()).run();
    let id = id_in(&unsaid.stderr.replace('`', " "));
    let expected = format!("error: the message is stored, as `{id}`, but nothing could be printed");
    assert!(unsaid.code == Some(1) && unsaid.stderr.starts_with(&expected), "{unsaid:?}");
    assert!(unsaid.stderr.contains("hint: do not send it again"), "{unsaid:?}");
    assert!(stage.relay_ok(&["message", &id]).contains("bob"), "the id is the message's");
}

#[test]
fn a_settings_file_that_lies_elsewhere_by_a_link_is_refused_with_what_to_do() {
    let stage = stage();
    let elsewhere = stage.folder.join("elsewhere.json");
    std::fs::write(&elsewhere, "{}").expect("the stage is writable");
    std::os::unix::fs::symlink(&elsewhere, stage.project.join(".mcp.json")).expect("the stage is writable");
    let refused = stage.run(&["install", "claude-code", "--project", ".", "--yes"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("leads out of the root `project` by a symbolic link"), "{refused:?}");
    assert!(refused.stderr.contains("\nhint: replace the link by a file"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&elsewhere).expect("it is still there"), "{}");
}

#[test]
fn who_finds_nothing_is_told_so_and_of_a_name_that_nobody_has() {
    let stage = stage();
    let check = |arguments: &[&str], expected: &str| {
        let outcome = stage.run(arguments);
        assert_eq!((outcome.code, outcome.stderr.trim()), (Some(0), expected), "{arguments:?}");
    };
    check(&["log"], "nothing has happened yet");
    stage.relay_ok(&["register", "bob"]);
    let nobody = ", and no agent named `bop` has joined: `relay-mesh agents` shows who has";
    check(&["log", "--type", "reserved", "--type", "invited"], "nothing of that kind has happened: reserved, invited");
    for unknown in [&["log", "--agent", "bop"][..], &["threads", "--with", "bop"]] {
        let outcome = stage.run(unknown);
        assert_eq!(outcome.code, Some(3), "{outcome:?}");
        assert!(
            outcome.stderr.contains("no agent named `bop` has joined") && outcome.stderr.contains("`bob`"),
            "{outcome:?}"
        );
    }
    check(&["log", "--agent", "shell"], "nothing of that kind has happened");
    check(&["reservations", "--agent", "bop"], &format!("nothing is reserved{nobody}"));
    check(&["reservations", "--agent", "bob"], "nothing is reserved");
    check(&["cmd", "list", "--to", "bop"], &format!("no command waits or is being worked on{nobody}"));
    check(&["cmd", "list", "--all"], "no command is kept");
    check(&["read", "--agent", "bob"], "no mail for bob");
    stage.relay_ok(&["send", "bob", "hello"]);
    let besides = "1 message waits besides; `relay-mesh read --unread --agent bob` shows the oldest";
    check(&["read", "--agent", "bob", "--thread", "x"], &format!("no such mail for bob\n{besides}"));
    check(&["read", "--agent", "bob", "--from", "bop"], &format!("no such mail for bob{nobody}\n{besides}"));
}

#[test]
fn bash_completes_what_stands_below_a_command() {
    let stage = stage();
    let script = stage.folder.join("completions.bash");
    std::fs::write(&script, stage.relay_ok(&["completions", "bash"])).expect("the stage is writable");
    let check = |line: &str, expected: &str| {
        let complete = format!(
            "source '{}'; COMP_WORDS=(relay-mesh {line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _relay__mesh relay-mesh \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let told = Program::new("bash").arg("-c").arg(complete).envs(stage.environment()).succeed();
        assert_eq!(told.trim(), expected, "{line}");
    };
    check("hea", "heartbeat");
    check("send --pri", "--priority");
    check("send bob --priority ''", "low normal high urgent");
    check("wait-for --until", "--until-stale");
    check("plugin ins", "install inspect");
    check("reservations mode ad", "advise");
    check("detect-harness --j", "--json");
}

#[test]
fn bash_completes_the_names_of_agents_and_harnesses() {
    let stage = stage();
    let script = stage.folder.join("completions.bash");
    std::fs::write(&script, stage.relay_ok(&["completions", "bash"])).expect("the stage is writable");
    for name in ["alice", "alba", "bob"] {
        stage.relay_ok(&["register", name]);
    }
    let check = |line: &str, expected: &str| {
        // As bash calls it: by what `complete` has set for the command.
        let complete = format!(
            "source '{}'; words=(relay-mesh {line}); COMP_WORDS=('{}' \"${{words[@]:1}}\"); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             function=$(complete -p relay-mesh | sed 's/.*-F \\([^ ]*\\).*/\\1/'); \
             $function \"${{COMP_WORDS[0]}}\" \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             echo \"${{COMPREPLY[@]}}\"",
            script.display(),
            stage.binary().display(),
        );
        let told = Program::new("bash").arg("-c").arg(complete).envs(stage.environment()).succeed();
        assert_eq!(told.trim(), expected, "{line}");
    };
    check("send al", "alba alice");
    check("send bob 'hi' --from a", "alba alice");
    check("read --agent bo", "bob");
    check("install cl", "claude-code");
    check("broadcast", "");
    check("hea", "heartbeat");
    check("send --pri", "--priority");
}

#[test]
fn what_people_type_is_taken_as_it_is_meant() {
    let stage = stage();
    stage.relay_ok(&["register", "Alice"]);
    stage.relay_ok(&["register", "bob"]);
    let id = stage.relay_ok(&["send", "BOB", "hello", "--from", "alice", "--json"]);
    let sent: serde_json::Value = serde_json::from_str(&id).expect("JSON");
    let id = sent["id"].as_str().expect("an id");
    let status = stage.relay_ok(&["message", &id[..24]]);
    assert!(status.contains(id), "{status}");
    let short = stage.run(&["message", &id[..4]]);
    assert!(short.code == Some(2) && short.stderr.contains("is not an id"), "{short:?}");
    stage.relay_ok(&["ack", &id[..24].to_lowercase(), "--agent", "bob"]);
    let near = stage.run(&["send", "bbo", "hello", "--from", "alice"]);
    assert!(near.code == Some(3) && near.stderr.contains("`bob`"), "{near:?}");
    let kinds = stage.run(&["log", "--type", "send"]);
    assert!(
        kinds.code == Some(2)
            && kinds.stderr.contains("released, reservation-taken, reserved, resumed, run-ended, run-started, sent,"),
        "{kinds:?}"
    );
    assert!(stage.relay_ok(&["log", "--since", "3600", "--type", "sent"]).contains("sent"));
}

#[test]
fn a_wake_that_wrote_a_file_says_that_and_no_more() {
    let stage = stage();
    let told = stage.run(&["wake", "the nightly run has ended"]);
    let trigger = stage.data.join("wake/trigger");
    assert_eq!(told.code, Some(0), "{told:?}");
    let file = told.stdout.lines().last().unwrap_or_default();
    assert_eq!(file, format!("file worked: wrote {}; no watcher is known", trigger.display()), "{told:?}");
    assert!(!told.stdout.contains("woke"), "{told:?}");
}

#[test]
fn looking_changes_nothing_and_reading_does() {
    let stage = stage();
    for name in ["alice", "bob"] {
        stage.relay_ok(&["register", name]);
    }
    let id = id_in(&stage.relay_ok(&["send", "bob", "hello", "--from", "alice"]));
    let status = || {
        let history: Value = serde_json::from_str(&stage.relay_ok(&["message", &id, "--json"])).expect("JSON");
        history["recipients"][0]["status"].as_str().expect("a status").to_owned()
    };
    stage.relay_ok(&["read", "--agent", "bob", "--peek"]);
    assert_eq!(status(), "stored");
    let piped = Program::new("sh").arg("-c").arg("\"$0\" read --agent bob | true").arg(stage.binary());
    let piped = piped.envs(stage.environment()).within(&stage.project).run();
    assert_eq!((piped.code, piped.stderr.as_str()), (Some(0), ""), "a reader that went away is no error");
    stage.relay_ok(&["read", "--agent", "bob"]);
    assert_eq!(status(), "read");
    stage.relay_ok(&["read", "--agent", "bob", "--mark-read"]);
    assert_eq!(status(), "acknowledged");
}

#[test]
fn settings_say_where_they_came_from() {
    let stage = stage();
    stage.configure("team = \"backend\"\ndurability = \"process\"\n");
    std::fs::write(stage.project.join(".relay-mesh.toml"), "agent = \"alice\"\n").expect("the stage is writable");
    let mut told = String::new();
    for arguments in
        [&["config"][..], &["config", "--durability", "disk", "--dir", "elsewhere"], &["register", "alice"]]
    {
        told.push_str(&shown(arguments, &stage.run(arguments)));
    }
    check!(stage, "settings-say-where-they-came-from", told);
}

#[test]
fn the_help_is_what_people_read() {
    let stage = stage();
    let mut told = String::new();
    for arguments in [&["--help"][..], &["help", "exit-codes"], &["read", "-h"]] {
        told.push_str(&shown(arguments, &stage.run(arguments)));
    }
    check!(stage, "the-help-is-what-people-read", told);
}

#[test]
fn a_hook_never_stops_its_harness() {
    let stage = stage();
    let broken =
        |path: &str, text: &str| std::fs::write(stage.project.join(path), text).expect("the stage is writable");
    let check = |case: &str, arguments: &[&str], input: &str, expected: &str| {
        let outcome = stage.relay(arguments).input(input).run();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""), "{case}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{case}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(expected), "{case}: {}", outcome.stderr);
    };
    check("a harness that nobody knows", &["hook", "nope", "Stop"], "{}", "no adapter is named `nope`");
    check("no event", &["hook", "claude-code"], "", "required arguments");
    check("a flag of another version", &["hook", "--later"], "", "unexpected argument");
    check(
        "a payload without end",
        &["hook", "claude-code", "Stop"],
        &"x".repeat(8 * 1024 * 1024 + 1),
        "more than 8388608 bytes",
    );
    check("no data folder", &["hook", "claude-code", "Stop", "--dir", "/proc/nowhere"], "{}", "cannot be used");
    broken(".relay-mesh.toml", "team = 1\n");
    check("settings that are broken", &["hook", "claude-code", "Stop"], "{}", "expected a string");
}

#[test]
fn a_setting_of_a_newer_version_turns_no_hook_off() {
    let stage = stage();
    std::fs::write(stage.project.join(".relay-mesh.toml"), "[reservations]\nmode = 'enforce'\nnewer = 1\n")
        .expect("the stage is writable");
    let edit = serde_json::json!({
        "session_id": "s", "cwd": stage.project, "hook_event_name": "PreToolUse", "tool_name": "Write",
        "tool_input": { "file_path": stage.project.join("a.txt"), "content": "x" },
    });
    stage.relay_ok(&["register", "bob"]);
    stage.relay_ok(&["reserve", "a.txt", "--from", "bob"]);
    // Its adapter may have to be compiled first.
    let hook = ["hook", "claude-code", "PreToolUse", "--timeout", "60"];
    let outcome = stage.relay(&hook).input(edit.to_string()).run();
    assert!(outcome.stdout.contains(r#""permissionDecision":"deny""#), "{outcome:?}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    assert!(outcome.stderr.contains("line 3: `newer` is no setting that this version knows"), "{outcome:?}");
}

#[test]
fn the_example_of_a_hook_can_be_typed_as_it_stands() {
    let stage = stage();
    let help = stage.relay_ok(&["help", "hook"]);
    let example = help.split("By hand:").nth(1).expect("an example").split_whitespace().collect::<Vec<_>>().join(" ");
    let piped = example.replace("relay-mesh", &format!("'{}'", stage.binary().display()));
    let ran = Program::new("sh").args(["-c", &piped]).envs(stage.environment()).within(&stage.project).run();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{example}");
    assert!(ran.stdout.contains("hookSpecificOutput"), "{example}: {}", ran.stdout);
}

#[test]
fn a_hook_that_is_given_up_leaves_its_adapter_to_be_compiled() {
    let stage = stage();
    let locks = to_be_compiled_again(&stage);
    let outcome = stage.relay(&["hook", "claude-code", "Stop"]).input("{}").run();
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("given up; its adapter is being compiled, which happens once"),
        "{}",
        outcome.stderr
    );
    assert_eq!(kept(&stage, "cwasm"), Vec::<PathBuf>::new());
    drop(locks);
    wait_for("what the hook waited for is there for the next one", || {
        (!kept(&stage, "cwasm").is_empty()).then_some(())
    });
}

#[test]
fn each_command_that_is_told_is_for_the_folder_that_was_named() {
    let stage = stage();
    let data = stage.folder.join("of two words").display().to_string();
    let told = stage.run(&["--dir", &data, "runs", "list"]).stderr;
    assert!(told.contains(&format!("`relay-mesh --dir '{data}' run HARNESS TASK`")), "a note: {told}");
    let told = stage.run(&["--dir", &data, "runs", "show", "last"]).stderr;
    assert!(told.contains(&format!("`relay-mesh --dir '{data}' ")), "a hint: {told}");
    assert!(!stage.run(&["runs", "list"]).stderr.contains("--dir"));
}

#[test]
fn a_hook_that_alone_can_say_something_waits_until_its_adapter_is_compiled() {
    let stage = stage();
    let locks = to_be_compiled_again(&stage);
    let payload = r#"{"session_id":"s","cwd":"/tmp","hook_event_name":"SessionStart","source":"startup"}"#;
    let outcome = std::thread::scope(|scope| {
        let hook = stage.relay(&["hook", "claude-code", "SessionStart", "--timeout", "50"]).input(payload);
        let hook = scope.spawn(move || hook.run());
        let data = stage.data.display().to_string();
        let left = ["--dir", &data, "plugin", "verify", "claude-code"].join("\0");
        wait_for("where others are given up, somebody goes on", || runs(&left).then_some(()));
        drop(locks);
        hook.join().expect("it ran")
    });
    assert!(outcome.stdout.contains("\"watchPaths\":[\""), "{outcome:?}");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
}

/// Removes the compiled adapters and holds the locks for compiling them, so that other processes wait.
fn to_be_compiled_again(stage: &Stage) -> Vec<File> {
    stage.forget_compiled_adapters();
    stage.relay_ok(&["plugin", "verify", "claude-code"]);
    let compiled = kept(stage, "cwasm");
    compiled.iter().for_each(|code| std::fs::remove_file(code).expect("the cache can be deleted at any time"));
    let locks: Vec<File> = kept(stage, "lock").iter().map(|lock| File::open(lock).expect("a lock file")).collect();
    assert!(!locks.is_empty(), "what was compiled was locked");
    locks.iter().for_each(|lock| lock.lock().expect("nobody else compiles"));
    locks
}

/// The files in the adapters' cache with this extension.
fn kept(stage: &Stage, extension: &str) -> Vec<PathBuf> {
    let found = std::fs::read_dir(stage.home.join(".cache/relay-mesh/adapters")).expect("the cache is there");
    let paths = found.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// Whether a process is running whose command line ends with these arguments.
fn runs(arguments: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("a list of processes").flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).trim_end_matches('\0').ends_with(arguments))
}

/// A command and its output, as a user would paste it.
fn shown(arguments: &[&str], outcome: &Outcome) -> String {
    let code = outcome.code.map_or_else(|| "by a signal".to_owned(), |code| code.to_string());
    let quoted = arguments.iter().map(|argument| match argument.contains([' ', '\n']) {
        true => format!("'{argument}'"),
        false => (*argument).to_owned(),
    });
    let command = quoted.collect::<Vec<_>>().join(" ");
    let talk = format!("── {code} ── {}", outcome.stderr);
    format!("$ relay-mesh {command}\n{}{}\n\n", outcome.stdout, talk.trim_end())
}

/// The first message's id in a text.
fn id_in(text: &str) -> String {
    text.split_whitespace().find(|word| word.len() == 26).expect("an id").to_owned()
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}
