//! One interface to the harnesses that have a driver, for tests that cover all of them.

use crate::claude_code::{ClaudeCode, Headless};
use crate::codex::Codex;
use crate::model::Model;
use crate::opencode::OpenCode;
use crate::stage::Stage;
use crate::terminal::Terminal;
use crate::waiting::wait_for;

/// A harness with a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// OpenCode.
    OpenCode,
}

impl Client {
    /// All of them.
    pub const ALL: [Client; 3] = [Client::ClaudeCode, Client::Codex, Client::OpenCode];

    /// The adapter's name.
    pub fn name(self) -> &'static str {
        match self {
            Client::ClaudeCode => "claude-code",
            Client::Codex => "codex",
            Client::OpenCode => "opencode",
        }
    }

    /// The name of its agent: a harness's own is none.
    pub fn agent(self) -> String {
        format!("{}-agent", self.name())
    }

    /// A mesh tool's name, as this harness shows it to its model.
    pub fn tool(self, tool: &str) -> String {
        match self {
            Client::ClaudeCode => format!("mcp__relay-mesh__{tool}"),
            Client::Codex => Codex::tool(tool),
            Client::OpenCode => format!("relay-mesh_{tool}"),
        }
    }

    /// Installs the mesh for it in the stage's project.
    pub fn install(self, stage: &Stage) {
        stage.relay_ok(&["install", self.name(), "--project", &stage.project_path(), "--yes"]);
    }

    /// Opens it in a new terminal and waits until it takes a prompt.
    pub fn open<'a>(self, stage: &'a Stage, model: &Model) -> Seat<'a> {
        let driver = Driver::of(self, stage, model);
        let terminal = driver.open(&[]);
        Seat { client: self, terminal, driver }
    }

    /// Runs it headless with one prompt, in a new session or in `session`.
    pub fn ask(self, stage: &Stage, model: &Model, prompt: &str, session: Option<&str>) -> Headless {
        let further = session.map(|session| self.resuming(session));
        let further: &[&str] = further.as_ref().map_or(&[], |words| words.as_slice());
        match Driver::of(self, stage, model) {
            Driver::ClaudeCode(client) => client.ask(prompt, further),
            Driver::Codex(client) => client.ask(prompt, further),
            Driver::OpenCode(client) => client.ask(prompt, further),
        }
    }

    /// The client's version, as it reports it.
    ///
    /// # Panics
    /// If it reports none.
    pub fn version(self, stage: &Stage) -> String {
        let said = match self {
            Client::ClaudeCode => ClaudeCode::version(stage),
            Client::Codex => Codex::version(stage),
            Client::OpenCode => OpenCode::version(stage),
        };
        let number = said.split_whitespace().find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()));
        number.unwrap_or_else(|| panic!("{} says of its version: {said}", self.name())).to_owned()
    }

    /// A text on its screen while a turn runs.
    fn at_work(self) -> &'static str {
        match self {
            Client::ClaudeCode | Client::Codex => "esc to interrupt",
            Client::OpenCode => "esc interrupt",
        }
    }
}

/// A client in a terminal.
pub struct Seat<'a> {
    /// Which one.
    pub client: Client,
    /// The terminal. The first field, so that it is dropped first.
    pub terminal: Terminal,
    driver: Driver<'a>,
}

impl Seat<'_> {
    /// Waits until it has said this and is idle again.
    pub fn says(&self, words: &str) {
        self.terminal.wait_for(words);
        self.terminal.wait_until_gone(self.client.at_work());
    }

    /// Waits until its model has answered with text and it is idle again.
    pub fn settles(&self, model: &Model) {
        wait_for("the model has had the last word", || model.has_last_word().then_some(()));
        self.terminal.wait_until_gone(self.client.at_work());
    }

    /// Opens the session again in another terminal.
    pub fn reopen(&mut self, session: &str) {
        self.terminal = self.driver.open(&self.client.resuming(session));
    }

    /// Has a session that was opened again read what waits for it. Mail wakes it, but for Claude Code: a hook gives it
    /// its mail as it opens, and its model reads that with the user's next prompt.
    pub fn reads_its_mail(&self) {
        match self.client {
            Client::ClaudeCode => self.terminal.type_line("Good morning"),
            Client::Codex | Client::OpenCode => {}
        }
    }
}

impl Client {
    /// The arguments that open a session again.
    fn resuming(self, session: &str) -> [&str; 2] {
        match self {
            Client::ClaudeCode => ["--resume", session],
            Client::Codex => ["resume", session],
            Client::OpenCode => ["--session", session],
        }
    }
}

enum Driver<'a> {
    ClaudeCode(ClaudeCode<'a>),
    Codex(Codex<'a>),
    OpenCode(OpenCode<'a>),
}

impl<'a> Driver<'a> {
    fn of(client: Client, stage: &'a Stage, model: &Model) -> Driver<'a> {
        match client {
            Client::ClaudeCode => Driver::ClaudeCode(ClaudeCode::new(stage, model)),
            Client::Codex => Driver::Codex(Codex::new(stage, model)),
            Client::OpenCode => Driver::OpenCode(OpenCode::new(stage, model)),
        }
    }

    fn open(&self, further: &[&str]) -> Terminal {
        match self {
            Driver::ClaudeCode(client) => client.open_with(further),
            Driver::Codex(client) => client.open_with(further),
            Driver::OpenCode(client) => client.open(further),
        }
    }
}
