//! A cleanup keeps nobody from beginning a run, and decides again about what it deletes.

use std::time::Duration;

use mesh::ports::machine::Instant;
use mesh::runs::{RunEnd, RunRecord};
use mesh::{DryRun, Scope};
use tokio::time::timeout;

use super::*;
use crate::driven::{self, DrivenFolder};
use crate::runs::RunFolder;

/// How long something is watched that must not happen.
const A_WHILE: Duration = Duration::from_millis(100);
/// How long something may take that must.
const LONG: Duration = Duration::from_secs(30);
const LATER: Instant = Instant(u64::MAX);

/// A run that ended in 1970, and the files of it.
async fn old(stage: &Stage, reach: Reach) -> (RunFolder, RunRecord) {
    let record = stage.ran(RunRequest { reach, ..stage.request() }).await.record;
    let end = RunEnd { at: Instant(0), ..record.ended.clone().expect("it has ended") };
    let (folder, record) = (stage.runs().folder(record.id), RunRecord { ended: Some(end), ..record });
    folder.keep(&record).expect("kept");
    (folder, record)
}

#[tokio::test]
async fn runs_that_stay_are_looked_at_without_the_lock_of_all_runs() {
    let stage = Stage::new(EDITS).with_repository();
    let (_, record) = old(&stage, Reach::Edit).await;
    let mut settings = stage.context.settings.clone();
    settings.keep.value = 0;
    let _held = stage.runs().alone().await.expect("the lock");
    let cleans = crate::retention::clean_up(&stage.open, &settings, (Scope::Everything, DryRun::No, None));
    let cleaned = timeout(LONG, cleans).await.expect("it waits for nobody").expect("cleaned up");
    assert_eq!((cleaned.runs.runs.count, cleaned.runs.kept.len()), (0, 1));
    assert!(stage.runs().folder(record.id).worktree().join("new").exists());
}

#[tokio::test]
async fn what_goes_is_looked_at_again_with_the_lock() {
    let stage = Stage::new(ANSWERS);
    let (runs, git) = (stage.runs(), changes::git(&stage.context));
    let (folder, record) = old(&stage, Reach::Look).await;
    let held = runs.alone().await.expect("the lock");
    let mut deletes = Box::pin(retention::delete_old(&runs, &git, (LATER, record.started), DryRun::No));
    assert!(timeout(A_WHILE, &mut deletes).await.is_err(), "another process may be applying it");
    // Meanwhile it has become one that counts.
    folder.keep(&RunRecord { by: "bob".parse().ok(), ..record }).expect("kept");
    drop(held);
    let deleted = timeout(LONG, deletes).await.expect("it goes on").expect("locked");
    assert_eq!((deleted.runs.count, runs.ids()), (0, vec![folder.id]));
}

#[tokio::test]
async fn what_cannot_be_read_stays() {
    let stage = Stage::new(ANSWERS);
    let (runs, git) = (stage.runs(), changes::git(&stage.context));
    let (folder, _) = old(&stage, Reach::Look).await;
    folder.write("record.json", b"{").expect("written");
    let deleted = retention::delete_old(&runs, &git, (LATER, LATER), DryRun::No).await.expect("locked");
    assert_eq!((deleted.runs.count, deleted.kept.len(), runs.ids().len()), (0, 0, 1));
}

/// An agent that its user has agreed to has the id of the question, which is old: its folder comes before its record.
#[tokio::test]
async fn the_folder_of_a_driven_agent_stays_while_one_is_being_begun() {
    let stage = Stage::new(ANSWERS);
    let (data, git) = (&stage.context.settings.dir.value, changes::git(&stage.context));
    let folder = DrivenFolder::of(data, "01JD8Z3K5V0000000000000000".parse().expect("an id"));
    folder.create().expect("made");
    let held = DrivenFolder::alone(data).await.expect("the lock");
    let mut kept = Vec::new();
    let early = driven::folder::clean_up(data, &stage.open, &git, (DryRun::No, &mut kept));
    assert!(timeout(A_WHILE, early).await.is_err() && folder.root.exists());
    drop(held);
    let late = driven::folder::clean_up(data, &stage.open, &git, (DryRun::No, &mut kept));
    let deleted = timeout(LONG, late).await.expect("it goes on").expect("cleaned up");
    assert_eq!((deleted.count, folder.root.exists(), kept), (1, false, Vec::new()));
}
