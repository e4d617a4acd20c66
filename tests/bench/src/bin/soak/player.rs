//! One client of the soak: its terminal, its scripted model, and what its user does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::{
    AppServer, ClaudeCode, Client, Codex, Gemini, Model, ModelAnswer, OpenCode, Program, Script, Stage, Terminal,
    session_of, wait_for,
};

/// A harness of the soak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    ClaudeCode,
    Codex,
    OpenCode,
    Gemini,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::ClaudeCode, Kind::Codex, Kind::OpenCode, Kind::Gemini];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::ClaudeCode => "claude-code",
            Kind::Codex => "codex",
            Kind::OpenCode => "opencode",
            Kind::Gemini => "gemini-cli",
        }
    }

    pub(crate) fn version(self, stage: &Stage) -> String {
        match self {
            Kind::ClaudeCode => Client::ClaudeCode.version(stage),
            Kind::Codex => Client::Codex.version(stage),
            Kind::OpenCode => Client::OpenCode.version(stage),
            Kind::Gemini => Gemini::version(stage),
        }
    }

    fn tool(self, name: &str) -> String {
        match self {
            Kind::ClaudeCode => Client::ClaudeCode.tool(name),
            Kind::Codex => Client::Codex.tool(name),
            Kind::OpenCode => Client::OpenCode.tool(name),
            Kind::Gemini => Gemini::tool(name),
        }
    }

    /// What its screen shows while a turn runs.
    fn at_work(self) -> &'static str {
        match self {
            Kind::ClaudeCode | Kind::Codex => "esc to interrupt",
            Kind::OpenCode => "esc interrupt",
            Kind::Gemini => "esc to cancel",
        }
    }

    /// Works for some seconds. Claude Code refuses a bare `sleep`.
    fn work(self) -> ModelAnswer {
        let command = "python3 -c 'import time; time.sleep(4)'";
        let (tool, input) = match self {
            Kind::ClaudeCode => ("Bash", json!({"command": command, "description": "Works"})),
            Kind::Codex => ("exec_command", json!({"cmd": command})),
            Kind::OpenCode => ("bash", json!({"command": command, "description": "Works"})),
            Kind::Gemini => ("run_shell_command", json!({"command": command})),
        };
        ModelAnswer::Call { tool: tool.to_owned(), input }
    }
}

/// How often it is tried to open a session again.
const MOST_REFUSALS: usize = 2;
/// The prompt at which the model registers.
const JOIN: &str = "Join the mesh.";

/// A client in its terminal, or one that is gone for a while.
pub(crate) struct Player<'a> {
    pub(crate) kind: Kind,
    /// Its agent.
    pub(crate) name: String,
    pub(crate) model: Model,
    stage: &'a Stage,
    driver: Driver<'a>,
    terminal: Option<Terminal>,
    /// When its user comes back.
    pub(crate) away_until: Option<Instant>,
    session: String,
    prompts: usize,
    /// How often in a row its session could not be opened again.
    refusals: usize,
}

impl<'a> Player<'a> {
    /// Opens the client and has it join.
    pub(crate) fn join(stage: &'a Stage, kind: Kind, number: usize) -> Player<'a> {
        let name = format!("{}-{number}", ["ann", "bob", "cid", "dan"][kind as usize]);
        let register = kind.tool("register_agent");
        let joining = json!({"name": name});
        let send = kind.tool("send_message");
        let script = Script::new().otherwise(move |news| {
            if news.contains(JOIN) {
                return ModelAnswer::Call { tool: register.clone(), input: joining.clone() };
            }
            if let Some((to, body)) = asked_to_write(news) {
                return ModelAnswer::Call { tool: send.clone(), input: json!({"to": [to], "body": body}) };
            }
            if news.contains("soak: work") { kind.work() } else { ModelAnswer::Say("Noted.".to_owned()) }
        });
        let model = Model::start(script);
        let driver = Driver::of(kind, &name, stage, &model, number == 1);
        let mut player = Player {
            kind,
            name,
            model,
            stage,
            driver,
            terminal: None,
            away_until: None,
            session: String::new(),
            prompts: 0,
            refusals: 0,
        };
        player.terminal = Some(player.open(&[]));
        player.type_line(JOIN);
        player.session = wait_for("it has joined", || session_of(stage, &player.name));
        player
    }

    fn open(&self, further: &[&str]) -> Terminal {
        match &self.driver {
            Driver::ClaudeCode(client) => client.open_with(further),
            Driver::Codex(client) => client.open_with(further),
            Driver::OpenCode(client) => client.open(further),
            Driver::Gemini(client) => client.open_with(&[&["--approval-mode", "yolo"], further].concat()),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.terminal.is_some()
    }

    /// Whether its user sees it work.
    pub(crate) fn works(&self) -> bool {
        self.terminal.as_ref().is_some_and(|terminal| terminal.screen().contains(self.kind.at_work()))
    }

    pub(crate) fn screen(&self) -> String {
        self.terminal.as_ref().map(Terminal::screen).unwrap_or_default()
    }

    /// Types a prompt, numbered so that no two are alike, and submits it. What a busy client does with it is its own
    /// affair.
    pub(crate) fn prompt(&mut self, words: &str) {
        self.prompts += 1;
        let line = format!("Prompt {}. {words}", self.prompts);
        self.type_line(&line);
    }

    fn type_line(&self, line: &str) {
        let Some(terminal) = &self.terminal else { return };
        // Text typed while a client draws its screen may be lost.
        for _ in 0..3 {
            terminal.write(line);
            let begin: String = line.chars().take(20).collect();
            if shows(terminal, &begin, true) {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(120));
        terminal.press("Enter");
    }

    /// Esc, if a turn runs.
    pub(crate) fn interrupt(&self) -> bool {
        let (Some(terminal), true) = (&self.terminal, self.works()) else { return false };
        terminal.press("Escape");
        if self.kind == Kind::OpenCode {
            std::thread::sleep(Duration::from_millis(200));
            terminal.press("Escape");
        }
        true
    }

    /// Begins another conversation, if no turn runs.
    pub(crate) fn clear(&self) -> bool {
        let (Some(terminal), false) = (&self.terminal, self.works()) else { return false };
        let command = if self.kind == Kind::OpenCode { "/new" } else { "/clear" };
        terminal.write(command);
        if !shows(terminal, command, true) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(300));
        terminal.press("Enter");
        if !shows(terminal, command, false) {
            terminal.press("Enter");
        }
        true
    }

    /// Kills the client, and sometimes Codex's shared app server with it.
    pub(crate) fn kill(&mut self, app_server_too: bool, back: Instant) {
        self.note_session();
        if let Some(terminal) = self.terminal.take() {
            terminal.kill();
        }
        if let (true, Driver::Codex(client)) = (app_server_too, &self.driver) {
            client.crash_app_server();
        }
        self.away_until = Some(back);
    }

    /// Closes the terminal, as a user does. Returns whether the client ended by itself: one that has not within a minute
    /// is killed, as its user would kill it.
    pub(crate) fn leave(&mut self, back: Instant) -> bool {
        self.note_session();
        self.away_until = Some(back);
        let Some(terminal) = self.terminal.take() else { return true };
        let program = terminal.program();
        let ended = catch_unwind(AssertUnwindSafe(|| terminal.close())).is_ok();
        if !ended {
            Program::new("kill").args(["-KILL", &program]).run();
        }
        ended
    }

    /// Opens the agent's session again; if its client does not know it any more, a new one that goes on as the same
    /// agent. Says why not, if it cannot.
    pub(crate) fn come_back(&mut self) -> Result<Return, String> {
        self.note_session();
        if self.refusals >= MOST_REFUSALS {
            return self.begin_anew();
        }
        let session = self.session.clone();
        let words: Vec<&str> = match self.kind {
            Kind::ClaudeCode | Kind::Gemini => vec!["--resume", &session],
            Kind::Codex => vec!["resume", &session],
            Kind::OpenCode => vec!["--session", &session],
        };
        let opened = catch_unwind(AssertUnwindSafe(|| self.open(&words)));
        match opened {
            Ok(terminal) => {
                self.terminal = Some(terminal);
                (self.away_until, self.refusals) = (None, 0);
                Ok(Return::Resumed)
            }
            Err(why) => {
                self.refusals += 1;
                self.away_until = Some(Instant::now() + Duration::from_secs(5));
                Err(why.downcast_ref::<String>().cloned().unwrap_or_default())
            }
        }
    }

    /// What a user does whose client does not know a session any more: Gemini CLI writes none in which nothing was
    /// said, such as one after `/clear`.
    fn begin_anew(&mut self) -> Result<Return, String> {
        let adopted = self.stage.run(&["adopt", &self.name]);
        if adopted.code != Some(0) {
            self.away_until = Some(Instant::now() + Duration::from_secs(5));
            return Err(adopted.stderr.trim().to_owned());
        }
        self.terminal = Some(self.open(&[]));
        (self.away_until, self.refusals) = (None, 0);
        self.type_line(JOIN);
        Ok(Return::Anew)
    }

    fn note_session(&mut self) {
        if let Some(session) = session_of(self.stage, &self.name) {
            self.session = session;
        }
    }

    /// What `relay-mesh agents` says of it.
    pub(crate) fn agent(&self) -> Value {
        let listed: Value = serde_json::from_str(&self.stage.relay_ok(&["agents", "--json"])).unwrap_or_default();
        let agents = listed["agents"].as_array().cloned().unwrap_or_default();
        agents.into_iter().find(|agent| agent["name"] == json!(self.name)).unwrap_or_default()
    }
}

/// How an agent came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Return {
    Resumed,
    Anew,
}

enum Driver<'a> {
    ClaudeCode(ClaudeCode<'a>),
    Codex(Codex<'a>),
    OpenCode(OpenCode<'a>),
    Gemini(Gemini<'a>),
}

impl<'a> Driver<'a> {
    /// Each has settings that name its own model. Of two Codexes one has the app server that terminals share.
    fn of(kind: Kind, name: &str, stage: &'a Stage, model: &Model, shares: bool) -> Driver<'a> {
        match kind {
            Kind::ClaudeCode => Driver::ClaudeCode(ClaudeCode::new(stage, model)),
            Kind::Codex => {
                let app_server = if shares { AppServer::Shared } else { AppServer::Embedded };
                let codex = Codex::at_home_in(stage.home.join(format!(".codex-{name}")), stage, model);
                Driver::Codex(codex.app_server(app_server).flag("--dangerously-bypass-approvals-and-sandbox"))
            }
            Kind::OpenCode => {
                let client = OpenCode::new(stage, model);
                let settings = client.environment().iter().find(|(name, _)| name == "OPENCODE_CONFIG");
                let shared = settings.map(|(_, path)| path.clone()).unwrap_or_default();
                let own = stage.folder.join(format!("opencode-{name}.json"));
                std::fs::copy(shared, &own).expect("the stage is writable");
                Driver::OpenCode(client.with("OPENCODE_CONFIG", &own.display().to_string()))
            }
            Kind::Gemini => Driver::Gemini(Gemini::new(stage, model)),
        }
    }
}

/// Whether the screen soon shows a text, or shows it no more.
fn shows(terminal: &Terminal, text: &str, shown: bool) -> bool {
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        if terminal.screen().contains(text) == shown {
            return true;
        }
        std::thread::sleep(Duration::from_millis(60));
    }
    false
}

/// The recipient and the text of the last order to write that a model was given.
fn asked_to_write(news: &str) -> Option<(String, String)> {
    let (_, order) = news.rsplit_once("soak: write to ")?;
    let (to, rest) = order.split_once(' ')?;
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((to.to_owned(), format!("soak message {number} of an agent")))
}
