//! Tasks with the real clients, and scripted models: the command line that an adapter words is started as the host
//! starts it, with the task on standard input and a file as standard output, and the outcome is the true one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adapters::{Adapters, NoConsents, OwnInstallation, Settings, Surroundings};
use mesh::ports::harness::{Harness as _, HarnessError};
use mesh::ports::runner::{
    Ending, Extensions, Login, OutputLine, ProcessExit, Reach, RunEvent, RunOutcome, Start, Task,
};
use serde_json::json;
use store::memory::MemoryStore;
use test_support::{Model, Program, Script, Stage, environment_to_start, isolated};

#[path = "common/still.rs"]
mod still;

/// A run's own folder, and the adapters of a user in this environment.
struct Scene<'a> {
    stage: &'a Stage,
    environment: Vec<(String, String)>,
    folder: PathBuf,
}

impl Scene<'_> {
    fn new<'a>(stage: &'a Stage, environment: &[(String, String)]) -> Scene<'a> {
        let folder = stage.folder.join("run");
        std::fs::create_dir_all(&folder).expect("the stage is writable");
        // What the user has set and no manifest names.
        let further = [("SECRET_OF_MINE", "s"), ("CLAUDECODE", "1")];
        let further = further.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Scene { stage, environment: environment.iter().cloned().chain(further).collect(), folder }
    }

    fn adapters(&self) -> Adapters {
        Adapters::new(Settings {
            store: Arc::new(MemoryStore::new()),
            machine: Arc::new(still::Still),
            cache: Path::new(env!("CARGO_TARGET_TMPDIR")).join("runners-cache"),
            cache_aside: None,
            compiler: adapters::Compiler::InThisProcess,
            installs: self.stage.folder.join("installs"),
            rates: None,
            installed: None,
            plugin_folders: Vec::new(),
            surroundings: Surroundings {
                home: Some(self.stage.home.clone()),
                project: Some(self.stage.project.clone()),
                environment: self.environment.iter().cloned().collect(),
                main_worktree: None,
                in_place_of_root: None,
                private: Vec::new(),
                own: OwnInstallation::default(),
            },
            consents: Arc::new(NoConsents),
            host_functions: adapters::host_functions::Settings::default(),
        })
    }

    fn task(&self, reach: Reach) -> Task {
        Task {
            id: "run-1".to_owned(),
            folder: self.stage.project.clone(),
            // Each of a test's two new sessions has its own. Gemini CLI tells sessions of a minute by the beginning.
            start: Start::Fresh(format!("5d20a1b{}-0000-4000-8000-000000000001", reach as u8)),
            reach,
            extensions: Extensions::None,
            model: None,
            schema: None,
            guidance: None,
            turns: None,
            cost: None,
        }
    }

    /// Runs a task to its end.
    async fn run(&self, harness: &str, task: &Task, text: &str) -> Result<(Vec<RunEvent>, RunOutcome), HarnessError> {
        let adapters = self.adapters();
        let adapter = adapters.adapter(harness).await?.expect("it is built in");
        let runner = adapter.runner()?;
        let launch = runner.prepare(task, &self.folder).await?;
        assert!(launch.environment.iter().all(|(name, _)| !["SECRET_OF_MINE", "CLAUDECODE"].contains(&name.as_str())));
        for (name, content) in &launch.files {
            std::fs::write(self.folder.join(name), content).expect("the folder is writable");
        }
        let output = self.folder.join("output");
        let shell = format!("exec \"$@\" > '{}'", output.display());
        let program = Program::new("env").arg("-i");
        let program = program.args(launch.environment.iter().map(|(name, value)| format!("{name}={value}")));
        let program = program.args(["sh", "-c", &shell, "sh"]).args(&launch.command);
        let outcome = program.within(&task.folder).input(text).run();
        let printed = std::fs::read_to_string(&output).expect("it was started");
        let lines: Vec<OutputLine> =
            printed.lines().map(|line| OutputLine { text: line.to_owned(), cut: false }).collect();
        let (mut memory, mut events) = (None, Vec::new());
        for portion in lines.chunks(2) {
            let reading = runner.read(task, memory.as_ref(), portion).await?;
            memory = reading.memory;
            events.extend(reading.events);
        }
        let exit = ProcessExit { code: outcome.code, stderr_end: outcome.stderr, ..ProcessExit::default() };
        let concluded = runner.conclude(task, memory.as_ref(), &exit).await?;
        Ok((events, concluded))
    }
}

/// One task that looks, one that edits, and one that continues the first: three true answers, and the file is there
/// only where it may be.
fn answers(harness: &str, scene: &Scene<'_>, model: &Model) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let ready = scene.adapters().adapter(harness).await.expect("it loads").expect("it is built in");
        let ready = ready.runner().expect("it runs tasks").ready().await.expect("it is installed");
        assert!(ready.version.starts_with(|digit: char| digit.is_ascii_digit()), "{ready:?}");
        assert_ne!(ready.login, Login::LoggedOut, "{ready:?}");

        let written = scene.stage.project.join("made.txt");
        let (events, outcome) = scene.run(harness, &scene.task(Reach::Look), "First look").await.expect("it runs");
        assert_eq!(outcome.ending, Ending::Answered, "{outcome:?} {events:?}");
        assert_eq!(outcome.answer.as_deref(), Some("I looked."), "{events:?}");
        assert!(!written.exists(), "a run that looks writes nothing: {events:?}");
        let session = outcome.session.expect("it names its session");
        assert!(events.contains(&RunEvent::Session { session: session.clone() }), "{events:?}");
        assert!(outcome.usage.is_some_and(|usage| !usage.whole_session && usage.output > 0), "{:?}", outcome.usage);

        let (events, outcome) = scene.run(harness, &scene.task(Reach::Edit), "Then edit").await.expect("it runs");
        assert_eq!(outcome.answer.as_deref(), Some("I wrote it."), "{outcome:?} {events:?}");
        assert!(written.exists(), "{outcome:?} {events:?}");

        let resumed = Task { start: Start::Resume(session.clone()), ..scene.task(Reach::Look) };
        let (events, outcome) = scene.run(harness, &resumed, "And again").await.expect("it runs");
        assert_eq!(outcome.answer.as_deref(), Some("I go on."), "{outcome:?} {events:?}");
        assert_eq!(outcome.ending, Ending::Answered, "{outcome:?}");
        assert_eq!(outcome.session, Some(session));
        assert!(model.heard().iter().any(|heard| heard.everything().contains("And again")), "the task is the prompt");
    });
}

/// The model tries to write in both tasks.
fn script(tool: &str, write: &serde_json::Value) -> Script {
    Script::new()
        .call("First look", tool, write.clone())
        .say("And again", "I go on.")
        .call("Then edit", tool, write.clone())
        .say("", "I looked.")
        .say("", "I wrote it.")
}

fn answers_with_scripted(harness: &str, stage: &Stage, model: &Model) {
    let environment = environment_to_start(harness, stage, model);
    answers(harness, &Scene::new(stage, &environment), model);
}

fn stage() -> Stage {
    Stage::new("/nowhere/relay-mesh")
}

#[test]
fn claude_code_runs_tasks() {
    isolated(|| {
        let stage = stage();
        let file = stage.project.join("made.txt");
        let write = json!({"file_path": file.display().to_string(), "content": "made"});
        let model = Model::start(script("Write", &write));
        answers_with_scripted("claude-code", &stage, &model);
    });
}

#[test]
fn codex_runs_tasks() {
    isolated(|| {
        let stage = stage();
        let file = stage.project.join("made.txt");
        let write = json!({"cmd": format!("echo made > {}", file.display())});
        let model = Model::start(script("exec_command", &write));
        answers_with_scripted("codex", &stage, &model);
    });
}

#[test]
fn opencode_runs_tasks() {
    isolated(|| {
        let stage = stage();
        let file = stage.project.join("made.txt");
        let write = json!({"filePath": file.display().to_string(), "content": "made"});
        let model = Model::start(script("write", &write));
        answers_with_scripted("opencode", &stage, &model);
    });
}

#[test]
fn gemini_cli_runs_tasks() {
    isolated(|| {
        let stage = stage();
        let file = stage.project.join("made.txt");
        let write = json!({"file_path": file.display().to_string(), "content": "made"});
        let model = Model::start(script("write_file", &write));
        answers_with_scripted("gemini-cli", &stage, &model);
    });
}
