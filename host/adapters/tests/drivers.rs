//! Driven agents with the real clients, and scripted models: the adapter's frames go to the harness and its frames come
//! back, as a host would carry them. The harness is killed in between, and goes on under another process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use adapters::{Adapter, Adapters, NoConsents, OwnInstallation, Settings, Surroundings};
use mesh::ports::driver::{
    Action, Approvals, DrivenAgent, DriverAbilities, DriverEvent, DriverFraming, Exchange, HarnessDriver, Operation,
    Prompt, PromptStatus, Tailoring, TurnEnd, UserAnswer,
};
use mesh::ports::harness::Harness as _;
use mesh::ports::runner::{Extensions, Reach};
use serde_json::{Value, json};
use store::memory::MemoryStore;
use test_support::{Model, PATIENCE, Program, Running, Script, Stage, environment_to_start, isolated};

#[path = "common/still.rs"]
mod still;

/// A harness that runs, and what was said with it.
struct Driven<'a> {
    driver: &'a dyn HarnessDriver,
    program: Running,
    lines: Receiver<String>,
    memory: Option<Value>,
    able: DriverAbilities,
    /// What happened and was not waited for yet.
    events: Vec<DriverEvent>,
    /// All of it, for whoever reads of a failure.
    all: Vec<String>,
}

impl<'a> Driven<'a> {
    /// Starts the harness as the adapter words it, and waits until it takes actions.
    async fn start(
        driver: &'a dyn HarnessDriver,
        stage: &Stage,
        agent: &DrivenAgent,
        resume: Option<&str>,
    ) -> Driven<'a> {
        let folder = stage.folder.join("driven");
        std::fs::create_dir_all(&folder).expect("the stage is writable");
        let offered = driver.connections(agent, resume, &folder).await.expect("connections");
        let connection = offered.into_iter().find(|offered| offered.framing == DriverFraming::Lines);
        let connection = connection.expect("one over pipes");
        for (name, content) in &connection.launch.files {
            std::fs::write(folder.join(name), content).expect("the folder is writable");
        }
        let program = Program::new("env").arg("-i");
        let program = program.args(connection.launch.environment.iter().map(|(name, value)| format!("{name}={value}")));
        let program = program.args(&connection.launch.command).within(&agent.folder);
        let mut program = program.start(&folder.join("stderr"));
        let (sender, lines) = channel();
        let output = program.child.stdout.take().expect("a pipe");
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let (able, all) = (connection.able, Vec::new());
        let mut driven = Driven { driver, program, lines, memory: None, able, events: Vec::new(), all };
        let begun = driver.connect(&connection.name).await.expect("connected");
        driven.carry(begun);
        driven.until("it takes actions", |event| *event == DriverEvent::Ready).await;
        driven
    }

    fn carry(&mut self, exchange: Exchange) {
        self.memory = exchange.memory;
        let input = self.program.child.stdin.as_mut().expect("a pipe");
        for frame in exchange.frames {
            self.all.push(format!("> {frame}"));
            writeln!(input, "{frame}").expect("it reads");
        }
        for (_, event) in exchange.events {
            self.all.push(format!("= {event:?}"));
            self.events.push(event);
        }
    }

    async fn act(&mut self, action: Action) {
        let exchange = self.driver.act(self.memory.as_ref(), &action).await.expect("done");
        self.carry(exchange);
    }

    async fn prompt(&mut self, session: &str, prompt: Prompt) {
        self.act(Action::Prompt(session.to_owned(), prompt)).await;
    }

    /// The first event of which this is true, among those that were not waited for yet.
    async fn until(&mut self, what: &str, holds: impl Fn(&DriverEvent) -> bool) -> DriverEvent {
        loop {
            if let Some(at) = self.events.iter().position(&holds) {
                return self.events.drain(..=at).next_back().expect("it is there");
            }
            let Ok(frame) = self.lines.recv_timeout(PATIENCE) else { panic!("{what}: never\n{}", self.all.join("\n")) };
            let exchange = self.driver.receive(self.memory.as_ref(), &[frame]).await.expect("received");
            self.carry(exchange);
        }
    }

    async fn opened(&mut self) -> String {
        let opened = self.until("a session", |event| matches!(event, DriverEvent::Opened(_))).await;
        let DriverEvent::Opened(session) = opened else { unreachable!("it was looked for") };
        session
    }

    async fn status(&mut self, prompt: &Prompt, status: PromptStatus) {
        let told = format!("{} is {status:?}", prompt.text);
        self.until(&told, |event| *event == DriverEvent::Prompt(prompt.id.clone(), status)).await;
    }

    async fn turn_ends(&mut self, end: TurnEnd) {
        let told = format!("{end:?}");
        self.until(&told, |event| matches!(event, DriverEvent::TurnEnded(_, ended) if *ended == end)).await;
    }

    /// Whether the agent has said this, whole or in pieces.
    fn has_said(&self, words: &str) -> bool {
        self.all.iter().any(|told| {
            told.starts_with("= Said(") && told.contains(words) || told.starts_with("= Piece(") && told.contains(words)
        })
    }
}

fn prompt(number: u32, text: &str) -> Prompt {
    Prompt {
        id: format!("5d20a1b2-0000-4000-8000-00000000000{number}"),
        text: text.to_owned(),
        by_user: true,
        context: None,
    }
}

fn adapters(stage: &Stage, environment: &[(String, String)]) -> Adapters {
    Adapters::new(Settings {
        store: Arc::new(MemoryStore::new()),
        machine: Arc::new(still::Still),
        cache: Path::new(env!("CARGO_TARGET_TMPDIR")).join("runners-cache"),
        cache_aside: None,
        compiler: adapters::Compiler::InThisProcess,
        installs: stage.folder.join("installs"),
        rates: None,
        installed: None,
        plugin_folders: Vec::new(),
        surroundings: Surroundings {
            home: Some(stage.home.clone()),
            project: Some(stage.project.clone()),
            environment: environment.iter().cloned().collect(),
            main_worktree: None,
            in_place_of_root: None,
            private: Vec::new(),
            own: OwnInstallation::default(),
        },
        consents: Arc::new(NoConsents),
        host_functions: adapters::host_functions::Settings::default(),
    })
}

/// What a harness says before it runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandShown {
    /// It runs it.
    Nothing,
    /// The command, as it would be run.
    Whole,
    /// A title alone, which is no command to be shown as one.
    InItsWords,
}

/// What a harness shows of a prompt after it was killed: of one whose turn had ended, and of one that it never got.
type Accounts = (PromptStatus, PromptStatus);

/// Two turns, of which the second asks and is refused if the harness asks at all; a kill; and a third turn in the same
/// session under another process.
fn goes_on(
    harness: &str,
    stage: &Stage,
    environment: &[(String, String)],
    reach: Reach,
    asks: CommandShown,
    accounts: Accounts,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let adapters = adapters(stage, environment);
        let adapter: Arc<Adapter> = adapters.adapter(harness).await.expect("it loads").expect("it is built in");
        let driver = adapter.driver().expect("it drives agents");
        let agent = DrivenAgent {
            name: "helper".to_owned(),
            folder: stage.project.clone(),
            model: None,
            guidance: String::new(),
            reach,
            approvals: Approvals::Ask,
            extensions: Extensions::None,
            id: "5d20a1b2-0000-4000-8000-00000000000a".to_owned(),
            environment: Vec::new(),
            tailoring: Tailoring::default(),
        };
        let mut driven = Driven::start(driver, stage, &agent, None).await;
        driven.act(Action::Begin(agent.clone())).await;
        let session = driven.opened().await;

        let first = prompt(1, "Say hello");
        driven.prompt(&session, first.clone()).await;
        driven.status(&first, PromptStatus::Shown).await;
        driven.turn_ends(TurnEnd::Completed).await;
        assert!(driven.has_said("Hello."), "{}", driven.all.join("\n"));

        let made = stage.project.join("made.txt");
        let second = prompt(2, "Run it");
        driven.prompt(&session, second.clone()).await;
        if asks != CommandShown::Nothing {
            let asked = driven.until("a question", |event| matches!(event, DriverEvent::Asks(_))).await;
            let DriverEvent::Asks(question) = asked else { unreachable!("it was looked for") };
            match (asks, &question.operation) {
                (CommandShown::Whole, Operation::Command(told))
                | (CommandShown::InItsWords, Operation::Other(told)) => {
                    assert!(told.contains("made.txt"), "{question:?}");
                }
                _ => panic!("{question:?}"),
            }
            assert!(!made.exists(), "nothing happens before the answer");
            let answer = UserAnswer::Refuse("not now".to_owned());
            let (question, kept) = (question.id, question.kept);
            driven.act(Action::Answer { session: session.clone(), question, kept, answer }).await;
        }
        driven.turn_ends(TurnEnd::Completed).await;
        let told = "Item { id: ";
        let command = driven
            .all
            .iter()
            .any(|event| event.contains(told) && event.contains("Some(Command(\"") && event.contains("made.txt"));
        assert!(command || asks == CommandShown::InItsWords, "{}", driven.all.join("\n"));
        assert_eq!(made.exists(), asks == CommandShown::Nothing, "{}", driven.all.join("\n"));

        assert!(driven.able.resume && driven.able.interrupt);
        driven.program.kill();
        let_a_minute_pass(stage);
        let mut driven = Driven::start(driver, stage, &agent, Some(&session)).await;
        driven.act(Action::Resume(session.clone(), agent)).await;
        assert_eq!(driven.opened().await, session);
        let never = prompt(9, "Never given");
        driven.act(Action::Account(session.clone(), vec![first.clone(), never.clone()])).await;
        driven.status(&first, accounts.0).await;
        driven.status(&never, accounts.1).await;

        let third = prompt(3, "And again");
        driven.prompt(&session, third.clone()).await;
        driven.status(&third, PromptStatus::Shown).await;
        driven.turn_ends(TurnEnd::Completed).await;
        let of_before = driven.has_said("Hello.") || driven.has_said("Done.");
        assert!(driven.has_said("I go on.") && !of_before, "{}", driven.all.join("\n"));
    });
}

/// Gemini CLI names a session's file by the minute and the beginning of its id, and empties a file of that name before it
/// loads the session: so one of this minute would be lost.
fn let_a_minute_pass(stage: &Stage) {
    let Ok(chats) = std::fs::read_dir(stage.home.join(".gemini/tmp/project/chats")) else { return };
    for chat in chats {
        let path = chat.expect("it can be read").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let id = name.rsplit_once('-').expect("an id").1;
        std::fs::rename(&path, path.with_file_name(format!("session-2026-11-01T00-00-{id}"))).expect("renamed");
    }
}

fn script(tool: &str, run: &Value) -> Script {
    Script::new()
        .say("Say hello", "Hello.")
        .call("Run it", tool, run.clone())
        .say("And again", "I go on.")
        .say("", "Done.")
}

fn stage() -> (Stage, PathBuf) {
    let stage = Stage::new("/nowhere/relay-mesh");
    let made = stage.project.join("made.txt");
    (stage, made)
}

#[test]
fn claude_code_is_driven() {
    isolated(|| {
        let (stage, made) = stage();
        // What only writes into its folder is an edit, about which it asks nobody.
        let run = json!({"command": format!("sh -c 'echo made > {}'", made.display()), "description": "x"});
        let model = Model::start(script("Bash", &run));
        let environment = environment_to_start("claude-code", &stage, &model);
        let accounts = (PromptStatus::Unknown, PromptStatus::Unknown);
        goes_on("claude-code", &stage, &environment, Reach::Work, CommandShown::Whole, accounts);
    });
}

#[test]
fn codex_is_driven() {
    isolated(|| {
        let (stage, made) = stage();
        let command = format!("echo made > {}", made.display());
        let run = json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "to make it"});
        let model = Model::start(script("exec_command", &run));
        let environment = environment_to_start("codex", &stage, &model);
        let accounts = (PromptStatus::Answered, PromptStatus::Lost);
        goes_on("codex", &stage, &environment, Reach::Look, CommandShown::Whole, accounts);
    });
}

#[test]
fn opencode_is_driven() {
    isolated(|| {
        let (stage, made) = stage();
        let run = json!({"command": format!("echo made > {}", made.display()), "description": "x"});
        let model = Model::start(script("bash", &run));
        let environment = environment_to_start("opencode", &stage, &model);
        let accounts = (PromptStatus::Unknown, PromptStatus::Unknown);
        // Its default permissions ask nothing.
        goes_on("opencode", &stage, &environment, Reach::Work, CommandShown::Nothing, accounts);
    });
}

#[test]
fn gemini_cli_is_driven() {
    isolated(|| {
        let (stage, made) = stage();
        let run = json!({"command": format!("echo made > {}", made.display())});
        let model = Model::start(script("run_shell_command", &run));
        let environment = environment_to_start("gemini-cli", &stage, &model);
        let accounts = (PromptStatus::Unknown, PromptStatus::Unknown);
        goes_on("gemini-cli", &stage, &environment, Reach::Work, CommandShown::InItsWords, accounts);
    });
}
