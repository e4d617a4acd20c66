//! Applying what a run or a pipeline changed, when it is killed: with a shell script in Claude Code's place, and one in
//! Git's that kills where it is told to. Whatever is killed, the folder holds all of the change or nothing of it.

use serde_json::Value;
use test_support::{Outcome, Stage};

/// Says what Claude Code says with `--output-format stream-json`: it changes two files, or has nothing to find in a change.
const CLAUDE: &str = r#"#!/bin/sh
case "$*" in *--version*) echo '2.1.329 (Claude Code)'; exit 0;; *auth*) echo '{"loggedIn":true}'; exit 0;; esac
task=$(cat); answer=null
case "$*" in *--json-schema*) answer='{"findings":[]}';; *) echo changed > README.md; echo new > new.txt;; esac
printf '{"type":"result","subtype":"success","is_error":false,"result":"done","structured_output":%s,"session_id":"5e551011-0000-4000-8000-000000000001","num_turns":1,"total_cost_usd":0,"usage":{},"modelUsage":{},"permission_denials":[]}\n' "$answer"
"#;

/// Git, which kills the command that started it: after one of the two files that a patch changes, after both, or when the
/// worktree is to go.
const GIT: &str = r#"#!/bin/sh
kills=$(cat "$HOME/kills" 2>/dev/null)
case "$kills $*" in
    *--check*|*--numstat*) ;;
    "half "*" apply "*) echo changed > README.md; kill -9 $PPID; kill -9 $$ ;;
    "whole "*" apply "*) /usr/bin/git "$@"; kill -9 $PPID; kill -9 $$ ;;
    "noted "*" worktree remove "*) kill -9 $PPID; kill -9 $$ ;;
esac
exec /usr/bin/git "$@"
"#;

fn kills(stage: &Stage, when: Option<&str>) {
    std::fs::write(stage.home.join("kills"), when.unwrap_or_default()).expect("the home is writable");
}

/// A stage with the script as `claude` on its path.
fn stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.program("claude", CLAUDE);
    stage
}

fn json_of(outcome: &Outcome) -> Value {
    serde_json::from_str(outcome.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

fn text(stage: &Stage, file: &str) -> String {
    std::fs::read_to_string(stage.project.join(file)).unwrap_or_default()
}

#[test]
fn a_pipelines_changes_are_applied_whole_or_not_at_all_whenever_it_is_killed() {
    let stage = stage();
    stage.program("git", GIT);
    let before = text(&stage, "README.md");
    let all = |stage: &Stage| (text(stage, "README.md"), text(stage, "new.txt"));
    let changed = ("changed\n".to_owned(), "new\n".to_owned());
    for when in ["half", "whole", "noted"] {
        kills(&stage, None);
        let words = ["pipeline", "review", "--prompt", "EDIT", "--review", "claude", "--json"];
        let pipeline = json_of(&stage.run(&words));
        assert_eq!(pipeline["ok"], true, "{pipeline}");
        let id = pipeline["pipeline"].as_str().expect("an id");
        kills(&stage, Some(when));
        assert_eq!(stage.run(&["pipeline", "apply", id]).code, None, "{when}: it was killed");
        let wrote = text(&stage, "README.md");
        assert_eq!(wrote, "changed\n", "{when}: it had begun");
        kills(&stage, None);
        let listed = stage.run(&["runs", "list"]);
        let taken_back =
            listed.stderr.contains(&format!("{id} had been applied")) && listed.stderr.contains("taken back");
        // Its record says that it was applied before it goes on to the worktree.
        assert_eq!(taken_back, when != "noted", "{when}: {listed:?}");
        let expected = if taken_back { (before.clone(), String::new()) } else { changed.clone() };
        assert_eq!(all(&stage), expected, "{when}");
        let again = stage.run(&["pipeline", "apply", id]);
        assert_eq!(again.code, Some(if taken_back { 0 } else { 6 }), "{when}: {again:?}");
        assert_eq!(all(&stage), changed, "{when}");
        assert!(!stage.run(&["runs", "list"]).stderr.contains("taken back"), "{when}: once");
        stage.git(&["checkout", "-q", "README.md"]);
        std::fs::remove_file(stage.project.join("new.txt")).expect("it is there");
    }
}

#[test]
fn what_a_killed_command_applied_half_way_is_taken_back() {
    let stage = stage();
    let result = json_of(&stage.run(&["run", "claude", "EDIT", "--reach", "edit", "--json"]));
    let id = result["run"].as_str().expect("an id");
    std::fs::write(stage.project.join("mine.txt"), "mine\n").expect("written");
    stage.program("git", GIT);
    kills(&stage, Some("half"));
    assert_eq!(stage.run(&["runs", "apply", id]).code, None, "it was killed");
    assert_eq!(std::fs::read_to_string(stage.project.join("README.md")).expect("there"), "changed\n");
    // What somebody has worked on since is theirs.
    let mine = std::fs::File::options().write(true).open(stage.project.join("README.md")).expect("there");
    let written = mine.metadata().and_then(|about| about.modified()).expect("its time");
    mine.set_modified(written + std::time::Duration::from_secs(3_600)).expect("its time is changed");
    kills(&stage, None);
    let left = stage.run(&["runs", "list"]);
    assert!(left.stderr.contains("`README.md` was changed since, so it stays"), "{left:?}");
    assert_eq!(std::fs::read_to_string(stage.project.join("README.md")).expect("there"), "changed\n");
    stage.git(&["checkout", "-q", "README.md"]);

    kills(&stage, Some("half"));
    assert_eq!(stage.run(&["runs", "apply", id]).code, None, "it was killed");
    kills(&stage, None);
    let listed = stage.run(&["runs", "list"]);
    assert!(listed.stderr.contains("half-way; that was taken back"), "{listed:?}");
    assert_eq!(stage.git_status(), "?? mine.txt\n", "what was there before, and nothing else");
    stage.relay_ok(&["runs", "apply", id]);
    assert_eq!(std::fs::read_to_string(stage.project.join("README.md")).expect("there"), "changed\n");
    assert_eq!(std::fs::read_to_string(stage.project.join("new.txt")).expect("there"), "new\n");
    assert!(!stage.run(&["runs", "list"]).stderr.contains("taken back"));
    assert_eq!(std::fs::read_to_string(stage.project.join("new.txt")).expect("there"), "new\n");
}
