//! Harnesses that relay-mesh itself starts: for a run, and for an agent that is driven.

use std::path::Path;

use serde_json::Value;

use crate::{
    ClaudeCode, Codex, Gemini, Model, OpenCode, Outcome, Program, REPEATED, Script, Stage, wait_for, wait_or_show,
};

/// What a harness that relay-mesh starts needs on a stage whose model is scripted: its program on the path, its settings,
/// and these variables.
pub fn environment_to_start(harness: &str, stage: &Stage, model: &Model) -> Vec<(String, String)> {
    match harness {
        "claude-code" => {
            put_on_path(stage, "claude", &ClaudeCode::program_path());
            ClaudeCode::new(stage, model).environment().to_vec()
        }
        "codex" => {
            let mut environment = Codex::new(stage, model).environment().to_vec();
            // The scripted provider's key has a name that no user's has.
            let settings = stage.home.join(".codex/config.toml");
            let text = std::fs::read_to_string(&settings).expect("its settings");
            std::fs::write(&settings, text.replace("SCRIPTED_KEY", "OPENAI_API_KEY")).expect("writable");
            environment.push(("OPENAI_API_KEY".to_owned(), "opens-nothing".to_owned()));
            environment
        }
        "opencode" => {
            put_on_path(stage, "opencode", &OpenCode::program_path());
            OpenCode::new(stage, model).environment().to_vec()
        }
        "copilot" => copilot(stage, model),
        _ => Gemini::new(stage, model).environment().to_vec(),
    }
}

/// The real Copilot CLI, pinned in tests/package.json. Without an account it takes any provider of models.
fn copilot(stage: &Stage, model: &Model) -> Vec<(String, String)> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node_modules");
    let programs = std::fs::read_dir(modules.join("@github")).into_iter().flatten().flatten();
    let program = programs.map(|package| package.path().join("copilot")).find(|path| path.is_file());
    let program = program.unwrap_or_else(|| panic!("there is no Copilot CLI; run `tests/setup` first"));
    put_on_path(stage, "copilot", &program);
    // It unpacks 235 MB into its home. tests/setup has done that once for all.
    let cache = stage.home.join(".cache");
    std::fs::create_dir_all(&cache).expect("the home is writable");
    let unpacked = modules.join(".copilot/copilot").canonicalize().expect("tests/setup has unpacked it");
    std::os::unix::fs::symlink(unpacked, cache.join("copilot")).expect("the home is writable");
    let mut environment = stage.environment();
    environment.extend(
        [
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_AUTO_UPDATE", "false"),
            ("COPILOT_PROVIDER_BASE_URL", &format!("http://127.0.0.1:{}/v1", model.port)),
            ("COPILOT_PROVIDER_API_KEY", "opens-nothing"),
            ("COPILOT_MODEL", "one"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    environment
}

fn put_on_path(stage: &Stage, name: &str, program: &Path) {
    std::fs::create_dir_all(stage.programs()).expect("the home is writable");
    let link = stage.programs().join(name);
    if !link.exists() {
        std::os::unix::fs::symlink(program, link).expect("the home is writable");
    }
}

/// A stage with a harness that relay-mesh can start.
pub struct Spawning {
    /// The harness.
    pub harness: &'static str,
    /// Where it is.
    pub stage: Stage,
    /// What it asks.
    pub model: Model,
    environment: Vec<(String, String)>,
}

impl Spawning {
    /// A stage with the binary under test.
    pub fn of(binary: &str, harness: &'static str, script: Script) -> Spawning {
        let stage = Stage::new(binary);
        let model = Model::start(script);
        let environment = environment_to_start(harness, &stage, &model);
        Spawning { harness, stage, model, environment }
    }

    /// The environment in which relay-mesh finds the harness.
    pub fn environment(&self) -> Vec<(String, String)> {
        self.environment.clone()
    }

    /// Puts a program between relay-mesh and the harness that kills somebody after as many frames as the file `gate/armed` of
    /// the stage says: see `assets/frame_gate.py`.
    ///
    /// # Panics
    /// If the stage has no such harness.
    pub fn put_gate_before_its_frames(&self) {
        let name = match self.harness {
            "claude-code" => "claude",
            other => other,
        };
        let gate = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/frame_gate.py");
        let folder = self.stage.folder.join("gate");
        std::fs::create_dir_all(&folder).expect("the stage is writable");
        let real = std::fs::canonicalize(self.stage.programs().join(name)).expect("the client is installed");
        std::fs::remove_file(self.stage.programs().join(name)).expect("a link of the stage");
        let gate = format!(
            "exec /usr/bin/env python3 '{}' '{}' '{}' \"$@\"",
            gate.display(),
            folder.display(),
            real.display()
        );
        // What is asked for one answer needs no gate.
        let drives = "*app-server*|*stream-json*|*acp*";
        let text = format!("#!/bin/sh\ncase \"$*\" in {drives}) {gate};; esac\nexec '{}' \"$@\"\n", real.display());
        self.stage.program(name, &text);
    }

    /// Runs a command in the environment of the harness.
    pub fn relay(&self, words: &[&str]) -> Outcome {
        self.stage.relay(words).envs(self.environment.clone()).run()
    }

    /// What a command prints as JSON.
    ///
    /// # Panics
    /// If it fails.
    pub fn ok(&self, words: &[&str]) -> Value {
        let outcome = self.relay(&[words, &["--json"]].concat());
        assert_eq!(outcome.code, Some(0), "{words:?}: {outcome:?}\n{}", self.told());
        serde_json::from_str(outcome.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
    }

    /// Starts an agent.
    pub fn spawn(&self, name: &str, further: &[&str]) -> Value {
        self.ok(&[&["spawn", self.harness, "--name", name], further].concat())
    }

    /// What the process that drives them has logged, and what each agent did.
    pub fn told(&self) -> String {
        let mut told = std::fs::read_to_string(self.stage.data.join("drive.log")).unwrap_or_default();
        for folder in self.folders() {
            for name in ["transcript.jsonl", "errors"] {
                told.push_str(&std::fs::read_to_string(folder.join(name)).unwrap_or_default());
            }
        }
        told
    }

    /// The record of an agent, as it is kept.
    pub fn record(&self, name: &str) -> Value {
        let records = std::fs::read_dir(self.stage.data.join("driven")).into_iter().flatten().flatten();
        let read = |path: std::path::PathBuf| serde_json::from_slice::<Value>(&std::fs::read(path).ok()?).ok();
        let value = |record: Value| record.get("value").cloned().unwrap_or(record);
        let mut records = records.filter_map(|entry| read(entry.path())).map(value);
        records.find(|record| record["agent"]["name"] == name).unwrap_or_default()
    }

    /// The folders of agents, and of the programs that several share.
    fn folders(&self) -> Vec<std::path::PathBuf> {
        let within = |name: &str| std::fs::read_dir(self.stage.data.join(name)).into_iter().flatten().flatten();
        within("spawned").chain(within("links")).map(|entry| entry.path()).collect()
    }

    /// Processes of driven agents, and those that drive them.
    pub fn ours(&self) -> Vec<String> {
        let dir = format!("RELAY_DIR={}", self.stage.data.display()).into_bytes();
        let folder = self.stage.data.display().to_string();
        let mut found = Vec::new();
        for process in std::fs::read_dir("/proc").expect("a list").flatten() {
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            let mut lines = environment.split(|byte| *byte == 0);
            let is_marked = lines.any(|line| line.starts_with(b"RELAY_SPAWN="))
                && environment.split(|byte| *byte == 0).any(|line| line == dir);
            if is_marked || (words.contains("spawn work") && words.contains(&folder)) {
                found.push(format!("{} {words}", process.file_name().to_string_lossy()));
            }
        }
        found
    }

    /// Waits until no process of an agent is left.
    pub fn nothing_is_left(&self) {
        wait_for("nothing of the agents is left", || self.ours().is_empty().then_some(()));
    }

    /// The status of a message that one agent gets.
    pub fn status(&self, id: &str) -> String {
        let message = self.ok(&["message", id]);
        message["recipients"][0]["status"].as_str().unwrap_or_default().to_owned()
    }
}

/// Checks that the model was asked about each of these messages, and that an agent's session holds each once, or again with
/// its mark.
///
/// # Panics
/// If one was lost, or repeated without a mark.
pub fn each_once_or_marked(scene: &Spawning, ids: &[String]) {
    let heard = scene.model.heard();
    let everything = heard.last().expect("it was asked").everything();
    for id in ids {
        let envelope = format!("id=\\\"{id}\\\"");
        let plain = format!("id=\"{id}\"");
        let times = |text: &str| text.matches(&envelope).count() + text.matches(&plain).count();
        let (now, ever) = (times(&everything), heard.iter().filter(|heard| times(&heard.everything()) > 0).count());
        assert!(ever > 0, "{id} was never in a request: {}", scene.told());
        let marked = everything.split("<relay-mesh-message").filter(|part| times(part) > 0 && part.contains(REPEATED));
        assert!(now <= 1 + marked.count(), "{id} is there {now} times: {everything}");
    }
}

/// Who is killed while an agent works.
#[derive(Clone, Copy, Debug)]
pub enum Victim {
    /// The process that drives the agents.
    Host,
    /// The harness's program.
    Harness,
    /// The process that drives them and the guard of the program: nobody is left to end it.
    HostAndGuard,
}

impl Spawning {
    /// The guard and the program of the only agent, if that program lives: the folder of one that was killed stays a while.
    pub fn running(&self) -> Option<(u32, u32)> {
        self.folders().iter().find_map(|folder| {
            let running: Value = serde_json::from_slice(&std::fs::read(folder.join("running.json")).ok()?).ok()?;
            let pid = |who: &str| u32::try_from(running[who]["pid"].as_u64()?).ok();
            let (guard, program) = (pid("guard")?, pid("program")?);
            // One that was killed and that nobody has waited for has no words any more.
            let words = std::fs::read(format!("/proc/{program}/cmdline")).ok()?;
            (!words.is_empty()).then_some((guard, program))
        })
    }

    /// The guard and the program of the only agent, which it may have to be told something to have.
    pub fn driven(&self, name: &str) -> (u32, u32) {
        let mut is_asked = false;
        let look = || {
            self.ok(&["spawn", "list"]);
            // What a host that was killed has left is gone when the next one begins.
            if self.running().is_none() && !std::mem::replace(&mut is_asked, true) {
                self.ok(&["steer", name, "--next", "Are you there"]);
            }
            self.host().and(self.running())
        };
        wait_or_show("it is driven", look, || self.told())
    }

    /// The process that drives them.
    pub fn host(&self) -> Option<u32> {
        let is_host = |line: &String| line.contains("spawn work");
        self.ours().iter().find(|line| is_host(line))?.split(' ').next()?.parse().ok()
    }

    /// Kills somebody, and returns once they are dead.
    pub fn kill(&self, victim: Victim) {
        let look = || Some((self.running()?, self.host()?));
        let ((guard, program), host) = wait_or_show("it runs", look, || self.told());
        let victims = match victim {
            Victim::Host => vec![host],
            Victim::Harness => vec![program],
            Victim::HostAndGuard => vec![guard, host],
        };
        for victim in &victims {
            let _ended = Program::new("kill").args(["-9".to_owned(), victim.to_string()]).run();
        }
        let lives = |victim: u32| self.ours().iter().any(|line| line.starts_with(&format!("{victim} ")));
        wait_for("it is dead", || (!victims.iter().any(|victim| lives(*victim))).then_some(()));
    }
}
