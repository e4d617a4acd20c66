//! Drivers of agents that are cut off half-way, by a fault or by the end of their process: nobody who waits for
//! something waits in vain.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mesh::asks::AskedBy;
use mesh::driven::{DrivenRecord, GivenPrompt, OwedReply, OwedWords, PromptContent, RequestKind, Turn, WantedAgent};
use mesh::messages::Draft;
use mesh::names::{AgentName, MessageId};
use mesh::ports::driver::{Operation, PromptStatus, Question, TurnEnd, UserAnswer};
use mesh::ports::machine::{Instant, Machine as _, Process};
use mesh::sessions::Principal;
use mesh::tool_threads::{ThreadPlace, ThreadRow, ThreadStatus, ToolThread};
use mesh::{Fetch, Mesh, Registration};
use store::Position;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::agent::{self, Driving, RunningTurn, Step};
use super::deltas::Deltas;
use super::ending::{self, Dismissal, Summary};
use super::host::{self, Host};
use super::program::Programs;
use super::{DrivenFolder, begin, permission};
use crate::compose::Open;
use crate::context::Context;
use crate::runs::tests::Stage;

/// Longer than any of these tests.
const FAR: Duration = Duration::from_secs(3_600);

fn name(text: &str) -> AgentName {
    text.parse().expect("a name")
}

/// A process that drives agents of a harness whose program is never started.
struct Scene {
    _folder: tempfile::TempDir,
    project: PathBuf,
    host: Arc<Host>,
}

impl Scene {
    fn new() -> Scene {
        let stage = Stage::new("exit 9");
        let project = stage.project();
        let Stage { folder, context, open } = stage;
        Scene { _folder: folder, project, host: process(context, open) }
    }

    fn mesh(&self) -> &Mesh {
        &self.host.open.mesh
    }

    fn data(&self) -> &Path {
        &self.host.context.settings.dir.value
    }

    async fn joins(&self, wanted: &str) -> Principal {
        let user = self.mesh().identify(&self.host.context.call(None)).await.expect("identified");
        let registration = Registration { name: Some(name(wanted)), ..Registration::default() };
        self.mesh().register(&user, registration).await.expect("registered");
        self.mesh().identify(&self.host.context.call(Some(name(wanted)))).await.expect("identified")
    }

    fn wanted(&self, called: &str, by: Option<&str>) -> WantedAgent {
        WantedAgent {
            harness: "scripted".to_owned(),
            name: Some(name(called)),
            by: by.map(name),
            folder: self.project.clone(),
            ..WantedAgent::default()
        }
    }

    async fn begins(&self, called: &str, by: Option<&str>) -> DrivenRecord {
        let (id, wanted) = (self.mesh().new_driven_id(), self.wanted(called, by));
        let begun = begin::begin(&self.host.context, &self.host.open, id, &wanted).await;
        begun.unwrap_or_else(|error| panic!("{}", mesh::reasons(&error))).record
    }

    /// An agent as a process has it that begins to drive it, or goes on with it.
    async fn drives(&self, record: &DrivenRecord) -> Driving {
        let driving = Driving::of(Arc::clone(&self.host), record.clone()).await;
        let mut driving = driving.unwrap_or_else(|error| panic!("{}", mesh::reasons(&error)));
        // No program is started meanwhile.
        driving.rest.until = Some(tokio::time::Instant::now() + FAR);
        driving
    }

    async fn writes(&self, from: &Principal, to: &str) -> MessageId {
        let draft = Draft { body: "what is left?".to_owned(), ..Draft::default() };
        self.mesh().send(from, &[to.to_owned()], draft).await.expect("sent").id
    }

    async fn mail(&self, of: &str) -> Vec<String> {
        let fetched = self.mesh().fetch(&name(of), &Fetch { peek: true, ..Fetch::default() }).await.expect("mail");
        fetched.messages.into_iter().map(|fetched| fetched.message.body).collect()
    }

    async fn now(&self, record: &DrivenRecord) -> DrivenRecord {
        self.mesh().driven(record.id).await.expect("readable").expect("there")
    }

    async fn is_told(&self, kind: &str) -> bool {
        self.times_told(kind).await > 0
    }

    async fn times_told(&self, kind: &str) -> usize {
        let stretch = self.mesh().event_log(Position::START).await.expect("readable");
        stretch.events.iter().filter(|event| event.kind == kind).count()
    }

    /// From now on the record can be neither read nor changed.
    fn damages(&self, record: &DrivenRecord) {
        let file = self.data().join("driven").join(format!("{}.json", record.id));
        assert!(file.exists(), "{}", file.display());
        std::fs::write(file, "torn").expect("written");
    }

    /// From now on the record of its session can be neither read nor changed.
    fn damages_session(&self, record: &DrivenRecord) {
        let session = agent::session_of(record);
        let folder = self.data().join("sessions").join(&session.harness);
        assert!(folder.is_dir(), "{}", folder.display());
        std::fs::write(folder.join(format!("{}.json", session.id)), "torn").expect("written");
    }

    /// A thread of a tool whose record can be changed no more, as for a process that is killed right before that.
    async fn thread(&self) -> Driving {
        let record = self.begins("helper", Some("lead")).await;
        let mut driving = self.drives(&record).await;
        driving.record.session = Some("t-1".to_owned());
        driving.record.spent.turns = 1;
        driving.record.tool = Some(ToolThread {
            identity: "helper".to_owned(),
            team: None,
            place: ThreadPlace::default(),
            tag: None,
            role: None,
            instructions: None,
            began: self.host.open.machine.now(),
            continues: None,
            summary: None,
            server: Process { pid: u32::MAX, start: 1, space: None },
            beat: Instant(0),
            last_active: self.host.open.machine.now(),
            answers: Vec::new(),
        });
        self.damages(&record);
        driving
    }

    async fn row(&self) -> ThreadRow {
        self.mesh().thread("t-1").await.expect("readable").expect("there")
    }
}

fn process(context: Context, open: Open) -> Arc<Host> {
    Arc::new(Host {
        context,
        open: Arc::new(open),
        deltas: Deltas::new(),
        programs: Programs::default(),
        most_on_a_program: 1,
        orders: watch::Sender::new(()),
    })
}

fn owed(words: &str, message: MessageId) -> OwedWords {
    OwedWords {
        turn: "p-1".to_owned(),
        words: words.to_owned(),
        may_direct: true,
        reply: Some(OwedReply { to: name("lead"), message, inbox_end: None }),
        carried_out: 0,
        not_done: Vec::new(),
        begins: None,
    }
}

/// A turn that a message of `lead` has begun.
fn turn(message: MessageId) -> RunningTurn {
    let mut turn = Turn::of("p-1".to_owned(), vec![(message, name("lead"))]);
    turn.said("Done.");
    RunningTurn::of(turn)
}

/// The second time as after a process that was killed before it could note that all was done.
#[tokio::test]
async fn what_the_end_of_a_turn_leaves_to_be_done_is_done_once_by_the_next_process() {
    let scene = Scene::new();
    let lead = scene.joins("lead").await;
    let record = scene.begins("helper", Some("lead")).await;
    let words = "Nothing is left.\n->relay:lead hello";
    let owed = owed(words, scene.writes(&lead, "helper").await);
    for _ in 0..2 {
        let kept = scene.mesh().change_driven(record.id, |record| record.owed = vec![owed.clone()]).await;
        kept.expect("stored");
        let mut driving = scene.drives(&record).await;
        driving.step().await.expect("it goes on");
        let now = scene.now(&record).await;
        assert!(now.owed.is_empty() && now.reported, "{:?}", now.owed);
        assert_eq!(scene.mail("lead").await, ["hello", words]);
    }
}

#[tokio::test]
async fn an_agent_that_final_words_want_is_begun_once_although_the_process_is_killed_after_it() {
    let scene = Scene::new();
    let lead = scene.joins("lead").await;
    let record = scene.begins("helper", Some("lead")).await;
    let begun = scene.begins("next", Some("helper")).await;
    let words = "KIND: spawn\nNAME: next\nCLI: scripted\n\nGo on.";
    let owed = OwedWords { begins: Some(begun.id), ..owed(words, scene.writes(&lead, "helper").await) };
    scene.mesh().change_driven(record.id, |record| record.owed = vec![owed.clone()]).await.expect("stored");
    scene.drives(&record).await.step().await.expect("it goes on");
    assert!(scene.now(&record).await.owed.is_empty());
    let told = scene.mail("helper").await;
    assert!(told.iter().all(|body| body == "what is left?"), "nothing is told to be not done: {told:?}");
    assert_eq!(scene.mesh().driven_agents().await.expect("readable").len(), 2);
}

#[tokio::test]
async fn a_fault_at_the_end_of_a_turn_costs_nobody_the_reply_and_its_end_is_told_at_once() {
    let scene = Scene::new();
    let lead = scene.joins("lead").await;
    let (root, record) = (scene.begins("top", None).await, scene.begins("helper", Some("lead")).await);
    scene.mesh().change_driven(record.id, |record| record.root = root.id).await.expect("stored");
    let message = scene.writes(&lead, "helper").await;
    let mut driving = scene.drives(&record).await;
    scene.damages(&root);
    driving.turn = Some(turn(message));
    driving.turn_ended(TurnEnd::Completed).await.expect("it goes on");
    assert_eq!(scene.mail("lead").await, ["Done."]);
    assert!(scene.is_told("turn-completed").await);
    assert!(scene.now(&record).await.owed.is_empty());
}

/// The change that would make the ledger forget the turn fails, as it does not come about if the process is killed.
#[tokio::test]
async fn the_end_of_a_turn_and_that_it_was_cut_off_are_told_before_the_ledger_forgets_it() {
    let scene = Scene::new();
    let lead = scene.joins("lead").await;
    let record = scene.begins("helper", Some("lead")).await;
    let message = scene.writes(&lead, "helper").await;
    let mut driving = scene.drives(&record).await;
    scene.damages(&record);
    driving.turn = Some(turn(message));
    assert!(driving.turn_ended(TurnEnd::Completed).await.is_err());
    assert!(scene.is_told("turn-completed").await);
    let content = PromptContent::Mail { messages: vec![message], lease: "lease".to_owned() };
    let at = scene.host.open.machine.now();
    let given = GivenPrompt { prompt: "p-1".to_owned(), content, at, status: Some(PromptStatus::Shown) };
    assert!(driving.shown(&given, PromptStatus::Answered, true, "route").await.is_err());
    let mail = scene.mail("lead").await;
    assert!(mail.len() == 1 && mail[0].contains("its turn was cut off by the end of its program"), "{mail:?}");
}

#[tokio::test]
async fn the_spawner_of_an_agent_that_cannot_be_driven_is_told() {
    let scene = Scene::new();
    scene.joins("lead").await;
    let record = scene.begins("helper", Some("lead")).await;
    // The adapters of a folder in which that of the agent is missing.
    let context = scene.host.context.at(scene.project.clone());
    let open = context.open().expect("a mesh");
    let (_changed, changes) = watch::channel(());
    host::drive(process(context, open), record.clone(), changes, CancellationToken::new()).await;
    let mail = scene.mail("lead").await;
    assert!(mail.len() == 1 && mail[0].starts_with("The agent helper of scripted has ended: "), "{mail:?}");
    assert!(scene.now(&record).await.ended.is_some_and(|end| !end.meant));
}

#[tokio::test]
async fn the_row_of_a_thread_tells_how_it_ended_before_its_record_says_that_it_has() {
    let scene = Scene::new();
    scene.joins("lead").await;
    let mut died = scene.thread().await;
    assert!(died.tool_died("its program ended").await.is_err());
    let row = scene.row().await;
    assert_eq!((row.status, row.died.as_deref()), (ThreadStatus::Idle, Some("its program ended")));
    assert!(scene.is_told("ended").await);

    let scene = Scene::new();
    scene.joins("lead").await;
    let mut forsaken = scene.thread().await;
    assert!(forsaken.leave_tool().await.is_err());
    let row = scene.row().await;
    assert_eq!((row.status, row.died), (ThreadStatus::Interrupted, None));
}

#[tokio::test]
async fn the_row_of_a_thread_tells_of_its_end_although_its_agent_cannot_join() {
    let scene = Scene::new();
    scene.joins("lead").await;
    let thread = scene.thread().await;
    scene.damages_session(&thread.record);
    assert!(ending::ends_undriven(&scene.host, &thread.record, "it cannot be driven").await.is_err());
    assert_eq!(scene.row().await.status, ThreadStatus::Idle);
}

#[tokio::test]
async fn an_end_that_is_tried_again_is_told_once() {
    let scene = Scene::new();
    let record = scene.begins("helper", None).await;
    let mut driving = scene.drives(&record).await;
    scene.damages(&record);
    for _ in 0..2 {
        assert!(driving.end("it was dismissed", true, None).await.is_err());
    }
    assert_eq!(scene.times_told("ended").await, 1);
}

#[tokio::test]
async fn a_damaged_record_of_its_session_keeps_no_agent_from_ending() {
    let scene = Scene::new();
    let record = scene.begins("helper", None).await;
    let mut driving = scene.drives(&record).await;
    scene.damages_session(&record);
    let step = driving.end("it was dismissed", true, None).await;
    assert!(matches!(step, Ok(Step::Over)), "{step:?}");
    assert!(scene.now(&record).await.ended.is_some());
}

#[tokio::test]
async fn a_dismissal_outlasts_a_fault_at_the_end() {
    let scene = Scene::new();
    let record = scene.begins("helper", None).await;
    let dismiss = RequestKind::Dismiss { summary: true };
    let (record, request) = scene.mesh().ask_driven(&record.id.to_string(), dismiss, None).await.expect("asked");
    let mut driving = scene.drives(&record).await;
    let until = tokio::time::Instant::now() + FAR;
    let summary = Summary::Done(Some("All is done.".to_owned()));
    driving.dismissing = Some(Dismissal { request: request.id, summary, until });
    scene.damages(&record);
    assert!(driving.take_dismissal().await.is_err());
    let summary = driving.dismissing.as_ref().map(|dismissal| dismissal.summary.clone());
    assert_eq!(summary, Some(Summary::Done(Some("All is done.".to_owned()))), "it is asked for none once more");
}

#[tokio::test]
async fn an_agent_that_its_asker_is_told_of_is_driven_although_the_user_had_stopped_all() {
    let scene = Scene::new();
    scene.joins("lead").await;
    let by = AskedBy { agent: Some(name("lead")), ..AskedBy::default() };
    let wanted = scene.wanted("helper", Some("lead"));
    let ask = scene.mesh().ask_about_agent(by, wanted, "it is not allowed yet".to_owned()).await.expect("asked");
    scene.mesh().want_driving(false).await.expect("noted");
    scene.mesh().answer_ask(ask.id, UserAnswer::Allow, "here").await.expect("answered");
    let begun = permission::begin_agreed(&scene.host.context, &scene.host.open).await;
    let begun = begun.unwrap_or_else(|error| panic!("{}", mesh::reasons(&error)));
    assert!(begun.len() == 1 && begun[0].outcome.is_ok(), "{begun:?}");
    assert!(scene.mail("lead").await[0].contains("the agent `helper` is here"));
    assert!(scene.mesh().is_driving_wanted().await.expect("readable"));
}

#[tokio::test]
async fn an_asker_that_cannot_be_told_keeps_no_other_one_from_its_agent() {
    let scene = Scene::new();
    for asker in ["lead", "other"] {
        scene.joins(asker).await;
        let by = AskedBy { agent: Some(name(asker)), ..AskedBy::default() };
        let wanted = scene.wanted(&format!("{asker}-helper"), Some(asker));
        let ask = scene.mesh().ask_about_agent(by, wanted, "it is not allowed yet".to_owned()).await.expect("asked");
        scene.mesh().answer_ask(ask.id, UserAnswer::Allow, "here").await.expect("answered");
    }
    let file = scene.data().join("agents/lead/meta.json");
    assert!(file.exists(), "{}", file.display());
    std::fs::write(file, "torn").expect("written");
    let begun = permission::begin_agreed(&scene.host.context, &scene.host.open).await;
    let begun = begun.unwrap_or_else(|error| panic!("{}", mesh::reasons(&error)));
    assert_eq!(begun.len(), 2, "{begun:?}");
    assert!(!scene.mail("other").await.is_empty());
}

#[tokio::test]
async fn who_follows_an_agent_finds_the_question_that_it_asks() {
    let scene = Scene::new();
    let record = scene.begins("helper", None).await;
    let transcript = DrivenFolder::of(scene.data(), record.id).transcript();
    let is_followed = move || std::fs::read_to_string(&transcript).is_ok_and(|lines| lines.contains("\"asks\""));
    let mut driving = scene.drives(&record).await;
    let question = Question {
        id: "q-1".to_owned(),
        operation: Operation::Command("make".to_owned()),
        reason: None,
        choices: Vec::new(),
        kept: None,
    };
    let questions = scene.data().join("asks");
    // As a user who follows would look: right when the transcript tells of it.
    let looks = std::thread::spawn(move || {
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while !is_followed() {
            assert!(std::time::Instant::now() < until, "the transcript tells of no question");
            std::thread::yield_now();
        }
        std::fs::read_dir(&questions).is_ok_and(|mut files| files.next().is_some())
    });
    driving.asked(question).await.expect("asked");
    assert!(looks.join().expect("looked"), "the question is there");
    assert_eq!(scene.mesh().asks().await.expect("readable").len(), 1);
}
