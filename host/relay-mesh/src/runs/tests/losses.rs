//! What a run must not lose: work that no patch carries, its end, its budget, its turn.

use mesh::runs::RunRecord;

use super::*;
use crate::runs::RunFolder;
use crate::runs::settle::Settler;

/// Makes a repository with a commit in its worktree.
const NESTS: &str = "PATH=$PATH:/usr/local/bin; echo two > old; mkdir inner; cd inner; git init --quiet .; \
    echo x > file; git add .; git -c user.name=a -c user.email=a@example.org commit --quiet -m inner; echo answer done";

#[tokio::test]
async fn a_worktree_with_a_repository_of_its_own_stays_when_its_run_is_applied() {
    let stage = Stage::new(NESTS).with_repository();
    let report = stage.ran(RunRequest { reach: Reach::Edit, ..stage.request() }).await;
    let told = |note: &String| note.contains("stays: it holds the repository `inner`");
    assert!(report.notes.iter().any(told), "{:?}", report.notes);
    let git = changes::git(&stage.context);
    let (workplace, inner) = (&report.record.workplace, report.record.task.folder.join("inner/file"));
    let stays = changes::remove_applied(&git, workplace).await;
    assert!(stays.as_ref().is_some_and(told), "{stays:?}");
    assert!(!changes::remove_if_clean(&git, workplace).await);
    assert!(inner.exists());
    std::fs::remove_dir_all(report.record.task.folder.join("inner")).expect("removed");
    assert_eq!(changes::remove_applied(&git, workplace).await, None);
    assert!(!report.record.task.folder.exists());
}

#[tokio::test]
async fn what_git_cannot_add_is_told_and_keeps_the_worktree() {
    let script =
        "PATH=$PATH:/usr/local/bin; echo two > old; git init --quiet empty; echo x > empty/file; echo answer done";
    let stage = Stage::new(script).with_repository();
    let report = stage.ran(RunRequest { reach: Reach::Edit, ..stage.request() }).await;
    assert_eq!(report.changes.expect("a repository").written, ["old"]);
    assert!(report.notes.iter().any(|note| note.contains("git could not add `empty`")), "{:?}", report.notes);
    let (folder, git) = (stage.runs().folder(report.record.id), changes::git(&stage.context));
    let patch = changes::kept_patch(&report.record, &folder).expect("it could be told");
    assert!(!changes::is_as_it_ended(&git, &report.record, &folder, &patch).await, "the patch lacks something");
    std::fs::remove_file(folder.root.join(changes::PATCH)).expect("there");
    assert_eq!(changes::kept_patch(&report.record, &folder), None, "which is not an empty one");
    let untracked = mesh::runs::RunRecord { before: None, ..report.record };
    assert_eq!(changes::kept_patch(&untracked, &folder), Some(Vec::new()));
}

/// On one worker, a task that blocked would keep the other from giving the lock back.
#[tokio::test]
async fn the_lock_of_all_runs_is_waited_for_without_keeping_its_holder_from_going_on() {
    let stage = Stage::new(ANSWERS);
    let runs = stage.runs();
    let held = runs.alone().await.expect("the lock");
    let other = tokio::spawn({
        let runs = runs.clone();
        async move { runs.alone().await.is_ok() }
    });
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    assert!(!other.is_finished());
    drop(held);
    assert!(other.await.expect("it goes on"));
}

#[tokio::test]
async fn a_run_that_could_not_be_brought_to_its_end_is_concluded_by_the_next_command() {
    let stage = Stage::new(ANSWERS);
    let begun = begin::begin(&stage.context, &stage.open, stage.request()).await.expect("begun");
    let folder = stage.runs().folder(begun.record.id);
    // Its result has no place, as on a full disk.
    let taken = folder.root.join("result.json");
    std::fs::create_dir(&taken).expect("made");
    let mut stop = Stop::listen().expect("signals");
    let ended = supervise(&stage.context, &stage.open, begun, &mut stop, &mut Heard(Vec::new())).await;
    assert_eq!(ended.expect_err("no place").exit(), Exit::Store);
    let record = folder.record().expect("a record");
    // The process that its record names lives: this one.
    assert_eq!(folder.stage(&record, stage.open.machine.as_ref()), RunStage::Abandoned);
    settle::settle(&stage.context, &stage.open, &stage.runs()).await;
    assert_eq!(folder.record().expect("a record").ended, None, "there is still no place");
    std::fs::remove_dir(&taken).expect("removed");
    settle::settle(&stage.context, &stage.open, &stage.runs()).await;
    let record = folder.record().expect("a record");
    assert_eq!(record.ended.as_ref().map(|end| end.ending), Some(Ending::Answered));
    assert_eq!(folder.stage(&record, stage.open.machine.as_ref()), RunStage::Ended);
    let result = String::from_utf8(folder.read("result.json").expect("a result")).expect("text");
    assert!(result.contains("could not bring it to its end") && !result.contains("was killed"), "{result}");
}

#[tokio::test]
async fn a_run_is_reported_before_it_has_ended_and_once() {
    // Once its session is noted, its record is kept at its end alone.
    let taken = "for record in ../data/runs/*/record.json; do \
        until grep -q '\"session\":\"s-1\"' $record; do sleep 0.02; done; \
        mv $record $record.old; mkdir $record; done";
    let stage = Stage::new(&format!("cat >/dev/null; echo session s-1; {taken}; echo answer done"));
    let alice = registered(&stage, "alice").await;
    let request = RunRequest { report: vec!["alice".to_owned()], ..stage.request() };
    let begun = begin::begin(&stage.context, &stage.open, request).await.expect("begun");
    let (folder, mut stop) = (stage.runs().folder(begun.record.id), Stop::listen().expect("signals"));
    let ended = supervise(&stage.context, &stage.open, begun, &mut stop, &mut Heard(Vec::new())).await;
    assert_eq!(ended.expect_err("no place for its record").exit(), Exit::Store);
    let reports = async || {
        let ask = Fetch { peek: true, ..Fetch::default() };
        let fetched = stage.open.mesh.fetch(&alice, &ask).await.expect("read");
        fetched.messages.into_iter().map(|fetched| fetched.message.subject).collect::<Vec<_>>()
    };
    let one = [format!("run {}: answered", folder.id)];
    assert_eq!(reports().await, one);
    let record = folder.root.join("record.json");
    std::fs::remove_dir(&record).expect("removed");
    std::fs::rename(folder.root.join("record.json.old"), &record).expect("put back");
    settle::settle(&stage.context, &stage.open, &stage.runs()).await;
    assert!(folder.record().expect("a record").ended.is_some());
    assert_eq!(reports().await, one);
}

/// Concludes a run once more, as if its process had been killed before it could say that the run had ended.
async fn concluded_again(stage: &Stage, record: RunRecord, report: &[&str]) -> RunRecord {
    let folder = stage.runs().folder(record.id);
    let report = report.iter().map(|name| (*name).to_owned()).collect();
    folder.keep(&RunRecord { ended: None, supervisor: dead(), report, ..record }).expect("kept");
    let marks = stage.context.settings.dir.value.join("runs/live");
    std::fs::write(marks.join(folder.id.to_string()), "").expect("written");
    settle::settle(&stage.context, &stage.open, &stage.runs()).await;
    folder.record().expect("a record")
}

#[tokio::test]
async fn a_run_that_is_concluded_again_ended_as_it_was_told() {
    let stage = Stage::new("echo spent 200; sleep 300");
    let report = stage.ran(RunRequest { cost: Some(100), ..stage.request() }).await;
    let ended = concluded_again(&stage, report.record, &[]).await.ended.expect("it has ended");
    assert_eq!((ended.ending, ended.why), (Ending::Cost, report.verdict.why));
}

#[tokio::test]
async fn each_recipient_gets_the_report_of_a_run_that_is_concluded_again_in_other_words() {
    let stage = Stage::new(ANSWERS);
    let (alice, bob) = (registered(&stage, "alice").await, registered(&stage, "bob").await);
    let record = stage.ran(RunRequest { report: vec!["alice".to_owned()], ..stage.request() }).await.record;
    let id = record.id;
    // What it answered cannot be told any more.
    std::fs::remove_file(stage.runs().folder(id).of_attempt("output", 1)).expect("there");
    let ended = concluded_again(&stage, record, &["alice", "bob"]).await.ended.expect("it has ended");
    assert_eq!(ended.ending, Ending::BrokeOff);
    for (agent, said) in [(alice, "answered"), (bob, "broke-off")] {
        let mail = stage.open.mesh.fetch(&agent, &Fetch { peek: true, ..Fetch::default() }).await.expect("read");
        let subjects: Vec<_> = mail.messages.into_iter().map(|fetched| fetched.message.subject).collect();
        assert_eq!(subjects, [format!("run {id}: {said}")], "{agent}");
    }
}

#[tokio::test]
async fn a_server_leaves_to_the_user_what_it_cannot_tell() {
    type Hide = fn(&Stage, &mut RunRecord);
    let hidden: [(&str, Hide); 3] = [
        ("its process, in another namespace", |stage, record| {
            let own = stage.open.machine.this_process().space.expect("a place");
            record.supervisor.space = Some(ProcessSpace { namespace: own.namespace + 1, ..own });
        }),
        ("its adapter", |_, record| record.harness = "elsewhere".to_owned()),
        ("its repository", |stage, _| {
            std::fs::rename(stage.project().join(".git"), stage.project().join("away")).expect("moved");
        }),
    ];
    for (what, hide) in hidden {
        let stage = Stage::new(EDITS).with_repository();
        let report = stage.ran(RunRequest { reach: Reach::Edit, ..stage.request() }).await;
        let folder = stage.runs().folder(report.record.id);
        let mut record = RunRecord { ended: None, supervisor: dead(), ..report.record };
        hide(&stage, &mut record);
        folder.keep(&record).expect("kept");
        let marks = stage.context.settings.dir.value.join("runs/live");
        std::fs::write(marks.join(folder.id.to_string()), "").expect("written");
        for by in [Settler::Server, Settler::Cleanup, Settler::Command] {
            settle::settle_runs(&stage.context, &stage.open, &stage.runs(), by).await;
            let ended = folder.record().expect("a record").ended.is_some();
            assert_eq!(ended, by == Settler::Command, "{what}: {by:?}");
        }
    }
}

#[tokio::test]
async fn a_run_that_a_process_has_taken_over_since_it_was_looked_at_is_left_alone() {
    let stage = Stage::new(ANSWERS);
    let begun = begin::begin(&stage.context, &stage.open, stage.request()).await.expect("begun");
    let settled = settle::settle_one(&stage.context, &stage.open, &begun.folder, Settler::Command).await;
    settled.expect("nothing to do");
    assert_eq!(begun.folder.record().expect("a record").ended, None);
}

/// Says that the process of a run is gone, and returns once its guard is.
async fn leave_alone(stage: &Stage, folder: &RunFolder) {
    let record = RunRecord { supervisor: dead(), ..folder.record().expect("a record") };
    folder.keep(&record).expect("kept");
    while folder.stage(&record, stage.open.machine.as_ref()) == RunStage::Running {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_run_whose_harness_named_its_session_is_concluded_later_as_the_agent_that_it_was() {
    let stage = Stage::new("echo session s-1; sleep 300");
    let worker: AgentName = "worker".parse().expect("a name");
    let request = RunRequest { name: Some(worker.clone()), ..stage.request() };
    let begun = begin::begin(&stage.context, &stage.open, request).await.expect("begun");
    let folder = begun.folder.clone();
    let (mut stop, mut heard) = (Stop::listen().expect("signals"), Heard(Vec::new()));
    {
        let work = supervise(&stage.context, &stage.open, begun, &mut stop, &mut heard);
        let is_named = async {
            while folder.record().expect("a record").session.is_none() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        // Dropping it closes the leash, as the system does when a process is killed.
        tokio::select! { _ = work => panic!("it goes on"), () = is_named => {} }
    }
    let nobody = stage.open.mesh.identify(&stage.context.call(None)).await.expect("identified");
    let draft = Draft { body: "are you there?".to_owned(), ..Draft::default() };
    stage.open.mesh.send(&nobody, &["worker".to_owned()], draft).await.expect("sent");
    leave_alone(&stage, &folder).await;
    settle::settle(&stage.context, &stage.open, &stage.runs()).await;
    let record = folder.record().expect("a record");
    assert_eq!((record.ended.is_some(), record.agent), (true, Some(worker)));
    let result: Value = serde_json::from_slice(&folder.read("result.json").expect("a result")).expect("JSON");
    assert!(result["mail"].to_string().contains("are you there?"), "{result}");
}

#[tokio::test]
async fn the_second_turn_for_the_shape_of_an_answer_has_what_the_first_left() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    for (fresh, ending, attempts, output) in [
        ("echo session s; echo spent 40; echo answer one", Ending::Answered, 2, Some(json!({"n": 60}))),
        ("echo session s; echo spent 100; echo answer one", Ending::Shape, 1, None),
    ] {
        let stage = Stage::with(fresh, "echo session s; echo \"answer {\\\"n\\\": $COST}\"", &[]);
        let request = RunRequest { schema: Some(schema.clone()), cost: Some(100), ..stage.request() };
        let report = stage.ran(request).await;
        assert_eq!((report.verdict.ending, report.record.attempts), (ending, attempts), "{:?}", report.verdict);
        assert_eq!(report.verdict.output, output);
    }
}
