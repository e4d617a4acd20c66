//! The real Gemini CLI, pinned in tests/package.json, against the scripted model.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::claude_code::Headless;
use crate::model::Model;
use crate::programs::Program;
use crate::stage::Stage;
use crate::terminal::Terminal;
use crate::waiting::wait_for;

/// The client in a stage's project.
pub struct Gemini<'a> {
    stage: &'a Stage,
    environment: Vec<(String, String)>,
}

impl<'a> Gemini<'a> {
    /// Prepares the client: sets the scripted model's address and a key, trusts the folder and switches off everything
    /// that would call home. It is on PATH, as after an installation. Existing settings of the user, such as an
    /// installation's, are kept.
    pub fn new(stage: &'a Stage, model: &Model) -> Gemini<'a> {
        let folder = stage.home.join(".gemini");
        std::fs::create_dir_all(&folder).expect("the home is writable");
        let file = folder.join("settings.json");
        let mut settings: Value = match std::fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str(&text).expect("the person's settings are JSON"),
            Err(_) => json!({}),
        };
        settings["security"]["auth"]["selectedType"] = json!("gemini-api-key");
        // By default the client would first ask another model which one to choose.
        settings["model"]["name"] = json!("gemini-2.5-flash");
        settings["general"]["enableAutoUpdate"] = json!(false);
        settings["privacy"]["usageStatisticsEnabled"] = json!(false);
        std::fs::write(&file, format!("{settings:#}\n")).expect("the home is writable");
        let programs = stage.programs();
        std::fs::create_dir_all(&programs).expect("the home is writable");
        let link = programs.join("gemini");
        if !link.exists() {
            std::os::unix::fs::symlink(client(), &link).expect("the home is writable");
        }
        let mut environment = stage.environment();
        environment.extend(
            [
                ("GEMINI_API_KEY", "a-key-that-opens-nothing"),
                ("GOOGLE_GEMINI_BASE_URL", &format!("http://127.0.0.1:{}", model.port)),
                ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
                ("TERM", "xterm-256color"),
                ("COLORTERM", "truecolor"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        Gemini { stage, environment }
    }

    /// The variables with which a user starts it.
    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Sets a further variable, as a user does before starting it.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Gemini<'a> {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it headless with one prompt. Tools run without asking.
    pub fn ask(&self, prompt: &str, further: &[&str]) -> Headless {
        let outcome = Program::new(client())
            .args(["--prompt", prompt, "--approval-mode", "yolo", "--output-format", "json"])
            .args(further)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .within(&self.stage.project)
            .run();
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
        let text = |name: &str| report[name].as_str().unwrap_or_default().to_owned();
        Headless { session: text("session_id"), result: text("response"), outcome }
    }

    /// Starts it in a terminal and waits until it takes a prompt and has started its MCP server.
    pub fn open(&self) -> Terminal {
        self.open_with(&[])
    }

    /// As `open`, with further arguments such as `--resume` and a session.
    pub fn open_with(&self, further: &[&str]) -> Terminal {
        let mut program = vec![client().display().to_string()];
        program.extend(further.iter().map(|word| (*word).to_owned()));
        let terminal = Terminal::start(&self.stage.folder, &self.stage.project, &self.environment, &program);
        terminal.wait_for(EMPTY);
        terminal.wait_for("1 MCP server");
        terminal
    }

    /// Types a prompt or a command and submits it. Text typed while the client redraws is lost, and an Enter right
    /// after a key counts as a pasted line break; so both are repeated if they had no effect.
    pub fn prompt(terminal: &Terminal, text: &str) {
        let again = |looks: &mut usize, every: usize| {
            *looks += 1;
            *looks % every == 1
        };
        let mut looks = 0;
        wait_for("the prompt is typed", || {
            let screen = terminal.screen();
            if screen.contains(EMPTY) && again(&mut looks, 20 * LOOKS_BETWEEN_KEYS) {
                terminal.write(text);
            }
            screen.contains(text).then_some(())
        });
        let mut looks = 1;
        wait_for("the prompt is taken", || {
            if again(&mut looks, LOOKS_BETWEEN_KEYS) {
                terminal.press("Enter");
            }
            terminal.screen().contains(EMPTY).then_some(())
        });
    }

    /// Waits until the session has said this and is idle again.
    pub fn says(terminal: &Terminal, words: &str) {
        terminal.wait_for(&format!("✦ {words}"));
        terminal.wait_until_gone("esc to cancel");
    }

    /// The client's version, as it reports it.
    pub fn version(stage: &Stage) -> String {
        Program::new(client()).arg("--version").envs(stage.environment()).succeed().trim().to_owned()
    }

    /// A mesh tool's name for a script.
    pub fn tool(name: &str) -> String {
        format!("mcp_relay-mesh_{name}")
    }
}

/// Placeholder of the empty prompt.
const EMPTY: &str = "Type your message";
/// Together more than 30 ms.
const LOOKS_BETWEEN_KEYS: usize = 10;

/// The client's script, run by node.
fn client() -> PathBuf {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node_modules/@google/gemini-cli/bundle/gemini.js");
    program.canonicalize().unwrap_or_else(|_| {
        panic!("there is no Gemini CLI at {}; run `tests/setup` first", program.display());
    })
}
