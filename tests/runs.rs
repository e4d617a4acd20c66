//! `relay-mesh run` and `relay-mesh runs`, end to end: with a shell script in place of Claude Code, which says what the
//! real one says and starts what real tools start, and with the real one. Whoever is killed, nothing is left running and
//! the result says what happened.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use test_support::{
    Behaviour, ClaudeCode, Model, ModelAnswer, Outcome, Program, RunScene, Running, Script, Stage, StdioClient,
    Terminal, isolated, wait_for,
};

/// Says what Claude Code says with `--output-format stream-json`. The task, from standard input, tells it what to do.
const CLAUDE: &str = r#"#!/bin/sh
case "$*" in *--version*) echo '2.1.329 (Claude Code)'; exit 0;; *auth*) echo '{"loggedIn":true}'; exit 0;; esac
task=$(cat)
for word in "$@"; do case "$word" in --max-budget-usd=*) echo "${word#*=}" >> budgets.txt;; esac; done
say() { printf '%s\n' "$1"; }
say '{"type":"system","subtype":"init","session_id":"5e551011-0000-4000-8000-000000000001","cwd":"/","tools":[],"mcp_servers":[],"model":"m","permissionMode":"default"}'
case "$task" in
    CHILDREN*) sleep 300 & setsid sleep 300 & (setsid nohup sleep 300 >/dev/null 2>&1 &)
        say '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"started"}]},"session_id":"5e551011-0000-4000-8000-000000000001"}'
        wait ;;
    SAYS*) say '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"did SAYS"}]},"session_id":"5e551011-0000-4000-8000-000000000001"}' ;;
    BEHIND*) setsid sleep 300 & ;;
    BELOW*) env -i PATH="$PATH" HOME="$HOME" relay-mesh --dir "$RELAY_DIR" run claude hello > below.txt 2>&1
        echo "exit $?" >> below.txt ;;
    SHARES*) for wanted in 3 1 9; do relay-mesh --dir "$RELAY_DIR" run claude hello --budget $wanted >> below.txt 2>&1
            echo "exit $?" >> below.txt; done ;;
    EDIT*) echo changed > README.md; echo new > new.txt ;;
    LENGTH*) task=${#task} ;;
    MANY*) count=0; while [ $count -lt 4000 ]; do
            printf '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"on and on, %s"}]},"session_id":"5e551011-0000-4000-8000-000000000001"}\n' $count || exit 3
            count=$((count + 1)); done ;;
esac
printf '{"type":"result","subtype":"success","is_error":false,"result":"did %s","session_id":"5e551011-0000-4000-8000-000000000001","num_turns":1,"duration_ms":1,"duration_api_ms":1,"total_cost_usd":0.001,"usage":{"input_tokens":3,"output_tokens":2,"cache_read_input_tokens":1,"cache_creation_input_tokens":0},"modelUsage":{"m":{"inputTokens":3,"outputTokens":2,"cacheReadInputTokens":1,"cacheCreationInputTokens":0,"costUSD":0.001,"contextWindow":1}},"permission_denials":[],"uuid":"u"}\n' "$(printf '%s' "$task" | head -n 1)"
"#;

/// A stage with the script as `claude` on its path.
fn stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.program("claude", CLAUDE);
    stage
}

fn json_of(outcome: &Outcome) -> Value {
    serde_json::from_str(outcome.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

/// The command lines of processes that carry this mark or work for this stage, except the test's own.
fn ours(stage: &Stage) -> Vec<String> {
    let folder = stage.data.join("runs").display().to_string();
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").expect("a list").flatten() {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let dir = format!("RELAY_DIR={}", stage.data.display()).into_bytes();
        let in_run = environment.split(|byte| *byte == 0).any(|line| line.starts_with(b"RELAY_RUN="));
        let in_stage = environment.split(|byte| *byte == 0).any(|line| line == dir);
        if (in_run && in_stage) || words.contains(&folder) {
            found.push(words);
        }
    }
    found
}

fn nothing_is_left(stage: &Stage) {
    wait_for("nothing of the run is left", || ours(stage).is_empty().then_some(()));
}

fn runs(stage: &Stage) -> Vec<Value> {
    let listed: Value = serde_json::from_str(&stage.relay_ok(&["runs", "list", "--json"])).expect("JSON");
    listed["runs"].as_array().expect("a list").clone()
}

/// The guard and the harness of the only run, once its children have been started.
fn started(stage: &Stage) -> (u32, u32) {
    wait_for("the harness has started its children", || {
        let folders = std::fs::read_dir(stage.data.join("runs")).ok()?.flatten();
        let folder = folders.map(|entry| entry.path()).find(|path| path.join("output-1").exists())?;
        let said = std::fs::read_to_string(folder.join("output-1")).ok()?;
        let running: Value = serde_json::from_slice(&std::fs::read(folder.join("running-1")).ok()?).ok()?;
        let pid = |who: &str| u32::try_from(running[who]["pid"].as_u64()?).ok();
        (said.contains("started") && ours(stage).len() >= 4).then_some((pid("guard")?, pid("program")?))
    })
}

fn signal(name: &str, pid: u32) {
    Program::new("kill").args([format!("-{name}"), pid.to_string()]).succeed();
}

#[test]
fn b3_and_b4_one_json_result_with_every_name() {
    let stage = stage();
    let outcome = stage.run(&["run", "--agent", "claude", "--prompt", "hello", "--timeout", "30"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let result = json_of(&outcome);
    for (pointer, expected) in [
        ("/agent", json!("claude")),
        ("/mode", json!("headless")),
        ("/cwd", json!(stage.project.canonicalize().expect("there").display().to_string())),
        ("/ok", json!(true)),
        ("/exit_code", json!(0)),
        ("/structured/response", json!("did hello")),
        ("/artifacts/files_written", json!([])),
        ("/usage/input_tokens", json!(3)),
        ("/usage/output_tokens", json!(2)),
        ("/usage/cached_input_tokens", json!(1)),
        ("/ended", json!("answered")),
    ] {
        assert_eq!(result.pointer(pointer), Some(&expected), "{pointer} in {result}");
    }
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run-result.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(schema).expect("a schema")).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let wrong: Vec<String> = schema.iter_errors(&result).map(|error| error.to_string()).collect();
    assert_eq!(wrong, [""; 0], "b1: docs/run-result.schema.json says what a result is");
    nothing_is_left(&stage);
}

#[test]
fn b1_version_and_help_answer() {
    let stage = stage();
    assert!(stage.relay_ok(&["version"]).starts_with("relay-mesh "));
    assert!(stage.relay_ok(&["--version"]).starts_with("relay-mesh "));
    for words in [&["--help"][..], &["run", "--help"], &["runs", "--help"], &["review", "--help"]] {
        assert!(stage.relay_ok(words).contains("Usage: relay-mesh"), "{words:?}");
    }
}

#[test]
fn every_event_is_a_line_of_json_and_silence_ends_a_run() {
    let stage = stage();
    let outcome = stage.run(&["run", "claude", "hello", "--jsonl"]);
    let lines: Vec<Value> = outcome.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (result, events) = lines.split_last().expect("lines");
    assert_eq!((outcome.code, &result["ended"]), (Some(0), &json!("answered")), "{outcome:?}");
    assert_eq!(result["structured"]["events"], json!(events), "each event, then the result");
    assert_eq!(events[0]["event"], "session", "{outcome:?}");
    let silent = stage.run(&["run", "claude", "CHILDREN", "--silence", "1", "--json"]);
    assert_eq!((silent.code, &json_of(&silent)["ended"]), (Some(7), &json!("time")), "{silent:?}");
    assert_eq!(json_of(&silent)["why"], "it printed nothing for 1 s");
    nothing_is_left(&stage);
}

#[test]
fn b5_a_time_out_and_a_natural_end_leave_nothing_running() {
    let stage = stage();
    let outcome = stage.run(&["run", "claude", "CHILDREN", "--timeout", "2", "--json"]);
    assert_eq!(outcome.code, Some(7), "{outcome:?}");
    assert_eq!(json_of(&outcome)["ended"], "time");
    nothing_is_left(&stage);
    let outcome = stage.run(&["run", "claude", "BEHIND", "--json"]);
    assert_eq!((outcome.code, &json_of(&outcome)["ended"]), (Some(0), &json!("answered")), "{outcome:?}");
    nothing_is_left(&stage);
}

#[test]
fn whoever_is_killed_nothing_is_left_and_the_result_says_what_happened() {
    for (whom, with, ending) in [
        ("run", "KILL", "stopped"),
        ("run", "TERM", "stopped"),
        ("run", "INT", "stopped"),
        ("guard", "KILL", "broke-off"),
        ("guard", "TERM", "stopped"),
        ("harness", "KILL", "broke-off"),
    ] {
        let stage = stage();
        let mut run = stage.relay(&["run", "claude", "CHILDREN", "--json"]).start(&stage.folder.join("run.log"));
        let (guard, harness) = started(&stage);
        let pid = match whom {
            "run" => run.child.id(),
            "guard" => guard,
            _ => harness,
        };
        signal(with, pid);
        if (whom, with) == ("run", "KILL") {
            run.ended();
        } else {
            wait_for("the run ends by itself", || run.ended());
        }
        let ended = wait_for("the run has a result", || {
            let line = runs(&stage).first().cloned()?;
            line["ended"].as_str().map(str::to_owned)
        });
        assert_eq!(ended, ending, "{whom} {with}");
        nothing_is_left(&stage);
        let result: Value = serde_json::from_str(&stage.relay_ok(&["runs", "show", "last", "--json"])).expect("JSON");
        assert_eq!(result["structured"]["events"].to_string().matches("started").count(), 1, "{whom}: {result}");
        assert_eq!(result["ok"], false);
    }
}

#[test]
fn a_run_that_is_left_behind_is_followed_stopped_and_listed() {
    let stage = stage();
    let begun = json_of(&stage.run(&["run", "claude", "CHILDREN", "--detach", "--json"]));
    let id = begun["run"].as_str().expect("an id").to_owned();
    assert_eq!(begun["state"], "running");
    started(&stage);
    let agents = stage.relay_ok(&["agents", "--json"]);
    assert!(agents.contains("claude-run"), "a run is an agent: {agents}");
    let status = stage.relay_ok(&["status", "--json"]);
    assert!(status.contains("claude-run"), "{status}");
    let stopped = json_of(&stage.run(&["runs", "stop", &id, "--json"]));
    assert_eq!(stopped["ended"], "stopped");
    nothing_is_left(&stage);
    let followed = stage.run(&["runs", "follow", &id, "--json"]);
    assert_eq!(followed.code, Some(1), "{followed:?}");
    assert!(followed.stdout.contains("started"), "{followed:?}");
    assert_eq!(runs(&stage).len(), 1);
    assert_eq!(stage.run(&["runs", "show", "01JD8Z3K5V0000000000000000"]).code, Some(3));
    assert_eq!(stage.run(&["runs", "show", "nonsense"]).code, Some(2));
}

#[test]
fn a_task_of_200_kilobytes_arrives() {
    let stage = stage();
    let task = format!("LENGTH {}", "x".repeat(200_000));
    let outcome = stage.relay(&["run", "claude", "--stdin", "--json"]).input(task.clone()).run();
    assert_eq!(json_of(&outcome)["structured"]["response"], format!("did {}", task.len()), "{outcome:?}");
}

#[test]
fn an_edit_is_made_in_a_worktree_and_applied_once_whole_or_not_at_all() {
    let stage = stage();
    let result = json_of(&stage.run(&["run", "claude", "EDIT", "--reach", "edit", "--json"]));
    assert_eq!(result["artifacts"]["files_written"], json!(["README.md", "new.txt"]), "{result}");
    assert_eq!(stage.git_status(), "", "the folder is untouched");
    let id = result["run"].as_str().expect("an id");
    assert!(stage.relay_ok(&["runs", "diff", id]).contains("+changed"));
    // It does not fit: nothing is applied, not even what would fit.
    std::fs::write(stage.project.join("README.md"), "mine\n").expect("written");
    let conflict = stage.run(&["runs", "apply", id]);
    assert_eq!(conflict.code, Some(6), "{conflict:?}");
    assert!(conflict.stderr.contains("nothing was applied") && conflict.stderr.contains("hint: "), "{conflict:?}");
    assert!(!stage.project.join("new.txt").exists());
    stage.git(&["checkout", "-q", "README.md"]);
    stage.relay_ok(&["runs", "apply", id]);
    assert_eq!(std::fs::read_to_string(stage.project.join("README.md")).expect("there"), "changed\n");
    let again = stage.run(&["runs", "apply", id]);
    assert_eq!(again.code, Some(6), "{again:?}");
    assert!(!stage.data.join("runs").join(id).join("worktree").exists(), "all of it is in the folder");
    assert_eq!(stage.git(&["branch", "--list", "relay/*"]), "", "its branch held nothing more");
}

#[test]
fn what_does_not_fit_is_applied_by_the_line_of_the_hint() {
    let stage = stage();
    let result = json_of(&stage.run(&["run", "claude", "EDIT", "--reach", "edit", "--json"]));
    let id = result["run"].as_str().expect("an id");
    std::fs::write(stage.project.join("README.md"), "mine\n").expect("written");
    stage.git(&["commit", "-q", "-a", "-m", "Mine"]);
    let conflict = stage.run(&["runs", "apply", id]);
    assert!(conflict.stderr.contains(&format!("`relay-mesh runs diff {id} | git apply --3way`")), "{conflict:?}");
    let patch = stage.relay_ok(&["runs", "diff", id]);
    let applied = Program::new("git").args(["apply", "--3way"]).within(&stage.project).input(patch).run();
    let readme = std::fs::read_to_string(stage.project.join("README.md")).expect("there");
    assert!(
        readme.contains("<<<<<<<") && readme.contains("mine") && readme.contains("changed"),
        "{applied:?} {readme}"
    );
    assert_eq!(std::fs::read_to_string(stage.project.join("new.txt")).expect("there"), "new\n");
}

#[test]
fn a_run_that_changes_more_than_it_has_reserved_says_so() {
    let stage = stage();
    let run = |reserve: &[&str]| {
        let words = ["run", "claude", "EDIT", "--reach", "edit", "--here", "--json"];
        let result = json_of(&stage.run(&[&words[..], reserve].concat()));
        stage.git(&["checkout", "-q", "."]);
        std::fs::remove_file(stage.project.join("new.txt")).expect("it was written");
        result["notes"].to_string()
    };
    let beyond = "beyond what it had reserved, this changed while it worked";
    let notes = run(&["--reserve", "README.md"]);
    assert!(notes.contains(&format!("{beyond}: new.txt")), "{notes}");
    let notes = run(&[]);
    assert!(!notes.contains(beyond), "all of the folder was reserved: {notes}");
}

#[test]
fn of_two_that_apply_one_run_at_once_one_does() {
    let stage = stage();
    let result = json_of(&stage.run(&["run", "claude", "EDIT", "--reach", "edit", "--json"]));
    let id = result["run"].as_str().expect("an id");
    let start =
        |number: u32| stage.relay(&["runs", "apply", id]).start(&stage.folder.join(format!("apply-{number}.log")));
    let mut both = [1, 2, 3].map(start);
    let mut codes: Vec<Option<i32>> = both.iter_mut().map(Running::ended).collect();
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(6), Some(6)]);
    assert_eq!(std::fs::read_to_string(stage.project.join("README.md")).expect("there"), "changed\n");
    assert_eq!(std::fs::read_to_string(stage.project.join("new.txt")).expect("there"), "new\n");
}

#[test]
fn a_disk_that_fills_up_while_events_are_written_loses_no_run() {
    isolated(|| {
        let stage = stage();
        let small = stage.folder.join("small");
        std::fs::create_dir(&small).expect("the stage is writable");
        Program::new("mount").args(["-t", "tmpfs", "-o", "size=64m,mode=0700", "disk"]).arg(&small).succeed();
        let at = |words: &[&str]| stage.relay(words).env("RELAY_DIR", small.join("mesh")).run();
        // The adapters are compiled into the data folder once.
        assert_eq!(json_of(&at(&["run", "claude", "hello", "--json"]))["ok"], true);
        let mut filler = std::fs::File::create(small.join("filler")).expect("there is room");
        while std::io::Write::write_all(&mut filler, &[0; 4096]).is_ok() {}
        let length = filler.metadata().expect("it is there").len();
        filler.set_len(length - 400_000).expect("it can be cut");
        let outcome = at(&["run", "claude", "MANY", "--json"]);
        assert_eq!(outcome.code, Some(5), "{outcome:?}");
        assert!(outcome.stderr.contains("could not be written"), "{outcome:?}");
        assert!(outcome.stderr.contains("see whether the disk is full"), "{outcome:?}");
        let listed = |outcome: &Outcome| -> Value { json_of(outcome)["runs"][0].clone() };
        assert_ne!(listed(&at(&["runs", "list", "--json"]))["state"], "ended", "it is not forgotten, nor made up");
        // With room again, the next command tells what came of it.
        std::fs::remove_file(small.join("filler")).expect("it can be removed");
        drop(filler);
        let line = listed(&at(&["runs", "list", "--json"]));
        assert_eq!(
            (&line["state"], &line["ended"], &line["ok"]),
            (&json!("ended"), &json!("broke-off"), &json!(false))
        );
        let result = json_of(&at(&["runs", "show", "last", "--json"]));
        let events = result["structured"]["events"].as_array().expect("events").len();
        assert!((500..4_000).contains(&events), "what was printed until then is there: {events}");
        assert_eq!(json_of(&at(&["run", "claude", "hello", "--json"]))["ok"], true);
    });
}

#[test]
fn a_harness_that_is_not_signed_in_says_so() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        std::fs::create_dir_all(stage.programs()).expect("the home is writable");
        std::os::unix::fs::symlink(ClaudeCode::program_path(), stage.programs().join("claude")).expect("a link");
        let outcome = stage.run(&["run", "claude", "Say hello.", "--timeout", "60"]);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.contains(": login, Claude Code is not signed in"), "{outcome:?}");
        assert!(outcome.stderr.contains("hint: sign in"), "{outcome:?}");
        nothing_is_left(&stage);
    });
}

#[test]
fn what_is_not_well_formed_is_told_with_a_hint_and_nothing_is_left() {
    let stage = stage();
    let tall = "{\"type\": 7}";
    for (words, code, expected) in [
        (&["run", "nothing", "hello"][..], 3, "no adapter is named `nothing`"),
        (&["run", "claude", "hello", "--cwd", "nowhere"], 3, "is not a folder"),
        (&["run", "claude", "hello", "--timeout", "0"], 2, "more than zero"),
        (&["run", "claude", "hello", "--budget", "0"], 2, "more than zero"),
        (&["run", "claude", "hello", "--turns", "0"], 2, "--turns"),
        (&["run", "claude", "hello", "--schema", tall], 2, "is not a JSON schema"),
        (&["run", "claude", "hello", "--schema", "nowhere.json"], 3, "could not be read"),
        (&["run", "claude"], 2, "has no task"),
        (&["run", "claude", "hello", "--reserve", "src"], 2, "`--reserve` is for runs with `--here`"),
        (&["run", "claude", "hello", "--report", "nobody-at-all"], 3, "nobody-at-all"),
    ] {
        let outcome = stage.run(words);
        assert_eq!(outcome.code, Some(code), "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(expected), "{words:?}: {outcome:?}");
        // What the arguments' own parser refuses, it explains itself.
        let is_told = outcome.stderr.contains("hint: ") || outcome.stderr.contains("try '--help'");
        assert!(is_told, "{words:?}: {outcome:?}");
    }
    std::fs::write(stage.project.join("README.md"), "mine\n").expect("written");
    for words in [&["run", "claude", "EDIT", "--reach", "edit"][..], &["run", "claude", "hello", "--worktree"]] {
        let dirty = stage.run(words);
        assert!(dirty.code == Some(6) && dirty.stderr.contains("hint: commit or stash them"), "{dirty:?}");
    }
    let outside = stage.relay(&["run", "claude", "EDIT", "--reach", "edit"]).within(&stage.home).run();
    assert_eq!(outside.code, Some(3), "{outside:?}");
    assert!(outside.stderr.contains("in no git repository"), "{outside:?}");
    assert_eq!(runs(&stage), Vec::<Value>::new(), "nothing is left of what was refused");
    assert!(!stage.git(&["branch", "--list", "--all"]).contains("relay/"));
}

#[test]
fn what_is_asked_of_no_run_is_told_with_a_hint() {
    let stage = stage();
    for (words, code, expected) in [
        (&["runs", "show", "01JD8Z3K5V0000000000000000"][..], 3, "no run has the id"),
        (&["runs", "show", "last"], 3, "no run has the id"),
        (&["runs", "stop", "nonsense"], 2, "is not a run's id"),
        (&["runs", "apply", "01JD8Z3K5V0000000000000000"], 3, "no run has the id"),
        (&["runs", "allow", "shell", "claude"], 2, "is reserved"),
        (&["runs", "disallow", "bob"], 3, "nothing like that is allowed"),
        (&["run", "nothing", "hello"], 3, "no adapter is named `nothing`"),
        (&["run", "cursor", "hello"], 1, "could not do it"),
        (&["run", "claude", "hello", "--timeout", "0"], 2, "more than zero"),
        (&["run", "claude", "hello", "--budget", "0"], 2, "more than zero"),
        (&["run", "claude", "hello", "--schema", "{\"type\": 7}"], 2, "is not a JSON schema"),
        (&["run", "claude", "hello", "--cwd", "nowhere"], 3, "is not a folder"),
    ] {
        let outcome = stage.run(words);
        assert_eq!(outcome.code, Some(code), "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(expected), "{words:?}: {outcome:?}");
        // What the arguments' own parser refuses, it explains itself.
        let is_told = outcome.stderr.contains("hint: ") || outcome.stderr.contains("try '--help'");
        assert!(is_told, "{words:?}: {outcome:?}");
    }
    assert_eq!(runs(&stage), Vec::<Value>::new());
    assert_eq!(stage.run(&["runs", "gc"]).code, Some(0));
}

/// What harnesses set for their agents' shells stays in what has left their processes, and in another data folder.
#[test]
fn a_shell_that_a_harness_has_marked_is_no_users() {
    let stage = stage();
    let elsewhere = stage.folder.join("elsewhere").display().to_string();
    let allow = |variable: &(&str, &str), more: &[(&str, &str)]| {
        let words = ["runs", "allow", "bob", "claude", "--reach", "look"];
        stage.relay(&words).env(variable.0, variable.1).envs(more.iter().copied()).run()
    };
    for marked in [
        ("CURSOR_AGENT", "1"),
        ("CURSOR_EXTENSION_HOST_ROLE", "agent-exec"),
        ("GEMINI_CLI", "1"),
        ("OPENCODE", "1"),
        ("COPILOT_CLI", "1"),
        ("CLAUDECODE", "1"),
        ("AI_AGENT", "some-agent"),
        ("AGENT", "goose"),
    ] {
        let refused = allow(&marked, &[]);
        assert!(refused.code == Some(4) && refused.stderr.contains("belongs to an agent"), "{marked:?}: {refused:?}");
        assert_eq!(allow(&marked, &[("RELAY_DIR", &elsewhere)]).code, Some(4), "{marked:?}");
        let run = stage.relay(&["run", "claude", "hello"]).env(marked.0, marked.1).run();
        assert!(run.code == Some(4) && run.stderr.contains("that has no agent"), "{marked:?}: {run:?}");
    }
    // The editor's own terminal, and a variable of another meaning.
    for users in [("CURSOR_EXTENSION_HOST_ROLE", "user"), ("CURSOR_TRACE_ID", "1"), ("AGENT", "build-7")] {
        let allowed = allow(&users, &[]);
        assert_eq!(allowed.code, Some(0), "{users:?}: {allowed:?}");
    }
}

/// A client without hooks, which sets nothing for its agent's shells.
#[test]
fn below_a_client_whose_agent_has_joined_nobody_is_the_user() {
    let stage = stage();
    let allow = ["runs", "allow", "bob", "claude", "--reach", "look"];
    let server = stage.relay(&["mcp"]).start(&stage.folder.join("mcp.log"));
    let mut client = StdioClient::connected(server, "a-plain-client");
    assert_eq!(stage.run(&allow).code, Some(0), "its agent has not joined, so nothing is known of it");
    client.call("register_agent", json!({"name": "bob"}));
    // This test is the client's process.
    let refused = stage.run(&allow);
    assert!(refused.code == Some(4) && refused.stderr.contains("belongs to an agent"), "{refused:?}");
    assert_eq!(stage.run(&["run", "claude", "hello", "--reach", "work"]).code, Some(4), "bob may look, and no more");
    client.close();
    wait_for("it has ended", || (stage.run(&allow).code == Some(0)).then_some(()));
}

#[test]
fn a_run_may_start_no_run_and_allow_nothing() {
    let stage = stage();
    stage.relay_ok(&["runs", "allow", "claude-run", "claude", "--reach", "work"]);
    stage.relay_ok(&["run", "claude", "CHILDREN", "--detach"]);
    started(&stage);
    let id = runs(&stage)[0]["run"].as_str().expect("an id").to_owned();
    let below = |words: &[&str]| stage.relay(words).env("RELAY_RUN", &id).run();
    let deeper = below(&["run", "claude", "hello"]);
    assert_eq!(deeper.code, Some(4), "{deeper:?}");
    assert!(deeper.stderr.contains("to a depth of 1"), "{deeper:?}");
    assert_eq!(below(&["runs", "allow", "bob", "claude"]).code, Some(4));
    // Without the mark: a session that is the run's own agent.
    let session = [("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", "5e551011-0000-4000-8000-000000000001")];
    // It is known as that once its first event was read.
    let refused = wait_for("its session is that of the run's agent", || {
        let own = stage.relay(&["run", "claude", "hello"]).envs(session).run();
        own.stderr.contains("to a depth of 1").then_some(own)
    });
    assert_eq!(refused.code, Some(4), "{refused:?}");
    // The author of what it asks to have reviewed is the run's harness, and no other is here.
    for name in ["codex", "gemini", "opencode"] {
        stage.program(name, "#!/bin/sh\nexit 1\n");
    }
    let review = below(&["review"]);
    assert!(review.code == Some(3) && review.stderr.contains("no harness is here"), "{review:?}");
    // Nor does an agent's shell allow anything that relay-mesh drives.
    let driven = stage.relay(&["runs", "allow", "bob", "claude"]).env("RELAY_SPAWN", &id).run();
    assert!(driven.code == Some(4) && driven.stderr.contains("belongs to an agent"), "{driven:?}");
    stage.relay_ok(&["runs", "stop", &id]);
    assert_eq!(below(&["runs", "allow", "bob", "claude"]).code, Some(4), "also below a run that is over");
    let after = below(&["run", "claude", "hello"]);
    assert!(after.code == Some(4) && after.stderr.contains("run"), "{after:?}");
    let told = wait_for("its begin and its end are logged", || {
        let log = stage.relay_ok(&["log", "--json", "--type", "run-started", "--type", "run-ended"]);
        let told: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        (told.len() > 1).then_some(told)
    });
    let told: Vec<_> =
        told.iter().map(|line| (line["event"].as_str(), line["id"].as_str(), line["ended"].as_str())).collect();
    assert_eq!(
        told,
        [(Some("run-started"), Some(id.as_str()), None), (Some("run-ended"), Some(id.as_str()), Some("stopped"))]
    );
    nothing_is_left(&stage);
}

#[test]
fn what_is_set_aside_of_a_budget_is_for_the_runs_below() {
    let stage = stage();
    stage.relay_ok(&["runs", "allow", "claude-run", "claude", "--reach", "work"]);
    let settings = stage.home.join(".config/relay-mesh/runs.toml");
    let allowed = std::fs::read_to_string(&settings).expect("it is written");
    std::fs::write(&settings, format!("depth = 2\n{allowed}")).expect("the home is writable");
    let told = |words: &[&str]| {
        stage.relay_ok(&[&["run", "claude", "SHARES", "--here"], words].concat());
        let read = |name: &str| {
            let file = stage.project.join(name);
            let text = std::fs::read_to_string(&file).unwrap_or_default().replace("000\n", "\n");
            let _was_there = std::fs::remove_file(&file);
            text
        };
        (read("budgets.txt"), read("below.txt"))
    };
    // The run itself may spend three. The first below gets no more than the two, and each of the others what those before
    // it have left: each has cost a tenth of a cent.
    let (budgets, below) = told(&["--budget", "5", "--budget-below", "2"]);
    assert_eq!(budgets.split_whitespace().collect::<Vec<_>>(), ["3.000", "2.000", "1.000", "1.998"], "{below}");
    assert_eq!(below.matches("exit 0").count(), 3, "{below}");
    // Nothing is set aside, and what it has spent so far is not known while it goes on.
    let (budgets, below) = told(&["--budget", "5"]);
    assert_eq!(budgets.split_whitespace().collect::<Vec<_>>(), ["5.000"]);
    assert!(below.contains("has no budget left") && below.contains("--budget-below"), "{below}");
    assert_eq!(below.matches("exit 4").count(), 3, "{below}");
    let nothing_left = stage.run(&["run", "claude", "hello", "--budget", "2", "--budget-below", "2"]);
    assert!(
        nothing_left.code == Some(2) && nothing_left.stderr.contains("is left for the run itself"),
        "{nothing_left:?}"
    );
    nothing_is_left(&stage);
}

#[test]
fn what_is_below_a_live_guard_is_below_its_run_without_any_mark() {
    let stage = stage();
    stage.relay_ok(&["runs", "allow", "claude-run", "claude", "--reach", "work"]);
    stage.relay_ok(&["run", "claude", "BELOW"]);
    let told = std::fs::read_to_string(stage.project.join("below.txt")).expect("it was run");
    assert!(told.contains("to a depth of 1") && told.contains("exit 4"), "{told}");
    assert_eq!(runs(&stage).len(), 1);
}

#[test]
fn on_a_terminal_the_answer_is_read_once() {
    let stage = stage();
    let words = [stage.binary().display().to_string().as_str(), "run", "claude", "SAYS"].map(str::to_owned);
    let shell = ["sh".to_owned(), "-c".to_owned(), format!("{}; sleep 60", words.join(" "))];
    let terminal = Terminal::start(&stage.folder, &stage.project, &stage.environment(), &shell);
    terminal.wait_for("ended after");
    let screen = terminal.screen();
    assert_eq!(screen.matches("did SAYS").count(), 1, "{screen}");
}

#[test]
fn a_user_sees_how_it_goes_in_a_terminal_and_stops_it_there() {
    let stage = stage();
    let words = [stage.binary().display().to_string().as_str(), "run", "claude", "CHILDREN"].map(str::to_owned);
    let terminal = Terminal::start(&stage.folder, &stage.project, &stage.environment(), &words);
    terminal.wait_for("session 5e551011");
    terminal.wait_for("started");
    terminal.press("C-c");
    wait_for("it has ended", || (runs(&stage).first()?["ended"] == "stopped").then_some(()));
    nothing_is_left(&stage);
}

#[test]
fn mail_reaches_a_run_by_its_hooks() {
    isolated(|| {
        let stage = Arc::new(Stage::new(env!("CARGO_BIN_EXE_relay-mesh")));
        stage.relay_ok(&["register", "alice"]);
        let (mail, readme) = (Arc::clone(&stage), stage.project.join("README.md"));
        let model = Model::start(
            Script::new()
                .answer_with("Read the readme", move |_| {
                    mail.relay_ok(&["send", "reader", "Mind the gap.", "--from", "alice"]);
                    ModelAnswer::Call { tool: "Read".to_owned(), input: json!({"file_path": readme}) }
                })
                .say("# A project", "I read it."),
        );
        let words = ["run", "claude", "Read the readme.", "--as", "reader", "--timeout", "60", "--json"];
        let result = json_of(&ClaudeCode::new(&stage, &model).run(&words));
        assert_eq!(
            (&result["structured"]["response"], &result["mail"]),
            (&json!("I read it."), &json!([])),
            "{result}"
        );
        let told = model.wait_for_news("# A project").news();
        assert!(told.contains("Mind the gap.") && told.contains("<relay-mesh-message id="), "{told}");
    });
}

#[test]
fn no_shell_of_a_harness_allows_runs() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        stage.relay_ok(&["install", "claude-code", "--project", &stage.project_path(), "--yes"]);
        let allow = format!("{} runs allow bob claude", stage.binary().display());
        // By the variables of the harness, and without any of them by the processes above.
        let bare = format!("env -i PATH=\"$PATH\" HOME=\"$HOME\" RELAY_DIR='{}' {allow}", stage.data.display());
        let command = format!("{allow}; echo first $?; {bare}; echo second $?");
        let input = json!({"command": command, "description": "Allow bob"});
        let model = Model::start(Script::new().call("Let bob run", "Bash", input));
        let asked = ClaudeCode::new(&stage, &model).ask("Let bob run Claude Code.", &[]);
        let told = model.heard().iter().map(test_support::Heard::news).collect::<Vec<_>>().join("\n");
        assert!(told.contains("first 4") && told.contains("second 4"), "{told}: {:?}", asked.outcome);
        assert_eq!(told.matches("this shell belongs to an agent").count(), 2, "{told}");
        let allowed: Value = serde_json::from_str(&stage.relay_ok(&["runs", "allowed", "--json"])).expect("JSON");
        assert_eq!(allowed["allowed"], json!([]), "nothing is allowed");
    });
}

/// What each run of the tests sees of the table in docs/runs.md: `run --agent NAME` of a real client, its limits, and a key
/// that is refused.
fn b2_answers(harness: &'static str, agent: &str) {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let script = Script::new().say("Say hello.", "Hello from the model.");
    let scene = RunScene::of(harness, "faults", stage, script);
    let words = ["run", "--agent", agent, "--prompt", "Say hello.", "--timeout", "60"];
    let outcome = scene.relay(&words).run();
    let result = json_of(&outcome);
    assert_eq!((outcome.code, &result["ended"]), (Some(0), &json!("answered")), "{outcome:?}");
    assert_eq!((&result["agent"], &result["structured"]["response"]), (&json!(agent), &json!("Hello from the model.")));
    assert!(result["session"].is_string() && result["usage"]["input_tokens"].is_u64(), "{result}");
    scene.nothing_is_left();
    scene.note("an answer", &result);
    scene.stops_by();
    scene.limits();
    without_credentials(scene);
}

/// A client in which nobody has signed in says so, at once or when its model's server refuses it.
fn without_credentials(mut scene: RunScene) {
    let keys = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"];
    scene.environment.retain(|(name, _)| !keys.contains(&name.as_str()));
    for settings in [".claude", ".claude.json", ".codex", ".gemini"] {
        let path = scene.stage.home.join(settings);
        let _none = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
    }
    // Codex and OpenCode ask the server without a key; it is at the scripted model's place.
    let server = format!("http://127.0.0.1:{}/v1", scene.model.port);
    let codex = scene.stage.home.join(".codex");
    std::fs::create_dir(&codex).expect("the home is writable");
    std::fs::write(codex.join("config.toml"), format!("openai_base_url = \"{server}\"\n")).expect("written");
    let providers = scene.stage.folder.join("opencode-model.json");
    if let Ok(text) = std::fs::read_to_string(&providers) {
        let text = text.replace(",\"apiKey\":\"opens-nothing\"", "");
        assert!(!text.contains("apiKey"), "{text}");
        std::fs::write(&providers, text).expect("written");
    }
    let result = scene.case("without credentials", Some(Behaviour::Refuses(401)), "Begin", &[]);
    assert_eq!(result["ended"], "login", "{result}");
}

#[test]
fn b2_the_real_claude_code_answers() {
    isolated(|| b2_answers("claude-code", "claude"));
}

#[test]
fn b2_the_real_codex_answers() {
    isolated(|| b2_answers("codex", "codex"));
}

#[test]
fn b2_the_real_gemini_cli_answers() {
    isolated(|| b2_answers("gemini-cli", "gemini"));
}

#[test]
fn b2_the_real_opencode_answers() {
    isolated(|| b2_answers("opencode", "opencode"));
}
