//! The real Codex, pinned in tests/package.json, against the scripted model.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agents::presence_of;
use crate::claude_code::Headless;
use crate::isolation;
use crate::model::{Model, Script};
use crate::programs::{Outcome, Program};
use crate::stage::Stage;
use crate::terminal::Terminal;
use crate::waiting::{wait_for, wait_or_show};

/// Whether terminals share one app server; Codex's default is that they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppServer {
    /// One background process runs the turns of all terminals.
    Shared,
    /// Each terminal contains its own.
    Embedded,
}

/// The user's answer when Codex asks whether to run new hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// All of them may run.
    All,
    /// None may.
    Nothing,
}

/// The client in a stage's project.
pub struct Codex<'a> {
    stage: &'a Stage,
    /// CODEX_HOME, with its settings.
    home: PathBuf,
    environment: Vec<(String, String)>,
    app_server: AppServer,
    trust: Trust,
    flags: Vec<String>,
}

impl<'a> Codex<'a> {
    /// Prepares the client: makes the scripted model its provider, trusts the project and switches off everything that
    /// would call home. It is on PATH, as after an installation. Existing settings, such as an installation's, are
    /// kept.
    pub fn new(stage: &'a Stage, model: &Model) -> Codex<'a> {
        Codex::at_home_in(stage.home.join(".codex"), stage, model)
    }

    /// As `new`, with its settings in another folder than the default.
    pub fn at_home_in(home: PathBuf, stage: &'a Stage, model: &Model) -> Codex<'a> {
        std::fs::create_dir_all(&home).expect("the home is writable");
        let config = home.join("config.toml");
        let theirs = std::fs::read_to_string(&config).unwrap_or_default();
        if !theirs.contains("model_providers.scripted") {
            let ours = settings(stage, model.port);
            std::fs::write(&config, format!("{ours}{theirs}")).expect("the home is writable");
        }
        let programs = stage.programs();
        std::fs::create_dir_all(&programs).expect("the home is writable");
        let link = programs.join("codex");
        if !link.exists() {
            std::os::unix::fs::symlink(client(), &link).expect("the home is writable");
        }
        let mut environment = stage.environment();
        environment.retain(|(name, _)| name != "TMPDIR");
        // A socket's path has at most about 100 bytes, and Codex puts a long name below this folder.
        let short = isolation::room().map(PathBuf::as_path).or(stage.folder.parent());
        let temporary = short.unwrap_or(&stage.folder).display().to_string();
        environment.extend(
            [
                ("TMPDIR", temporary.as_str()),
                ("CODEX_HOME", &home.display().to_string()),
                (KEY, "a-key-that-opens-nothing"),
                ("TERM", "xterm-256color"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        Codex { stage, home, environment, app_server: AppServer::Shared, trust: Trust::All, flags: Vec::new() }
    }

    /// The variables with which a user starts it.
    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Sets a further variable, as a user does before starting it.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Codex<'a> {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a flag.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Codex<'a> {
        self.flags.push(flag.to_owned());
        self
    }

    /// Sets whether its terminals share an app server.
    #[must_use]
    pub fn app_server(mut self, app_server: AppServer) -> Codex<'a> {
        self.app_server = app_server;
        self
    }

    /// Sets the user's answer about new hooks.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Codex<'a> {
        self.trust = trust;
        self
    }

    /// Runs it headless with one prompt. Hooks run as if the user had trusted them.
    pub fn ask(&self, prompt: &str, further: &[&str]) -> Headless {
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        let outcome = Program::new(client())
            .args(["exec", "--json", "--dangerously-bypass-hook-trust"])
            .args(&self.flags)
            .args(further)
            .arg(prompt)
            .envs(environment)
            .within(&self.stage.project)
            .run();
        let events: Vec<Value> = outcome.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let last = |kind: &str, pointer: &str| {
            let mut found = events.iter().rev().filter(|event| event["type"] == kind);
            found.find_map(|event| event.pointer(pointer)?.as_str()).unwrap_or_default().to_owned()
        };
        Headless {
            session: last("thread.started", "/thread_id"),
            result: last("item.completed", "/item/text"),
            outcome,
        }
    }

    /// Starts it in a terminal, answers the review of hooks, and waits until it takes a prompt.
    pub fn open(&self) -> Terminal {
        self.open_with(&[])
    }

    /// As `open`, with further arguments such as `resume` and a session.
    pub fn open_with(&self, further: &[&str]) -> Terminal {
        let mut program = vec![client().display().to_string()];
        program.extend(further.iter().map(|word| (*word).to_owned()));
        program.extend(self.flags.iter().cloned());
        if self.app_server == AppServer::Embedded {
            program.push("--no-daemon".to_owned());
        }
        let terminal = Terminal::start(&self.stage.folder, &self.stage.project, &self.environment, &program);
        let ready = |screen: &str| screen.contains(READY).then_some(());
        let review = |screen: &str| screen.contains(REVIEW).then_some(());
        wait_for("the client takes a prompt or asks to review hooks", || {
            let screen = terminal.screen();
            ready(&screen).or_else(|| review(&screen))
        });
        if review(&terminal.screen()).is_some() {
            // A key pressed before the question accepts input is lost, so each is pressed again.
            match self.trust {
                Trust::All => {
                    wait_for("the question takes the answer", || {
                        terminal.press("2");
                        terminal.screen().contains("› 2. Trust all").then_some(())
                    });
                    terminal.press("Enter");
                }
                // The option's number chooses at once. A surplus digit only precedes the next typed text; a surplus
                // Escape would combine with the next letter into another key.
                Trust::Nothing => wait_for("the question is skipped", || {
                    let screen = terminal.screen();
                    if review(&screen).is_some() {
                        terminal.press("3");
                        return None;
                    }
                    ready(&screen)
                }),
            }
            terminal.wait_for(READY);
        }
        terminal
    }

    /// A script that joins as `name` when asked to.
    pub fn joining(name: &str) -> Script {
        Script::new()
            .call("Join the mesh", &Codex::tool("register_agent"), json!({"name": name}))
            .say(&format!("\"name\":\"{name}\""), &format!("I am {name}."))
    }

    /// A terminal whose agent has joined and whose turn is over. Its hooks must be trusted.
    pub fn joined(&self, name: &str) -> Terminal {
        let terminal = self.open();
        terminal.type_line(&format!("Join the mesh as {name}."));
        Codex::says(&terminal, &format!("I am {name}."));
        self.is_idle(name);
        terminal
    }

    /// Waits until the mesh knows that an agent's turn is over. The screen shows it earlier: mail that arrives in
    /// between is shown by the hook at the turn's end.
    pub fn is_idle(&self, name: &str) {
        wait_for("the turn is over", || presence_of(self.stage, name).filter(|presence| presence == "idle"));
    }

    /// Clears the conversation, as the user does.
    pub fn clear(terminal: &Terminal, last_words: &str) {
        // `/clear` is refused until the turn is completely over, which the screen does not show.
        let mut asked = 0;
        let look = || {
            let screen = terminal.screen();
            if !screen.contains(last_words) {
                return Some(());
            }
            // A key pressed too early is lost.
            if screen.contains("› /clear") {
                terminal.press("Enter");
            } else if screen.matches(NOT_NOW).count() >= asked {
                asked += 1;
                terminal.type_line("/clear");
            }
            None
        };
        wait_or_show("the conversation is cleared away", look, || terminal.screen());
        terminal.wait_for(READY);
    }

    /// The client's stage.
    pub fn stage(&self) -> &'a Stage {
        self.stage
    }

    /// Waits until the session has said this and is idle again.
    pub fn says(terminal: &Terminal, words: &str) {
        terminal.wait_for(&format!("• {words}"));
        terminal.wait_until_gone("esc to interrupt");
    }

    /// Runs the client to its end with other arguments, such as `queue` or `app-server daemon version`.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        Program::new(client()).args(arguments).envs(environment).within(&self.stage.project).run()
    }

    /// The client's version, as it reports it.
    pub fn version(stage: &Stage) -> String {
        Program::new(client()).arg("--version").envs(stage.environment()).succeed()
    }

    /// A mesh tool's name for a script.
    pub fn tool(name: &str) -> String {
        format!("mcp__relay_mesh.{name}")
    }

    /// Kills the shared app server, as a crash does.
    pub fn crash_app_server(&self) {
        self.signal_app_server("-KILL");
    }

    /// Signals the shared app server and the process that updates it.
    fn signal_app_server(&self, signal: &str) {
        let home = self.home.display().to_string();
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let words: Vec<&str> =
                line.split(|byte| *byte == 0).filter_map(|word| std::str::from_utf8(word).ok()).collect();
            let is_ours = words.first().is_some_and(|program| program.starts_with(&home));
            if is_ours && words.contains(&"app-server") {
                Program::new("kill").arg(signal).arg(process.file_name()).run();
            }
        }
    }
}

impl Drop for Codex<'_> {
    fn drop(&mut self) {
        self.signal_app_server("-TERM");
    }
}

/// The variable that holds the provider's key.
const KEY: &str = "SCRIPTED_KEY";
/// A model that the client knows, so that it offers tools and does not suggest a newer one.
const MODEL: &str = "gpt-5.5";
/// Shown below the prompt once the session is ready: the model's reasoning effort.
const READY: &str = " medium · ";
/// Shown for a command that must wait for the end of the turn.
const NOT_NOW: &str = "is disabled while a task is in progress";
/// The first question if hooks are new or changed.
const REVIEW: &str = "Hooks need review";

fn settings(stage: &Stage, port: u16) -> String {
    let project = stage.project.display();
    format!(
        "model = \"{MODEL}\"\n\
         model_reasoning_effort = \"medium\"\n\
         model_provider = \"scripted\"\n\
         check_for_update_on_startup = false\n\
         \n\
         [model_providers.scripted]\n\
         name = \"scripted\"\n\
         base_url = \"http://127.0.0.1:{port}/v1\"\n\
         wire_api = \"responses\"\n\
         env_key = \"{KEY}\"\n\
         request_max_retries = 0\n\
         stream_max_retries = 0\n\
         \n\
         [projects.\"{project}\"]\n\
         trust_level = \"trusted\"\n\
         \n\
         [analytics]\n\
         enabled = false\n\
         \n\
         [notice.model_migrations]\n\
         \"{MODEL}\" = \"gpt-6-sol\"\n\
         \n"
    )
}

/// The client's executable for this platform, which npm puts beside its wrapper.
fn client() -> PathBuf {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node_modules/@openai");
    let entries = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let kinds = entries(packages.clone()).flat_map(|package| entries(package.join("vendor")));
    let found = kinds.map(|kind| kind.join("bin/codex")).find(|path| path.is_file());
    let found =
        found.unwrap_or_else(|| panic!("there is no Codex under {}; run `tests/setup` first", packages.display()));
    found.canonicalize().expect("a file that is there has a path")
}
