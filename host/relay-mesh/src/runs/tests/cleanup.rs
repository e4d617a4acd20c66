//! A cleanup keeps nobody from beginning a run, and decides again about what it deletes.

use std::time::Duration;

use mesh::ports::machine::Instant;
use mesh::reviews::PipelineRecord;
use mesh::runs::{RunEnd, RunRecord};
use mesh::{DryRun, Scope};
use tokio::time::timeout;

use super::reviews::begun_pipeline;
use super::*;
use crate::driven::{self, DrivenFolder};
use crate::pipelines::{self, Pipelines};
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

/// As a process leaves it that is killed after it has noted that the run was applied.
#[tokio::test]
async fn the_worktree_of_a_run_that_was_applied_goes_with_it_unless_it_holds_more() {
    for (more, expected) in [(false, (1, 0)), (true, (0, 1))] {
        let stage = Stage::new(EDITS).with_repository();
        let (runs, git) = (stage.runs(), changes::git(&stage.context));
        let (folder, record) = old(&stage, Reach::Edit).await;
        folder.keep(&RunRecord { applied: Some(Instant(1)), ..record }).expect("kept");
        if more {
            std::fs::write(folder.worktree().join("more"), "more\n").expect("written");
        }
        for dry_run in [DryRun::Yes, DryRun::No] {
            let deleted = retention::delete_old(&runs, &git, (LATER, LATER), dry_run).await.expect("locked");
            assert_eq!((deleted.runs.count, deleted.kept.len()), expected, "{dry_run:?}");
        }
        assert_eq!(folder.worktree().exists(), more);
    }
}

/// The same of a pipeline, by `runs gc` and by a further `apply`.
#[tokio::test]
async fn the_worktree_of_a_pipeline_that_was_applied_goes_unless_it_holds_more() {
    for (more, is_applied_again) in [(false, false), (false, true), (true, false), (true, true)] {
        let stage = Stage::new(ANSWERS).with_repository();
        let begun = begun_pipeline(&stage).await;
        let (folder, git, now) = (begun.folder, changes::git(&stage.context), Some(Instant(1)));
        let record = PipelineRecord { ended: now, applied: now, ..begun.record };
        drop(begun.alone);
        std::fs::write(folder.worktree().join("new"), "new\n").expect("written");
        let applied = pipelines::until_now(&git, &folder, &record).await.expect("told").patch;
        folder.keep_applied(&applied).expect("kept");
        folder.keep(&record).expect("kept");
        if more {
            std::fs::write(folder.worktree().join("more"), "more\n").expect("written");
        }
        if is_applied_again {
            let refused = pipelines::apply(&stage.context, &stage.open, &record.id.to_string()).await;
            assert!(refused.is_err_and(|error| error.to_string().contains("was applied")));
        } else {
            let all = Pipelines::of(&stage.context.settings.dir.value);
            assert_eq!(all.remove_empty_worktrees(&git).await, usize::from(!more));
        }
        assert_eq!(folder.worktree().exists(), more, "{is_applied_again}");
    }
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
