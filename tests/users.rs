//! Another user of the machine: root with somebody's home, files that root has left, and somebody else's server. And
//! where this user's own folders are, if they are not where they usually are or cannot be used.
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

/// relay-mesh as somebody who is not root.
fn as_user(stage: &Stage, arguments: &[&str]) -> Program {
    let program = match is_root() {
        true => Program::new("setpriv")
            .args([&format!("--reuid={OTHER}"), &format!("--regid={OTHER}"), "--clear-groups", "--"])
            .arg(stage.binary()),
        false => Program::new(stage.binary()),
    };
    program.args(arguments).envs(stage.environment()).within(Path::new("/"))
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
        for arguments in [
            &["register", "alice"][..],
            &["agents"],
            &["status"],
            &["doctor"],
            &["up"],
            &["gc"],
            &["mcp"],
            &["serve"],
            &["install", "claude-code", "--yes"],
        ] {
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
    if is_root() {
        // Nor does anybody else take root's folder, even if it is open to all.
        for folder in [&stage.folder, &own] {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).expect("set");
        }
        let refused = as_user(&stage, &["agents"]).env("RELAY_DIR", &own).run();
        assert_eq!(refused.code, Some(5), "{refused:?}");
        assert!(refused.stderr.contains("belongs to user 0"), "{refused:?}");
    }
}

#[test]
fn a_record_that_cannot_be_read_hides_only_itself() {
    let stage = stage();
    let user = |arguments: &[&str]| as_user(&stage, arguments).run();
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
        let token = |stage: &Stage, arguments: &[&str]| stage.run(&[&["token"], arguments].concat());
        let refused = token(&ours, &[]);
        assert!(refused.code == Some(1) && refused.stderr.contains("no server runs at 127.0.0.1:7423"), "{refused:?}");
        let _theirs = serve(&theirs, "127.0.0.1:7423");
        assert_eq!(token(&theirs, &[]).code, Some(0));
        says("is another folder's or another user's", "warning");
        let _ours = serve(&ours, "127.0.0.1:7500");
        wait_for("its record is there", || ours.data.join("server.json").exists().then_some(()));
        says("runs at 127.0.0.1:7500, and not at 127.0.0.1:7423", "ok");
        let told = token(&ours, &[]);
        let kept = std::fs::read_to_string(ours.data.join("http.token")).expect("a token");
        assert_eq!((told.code, told.stdout.trim()), (Some(0), kept.trim()));
        let refused = token(&ours, &["--at", "127.0.0.1:7423"]);
        assert!(refused.code == Some(4) && refused.stdout.is_empty(), "it is another user's: {refused:?}");
    });
}

/// What the doctor says about one thing, as `severity: what`.
fn told(stage: &Stage, variables: &[(&str, &Path)], subject: &str) -> Vec<String> {
    let program = Program::new(stage.binary()).args(["doctor", "generic", "--json"]);
    let told = program.envs(variables.iter().copied()).within(&stage.project).run().stdout;
    let all = told.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let of = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    all.filter(|one| one["subject"] == subject)
        .map(|one| format!("{}: {}", of(&one, "severity"), of(&one, "what")))
        .collect()
}

#[test]
fn the_doctor_says_which_data_folder_is_used_and_which_is_not() {
    isolated(|| {
        let stage = stage();
        let (home, xdg) = (stage.home.as_path(), stage.folder.join("xdg"));
        let set = [("HOME", home), ("XDG_DATA_HOME", xdg.as_path())];
        let place = |variables: &[(&str, &Path)]| told(&stage, variables, "data folder").join("\n");
        assert!(place(&set).contains(&format!("ok: {}/relay-mesh is used, by the environment", xdg.display())));
        assert!(!stage.data.exists(), "nothing is made in the home");
        // A harness that was started without the variable finds the same folder.
        let program = |arguments: &[&str], variables: &[(&str, &Path)]| {
            Program::new(stage.binary())
                .args(arguments)
                .envs(variables.iter().copied())
                .within(&stage.project)
                .succeed()
        };
        program(&["install", "claude-code", "--user", "--yes"], &set);
        let written = stage.tree(home).into_values().map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(written.collect::<String>().contains(&format!("{}/relay-mesh", xdg.display())));
        // Without the variable the home has one, which is used from then on.
        assert!(place(&set[..1]).contains(&format!("ok: {} is used, the default", stage.data.display())));
        let both = place(&set);
        assert!(both.contains(&format!("ok: {} is used, the default", stage.data.display())), "{both}");
        assert!(both.contains(&format!("warning: {}/relay-mesh is there too", xdg.display())), "{both}");
    });
}

#[test]
fn adapters_are_compiled_once_where_the_cache_cannot_be_used() {
    isolated(|| {
        let stage = stage();
        let (home, cache) = (stage.home.as_path(), stage.folder.join("cache"));
        let variables = [("HOME", home), ("XDG_CACHE_HOME", cache.as_path())];
        let code = || -> String {
            let inspect = Program::new(stage.binary()).args(["plugin", "inspect", "generic", "--json"]);
            let shown = inspect.envs(variables).within(&stage.project).succeed();
            serde_json::from_str::<Value>(&shown).expect("JSON")["machine_code"].as_str().unwrap_or_default().to_owned()
        };
        // Looking compiles nothing, and proving does.
        let proven = || {
            let verify = Program::new(stage.binary()).args(["plugin", "verify", "generic"]);
            verify.envs(variables).within(&stage.project).succeed();
            code()
        };
        let (once, then) = ("not compiled yet", "in the cache");
        std::fs::write(&cache, "a file in its place").expect("written");
        assert_eq!((code(), proven(), code()), (once.to_owned(), then.to_owned(), then.to_owned()));
        let found = told(&stage, &variables, "cache").join("\n");
        let aside = stage.data.join("cache");
        assert!(found.starts_with(&format!("warning: compiled adapters are kept in {}", aside.display())), "{found}");
        std::fs::remove_dir_all(&aside).expect("removed");
        std::fs::remove_file(&cache).expect("removed");
        // A disk from which nothing may be run.
        std::fs::create_dir(&cache).expect("made");
        Program::new("mount").args(["-t", "tmpfs", "-o", "noexec", "cache"]).arg(&cache).succeed();
        assert_eq!((code(), proven(), code()), (once.to_owned(), then.to_owned(), then.to_owned()));
        assert!(!aside.exists() && told(&stage, &variables, "cache").is_empty());
        // And one to which nothing can be written.
        Program::new("mount").args(["-o", "remount,ro"]).arg(&cache).succeed();
        assert_eq!(code(), then, "what is there is used");
        Program::new("mount").args(["-t", "tmpfs", "-o", "ro", "cache"]).arg(&cache).succeed();
        assert_eq!((code(), proven(), code()), (once.to_owned(), then.to_owned(), then.to_owned()));
        assert!(told(&stage, &variables, "cache").join("\n").contains("kept in"));
    });
}
