//! The real Claude Code, pinned in tests/package.json, against the scripted model.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::lines::Lines;
use crate::model::Model;
use crate::programs::{Outcome, Program, Running};
use crate::stage::Stage;
use crate::terminal::Terminal;

/// Any key works. The client shows its last twenty characters and asks whether to use it.
const KEY: &str = "sk-ant-api03-a-key-that-opens-nothing-at-all-0000";

/// The client in a stage's project.
pub struct ClaudeCode<'a> {
    stage: &'a Stage,
    environment: Vec<(String, String)>,
}

/// How a headless run ended.
#[derive(Clone, Debug)]
pub struct Headless {
    /// How the process ended.
    pub outcome: Outcome,
    /// The session's id, as the client reports it.
    pub session: String,
    /// The final answer.
    pub result: String,
}

impl<'a> ClaudeCode<'a> {
    /// Prepares the client: answers first-run questions, trusts the project and switches off everything that would call
    /// home.
    pub fn new(stage: &'a Stage, model: &Model) -> ClaudeCode<'a> {
        let settings = stage.home.join(".claude");
        std::fs::create_dir_all(&settings).expect("the home is writable");
        let seed = json!({
            "hasCompletedOnboarding": true,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
            "projects": {stage.project.display().to_string(): {"hasTrustDialogAccepted": true}},
        });
        std::fs::write(settings.join(".claude.json"), seed.to_string()).expect("the home is writable");
        let mut environment = stage.environment();
        environment.extend(
            [
                ("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", model.port)),
                ("ANTHROPIC_API_KEY", KEY.to_owned()),
                ("CLAUDE_CONFIG_DIR", settings.display().to_string()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
                ("DISABLE_AUTOUPDATER", "1".to_owned()),
                ("TERM", "xterm-256color".to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        ClaudeCode { stage, environment }
    }

    /// The client's executable.
    pub fn program_path() -> PathBuf {
        client()
    }

    /// The variables with which a user starts it.
    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Sets a further variable, as a user does before starting it.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> ClaudeCode<'a> {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it headless with one prompt.
    pub fn ask(&self, prompt: &str, further: &[&str]) -> Headless {
        let outcome = self.program(&["-p", prompt, "--output-format", "json"]).args(further).run();
        let report: Value = serde_json::from_str(outcome.stdout.trim()).unwrap_or(Value::Null);
        let field = |name: &str| report[name].as_str().unwrap_or_default().to_owned();
        Headless { session: field("session_id"), result: field("result"), outcome }
    }

    /// `program` with the headless client and one prompt as its last arguments.
    #[must_use]
    pub fn started_by(&self, program: Program, prompt: &str) -> Program {
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        program.arg(client()).args(["-p", prompt]).args(ALLOWED).envs(environment)
    }

    /// Runs relay-mesh, which finds the client on its path, with everything that the client needs.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        let bin = client().parent().map(Path::to_owned).unwrap_or_default();
        let path = self.environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
        let path = format!("{}:{}", bin.display(), path.unwrap_or_default());
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        self.stage.relay(arguments).envs(environment).env("PATH", path).run()
    }

    /// Starts it headless and sends prompts later, as a program that embeds it does.
    pub fn converse(&self) -> Conversation {
        let mut process = self
            .program(&["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"])
            .start(&self.stage.folder.join("claude-stream.log"));
        let lines = Lines::of(process.child.stdout.take().expect("its output is a pipe"));
        Conversation { process, lines }
    }

    /// Starts it in a terminal and waits until it takes a prompt.
    pub fn open(&self) -> Terminal {
        self.open_with(&[])
    }

    /// As `open`, with further arguments such as `--resume` and a session.
    pub fn open_with(&self, further: &[&str]) -> Terminal {
        let client = client().display().to_string();
        let program: Vec<String> =
            [client.as_str()].iter().chain(further).chain(&ALLOWED).map(|word| (*word).to_owned()).collect();
        let terminal = Terminal::start(&self.stage.folder, &self.stage.project, &self.environment, &program);
        terminal.wait_for("shift+tab to cycle");
        terminal
    }

    /// The client's version, as it reports it.
    pub fn version(stage: &Stage) -> String {
        Program::new(client()).arg("--version").envs(stage.environment()).succeed()
    }

    fn program(&self, arguments: &[&str]) -> Program {
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        Program::new(client()).args(arguments).args(ALLOWED).envs(environment).within(&self.stage.project)
    }
}

/// The tools allowed without asking. The mesh's own tools are missing because the installation must allow them. As root
/// the client refuses to skip all questions.
const ALLOWED: [&str; 2] = ["--allowedTools", "Bash,Read"];

/// A headless session that takes one prompt after another.
pub struct Conversation {
    /// The client's process.
    pub process: Running,
    lines: Lines,
}

impl Conversation {
    /// Sends a prompt as the user.
    pub fn say(&mut self, words: &str) {
        let line = json!({"type": "user", "message": {"role": "user", "content": words}});
        let pipe = self.process.child.stdin.as_mut().expect("its input is a pipe");
        writeln!(pipe, "{line}").and_then(|()| pipe.flush()).expect("the client reads its input");
    }

    /// Reads until the turn is over and returns its result.
    ///
    /// # Panics
    /// If the client ends before that.
    pub fn wait_for_result(&mut self) -> Value {
        while let Some(line) = self.lines.next() {
            let event: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
            if event["type"] == "result" {
                return event;
            }
        }
        panic!("the client ended before its turn was over")
    }
}

/// The client's executable for this platform, which npm puts beside its wrapper.
fn client() -> PathBuf {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node_modules/@anthropic-ai");
    let found = std::fs::read_dir(&clients).into_iter().flatten().flatten().map(|entry| entry.path().join("claude"));
    let mut found: Vec<PathBuf> = found.filter(|path| path.is_file()).collect();
    found.sort();
    found
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("there is no Claude Code under {}; run `tests/setup` first", clients.display()))
}
