//! An install on a disk without room says so, names the file, and changes nothing.

mod common;

use common::Stage;
use mesh::ports::harness::{Action, Edit, Plan, Scope};

/// The other test's process, in which no file may grow beyond a few blocks: the effect of a full disk without needing
/// root.
#[test]
fn an_install_without_room_changes_nothing() {
    let this = std::env::current_exe().expect("a test has a program");
    #[expect(clippy::disallowed_methods, reason = "only a process of its own can have its own limits")]
    let output = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact without_room --ignored --nocapture"])
        .arg(this)
        .output()
        .expect("a shell");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "run by the other test, in a process that may not write large files"]
fn without_room() {
    let stage = Stage::with(&[]);
    // A plan needs no component, only what the manifest declares.
    stage.put("hostile", b"\0asm\x0d\0\x01\0");
    let manifest = stage.plugins().join("hostile/adapter.toml");
    let text = std::fs::read_to_string(&manifest).expect("a manifest");
    let editable = text.replace("path = \"~/.hostile\"\n\n", "path = \"~/.hostile\"\naccess = \"edit\"\n\n");
    std::fs::write(&manifest, editable).expect("written");
    stage.grant(&["roots.config"]);
    let file = stage.home().join(".hostile/settings");
    std::fs::write(&file, "old").expect("written");
    let edit = Edit {
        root: "config".to_owned(),
        path: "settings".to_owned(),
        before: Some("old".to_owned()),
        after: Some("x".repeat(100_000)),
        executable: false,
    };
    let plan = Plan { edits: vec![edit], next_steps: Vec::new() };
    let error = stage.adapters().apply("hostile", Action::Install, Scope::User, &plan).expect_err("no room");
    assert!(error.to_string().contains("installs/hostile-user-"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "old");
    let left = std::fs::read_dir(stage.home().join(".hostile")).expect("a folder").count();
    assert_eq!(left, 1, "no temporary file is left");
}
