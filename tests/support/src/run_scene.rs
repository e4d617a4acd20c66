//! A real client that gets one task after another by `relay-mesh run`, and what comes of each, for the tables in
//! docs/runs.md.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::model::{Behaviour, Model, ModelAnswer, Script};
use crate::observations::run_observed;
use crate::programs::{Outcome, Program};
use crate::stage::Stage;
use crate::started::environment_to_start;
use crate::waiting::wait_for;

/// The harnesses that run tasks.
pub const RUNNERS: [&str; 4] = ["claude-code", "codex", "gemini-cli", "opencode"];

/// One harness on a stage.
pub struct RunScene {
    /// The harness.
    pub harness: &'static str,
    /// Where it is.
    pub stage: Stage,
    /// What it asks.
    pub model: Model,
    /// What it is started with.
    pub environment: Vec<(String, String)>,
    /// The table of its cases.
    pub table: &'static str,
}

impl RunScene {
    /// Sets a harness up with a model of this script.
    pub fn of(harness: &'static str, table: &'static str, stage: Stage, script: Script) -> RunScene {
        let model = Model::start(script);
        let environment = environment_to_start(harness, &stage, &model);
        RunScene { harness, stage, model, environment, table }
    }

    /// A command in the harness's environment.
    pub fn relay(&self, words: &[&str]) -> Program {
        self.stage.relay(words).envs(self.environment.clone())
    }

    fn run(&self, task: &str, further: &[&str]) -> Outcome {
        let usual: &[&str] = if further.contains(&"--timeout") { &[] } else { &["--timeout", "60"] };
        self.relay(&[&["run", self.harness, task, "--json"], usual, further].concat()).run()
    }

    /// Runs a task, and records what came of it under this name. Nothing of it is left.
    ///
    /// # Panics
    /// If its exit code is not what its result says.
    pub fn case(&self, name: &str, behaviour: Option<Behaviour>, task: &str, further: &[&str]) -> Value {
        let result = self.unseen(behaviour, task, further);
        self.note(name, &result);
        result
    }

    /// Runs a task that no table has. If it is refused, the result says so.
    ///
    /// # Panics
    /// If its exit code is not what its result says.
    pub fn unseen(&self, behaviour: Option<Behaviour>, task: &str, further: &[&str]) -> Value {
        self.model.behaves(behaviour);
        let outcome = self.run(task, further);
        self.nothing_is_left();
        let Ok(result) = serde_json::from_str::<Value>(outcome.stdout.trim()) else {
            assert!(outcome.code.is_some_and(|code| code != 0), "{outcome:?}");
            return json!({"refused": outcome.stderr});
        };
        assert_eq!(outcome.code == Some(0), result["ok"] == true, "{task}: {outcome:?}");
        result
    }

    /// Records what came of a run: how it ended, how its process did, and what it was asked to keep and could not.
    pub fn note(&self, name: &str, result: &Value) {
        let exit = match (&result["exit_code"], &result["signal"]) {
            (Value::Number(code), _) => format!("exit {code}"),
            (_, Value::Number(signal)) => format!("signal {signal}"),
            _ => "unknown".to_owned(),
        };
        let without = result["without"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let no_schema = without.filter(|clause| clause.starts_with("no schema")).count();
        let without = if no_schema > 0 { "; no schema" } else { "" };
        match result["ended"].as_str() {
            Some(ended) => self.seen(name, &format!("{ended}, {exit}{without}")),
            None => self.seen(name, "refused"),
        }
    }

    /// Records a cell of the table.
    pub fn seen(&self, name: &str, cell: &str) {
        run_observed(&self.stage, self.harness, (self.table, name), cell);
    }

    /// Waits until no process of a run is left.
    pub fn nothing_is_left(&self) {
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
    pub fn newest(&self) -> Option<PathBuf> {
        let folders = std::fs::read_dir(self.stage.data.join("runs")).ok()?.flatten();
        folders.map(|entry| entry.path()).filter(|path| path.join("record.json").exists()).max()
    }

    /// Records by which signals the harness of the newest run would have been asked to stop.
    ///
    /// # Panics
    /// If there is no run.
    pub fn stops_by(&self) {
        let record = self.newest().and_then(|folder| std::fs::read(folder.join("record.json")).ok());
        let record: Value = serde_json::from_slice(&record.expect("a record")).expect("JSON");
        let steps = record["launch"]["stop"].as_array().expect("steps").iter();
        let steps = steps.map(|step| format!("{} {} s", step["signal"].as_str().unwrap_or("?"), step["grace"]["secs"]));
        self.seen("is asked to stop by", &steps.collect::<Vec<_>>().join(", then "));
    }

    /// What comes of a limit of turns and of one of cost, if the model wants to go on for ever: it ends the run, or no run
    /// is begun. Whether the harness ended by itself or was asked to is a matter of milliseconds, so it is not recorded.
    ///
    /// # Panics
    /// If a limit is neither kept nor refused.
    pub fn limits(&self) {
        let goes_on = looks(self.harness, &self.stage.project.join("README.md"));
        for (limit, most, expected) in [("--turns", "1", "turns"), ("--budget", "0.000001", "cost")] {
            let name = format!("{limit} {most}");
            let behaviour = Some(Behaviour::Answers(goes_on.clone()));
            let result = self.unseen(behaviour, "Begin", &[limit, most]);
            let is_refused = result["refused"].as_str().is_some_and(|why| why.contains("no limit of"));
            assert!(is_refused || result["ended"] == expected, "{} {name}: {result}", self.harness);
            self.seen(&name, result["ended"].as_str().unwrap_or("refused"));
        }
    }
}

/// A call by which a harness looks at a file.
fn looks(harness: &str, file: &Path) -> ModelAnswer {
    let file = file.display().to_string();
    let (tool, input) = match harness {
        "claude-code" => ("Read", json!({"file_path": file})),
        "codex" => ("exec_command", json!({"cmd": format!("cat {file}")})),
        "opencode" => ("read", json!({"filePath": file})),
        _ => ("read_file", json!({"file_path": file})),
    };
    ModelAnswer::Call { tool: tool.to_owned(), input }
}

/// A model's words.
pub fn says(words: &str) -> Option<Behaviour> {
    Some(Behaviour::Answers(ModelAnswer::Say(words.to_owned())))
}
