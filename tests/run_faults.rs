//! What comes of a run when something goes wrong, with each real client and a scripted model: the server refuses, fails,
//! breaks off or hangs, a limit is reached, a tool is denied, and one of the processes is stopped or killed. What is
//! seen is held against the table in docs/runs.md; `RELAY_RUNS_TABLE_WRITE=1` writes a harness's column anew. It takes a
//! quarter of an hour and so is not part of `make test`: `make run-faults`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use test_support::{
    Answer, Behaviour, Model, Outcome, Program, Script, Stage, environment_to_start, isolated, wait_for,
};

/// Set to write what was seen into the page.
const WRITE: &str = "RELAY_RUNS_TABLE_WRITE";

/// One harness on a stage.
struct Scene {
    harness: &'static str,
    stage: Stage,
    model: Model,
    environment: Vec<(String, String)>,
    /// What was seen, by case.
    seen: BTreeMap<String, String>,
}

/// The harness's call that writes a file.
fn writes(harness: &str, file: &Path) -> Answer {
    let made = file.display().to_string();
    let (tool, input) = match harness {
        "claude-code" => ("Write", json!({"file_path": made, "content": "made"})),
        "codex" => ("exec_command", json!({"cmd": format!("echo made > {made}")})),
        "opencode" => ("write", json!({"filePath": made, "content": "made"})),
        _ => ("write_file", json!({"file_path": made, "content": "made"})),
    };
    Answer::Call { tool: tool.to_owned(), input }
}

/// The harness's call that runs a program, which leaves a file.
fn runs_a_program(harness: &str, file: &Path) -> Answer {
    let command = format!("echo ran > {}", file.display());
    let (tool, input) = match harness {
        "claude-code" => ("Bash", json!({"command": command, "description": "Leave a file"})),
        "codex" => ("exec_command", json!({"cmd": command})),
        "opencode" => ("bash", json!({"command": command, "description": "Leave a file"})),
        _ => ("run_shell_command", json!({"command": command})),
    };
    Answer::Call { tool: tool.to_owned(), input }
}

/// Sets a harness up, whose model can call its tool that writes a file, and gives an answer by a schema.
fn scene(harness: &'static str) -> Scene {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let script = match harness {
        "claude-code" => Script::new().call("Give me n", "StructuredOutput", json!({"n": 1})),
        _ => Script::new().say("Give me n", "{\"n\": 1}"),
    };
    let call = writes(harness, &stage.project.join("made.txt"));
    scene_of(harness, stage, script.answer_with("Write it", move |_| call.clone()))
}

/// Sets a harness up with a model of this script.
fn scene_of(harness: &'static str, stage: Stage, script: Script) -> Scene {
    let model = Model::start(script);
    let environment = environment_to_start(harness, &stage, &model);
    Scene { harness, stage, model, environment, seen: BTreeMap::new() }
}

fn says(words: &str) -> Option<Behaviour> {
    Some(Behaviour::Answers(Answer::Say(words.to_owned())))
}

impl Scene {
    fn relay(&self, words: &[&str]) -> Program {
        self.stage.relay(words).envs(self.environment.clone())
    }

    fn run(&self, task: &str, further: &[&str]) -> Outcome {
        let usual: &[&str] = if further.contains(&"--timeout") { &[] } else { &["--timeout", "20"] };
        self.relay(&[&["run", self.harness, task, "--json"], usual, further].concat()).run()
    }

    /// Runs a task and notes what came of it. Nothing of it is left.
    fn case(&mut self, name: &str, behaviour: Option<Behaviour>, task: &str, further: &[&str]) -> Value {
        self.model.behaves(behaviour);
        let outcome = self.run(task, further);
        self.nothing_is_left();
        let Ok(result) = serde_json::from_str::<Value>(outcome.stdout.trim()) else {
            self.seen.insert(name.to_owned(), "refused".to_owned());
            return json!({"refused": outcome.stderr});
        };
        assert_eq!(outcome.code == Some(0), result["ok"] == true, "{name}: {outcome:?}");
        self.note(name, &result);
        result
    }

    fn note(&mut self, name: &str, result: &Value) {
        let exit = match (&result["exit_code"], &result["signal"]) {
            (Value::Number(code), _) => format!("exit {code}"),
            (_, Value::Number(signal)) => format!("signal {signal}"),
            _ => "unknown".to_owned(),
        };
        // What this case asked for and the harness cannot keep.
        let asked = |clause: &&str| clause.starts_with("no limit") || clause.starts_with("no schema");
        let without = result["without"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let without: Vec<&str> = without.filter(asked).filter_map(|clause| clause.split(':').next()).collect();
        let without = if without.is_empty() { String::new() } else { format!("; {}", without.join(", ")) };
        let cell = format!("{}, {exit}{without}", result["ended"].as_str().unwrap_or("?"));
        self.seen.insert(name.to_owned(), cell);
    }

    fn nothing_is_left(&self) {
        let dir = format!("RELAY_DIR={}", self.stage.data.display()).into_bytes();
        let is_left = |process: &std::fs::DirEntry| {
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            let has = |what: &dyn Fn(&[u8]) -> bool| environment.split(|byte| *byte == 0).any(what);
            has(&|line| line.starts_with(b"RELAY_RUN=")) && has(&|line| line == dir)
        };
        wait_for("nothing of the run is left", || {
            let left = std::fs::read_dir("/proc").expect("a list").flatten().any(|process| is_left(&process));
            (!left).then_some(())
        });
    }

    /// The files of the newest run.
    fn newest(&self) -> Option<PathBuf> {
        let folders = std::fs::read_dir(self.stage.data.join("runs")).ok()?.flatten();
        folders.map(|entry| entry.path()).filter(|path| path.join("record.json").exists()).max()
    }

    /// Signals the run, its guard or its harness while its model hangs, and notes what came of it.
    fn struck(&mut self, whom: &str, signal: &str) {
        self.model.behaves(Some(Behaviour::Answers(Answer::Talk("I begin".to_owned()))));
        let before = (self.newest(), self.model.heard().len());
        let program = self.relay(&["run", self.harness, "Begin", "--timeout", "60", "--json"]);
        let mut run = program.start(&self.stage.folder.join("run.log"));
        let (folder, running) = wait_for("the model hangs", || {
            let folder = self.newest().filter(|newest| Some(newest) != before.0.as_ref())?;
            let running = std::fs::read(folder.join("running-1")).ok()?;
            let running: Value = serde_json::from_slice(&running).ok()?;
            let ready = running["program"]["pid"].is_u64() && self.model.heard().len() > before.1;
            ready.then_some((folder, running))
        });
        let pid = match whom {
            "run" => u64::from(run.child.id()),
            "guard" => running["guard"]["pid"].as_u64().expect("a number"),
            _ => running["program"]["pid"].as_u64().expect("a number"),
        };
        Program::new("kill").args([format!("-{signal}"), pid.to_string()]).succeed();
        run.ended();
        self.nothing_is_left();
        let result = wait_for("the run has a result", || {
            self.stage.relay_ok(&["runs", "list", "--json"]);
            serde_json::from_slice::<Value>(&std::fs::read(folder.join("result.json")).ok()?).ok()
        });
        assert_eq!(result["ok"], false, "{whom} {signal}: {result}");
        self.note(&format!("SIG{signal} to {whom}"), &result);
    }
}

/// What goes wrong between a harness and its model, and what a task may ask for.
fn faults(harness: &'static str) {
    let mut scene = scene(harness);
    let schema =
        r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}"#;
    let first = scene.case("an answer", says("I am done."), "Begin", &[]);
    assert_eq!(first["structured"]["response"], "I am done.", "{first}");
    let stop = scene.newest().and_then(|folder| std::fs::read(folder.join("record.json")).ok()).expect("a record");
    let stop: Value = serde_json::from_slice(&stop).expect("JSON");
    let steps = stop["launch"]["stop"].as_array().expect("steps").iter();
    let steps = steps.map(|step| format!("{} {} s", step["signal"].as_str().unwrap_or("?"), step["grace"]["secs"]));
    scene.seen.insert("is asked to stop by".to_owned(), steps.collect::<Vec<_>>().join(", then "));
    let kept = scene.case("a schema that is kept", None, "Give me n.", &["--schema", schema]);
    assert_eq!(kept["output"], json!({"n": 1}), "{kept}");
    let broken = scene.case("a schema that is not", says("One."), "Give me another.", &["--schema", schema]);
    assert_eq!((&broken["ended"], &broken["output"]), (&json!("shape"), &Value::Null), "{broken}");
    scene.case("HTTP 401", Some(Behaviour::Refuses(401)), "Begin", &[]);
    scene.case("HTTP 429", Some(Behaviour::Refuses(429)), "Begin", &["--timeout", "12"]);
    scene.case("HTTP 500", Some(Behaviour::Refuses(500)), "Begin", &["--timeout", "12"]);
    scene.case("a stream that breaks off", Some(Behaviour::BreaksOff("I am".to_owned())), "Begin", &[]);
    let hangs = Some(Behaviour::Answers(Answer::Talk("I begin".to_owned())));
    let late = scene.case("a model that hangs", hangs, "Begin", &["--timeout", "5"]);
    assert_eq!(late["ended"], "time", "{late}");
    let denied = scene.case("a tool that is not allowed", None, "Write it.", &[]);
    assert!(!scene.stage.project.join("made.txt").exists(), "{denied}");
    let session = first["session"].as_str().expect("a session").to_owned();
    let resumed = scene.case("--resume", says("I go on."), "Go on", &["--resume", &session]);
    assert_eq!((&resumed["ok"], &resumed["session"]), (&json!(true), &json!(session)), "{resumed}");
    let forked = scene.case("--fork", says("I go my way."), "Go on", &["--fork", &session]);
    assert_ne!(forked["session"], json!(session), "{forked}");
    let turn = match harness {
        "claude-code" => {
            let file = scene.stage.project.join("README.md").display().to_string();
            Answer::Call { tool: "Read".to_owned(), input: json!({"file_path": file}) }
        }
        _ => Answer::Say("I am done.".to_owned()),
    };
    scene.case("--turns 1", Some(Behaviour::Answers(turn.clone())), "Begin", &["--turns", "1"]);
    scene.case("--budget 0.000001", Some(Behaviour::Answers(turn)), "Begin", &["--budget", "0.000001"]);
    scene.model.behaves(says("That was long."));
    let long = format!("Begin {}", "x".repeat(200_000));
    let program = scene.relay(&["run", harness, "--stdin", "--timeout", "20", "--json"]).input(long);
    let long: Value = serde_json::from_str(program.run().stdout.trim()).expect("JSON");
    assert_eq!(long["ok"], true, "{}", long["why"]);
    scene.note("a task of 200 KB", &long);
    hold(&scene, "faults");
}

/// Signals to each of the processes, while the model hangs.
fn signals(harness: &'static str) {
    let mut scene = scene(harness);
    for whom in ["run", "guard", "harness"] {
        for signal in ["INT", "TERM", "KILL"] {
            scene.struck(whom, signal);
        }
    }
    hold(&scene, "signals");
}

/// How far each reach goes: what a model gets done that wants to write a file and to run a program.
const REACHES: [&str; 4] = ["look", "edit", "work", "unguarded"];

/// What a harness can, as its runs show it.
fn abilities(harness: &'static str) {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let file = |kind: &str, reach: &str| stage.project.join(format!("{kind}-{reach}.txt"));
    // In each run the model first writes a file, then runs a program.
    let next: Arc<Mutex<Option<Answer>>> = Arc::default();
    let mut script = Script::new();
    for reach in REACHES {
        let (write, run) = (writes(harness, &file("made", reach)), runs_a_program(harness, &file("ran", reach)));
        let next = Arc::clone(&next);
        script = script.answer_with(&format!("Do it with the reach {reach}"), move |_| {
            *next.lock().expect("no panic") = Some(run.clone());
            write.clone()
        });
    }
    let script = script.otherwise(move |_| {
        let next = next.lock().expect("no panic").take();
        next.unwrap_or_else(|| Answer::Say("I am done.".to_owned()))
    });
    let (made, ran) = (REACHES.map(|reach| file("made", reach)), REACHES.map(|reach| file("ran", reach)));
    let mut scene = scene_of(harness, stage, script);
    for (at, reach) in REACHES.into_iter().enumerate() {
        let task = format!("Do it with the reach {reach}.");
        let here: &[&str] = if reach == "look" { &[] } else { &["--here"] };
        let name = format!("--reach {reach}");
        let result = scene.case(&name, None, &task, &[&["--reach", reach, "--timeout", "60"], here].concat());
        let done = match (made[at].exists(), ran[at].exists()) {
            (true, true) => "writes files, runs programs",
            (true, false) => "writes files",
            (false, true) => "runs programs",
            (false, false) => "changes nothing",
        };
        let ended = result["ended"].as_str().unwrap_or("refused");
        let cell = match (ended, done) {
            ("answered", done) => done.to_owned(),
            (ended, "changes nothing") => ended.to_owned(),
            (ended, done) => format!("{done}, then {ended}"),
        };
        if reach == "look" {
            assert_eq!(done, "changes nothing", "{result}");
            let listed = result["denials"].as_array().is_some_and(|denials| !denials.is_empty());
            scene.seen.insert("says what it denied".to_owned(), yes(listed));
        }
        scene.seen.insert(name, cell);
    }
    let first = scene.case("an answer", None, "Begin", &[]);
    scene.seen.remove("an answer");
    let session = first["session"].as_str().unwrap_or_default().to_owned();
    let usage = &first["usage"];
    let counted = [("input", "input_tokens"), ("cached", "cached_input_tokens"), ("output", "output_tokens")];
    let counted = counted.iter().filter(|(_, name)| usage[*name].is_u64()).map(|(word, _)| *word).collect::<Vec<_>>();
    for (name, cell) in [
        ("names its session", yes(!session.is_empty())),
        ("counts tokens", if counted.is_empty() { yes(false) } else { counted.join(", ") }),
        ("counts cost", yes(usage["cost_usd"].is_number())),
        ("counts turns", yes(first["turns"].is_u64())),
    ] {
        scene.seen.insert(name.to_owned(), cell);
    }
    let schema = r#"{"type":"object"}"#;
    let bound = scene.case("bounds", None, "Begin", &["--schema", schema, "--turns", "3", "--budget", "1"]);
    scene.seen.remove("bounds");
    let without = bound["without"].to_string();
    for (name, lacks) in [("--schema", "no schema"), ("--turns", "no limit of turns"), ("--budget", "no limit of cost")]
    {
        scene.seen.insert(name.to_owned(), yes(!without.contains(lacks)));
    }
    for flag in ["--resume", "--fork"] {
        let result = scene.case(flag, None, "Go on", &[flag, &session]);
        scene.seen.insert(flag.to_owned(), yes(result["ok"] == true));
    }
    hold(&scene, "abilities");
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

const HARNESSES: [&str; 4] = ["claude-code", "codex", "gemini-cli", "opencode"];

/// Compares what was seen with a table of the page, or writes it there.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs the tests says by this variable that the page is to be written"
)]
fn hold(scene: &Scene, table: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runs.md");
    let lock = std::fs::File::open(&page).expect("the page");
    lock.lock().expect("it can be locked");
    let text = std::fs::read_to_string(&page).expect("the page");
    let (begin, end) = (format!("<!-- table: {table} -->\n"), format!("<!-- end: {table} -->\n"));
    let (head, rest) = text.split_once(&begin).expect("the table begins");
    let (body, tail) = rest.split_once(&end).expect("the table ends");
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for line in body.lines().skip(2) {
        let cells: Vec<String> = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        let (name, cells) = cells.split_first().expect("a name");
        order.push(name.clone());
        rows.insert(name.clone(), cells.to_vec());
    }
    let column = HARNESSES.iter().position(|name| *name == scene.harness).expect("a column");
    if std::env::var_os(WRITE).is_none() {
        let told: BTreeMap<String, String> =
            rows.into_iter().map(|(name, cells)| (name, cells[column].clone())).collect();
        assert_eq!(scene.seen, told, "what docs/runs.md says of {}; {WRITE}=1 writes it anew", scene.harness);
        return;
    }
    for (name, cell) in &scene.seen {
        if !rows.contains_key(name) {
            order.push(name.clone());
        }
        let row = rows.entry(name.clone()).or_insert_with(|| vec![String::new(); HARNESSES.len()]);
        row[column].clone_from(cell);
    }
    let mut body = format!("| | {} |\n|---|{}\n", HARNESSES.join(" | "), "---|".repeat(HARNESSES.len()));
    for name in order {
        body.push_str(&format!("| {name} | {} |\n", rows[&name].join(" | ")));
    }
    std::fs::write(&page, format!("{head}{begin}{body}{end}{tail}")).expect("docs/ is writable");
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn claude_code_and_a_model_that_fails() {
    isolated(|| faults("claude-code"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn codex_and_a_model_that_fails() {
    isolated(|| faults("codex"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn gemini_cli_and_a_model_that_fails() {
    isolated(|| faults("gemini-cli"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn opencode_and_a_model_that_fails() {
    isolated(|| faults("opencode"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn what_claude_code_can() {
    isolated(|| abilities("claude-code"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn what_codex_can() {
    isolated(|| abilities("codex"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn what_gemini_cli_can() {
    isolated(|| abilities("gemini-cli"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn what_opencode_can() {
    isolated(|| abilities("opencode"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn claude_code_is_stopped_and_killed() {
    isolated(|| signals("claude-code"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn codex_is_stopped_and_killed() {
    isolated(|| signals("codex"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn gemini_cli_is_stopped_and_killed() {
    isolated(|| signals("gemini-cli"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn opencode_is_stopped_and_killed() {
    isolated(|| signals("opencode"));
}
