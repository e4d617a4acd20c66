//! Runs are found by the session that they ended with, without the records of all others.

use mesh::runs::{RunEnd, RunRecord};

use super::*;
use crate::runs::RunFolder;

/// A run of alice's that ended as another did, but with this session.
fn ended_with(stage: &Stage, like: &RunRecord, session: &str) -> RunFolder {
    let folder = stage.runs().create(stage.open.mesh.new_run_id()).expect("made");
    let end = RunEnd { session: Some(session.to_owned()), ..like.ended.clone().expect("it has ended") };
    let by = "alice".parse().ok();
    folder.keep(&RunRecord { id: folder.id, by, ended: Some(end), ..like.clone() }).expect("kept");
    folder
}

fn may_alice_go_on(stage: &Stage, session: &str) -> bool {
    let asker = Asker::Session { harness: "toad".to_owned(), agent: "alice".parse().ok() };
    let alice = permission::Evidence { asker, parent: None };
    begin::may_go_on(&stage.runs(), &alice, Some(&Start::Resume(session.to_owned()))).is_ok()
}

/// Each record of another session is replaced by one that would be believed if it were read.
#[tokio::test]
async fn no_record_of_another_session_is_read() {
    let stage = Stage::new(ANSWERS);
    let like = stage.ran(stage.request()).await.record;
    let others: Vec<RunFolder> = (0..20).map(|_| ended_with(&stage, &like, "another")).collect();
    let own = ended_with(&stage, &like, "own");
    let record = own.read("record.json").expect("a record");
    assert!(may_alice_go_on(&stage, "own") && may_alice_go_on(&stage, "another"));
    for other in &others {
        other.write("record.json", &record).expect("written");
    }
    assert!(may_alice_go_on(&stage, "own"));
    own.delete().expect("deleted");
    assert!(!may_alice_go_on(&stage, "own"), "the names of the others say another session");
}

/// As those that an earlier build left, or a process that was killed right after it had kept the record.
#[tokio::test]
async fn a_run_that_has_no_name_yet_is_found_by_its_record() {
    let stage = Stage::new(ANSWERS);
    let like = stage.ran(stage.request()).await.record;
    ended_with(&stage, &like, "own");
    ended_with(&stage, &like, "a/b\n");
    let live = stage.runs().create(stage.open.mesh.new_run_id()).expect("made");
    live.keep(&RunRecord { id: live.id, ended: None, ..like }).expect("kept");
    let names = stage.context.settings.dir.value.join("runs/sessions");
    let named = || std::fs::read_dir(&names).map_or(0, Iterator::count);
    assert_eq!(named(), 3, "all that have ended");
    std::fs::remove_dir_all(&names).expect("deleted");
    assert!(may_alice_go_on(&stage, "own") && may_alice_go_on(&stage, "a/b\n"));
    assert!(!may_alice_go_on(&stage, "nobody's"));
    assert_eq!(named(), 3, "a lookup makes what is missing");
    let later = mesh::ports::machine::Instant(u64::MAX);
    let git = changes::git(&stage.context);
    let deleted = retention::delete_old(&stage.runs(), &git, (later, later), mesh::DryRun::No).await.expect("locked");
    assert_eq!((deleted.runs.count, named()), (3, 0), "the names go with their runs");
}
