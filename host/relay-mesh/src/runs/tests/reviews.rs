//! Reviews whose process was killed: what was found stays, those who wait for it hear of it, and a pipeline goes on with
//! it.

use std::collections::BTreeSet;

use mesh::DryRun;
use mesh::ports::machine::Instant;
use mesh::reviews::{Finding, ReviewRecord, Step, StepKind, StepState, Subject};
use mesh::runs::RunId;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::pipelines::begin::{Begun, begin as begin_pipeline};
use crate::pipelines::work::Work;
use crate::reviews::stop::settle_all;
use crate::reviews::work::ReviewAudience;
use crate::reviews::{ReviewFolder, Reviews};
use crate::runs::settle::Settler;
use crate::server::settling::keep_settling;

const USER: permission::Evidence = permission::Evidence { asker: Asker::User, parent: None };

/// Nobody hears how it goes.
struct Unheard;

impl ReviewAudience for Unheard {
    fn says(&mut self, _: &str) {}
}

fn reviews(stage: &Stage) -> Reviews {
    Reviews::of(&stage.context.settings.dir.value)
}

/// A review whose process is gone.
fn abandoned(stage: &Stage, report: &[&str]) -> ReviewFolder {
    let record = ReviewRecord {
        id: stage.open.mesh.new_run_id(),
        by: None,
        asked_from: None,
        parent: None,
        top: stage.project(),
        subject: Subject::Uncommitted,
        reviewers: vec![NAME.to_owned()],
        verify: None,
        time: RunLimits::default().time,
        report: report.iter().map(|name| (*name).to_owned()).collect(),
        supervisor: dead(),
        started: stage.open.machine.now(),
        runs: Vec::new(),
        ended: None,
    };
    let folder = reviews(stage).create(record.id).expect("made");
    folder.keep(&record).expect("kept");
    folder
}

fn finding() -> Finding {
    let finding = json!({
        "rule": "off-by-one", "severity": "high", "title": "too far", "body": "b", "failure": "f", "file": "old",
        "start": 1, "end": 1, "suggestion": null, "by": [NAME], "anchor": "changed", "lines": null,
        "fingerprint": "0123456789", "verdict": null,
    });
    serde_json::from_value(finding).expect("a finding")
}

/// A pipeline in a worktree that has begun and done nothing.
pub(super) async fn begun_pipeline(stage: &Stage) -> Begun {
    let begun = begin_pipeline(&stage.context, &stage.open, &USER, pipeline_request(stage)).await;
    begun.unwrap_or_else(|error| panic!("{}", mesh::reasons(&error)))
}

#[tokio::test]
async fn what_was_found_stays_although_the_result_was_not_kept() {
    let stage = Stage::new(ANSWERS);
    let (folder, mut ended) = (abandoned(&stage, &[]), BTreeSet::<RunId>::new());
    folder.keep_findings(&[finding()]).expect("kept");
    settle_all(&stage.context, &stage.open, &mut ended, Settler::Server).await;
    assert_eq!(ended, BTreeSet::from([folder.id()]));
    assert_eq!(folder.findings().expect("there"), [finding()]);
    let end = folder.record().expect("a record").ended.expect("it has ended");
    assert_eq!((end.ok, end.findings), (false, 1));
    let result = folder.result().expect("a result");
    assert_eq!(result["findings"][0]["title"], "too far");
    assert!(result["notes"].to_string().contains("is not known"), "{result}");
}

#[tokio::test]
async fn the_server_reports_it_as_it_would_have_been_and_before_that_nobody_deletes_it() {
    let stage = Stage::new(ANSWERS);
    let alice = registered(&stage, "alice").await;
    let folder = abandoned(&stage, &["alice"]);
    folder.keep_findings(&[finding()]).expect("kept");
    let reviewers = json!([{"harness": "codex", "why": "it broke off"}, {"harness": "gemini-cli", "why": null}]);
    folder.keep_result(&json!({"ok": false, "reviewers": reviewers, "verify": null})).expect("kept");
    let deleted = || reviews(&stage).delete_old(Instant(u64::MAX), stage.open.machine.as_ref(), DryRun::No).count;
    assert_eq!(deleted(), 0);
    let ends = async {
        while folder.record().expect("a record").ended.is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let settling = keep_settling(&stage.context, &stage.open, CancellationToken::new());
    tokio::select! { () = settling => panic!("it goes on"), () = ends => {} }
    let mail = stage.open.mesh.fetch(&alice, &Fetch { peek: true, ..Fetch::default() }).await.expect("read");
    let bodies: Vec<_> = mail.messages.into_iter().map(|fetched| fetched.message.body).collect();
    let [body] = bodies.as_slice() else { panic!("one report: {bodies:?}") };
    assert!(body.contains("1 finding stands; codex failed: it broke off."), "{body}");
    assert_eq!(deleted(), 1);
}

#[tokio::test]
async fn a_pipeline_does_not_do_again_what_had_come_to_its_end() {
    let stage = Stage::new(ANSWERS).with_repository();
    let (mut begun, review) = (begun_pipeline(&stage).await, abandoned(&stage, &[]));
    review.keep_findings(&[]).expect("kept");
    review.keep_result(&json!({"ok": true})).expect("kept");
    let harnesses = || vec![NAME.to_owned()];
    let step = |kind, work, state| Step { kind, round: 1, harnesses: harnesses(), work, session: None, state };
    begun.record.steps = vec![
        step(StepKind::Implement, None, StepState::Done { open: 0 }),
        step(StepKind::Review, Some(review.id()), StepState::Running),
    ];
    std::fs::write(begun.folder.worktree().join("new"), "new\n").expect("written");
    let mut stop = Stop::listen().expect("signals");
    let mut work = Work {
        context: &stage.context,
        open: &stage.open,
        evidence: &USER,
        folder: &begun.folder,
        stop: &mut stop,
        audience: &mut Unheard,
    };
    // Another process is ending the review at the moment.
    let lock = std::fs::File::open(&review.files.root).expect("there");
    lock.lock().expect("free");
    let other = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        drop(lock);
    };
    let (result, ()) = tokio::join!(work.go_on(begun.record), other);
    let result = result.unwrap_or_else(|error| panic!("{}", mesh::reasons(&error)));
    assert_eq!((&result["ok"], &result["reviewed"]), (&json!(true), &json!(true)), "{result}");
    assert_eq!(reviews(&stage).ids(), [review.id()], "there is no second review");
}
