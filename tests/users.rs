//! Another user of the machine: root with somebody's home, files that root has left, and somebody else's server.
//!
//! Two users are needed. Run as root these are root and user 1000; run by anyone else they are that user and, in a
//! user namespace, its root.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use test_support::{HttpClient, Outcome, Program, Stage, isolated, wait_for};

/// The other user, if this is root.
const OTHER: &str = "1000";

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn is_root() -> bool {
    Program::new("id").arg("-u").succeed().trim() == "0"
}

/// relay-mesh as root, with these variables.
fn as_root(stage: &Stage, variables: &[(&str, &Path)], arguments: &[&str]) -> Outcome {
    let program = match is_root() {
        true => Program::new(stage.binary()),
        false => Program::new("unshare").args(["--map-root-user"]).arg(stage.binary()),
    };
    program.args(arguments).envs(variables.iter().copied()).within(Path::new("/")).run()
}

/// A home that is not root's.
fn somebodys_home(stage: &Stage) -> PathBuf {
    if is_root() {
        Program::new("chown").args(["-R", OTHER]).arg(&stage.home).succeed();
        return stage.home.clone();
    }
    // In a namespace in which this user is root, the system's root is somebody else.
    PathBuf::from("/usr/share")
}

#[test]
fn root_with_somebodys_home_is_refused_before_anything_is_written() {
    let stage = stage();
    let home = somebodys_home(&stage);
    let before = Program::new("ls").arg("-A").arg(&home).succeed();
    let named = home.join("mesh");
    for variables in [vec![("HOME", home.as_path())], vec![("HOME", home.as_path()), ("RELAY_DIR", named.as_path())]] {
        for arguments in [&["register", "alice"][..], &["agents"], &["status"], &["doctor"], &["up"], &["gc"]] {
            let refused = as_root(&stage, &variables, arguments);
            assert_eq!(refused.code, Some(5), "{arguments:?}: {refused:?}");
            assert!(refused.stderr.contains("belongs to user"), "{arguments:?}: {refused:?}");
            assert!(refused.stderr.contains("sudo -H") && refused.stderr.contains("RELAY_DIR"), "{refused:?}");
        }
        let hook = as_root(&stage, &variables, &["hook", "claude-code", "Stop"]);
        assert_eq!(hook.code, Some(0), "it stops no harness: {hook:?}");
    }
    assert_eq!(Program::new("ls").arg("-A").arg(&home).succeed(), before, "nothing was written");
    let own = stage.folder.join("roots");
    std::fs::create_dir(&own).expect("made");
    let registered = as_root(&stage, &[("HOME", &home), ("RELAY_DIR", &own)], &["register", "alice"]);
    assert_eq!(registered.code, Some(0), "root's own folder: {registered:?}");
    let registered = as_root(&stage, &[("HOME", &own)], &["register", "alice"]);
    assert_eq!(registered.code, Some(0), "where everything is root's: {registered:?}");
}

#[test]
fn a_record_that_cannot_be_read_hides_only_itself() {
    let stage = stage();
    let user = |arguments: &[&str]| {
        let program = match is_root() {
            true => Program::new("setpriv")
                .args([&format!("--reuid={OTHER}"), &format!("--regid={OTHER}"), "--clear-groups", "--"])
                .arg(stage.binary()),
            false => Program::new(stage.binary()),
        };
        program.args(arguments).envs(stage.environment()).within(Path::new("/")).run()
    };
    if is_root() {
        Program::new("chown").args(["-R", OTHER]).arg(&stage.folder).succeed();
    }
    for agent in ["alice", "bob", "carol"] {
        assert_eq!(user(&["register", agent]).code, Some(0), "{agent}");
    }
    assert_eq!(user(&["send", "carol", "hello", "--from", "bob"]).code, Some(0));
    let (record, folder) = (stage.data.join("agents/alice/meta.json"), stage.data.join("agents/bob"));
    for path in [&record, &folder] {
        if is_root() {
            Program::new("chown").args(["-R", "0"]).arg(path).succeed();
        }
        let mode = if is_root() { 0o700 } else { 0o000 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
    }
    let listed = user(&["agents", "--json"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stdout.contains("carol") && !listed.stdout.contains("\"alice\""), "{listed:?}");
    assert!(user(&["read", "--agent", "carol", "--json"]).stdout.contains("hello"));
    assert_eq!(user(&["send", "carol", "again"]).code, Some(0));
    assert_eq!(user(&["status"]).code, Some(0));
    assert_ne!(user(&["send", "alice", "hello", "--from", "carol"]).code, Some(0), "it is not known whose that is");
    for doctor in [&["doctor", "--json"][..], &["doctor", "--store", "--fix", "--json"]] {
        let told = user(doctor);
        assert_eq!(told.code, Some(1), "{told:?}");
        if is_root() {
            assert!(told.stdout.contains(&format!("sudo chown -R {OTHER} {}", stage.data.display())), "{told:?}");
        }
    }
    let again = if is_root() { vec!["-R", OTHER] } else { vec![] };
    if is_root() {
        assert!(record.exists(), "it is not set aside");
        Program::new("chown").args(again).arg(&stage.data).succeed();
    } else {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).expect("set");
    }
    if is_root() {
        let listed = user(&["agents", "--json"]).stdout;
        assert!(listed.contains("\"alice\"") && listed.contains("\"bob\""), "{listed}");
    }
}

#[test]
fn the_doctor_tells_our_server_on_another_port_and_another_folders_from_none() {
    isolated(|| {
        let (ours, theirs) = (stage(), stage());
        let examine = || -> Vec<Value> {
            let told = ours.run(&["doctor", "--json"]).stdout;
            let all = told.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            all.filter(|finding| finding["subject"] == "server").collect()
        };
        let says = |words: &str, severity: &str| {
            let found = examine();
            let what = found.iter().map(|one| one["what"].as_str().unwrap_or_default()).collect::<String>();
            assert!(what.contains(words) && found.iter().all(|one| one["severity"] == severity), "{found:?}");
        };
        says("no server of this data folder runs", "ok");
        let serve = |stage: &Stage, port: &str| {
            let started = stage.relay(&["serve", "--http", port]).start(&stage.folder.join("serve.log"));
            let probe =
                HttpClient::new(port.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port"), None);
            wait_for("a server answers", || probe.get("/healthz").filter(|answer| answer.status == 200));
            started
        };
        let _theirs = serve(&theirs, "127.0.0.1:7423");
        says("is another folder's or another user's", "warning");
        let _ours = serve(&ours, "127.0.0.1:7500");
        wait_for("its record is there", || ours.data.join("server.json").exists().then_some(()));
        says("runs at 127.0.0.1:7500, and not at 127.0.0.1:7423", "ok");
    });
}
