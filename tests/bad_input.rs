//! Errors of users, disks and programs, against the real binary: exit code, standard output and standard error
//! together, with paths, ids and times filtered. Each test also shows that nothing was lost or half-written.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread;

use serde_json::json;
use test_support::{Outcome, Program, Stage, StdioClient, isolated, wait_for};

/// Compares an outcome with the snapshot of that name.
macro_rules! check {
    ($stage:expr, $name:literal, $outcome:expr) => {{
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/snapshots"));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.add_filter(&escaped($stage.binary()), "[BINARY]");
        settings.add_filter(&escaped(&$stage.folder), "[STAGE]");
        for (pattern, word) in FILTERS {
            settings.add_filter(pattern, *word);
        }
        // The plan's contents are in the adapter's own snapshots; here its files are enough.
        settings.add_filter(r"(?m)^(---|@@|\+(?:[^+]|$)).*\n", "");
        settings.bind(|| insta::assert_snapshot!($name, told(&$outcome)));
    }};
}

/// Replaces what differs between runs.
const FILTERS: &[(&str, &str)] = &[
    (r"\b[0-9A-HJKMNP-TV-Z]{26}\b", "[ID]"),
    (r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z", "[TIME]"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:[PORT]"),
    (r"process \d+", "process [PID]"),
    (r"\b[0-9a-f]{64}\b", "[DIGEST]"),
];

#[test]
fn addresses_that_lead_to_nobody_or_to_several() {
    isolated(|| {
        let stage = stage();
        for name in ["alice@backend", "alice@frontend", "builder"] {
            stage.relay_ok(&["register", name]);
        }
        check!(stage, "unknown-recipient", stage.run(&["send", "builders", "hello"]));
        check!(stage, "ambiguous-recipient", stage.run(&["send", "alice", "hello"]));
        check!(stage, "invalid-recipient", stage.run(&["send", "Not A Name!", "hello"]));
        check!(stage, "invalid-name", stage.run(&["register", "Bob!"]));
        check!(stage, "unknown-message", stage.run(&["message", "01JD8Z3K5V0000000000000000"]));
        let alone = stage.run(&["send", "--broadcast", "hello", "--team", "nobodys"]);
        check!(stage, "broadcast-to-no-other-agent", alone);
        check!(stage, "empty-key", stage.run(&["send", "builder", "hello", "--idempotency-key", ""]));
        check!(stage, "invalid-message-id", stage.run(&["message", "number-one"]));
        check!(stage, "unknown-command", stage.run(&["teleport"]));
        assert_eq!(stage.run(&["read", "--agent", "builder", "--peek"]).stdout.trim(), "", "nothing was stored");
    });
}

#[test]
fn a_body_that_is_too_long() {
    isolated(|| {
        let stage = stage();
        stage.relay_ok(&["register", "bob"]);
        check!(
            stage,
            "oversized-body",
            stage.relay(&["send", "bob", "--stdin"]).input("x".repeat(256 * 1024 + 1)).run()
        );
        let longest = stage.relay(&["send", "bob", "--stdin"]).input("x".repeat(256 * 1024)).run();
        assert_eq!(longest.code, Some(0), "the longest one is taken: {}", longest.stderr);
    });
}

#[test]
fn a_command_line_that_says_it_is_somebody_else() {
    isolated(|| {
        let stage = stage();
        stage.relay_ok(&["register", "bob"]);
        let mut alice =
            StdioClient::connected(stage.relay(&["mcp"]).start(&stage.folder.join("alice.log")), "a-plain-client");
        alice.call("register_agent", json!({"name": "alice"}));
        check!(stage, "spoofed-sender", stage.run(&["send", "bob", "Trust me.", "--from", "alice"]));
        check!(stage, "unknown-sender", stage.run(&["send", "bob", "Trust me.", "--from", "nobody-at-all"]));
        assert_eq!(stage.run(&["read", "--agent", "bob", "--peek"]).stdout.trim(), "", "nothing was stored");
    });
}

#[test]
fn a_data_folder_that_cannot_be_used() {
    isolated(|| {
        let stage = stage();
        stage.relay_ok(&["register", "bob"]);
        check!(stage, "folder-is-a-file", with_data(&stage, &stage.project.join("README.md")).run());
        check!(stage, "folder-beneath-a-file", with_data(&stage, &stage.project.join("README.md/mesh")).run());

        let closed = stage.folder.join("closed");
        std::fs::create_dir(&closed).expect("the stage is writable");
        Program::new("chmod").arg("0000").arg(&closed).succeed();
        // Root may open anything unless it drops that capability.
        let powerless = Program::new("setpriv")
            .args(["--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"])
            .arg(stage.binary())
            .args(["send", "bob", "hello"])
            .envs(stage.environment())
            .env("RELAY_DIR", &closed)
            .within(&stage.project);
        check!(stage, "folder-not-readable", powerless.run());

        let home = stage.folder.join("read-only");
        std::fs::create_dir(&home).expect("the stage is writable");
        Program::new("mount").args(["-t", "tmpfs", "-o", "ro", "home"]).arg(&home).succeed();
        check!(stage, "home-is-read-only", with_data(&stage, &home.join(".relay-mesh")).run());
    });
}

#[test]
fn a_folder_that_others_use_is_not_shut_to_them() {
    isolated(|| {
        let stage = stage();
        let shared = stage.folder.join("shared");
        std::fs::create_dir(&shared).expect("the stage is writable");
        std::fs::write(shared.join("somebody's"), "").expect("the stage is writable");
        let open_to_all = || std::fs::set_permissions(&shared, Permissions::from_mode(0o777)).expect("it is ours");
        let mode = || std::fs::metadata(&shared).expect("it is there").permissions().mode() & 0o777;
        open_to_all();
        check!(stage, "folder-of-others", with_data(&stage, &shared).run());
        assert_eq!(mode(), 0o777, "others go on using it");
        assert!(!shared.join("agents").exists(), "nothing was put there");
        let store = format!("files:{}", shared.display());
        let copied = stage.run(&["store", "copy", &store, &format!("files:{}", stage.folder.join("copy").display())]);
        assert_eq!(copied.code, Some(5), "{}", copied.stderr);

        // A former data folder is accepted even if others may enter it.
        std::fs::remove_file(shared.join("somebody's")).expect("it is ours");
        with_data(&stage, &shared).run();
        open_to_all();
        with_data(&stage, &shared).run();
        assert_eq!(mode(), 0o700, "a data folder is closed again");
    });
}

#[test]
fn a_mesh_is_copied_from_where_it_is_and_not_from_nowhere() {
    let stage = stage();
    stage.relay_ok(&["register", "bob"]);
    stage.relay_ok(&["send", "bob", "It moves along."]);
    let nowhere = stage.run(&["store", "copy", "files:~/mesch", "files:copy"]);
    assert_eq!(nowhere.code, Some(3), "{nowhere:?}");
    assert!(nowhere.stderr.contains("mesch` to read from"), "{nowhere:?}");
    let nothing = stage.run(&["store", "export", "--store", "files:~/mesch"]);
    assert_eq!(nothing.code, Some(3), "{nothing:?}");
    assert!(!stage.home.join("mesch").exists() && !stage.project.join("copy").exists(), "nothing was made");
    // As the help and docs/nats.md write it.
    std::os::unix::fs::symlink(&stage.data, stage.home.join("mesh")).expect("linked");
    stage.relay_ok(&["store", "copy", "files:~/mesh", "files:~/copy"]);
    let read = stage.relay(&["read", "--agent", "bob", "--peek", "--store", "files:~/copy"]).succeed();
    assert!(read.contains("It moves along."), "{read}");
    assert!(!stage.project.join("~").exists(), "no shell puts the home there");
}

#[test]
fn a_store_that_there_is_none_of() {
    isolated(|| {
        let stage = stage();
        check!(stage, "store-is-not-there", stage.run(&["agents", "--store", "nats://127.0.0.1:4222"]));
        check!(stage, "store-is-no-store", stage.run(&["serve", "--store", "sqlite:mesh.db"]));
        check!(stage, "store-and-folder", stage.run(&["serve", "--store", "files:here", "--dir", "there"]));
        check!(stage, "store-variable", stage.relay(&["status"]).env("RELAY_STORE", "redis://here").run());
        let elsewhere = stage.folder.join("elsewhere");
        let named = format!("files:{}", elsewhere.display());
        let at = |arguments: &[&str]| stage.relay(arguments).env("RELAY_STORE", &named).env("RELAY_DIR", &elsewhere);
        at(&["register", "bob"]).succeed();
        assert!(elsewhere.join("agents/bob/meta.json").is_file(), "the store is the data folder");
    });
}

#[test]
fn a_disk_that_is_full() {
    isolated(|| {
        let stage = stage();
        let small = stage.folder.join("small");
        std::fs::create_dir(&small).expect("the stage is writable");
        Program::new("mount").args(["-t", "tmpfs", "-o", "size=512k,mode=0700", "disk"]).arg(&small).succeed();
        let at = |arguments: &[&str]| stage.relay(arguments).env("RELAY_DIR", small.join("mesh"));
        let reserve = || {
            at(&["reserve", "notes.md", "--from", "bob", "--ttl", "1s"]).succeed();
            wait_for("the reservation to lapse", || {
                at(&["gc", "--dry-run", "--json"]).succeed().contains("notes.md").then_some(())
            });
        };
        let fill = || {
            let mut filler = std::fs::File::create(small.join("filler")).expect("the disk has room for a name");
            // Fills the disk until a write fails.
            while filler.write_all(&[0; 4096]).is_ok() {}
        };
        at(&["register", "bob"]).succeed();
        at(&["send", "bob", "This one was stored."]).succeed();
        reserve();
        // As in an older data folder, which did not reserve the space that removing needs.
        std::fs::remove_file(small.join("mesh/reservations/.values.lock")).expect("it can be taken away");
        fill();
        check!(stage, "disk-is-full", at(&["send", "bob", "--stdin"]).input("x".repeat(16 * 1024)).run());
        for _ in 0..2 {
            let read = at(&["read", "--agent", "bob", "--unread"]).run();
            assert!(read.code == Some(0) && read.stdout.contains("This one was stored."), "{read:?}");
            assert!(read.stderr.contains("what is shown here stays unread"), "{read:?}");
        }
        let gc = at(&["gc", "--stale", "0s"]).run();
        assert!(gc.code == Some(5) && gc.stderr.contains("no space left even to note what is deleted"), "{gc:?}");
        assert!(gc.stderr.contains("hint: free a few hundred kilobytes on that disk"), "{gc:?}");
        let up = at(&["up", "--http", "127.0.0.1:0"]).run();
        assert!(up.code == Some(5) && up.stderr.contains("hint: "), "it has no log, and says why: {up:?}");
        assert!(up.stderr.matches("error:").count() == 1 && up.stderr.contains("o space left"), "{up:?}");
        let left = std::fs::read_dir(small.join("mesh")).expect("readable").flatten();
        let left: Vec<_> = left.filter(|entry| entry.file_name().to_string_lossy().contains("token")).collect();
        assert!(left.is_empty(), "nothing is left half-written: {left:?}");
        std::fs::remove_file(small.join("filler")).expect("the filler can be taken away");
        at(&["send", "bob", "And this one too."]).succeed();
        let read = at(&["read", "--agent", "bob", "--peek"]).succeed();
        assert!(read.contains("This one was stored.") && read.contains("And this one too."), "{read}");
        assert!(!read.contains("xxxx"), "what was refused is not half there");

        at(&["gc"]).succeed();
        reserve();
        fill();
        let gc = at(&["gc", "--stale", "0s"]).succeed();
        assert!(gc.contains("removed 1 reservation: bob notes.md"), "what is over goes without any room: {gc}");
    });
}

#[test]
fn damaged_files_in_the_data_folder() {
    isolated(|| {
        let stage = stage();
        stage.relay_ok(&["register", "bob"]);
        stage.relay_ok(&["send", "bob", "before the damage"]);
        let inbox = find(&stage.data.join("agents/bob"), "inbox");
        append(&inbox, b"{\"id\":\"torn in the mid");
        stage.relay_ok(&["send", "bob", "after the damage"]);
        let read = stage.relay_ok(&["read", "--agent", "bob", "--peek"]);
        assert!(read.contains("before the damage") && read.contains("after the damage"), "{read}");
        append(&inbox, b"\x00\xff this never was a line of ours\n");
        stage.relay_ok(&["send", "bob", "after worse damage"]);
        let read = stage.relay_ok(&["read", "--agent", "bob", "--peek"]);
        assert!(read.contains("after worse damage"), "a bad line costs itself alone: {read}");

        let meta = find(&stage.data.join("agents/bob"), "meta");
        let sound = std::fs::read_to_string(&meta).expect("it is there");
        std::fs::write(&meta, "{ not JSON").expect("the stage is writable");
        check!(stage, "corrupt-agent-record", stage.run(&["send", "bob", "hello"]));
        assert_eq!(std::fs::read_to_string(&meta).expect("it is still there"), "{ not JSON", "it is left for a look");
        // Both ends are intact, but not the text between them.
        let damaged = sound.replace("\"profile\":", "\"profile\"");
        std::fs::write(&meta, &damaged).expect("the stage is writable");
        check!(stage, "agent-record-that-is-corrupt-inside", stage.run(&["send", "bob", "hello"]));
        check!(stage, "registering-over-a-corrupt-record", stage.run(&["register", "bob"]));
        assert_eq!(std::fs::read_to_string(&meta).expect("it is still there"), damaged, "it is left for a look");
    });
}

#[test]
fn settings_that_are_not_well_formed() {
    isolated(|| {
        let stage = stage();
        stage.configure("team = \"backend\"\ncolour = \"blue\"\n");
        check!(stage, "unknown-setting", stage.run(&["status"]));
        let (said, quiet) = (stage.run(&["config"]), stage.run(&["config", "-q"]));
        assert!(said.stderr.starts_with("warning: ") && said.stderr.contains("colour"), "{said:?}");
        assert_eq!((quiet.code, quiet.stdout, quiet.stderr.as_str()), (Some(0), said.stdout, ""));
        stage.configure("team = [unclosed\n");
        assert!(stage.run(&["config", "-q"]).stderr.starts_with("error: "), "errors are printed");
        check!(stage, "settings-are-no-TOML", stage.run(&["status"]));
        stage.configure("");

        let broken = "{\n  \"hooks\": {,\n}\n";
        let settings = stage.project.join(".claude/settings.local.json");
        std::fs::create_dir_all(stage.project.join(".claude")).expect("the stage is writable");
        std::fs::write(&settings, broken).expect("the stage is writable");
        let before = stage.tree(&stage.project);
        check!(stage, "harness-settings-are-broken", install(&stage).run());
        assert_eq!(stage.tree(&stage.project), before, "nothing was written, and the broken file is as it was");
    });
}

#[test]
fn hooks_that_bring_what_nobody_knows_never_break_the_harness() {
    isolated(|| {
        let stage = stage();
        let hook = |harness: &str, event: &str, payload: &str| {
            stage.relay(&["hook", harness, event]).input(payload.to_owned()).run()
        };
        check!(stage, "hook-payload-is-no-JSON", hook("claude-code", "Stop", "not JSON at all"));
        check!(
            stage,
            "hook-payload-of-unknown-shape",
            hook("claude-code", "Stop", r#"{"session": ["what", "is", "this"]}"#)
        );
        check!(stage, "hook-payload-is-empty", hook("claude-code", "PreToolUse", ""));
        check!(stage, "hook-event-is-unknown", hook("claude-code", "Teleported", r#"{"session_id": "s"}"#));
        check!(stage, "hook-of-an-unknown-harness", hook("notepad", "Stop", "{}"));
        check!(stage, "hook-of-nothing", stage.run(&["hook"]));
        let closed = stage.project.join("README.md");
        let without_folder = stage.relay(&["hook", "claude-code", "Stop"]).env("RELAY_DIR", &closed);
        let outcome = without_folder.input(r#"{"session_id": "s", "hook_event_name": "Stop", "cwd": "/"}"#).run();
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_ne!(outcome.stderr, "", "it says what is wrong");
    });
}

#[test]
fn components_that_are_none() {
    isolated(|| {
        let stage = stage();
        let plugins = stage.folder.join("plugins");
        std::fs::create_dir(&plugins).expect("the stage is writable");
        std::fs::write(plugins.join("garbage.wasm"), b"\0asm this is no component").expect("the stage is writable");
        let listed = stage.relay(&["plugin", "list", "--load"]).env("RELAY_PLUGINS", &plugins).run();
        assert!(listed.stdout.contains("garbage") || listed.stderr.contains("garbage"), "it is reported: {listed:?}");
        assert!(listed.stdout.contains("claude-code"), "the others are there: {listed:?}");
        stage.relay_ok(&["register", "bob"]);
        let sent = stage.relay(&["send", "bob", "still here"]).env("RELAY_PLUGINS", &plugins).run();
        assert_eq!(sent.code, Some(0), "{sent:?}");
    });
}

#[test]
fn several_installs_at_once_are_one_install() {
    isolated(|| {
        let stage = stage();
        let before = stage.tree(&stage.project);
        let outcomes: Vec<Outcome> = thread::scope(|scope| {
            let both: Vec<_> = (0..4).map(|_| scope.spawn(|| install(&stage).run())).collect();
            both.into_iter().map(|one| one.join().expect("an install comes to an end")).collect()
        });
        let last =
            |outcome: &Outcome| outcome.stderr.lines().rfind(|line| !line.starts_with("Next: ")).map(str::to_owned);
        let mut ends: Vec<_> =
            outcomes.iter().map(|outcome| (outcome.code, last(outcome).unwrap_or_default())).collect();
        ends.sort();
        let nothing = (Some(0), "Claude Code is already set up for the project.".to_owned());
        let done = (Some(0), "Claude Code is set up for the project (4 files created).".to_owned());
        assert_eq!(ends, [nothing.clone(), nothing.clone(), nothing, done], "{outcomes:?}");
        let after = stage.tree(&stage.project);
        let third = install(&stage).run();
        assert_eq!(third.code, Some(0), "{third:?}");
        assert_eq!(stage.tree(&stage.project), after, "nothing was missing and nothing stands there twice");
        let project = stage.project.display().to_string();
        stage.relay_ok(&["uninstall", "claude-code", "--project", &project, "--yes"]);
        assert_eq!(stage.tree(&stage.project), before, "byte for byte");
    });
}

#[test]
fn an_install_that_was_only_looked_at_or_not_agreed_to_changes_nothing() {
    isolated(|| {
        let stage = stage();
        let project = stage.project.display().to_string();
        let before = stage.tree(&stage.project);
        check!(stage, "install-dry-run", stage.run(&["install", "claude-code", "--project", &project, "--dry-run"]));
        check!(stage, "install-without-consent", stage.run(&["install", "claude-code", "--project", &project]));
        let quiet = stage.run(&["install", "claude-code", "--project", &project, "-q"]);
        assert!(quiet.code == Some(4) && quiet.stderr.starts_with("warning: nothing was changed"), "{quiet:?}");
        check!(
            stage,
            "install-of-an-unknown-harness",
            stage.run(&["install", "notepad", "--project", &project, "--yes"])
        );
        check!(stage, "uninstall-of-nothing", stage.run(&["uninstall", "claude-code", "--project", &project, "--yes"]));
        assert_eq!(stage.tree(&stage.project), before);
        install(&stage).succeed();
        check!(stage, "install-twice", install(&stage).run());
    });
}

/// An outcome as the user sees it.
fn told(outcome: &Outcome) -> String {
    let code = outcome.code.map_or_else(|| "by a signal".to_owned(), |code| code.to_string());
    format!("exit code: {code}\n──── stdout\n{}──── stderr\n{}", outcome.stdout, outcome.stderr)
}

/// A path escaped as a regular expression.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace('.', r"\.")
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

/// Sends a message to bob, with this data folder.
fn with_data(stage: &Stage, data: &Path) -> Program {
    stage.relay(&["send", "bob", "hello"]).env("RELAY_DIR", data)
}

fn install(stage: &Stage) -> Program {
    stage.relay(&["install", "claude-code", "--project"]).arg(&stage.project).arg("--yes")
}

/// The only file below a folder whose name begins with `beginning`.
fn find(folder: &Path, beginning: &str) -> std::path::PathBuf {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<_> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning)))
        .filter(|path| path.extension().is_some_and(|extension| extension != "lock"))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{} has no file that begins with {beginning}", folder.display());
    found.remove(0)
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("the file can be opened");
    file.write_all(bytes).expect("the file can be written");
}
