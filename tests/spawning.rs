//! `relay-mesh spawn`, with the real clients and scripted models: an agent is started, talks with its user and with other
//! agents, and is dismissed; whoever is killed, no prompt is lost or repeated unmarked, and no process is left.

use serde_json::{Value, json};
use test_support::{
    Model, Outcome, Script, Stage, environment_to_start, isolated, presence_of, unread, wait_for,
};

/// A stage with a harness that relay-mesh can start.
struct Scene {
    harness: &'static str,
    stage: Stage,
    model: Model,
    environment: Vec<(String, String)>,
}

impl Scene {
    fn of(harness: &'static str, script: Script) -> Scene {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        let model = Model::start(script);
        let environment = environment_to_start(harness, &stage, &model);
        Scene { harness, stage, model, environment }
    }

    fn relay(&self, words: &[&str]) -> Outcome {
        self.stage.relay(words).envs(self.environment.clone()).run()
    }

    fn ok(&self, words: &[&str]) -> Value {
        let outcome = self.relay(&[words, &["--json"]].concat());
        assert_eq!(outcome.code, Some(0), "{words:?}: {outcome:?}\n{}", self.told());
        serde_json::from_str(outcome.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
    }

    fn spawn(&self, name: &str, further: &[&str]) -> Value {
        self.ok(&[&["spawn", self.harness, "--name", name], further].concat())
    }

    /// What the process that drives them has logged, and what each agent did.
    fn told(&self) -> String {
        let mut told = std::fs::read_to_string(self.stage.data.join("drive.log")).unwrap_or_default();
        for folder in std::fs::read_dir(self.stage.data.join("spawned")).into_iter().flatten().flatten() {
            for name in ["transcript.jsonl", "errors"] {
                told.push_str(&std::fs::read_to_string(folder.path().join(name)).unwrap_or_default());
            }
        }
        told
    }

    /// Processes of driven agents, and those that drive them.
    fn ours(&self) -> Vec<String> {
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

    fn nothing_is_left(&self) {
        wait_for("nothing of the agents is left", || self.ours().is_empty().then_some(()));
    }

    fn status(&self, id: &str) -> String {
        let message = self.ok(&["message", id]);
        message["recipients"][0]["status"].as_str().unwrap_or_default().to_owned()
    }
}

/// Its user's prompt, mail of another agent and the reply to it, a further word of its user, and its end.
fn an_agent_from_its_first_prompt_to_its_end(harness: &'static str) {
    let script = Script::new()
        .say("Say hello", "Hello.")
        .say("how is the build", "The build is green.")
        .say("look at the docs", "The docs are fine.")
        .say("Sum up", "I said hello and looked at the docs.")
        .say("", "Done.");
    let scene = Scene::of(harness, script);
    let spawned = scene.spawn("helper", &["Say hello", "--wait"]);
    assert_eq!((&spawned["name"], &spawned["answer"]), (&json!("helper"), &json!("Hello.")), "{}", scene.told());
    assert_eq!(presence_of(&scene.stage, "helper").as_deref(), Some("idle"), "{}", scene.told());

    scene.stage.relay_ok(&["register", "alice"]);
    let sent = scene.stage.relay_ok(&["send", "helper", "how is the build?", "--from", "alice", "--json"]);
    let sent: Value = serde_json::from_str(&sent).expect("JSON");
    let id = sent["id"].as_str().expect("an id").to_owned();
    wait_for("the reply", || {
        unread(&scene.stage, "alice").iter().any(|mail| mail.contains("The build is green.")).then_some(())
    });
    assert_eq!(scene.status(&id), "acknowledged", "a reply acknowledges");
    let history = scene.ok(&["message", &id]).to_string();
    assert!(history.contains("shown") && history.contains("driver:"), "{history}");

    scene.ok(&["steer", "helper", "--next", "look at the docs"]);
    wait_for("it was said", || scene.told().contains("The docs are fine.").then_some(()));
    let shown = scene.relay(&["spawn", "show", "helper"]).stdout;
    for expected in ["you: Say hello", "says: Hello.", "from alice: <relay-mesh-message", "turn ends"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let dismissed = scene.ok(&["dismiss", "helper", "--summary"]);
    assert_eq!(dismissed["summary"], "I said hello and looked at the docs.", "{}", scene.told());
    assert_eq!(presence_of(&scene.stage, "helper").as_deref(), Some("offline"));
    let listed = scene.ok(&["spawn", "list", "--all"]);
    assert_eq!(listed["agents"][0]["state"], "ended", "{listed}");
    scene.nothing_is_left();
    assert_eq!(scene.model.times_told("how is the build?"), 1, "each prompt was shown once");
}

#[test]
fn claude_code_from_its_first_prompt_to_its_end() {
    isolated(|| an_agent_from_its_first_prompt_to_its_end("claude-code"));
}

#[test]
fn codex_from_its_first_prompt_to_its_end() {
    isolated(|| an_agent_from_its_first_prompt_to_its_end("codex"));
}

#[test]
fn opencode_from_its_first_prompt_to_its_end() {
    isolated(|| an_agent_from_its_first_prompt_to_its_end("opencode"));
}

#[test]
fn gemini_cli_from_its_first_prompt_to_its_end() {
    isolated(|| an_agent_from_its_first_prompt_to_its_end("gemini-cli"));
}
