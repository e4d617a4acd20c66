//! Runs of a scripted harness under the real guard, in real repositories.

mod cleanup;
mod losses;
mod reviews;
mod scripted;
mod sessions;
mod unfinished;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mesh::allowances::{Allowance, Asker, Starts};
use mesh::messages::Draft;
use mesh::names::AgentName;
use mesh::ports::harness::Harnesses;
use mesh::ports::machine::{Machine, Process, ProcessSpace};
use mesh::ports::runner::{Ending, Extensions, Reach, RunEvent, Start};
use mesh::reviews::Severity;
use mesh::runs::{RunLimits, RunReport, RunStage};
use mesh::{Fetch, Mesh, Parts, Registration};
use serde_json::{Value, json};

use self::scripted::{NAME, Only, Scripted};
use super::supervise::{Audience, supervise};
use super::{MARK, RunRequest, Runs, WorkFolder, begin, changes, permission, retention, settle};
use crate::compose::Open;
use crate::config::{Allowed, Settings, Values};
use crate::context::{Context, Seat};
use crate::environment::Environment;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::pipelines::begin::{PipelinePlace, PipelineRequest};
use crate::render::{Format, Printer, Talk};
use crate::signals::Stop;

/// A data folder, a repository, and a mesh whose one harness is scripted.
pub(crate) struct Stage {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) context: Context,
    pub(crate) open: Open,
}

struct Heard(Vec<RunEvent>);

impl Audience for Heard {
    fn event(&mut self, event: &RunEvent) {
        self.0.push(event.clone());
    }
}

impl Stage {
    pub(crate) fn new(fresh: &str) -> Stage {
        Stage::with(fresh, "exit 9", &[])
    }

    fn with(fresh: &str, resumed: &str, variables: &[(&str, &str)]) -> Stage {
        let folder = tempfile::tempdir().expect("a folder");
        let project = folder.path().join("project");
        std::fs::create_dir(&project).expect("made");
        let home = folder.path().to_string_lossy().into_owned();
        let environment = Environment::from([
            ("HOME", home.as_str()),
            ("PATH", "/usr/bin:/bin:/usr/local/bin"),
            variables.first().copied().unwrap_or(("EMPTY", "")),
        ]);
        let values = Values { dir: Some(folder.path().join("data")), ..Values::default() };
        let settings = Settings::load(values, &environment, &project).expect("settings");
        let printer = Printer::new(Format::Text, Talk::Quiet, crate::screen::ColourWhen::Never, &environment);
        let (workdir, seat) = (project, Seat::ThisProcess);
        let context = Context { settings, environment, printer, workdir, speaks_of_store: false, seat };
        let open = context.open().expect("a mesh");
        let harnesses = Arc::new(Only(Arc::new(Scripted::new(fresh, resumed)))) as Arc<dyn Harnesses>;
        let machine = Arc::clone(&open.machine) as Arc<dyn Machine>;
        let (shared, local) = (Arc::clone(&open.store), Arc::clone(&open.store));
        let limits = context.settings.limits();
        let mesh = Arc::new(Mesh::new(Parts { shared, local, machine, harnesses, limits }));
        Stage { folder, context, open: Open { mesh, ..open } }
    }

    pub(crate) fn project(&self) -> PathBuf {
        std::fs::canonicalize(&self.context.workdir).expect("there")
    }

    fn runs(&self) -> Runs {
        Runs::of(&self.context.settings.dir.value)
    }

    /// A repository with one file and one commit.
    fn with_repository(self) -> Stage {
        self.git(&["init", "--quiet", "--initial-branch", "main"]);
        std::fs::write(self.project().join("old"), "one\n").expect("written");
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "-m", "first"]);
        self
    }

    fn git(&self, arguments: &[&str]) {
        #[expect(clippy::disallowed_methods, reason = "a test makes repositories with the real git")]
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(arguments);
        let output = command.current_dir(self.project()).env("HOME", self.folder.path()).output().expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn request(&self) -> RunRequest {
        RunRequest {
            harness: NAME.to_owned(),
            text: "do it".to_owned(),
            folder: self.project(),
            place: WorkFolder::Usual,
            reach: Reach::Look,
            start: None,
            extensions: Extensions::Mesh,
            model: None,
            schema: None,
            turns: None,
            cost: None,
            below: None,
            limits: RunLimits::default(),
            name: None,
            reserve: Vec::new(),
            report: Vec::new(),
        }
    }

    async fn run(&self, request: RunRequest) -> Result<RunReport, CommandError> {
        let mut stop = Stop::listen().expect("signals");
        let begun = begin::begin(&self.context, &self.open, request).await?;
        supervise(&self.context, &self.open, begun, &mut stop, &mut Heard(Vec::new())).await
    }

    async fn ran(&self, request: RunRequest) -> RunReport {
        let report = self.run(request).await.unwrap_or_else(|error| panic!("{}", mesh::reasons(&error)));
        self.nothing_is_left(&report.record.id.to_string());
        let (folder, record) = self.runs().load(report.record.id).expect("its record");
        assert_eq!(record, report.record);
        let kept: Value = serde_json::from_slice(&folder.read("result.json").expect("a result")).expect("JSON");
        assert_eq!(kept["ended"], report.verdict.ending.as_str());
        let schema: Value =
            serde_json::from_str(include_str!("../../../../../docs/run-result.schema.json")).expect("JSON");
        let schema = jsonschema::validator_for(&schema).expect("a schema");
        let wrong: Vec<String> = schema.iter_errors(&kept).map(|error| error.to_string()).collect();
        assert_eq!(wrong, [""; 0], "docs/run-result.schema.json says what a result is");
        assert!(self.runs().live().is_empty(), "it has ended");
        report
    }

    fn nothing_is_left(&self, id: &str) {
        let line = format!("{MARK}={id}").into_bytes();
        for process in std::fs::read_dir("/proc").expect("a list").flatten() {
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            let ours = environment.split(|byte| *byte == 0).any(|found| found == line);
            let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            assert!(!ours, "a process of the run is left: {}", String::from_utf8_lossy(&words));
        }
    }
}

/// A process that is gone.
fn dead() -> Process {
    Process { pid: u32::MAX, start: 1, space: None }
}

/// An agent that is nobody's session.
async fn registered(stage: &Stage, name: &str) -> AgentName {
    let nobody = stage.open.mesh.identify(&stage.context.call(None)).await.expect("identified");
    let name: AgentName = name.parse().expect("a name");
    let wanted = Registration { name: Some(name.clone()), ..Registration::default() };
    stage.open.mesh.register(&nobody, wanted).await.expect("registered");
    name
}

/// What is asked of a pipeline in a worktree.
fn pipeline_request(stage: &Stage) -> PipelineRequest {
    PipelineRequest {
        prompt: "do it".to_owned(),
        folder: stage.project(),
        place: PipelinePlace::Worktree,
        implement: NAME.to_owned(),
        review: vec![NAME.to_owned()],
        verify: None,
        rounds: 1,
        least: Severity::Low,
        time: RunLimits::default().time,
    }
}

const ANSWERS: &str = "cat >/dev/null; echo session s-1; echo say hello; echo used 5; echo answer done";

#[tokio::test]
async fn a_run_answers_and_its_result_has_every_name_of_the_specification() {
    let stage =
        Stage::new("read task; echo \"session s-1\"; echo \"say $task\"; echo err >&2; echo answer done; exit 3");
    let report = stage.ran(stage.request()).await;
    assert_eq!((report.verdict.ending, report.verdict.ok), (Ending::Answered, true));
    let view = serde_json::to_value(view::RunView::from(&report)).expect("JSON");
    for (pointer, expected) in [
        ("/agent", json!(NAME)),
        ("/mode", json!("headless")),
        ("/cwd", json!(stage.project().display().to_string())),
        ("/ok", json!(true)),
        ("/exit_code", json!(3)),
        ("/signal", json!(null)),
        ("/stdout", json!("session s-1\nsay do it\nanswer done\n")),
        ("/stderr", json!("err\n")),
        ("/structured/response", json!("done")),
        ("/structured/events/1", json!({"event": "said", "text": "do it"})),
        ("/artifacts/files_written", json!([])),
        ("/artifacts/git_diff", json!(null)),
        ("/usage/input_tokens", json!(null)),
        ("/ended", json!("answered")),
        ("/session", json!("s-1")),
    ] {
        assert_eq!(view.pointer(pointer), Some(&expected), "{pointer}");
    }
    for name in ["started_at", "ended_at"] {
        assert!(view[name].as_str().is_some_and(|at| at.ends_with('Z')), "{name}");
    }
    assert!(view["duration_ms"].is_u64());
}

#[tokio::test]
async fn no_last_word_is_no_answer_whatever_the_exit_code() {
    let stage = Stage::new("echo say hello; exit 0");
    assert_eq!(stage.ran(stage.request()).await.verdict.ending, Ending::BrokeOff);
    let stage = Stage::new("echo nonsense; exit 0");
    let report = stage.ran(stage.request()).await;
    assert!(report.verdict.why.is_some_and(|why| why.contains("is no word of this harness")));
}

#[tokio::test]
async fn limits_end_a_run_and_say_which() {
    for (script, change, ending, why) in [
        (
            "while :; do echo say x; sleep 0.1; done",
            (|l| l.time = 400) as fn(&mut RunLimits),
            Ending::Time,
            "time was up",
        ),
        ("sleep 300", |l| l.silence = 300, Ending::Time, "printed nothing"),
        ("while :; do echo say x; done", |l| l.output = 50_000, Ending::BrokeOff, "more than 50000 bytes"),
        ("while :; do echo say x; done", |l| l.events = 100, Ending::BrokeOff, "more than 100 events"),
        ("echo refused 401; echo refused 401; sleep 300", |_| {}, Ending::Login, "HTTP 401"),
        (
            "echo refused 429; sleep 300",
            |l| l.time = 400,
            Ending::Time,
            "time was up: its model's server had answered HTTP 429",
        ),
    ] {
        let stage = Stage::new(&format!("setsid sleep 300 & {script}"));
        let mut request = stage.request();
        change(&mut request.limits);
        let report = stage.ran(request).await;
        assert_eq!(report.verdict.ending, ending, "{script}: {:?}", report.verdict);
        assert!(report.verdict.why.as_ref().is_some_and(|said| said.contains(why)), "{:?}", report.verdict);
    }
}

#[tokio::test]
async fn an_answer_without_its_shape_is_asked_for_once_more_and_then_told() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    for (fresh, resumed, ending, attempts) in [
        ("echo 'answer {\"n\": 1}'", "exit 1", Ending::Answered, 1),
        ("echo session s; echo answer one", "echo session s; echo 'answer {\"n\": 1}'", Ending::Answered, 2),
        ("echo session s; echo answer one", "echo session s; echo answer two", Ending::Shape, 2),
        ("echo answer one", "echo 'answer {\"n\": 1}'", Ending::Shape, 1),
    ] {
        let stage = Stage::with(fresh, resumed, &[]);
        let report = stage.ran(RunRequest { schema: Some(schema.clone()), ..stage.request() }).await;
        assert_eq!((report.verdict.ending, report.record.attempts), (ending, attempts), "{fresh}");
        let output = (ending == Ending::Answered).then(|| json!({"n": 1}));
        assert_eq!(report.verdict.output, output);
    }
}

#[tokio::test]
async fn usage_of_a_resumed_session_is_the_difference() {
    let stage = Stage::with(ANSWERS, "echo session s-1; echo used 12; echo answer more", &[]);
    let resumed = || RunRequest { start: Some(Start::Resume("s-1".to_owned())), ..stage.request() };
    let view = |report: &RunReport| serde_json::to_value(view::RunView::from(report)).expect("JSON")["usage"].clone();
    let unknown = view(&stage.ran(resumed()).await);
    assert_eq!((&unknown["input_tokens"], &unknown["scope"]), (&json!(12), &json!("session")));
    let stage = Stage::with(ANSWERS, "echo session s-1; echo used 12; echo answer more", &[]);
    assert_eq!(view(&stage.ran(stage.request()).await)["input_tokens"], 5);
    let known = view(&stage.ran(RunRequest { start: Some(Start::Resume("s-1".to_owned())), ..stage.request() }).await);
    assert_eq!((&known["input_tokens"], &known["scope"]), (&json!(7), &json!("run")));
}

const EDITS: &str = "echo two > old; echo new > new; echo answer done";

#[tokio::test]
async fn a_run_that_edits_works_in_a_worktree_and_is_applied_whole_once() {
    let stage = Stage::new(EDITS).with_repository();
    let report = stage.ran(RunRequest { reach: Reach::Edit, ..stage.request() }).await;
    let changes = report.changes.expect("a repository");
    assert_eq!(changes.written, ["new", "old"]);
    assert_eq!(
        std::fs::read_to_string(stage.project().join("old")).expect("there"),
        "one\n",
        "the folder is untouched"
    );
    assert!(report.record.task.folder.join("new").exists(), "the worktree holds it");
    let runs = stage.runs();
    let git = changes::git(&stage.context);
    let later = mesh::ports::machine::Instant(u64::MAX);
    let deleted = retention::delete_old(&runs, &git, (later, later), mesh::DryRun::No).await.expect("locked");
    assert_eq!((deleted.runs.count, deleted.kept.len()), (0, 1), "work is never deleted");
    let (folder, record) = runs.load(report.record.id).expect("kept");
    let patch = folder.read(changes::PATCH).expect("a patch");
    assert!(changes::is_as_it_ended(&git, &record, &folder, &patch).await);
    git.apply(&stage.project(), &patch).await.expect("it fits");
    assert_eq!(std::fs::read_to_string(stage.project().join("old")).expect("there"), "two\n");
}

#[tokio::test]
async fn a_worktree_that_holds_nothing_goes_with_its_run() {
    let stage = Stage::new(ANSWERS).with_repository();
    let report = stage.ran(RunRequest { reach: Reach::Work, ..stage.request() }).await;
    assert!(!report.record.task.folder.exists());
    let git = changes::git(&stage.context);
    let later = mesh::ports::machine::Instant(u64::MAX);
    let deleted = retention::delete_old(&stage.runs(), &git, (later, later), mesh::DryRun::No).await.expect("locked");
    assert_eq!((deleted.runs.count, deleted.kept.len(), stage.runs().ids().len()), (1, 0, 0));
}

/// However soon what is over goes, the count of the day does not begin anew.
#[tokio::test]
async fn what_an_agent_started_today_stays_and_counts() {
    let stage = Stage::new(ANSWERS);
    let record = stage.ran(stage.request()).await.record;
    let (runs, git) = (stage.runs(), changes::git(&stage.context));
    runs.folder(record.id).keep(&mesh::runs::RunRecord { by: "bob".parse().ok(), ..record.clone() }).expect("kept");
    let later = mesh::ports::machine::Instant(u64::MAX);
    let day = mesh::allowances::DAY;
    let deleted = |now| retention::delete_old(&runs, &git, (later, now), mesh::DryRun::No);
    assert_eq!(deleted(record.started.plus(day - 1)).await.expect("locked").runs.count, 0);
    assert_eq!(deleted(record.started.plus(day)).await.expect("locked").runs.count, 1);
}

/// Its disk is not mounted, or the container that cleans up does not see it.
#[tokio::test]
async fn work_stays_while_its_repository_is_out_of_sight() {
    let stage = Stage::new(EDITS).with_repository();
    let report = stage.ran(RunRequest { reach: Reach::Edit, ..stage.request() }).await;
    let (runs, git) = (stage.runs(), changes::git(&stage.context));
    let later = mesh::ports::machine::Instant(u64::MAX);
    let away = stage.project().with_extension("away");
    std::fs::rename(stage.project(), &away).expect("moved");
    let deleted = retention::delete_old(&runs, &git, (later, later), mesh::DryRun::No).await.expect("locked");
    assert_eq!((deleted.runs.count, deleted.kept.len()), (0, 1));
    assert!(report.record.task.folder.join("new").exists(), "the worktree holds it");
    // Neither the work nor its repository is there any more.
    std::fs::remove_dir_all(&report.record.task.folder).expect("deleted");
    let deleted = retention::delete_old(&runs, &git, (later, later), mesh::DryRun::No).await.expect("locked");
    assert_eq!((deleted.runs.count, deleted.kept.len(), runs.ids().len()), (1, 0, 0));
}

/// A process was killed while it made or deleted a run.
#[tokio::test]
async fn what_is_left_of_a_run_without_a_record_goes() {
    let stage = Stage::new(ANSWERS);
    let runs = stage.runs();
    let [folder, other] = [(); 2].map(|()| runs.create(stage.open.mesh.new_run_id()).expect("made"));
    std::fs::create_dir(other.worktree()).expect("made");
    let mark = runs.folder(stage.open.mesh.new_run_id());
    let marks = stage.context.settings.dir.value.join("runs/live");
    std::fs::write(marks.join(mark.id.to_string()), "").expect("written");
    let git = changes::git(&stage.context);
    let later = mesh::ports::machine::Instant(u64::MAX);
    let young = retention::delete_old(&runs, &git, (mesh::ports::machine::Instant(0), later), mesh::DryRun::No)
        .await
        .expect("locked");
    assert_eq!((young.runs.count, young.kept.len(), runs.ids().len()), (0, 0, 2), "one may be beginning now");
    let deleted = retention::delete_old(&runs, &git, (later, later), mesh::DryRun::No).await.expect("locked");
    assert_eq!((deleted.runs.count, deleted.kept), (1, vec![other.worktree().display().to_string()]));
    assert!(!folder.root.exists() && other.root.exists());
    let left: Vec<_> = std::fs::read_dir(marks).expect("there").flatten().map(|mark| mark.file_name()).collect();
    assert_eq!(left, [std::ffi::OsString::from(other.id.to_string())]);
}

#[tokio::test]
async fn an_agent_goes_on_with_no_session_but_those_of_its_own_runs() {
    let stage = Stage::new(ANSWERS);
    let agent = |name: &str| permission::Evidence {
        asker: Asker::Session { harness: "toad".to_owned(), agent: name.parse().ok() },
        parent: None,
    };
    let record = stage.ran(stage.request()).await.record;
    let session = record.ended.as_ref().and_then(|end| end.session.clone()).expect("a session");
    let folder = stage.runs().folder(record.id);
    folder.keep(&mesh::runs::RunRecord { by: "alice".parse().ok(), ..record }).expect("kept");
    for start in [Start::Resume(session.clone()), Start::Fork(session)] {
        assert!(begin::may_go_on(&stage.runs(), &agent("alice"), Some(&start)).is_ok());
        let refused = begin::may_go_on(&stage.runs(), &agent("bob"), Some(&start)).expect_err("it is another's");
        assert_eq!(refused.exit(), Exit::Refused, "{refused}");
        let user = permission::Evidence { asker: Asker::User, parent: None };
        assert!(begin::may_go_on(&stage.runs(), &user, Some(&start)).is_ok());
    }
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_and_nothing_is_left() {
    let check = async |stage: &Stage, request: RunRequest, exit: Exit, expected: &str| {
        let error = stage.run(request).await.expect_err("it is refused");
        assert_eq!(error.exit(), exit, "{error}");
        assert!(mesh::reasons(&error).contains(expected) && error.hint().is_some(), "{}", mesh::reasons(&error));
        assert_eq!(stage.runs().ids(), [], "nothing is left");
    };
    let stage = Stage::new(EDITS);
    let edit = |stage: &Stage| RunRequest { reach: Reach::Edit, ..stage.request() };
    check(&stage, edit(&stage), Exit::NotFound, "in no git repository").await;
    check(&stage, RunRequest { harness: "nothing".to_owned(), ..stage.request() }, Exit::NotFound, "no adapter").await;
    let nobody = RunRequest { report: vec!["nobody-at-all".to_owned()], ..stage.request() };
    check(&stage, nobody, Exit::NotFound, "nobody-at-all").await;
    let stage = stage.with_repository();
    std::fs::write(stage.project().join("old"), "changed\n").expect("written");
    check(&stage, edit(&stage), Exit::Held, "1 changed file,").await;
    let fork = RunRequest { start: Some(Start::Fork("s".to_owned())), ..stage.request() };
    let error = stage.run(fork).await.expect_err("it is refused");
    assert!(mesh::reasons(&error).contains("cannot copy a session"));
    assert_eq!(stage.runs().ids(), [], "nothing is left");
}

#[tokio::test]
async fn a_run_in_the_folder_itself_reserves_what_it_changes() {
    let stage = Stage::new(EDITS).with_repository();
    let here = |stage: &Stage| RunRequest { reach: Reach::Edit, place: WorkFolder::Here, ..stage.request() };
    std::fs::write(stage.project().join("dirty"), "before\n").expect("written");
    let report = stage.ran(here(&stage)).await;
    assert_eq!(report.changes.expect("a repository").written, ["new", "old"], "what was there before is not the run's");
    let alice = stage.open.mesh.identify(&stage.context.call(None)).await.expect("identified");
    let name = Some("alice".parse().expect("a name"));
    stage.open.mesh.register(&alice, Registration { name, ..Registration::default() }).await.expect("registered");
    let alice = stage.open.mesh.identify(&stage.context.call("alice".parse().ok())).await.expect("identified");
    let (repository, patterns) =
        crate::patterns::meant(&stage.open.mesh, &stage.project(), &["old".to_owned()]).expect("meant");
    let wanted = mesh::Reserve {
        repository,
        patterns,
        mode: mesh::reservations::Mode::Exclusive,
        ttl: mesh::reservations::Ttl::default(),
        reason: None,
        others: mesh::Others::Respect,
        own: mesh::Own::Keep,
    };
    stage.open.mesh.reserve(&alice, wanted).await.expect("reserved");
    let error = stage.run(here(&stage)).await.expect_err("refused");
    assert_eq!(error.exit(), Exit::Held);
    assert!(error.to_string().contains("alice holds `old`"), "{error}");
    let elsewhere = RunRequest { reserve: vec!["new".to_owned()], ..here(&stage) };
    assert!(stage.ran(elsewhere).await.verdict.ok);
}

#[tokio::test]
async fn a_run_is_an_agent_while_it_lives_and_reports_at_its_end() {
    let stage = Stage::new("echo session s-1; while [ ! -e go ]; do sleep 0.02; done; echo answer done");
    let alice = stage.open.mesh.identify(&stage.context.call(None)).await.expect("identified");
    let name: mesh::names::AgentName = "alice".parse().expect("a name");
    let wanted = Registration { name: Some(name.clone()), ..Registration::default() };
    stage.open.mesh.register(&alice, wanted).await.expect("registered");
    let alice = stage.open.mesh.identify(&stage.context.call(Some(name.clone()))).await.expect("identified");
    let worker: mesh::names::AgentName = "worker".parse().expect("a name");
    let request = RunRequest { name: Some(worker.clone()), report: vec!["alice".to_owned()], ..stage.request() };
    let meanwhile = async {
        loop {
            let seen = stage.open.mesh.agent(&worker).await.expect("asked");
            if seen.is_some_and(|seen| seen.presence == mesh::agents::Presence::Busy) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let draft = Draft { body: "are you there?".to_owned(), ..Draft::default() };
        stage.open.mesh.send(&alice, &["worker".to_owned()], draft).await.expect("sent");
        std::fs::write(stage.project().join("go"), "").expect("written");
    };
    let (report, ()) = tokio::join!(stage.ran(request), meanwhile);
    assert_eq!(report.mail.iter().map(|message| message.body.as_str()).collect::<Vec<_>>(), ["are you there?"]);
    let seen = stage.open.mesh.agent(&worker).await.expect("asked").expect("registered");
    assert_eq!(seen.presence, mesh::agents::Presence::Offline, "{}", seen.evidence);
    let mail = stage.open.mesh.fetch(&name, &Fetch { peek: true, ..Fetch::default() }).await.expect("mail");
    assert!(mail.messages[0].message.body.contains("ended: answered"), "{:?}", mail.messages);
    assert_eq!(mail.messages[0].message.from, worker);
}

#[tokio::test]
async fn a_run_whose_process_is_gone_is_ended_and_has_a_result() {
    let stage = Stage::new("echo session s-1; setsid sleep 300 & echo say hello; sleep 300");
    let begun = begin::begin(&stage.context, &stage.open, stage.request()).await.expect("begun");
    let (folder, id) = (begun.folder.clone(), begun.record.id);
    let mut stop = Stop::listen().expect("signals");
    let mut heard = Heard(Vec::new());
    {
        let work = supervise(&stage.context, &stage.open, begun, &mut stop, &mut heard);
        let started = async {
            while !std::fs::read_to_string(folder.of_attempt("output", 1)).is_ok_and(|said| said.contains("hello")) {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        // Dropping it closes the leash, as the system does when a process is killed.
        tokio::select! { _ = work => panic!("it goes on"), () = started => {} }
    }
    let mut record = folder.record().expect("a record");
    record.supervisor = dead();
    folder.keep(&record).expect("kept");
    while folder.stage(&record, stage.open.machine.as_ref()) == RunStage::Running {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    settle::settle(&stage.context, &stage.open, &stage.runs()).await;
    stage.nothing_is_left(&id.to_string());
    let end = folder.record().expect("a record").ended.expect("it has ended");
    assert_eq!((end.ending, end.session.as_deref()), (Ending::Stopped, Some("s-1")));
    let result: Value = serde_json::from_slice(&folder.read("result.json").expect("a result")).expect("JSON");
    assert_eq!(result["structured"]["events"][1]["text"], "hello");
    assert!(result["notes"].to_string().contains("was killed"));
}

#[tokio::test]
async fn a_run_of_another_namespace_is_left_alone_while_its_process_works_on_it() {
    let stage = Stage::new("echo answer done");
    let begun = begin::begin(&stage.context, &stage.open, stage.request()).await.expect("begun");
    let (mut folder, id) = (begun.folder.clone(), begun.record.id);
    let mut record = folder.record().expect("a record");
    let own = record.supervisor.space.expect("a place");
    let space = Some(ProcessSpace { namespace: own.namespace + 1, ..own });
    // Numbers that name living processes here.
    record.supervisor = Process { space, ..record.supervisor };
    folder.keep(&record).expect("kept");
    let settled = async || {
        settle::settle(&stage.context, &stage.open, &stage.runs()).await;
        stage.runs().load(id).expect("a run").1.ended
    };
    assert_eq!(settled().await, None, "its process works on it");
    // Its process ends.
    drop(begun);
    folder = stage.runs().folder(id);
    assert_eq!(folder.stage(&record, stage.open.machine.as_ref()), RunStage::Abandoned);
    let end = settled().await.expect("it has ended");
    assert!(!end.ok, "{end:?}");
}

#[tokio::test]
async fn a_run_starts_no_run_unless_the_user_says_so() {
    let stage = Stage::new("while [ ! -e go ]; do sleep 0.02; done; echo answer done");
    let begun = begin::begin(&stage.context, &stage.open, stage.request()).await.expect("begun");
    let id = begun.record.id.to_string();
    let mut below = stage.context.at(stage.context.workdir.clone());
    below.environment = Environment::from([("HOME", &*stage.folder.path().to_string_lossy()), (MARK, id.as_str())]);
    let evidence = permission::evidence(&below, &stage.open, &stage.runs()).await.expect("evidence");
    assert_eq!(evidence.parent.as_ref().map(|parent| parent.id), Some(begun.record.id));
    assert!(!evidence.is_user());
    let error = begin::begin(&below, &stage.open, stage.request()).await.err().expect("refused");
    assert_eq!(error.exit(), Exit::Refused);
    assert!(error.to_string().contains("runs may start runs to a depth of 1"), "{error}");
    assert_eq!(stage.runs().ids().len(), 1);
    std::fs::write(stage.project().join("go"), "").expect("written");
    let mut stop = Stop::listen().expect("signals");
    supervise(&stage.context, &stage.open, begun, &mut stop, &mut Heard(Vec::new())).await.expect("it ends");
    let evidence = permission::evidence(&below, &stage.open, &stage.runs()).await.expect("evidence");
    assert!(evidence.parent.is_none(), "a run that is over is nobody's parent");
}

#[tokio::test]
async fn a_budget_is_kept_by_what_a_run_says_that_it_spends_and_shared_with_those_below() {
    let stage = Stage::new("echo spent 200; sleep 300");
    let report = stage.ran(RunRequest { cost: Some(100), ..stage.request() }).await;
    assert_eq!((report.verdict.ending, report.verdict.ok), (Ending::Cost, false), "{:?}", report.verdict);
    let stage = Stage::new("echo spent 30; while [ ! -e go ]; do sleep 0.02; done; echo answer done");
    let settings = stage.folder.path().join(".config/relay-mesh");
    std::fs::create_dir_all(&settings).expect("made");
    std::fs::write(settings.join("runs.toml"), "depth = 2\n").expect("written");
    let allowed = Allowed::to_start(Starts::Runs, &stage.context.settings, &stage.context.environment).expect("read");
    let agent = "parent".parse().expect("a name");
    let allowance = Allowance { agent, harness: NAME.to_owned(), reach: Reach::Look, budget: None };
    allowed.allow(&allowance).expect("allowed");
    let name = "parent".parse().ok();
    let request = RunRequest { cost: Some(100), name, ..stage.request() };
    let root = begin::begin(&stage.context, &stage.open, request).await.expect("begun");
    let (id, folder) = (root.record.id, root.folder.clone());
    let (mut stop, mut heard) = (Stop::listen().expect("signals"), Heard(Vec::new()));
    let below = async {
        let record = loop {
            let record = folder.record().expect("a record");
            if record.spent.is_some() {
                break record;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        };
        let evidence = permission::Evidence { asker: Asker::User, parent: Some(record) };
        let begin = async |cost| {
            let request = RunRequest { cost, ..stage.request() };
            begin::begin_for(&stage.context, &stage.open, &evidence, request).await
        };
        let first = begin(Some(50)).await.unwrap_or_else(|error| panic!("{}", mesh::reasons(&error)));
        assert_eq!((first.record.depth, first.record.root, first.record.parent), (2, id, Some(id)));
        assert_eq!(first.record.task.cost, Some(50));
        let second = begin(None).await.unwrap_or_else(|error| panic!("{}", mesh::reasons(&error)));
        assert_eq!(second.record.task.cost, Some(20), "the root has spent 30, and the other may spend 50");
        let third = begin(None).await.err().expect("refused");
        assert!(third.to_string().contains("has no budget left"), "{third}");
        std::fs::write(stage.project().join("go"), "").expect("written");
    };
    let work = supervise(&stage.context, &stage.open, root, &mut stop, &mut heard);
    let (report, ()) = tokio::join!(work, below);
    assert!(report.expect("it ends").verdict.ok);
}

/// The binary that is the guard: the one beside this test.
#[test]
fn the_guard_is_the_binary_of_this_build() {
    let binary = super::supervise::binary().expect("a binary");
    assert!(Path::new(&binary).exists(), "{} is built with the tests of this package", binary.display());
}
