//! Programs that are asked for one answer: nothing of them is left, however their group ends.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::{Duration, Instant};

use processes::{Group, end_groups};
use tokio::process::Command;

/// Three children: in the group, in a session of its own, and one that has lost its parent.
const CHILDREN: &str =
    "sleep 40 & setsid sleep 40 & (setsid sleep 40 >/dev/null 2>&1 &) ; echo started > started; wait";

/// The processes that run in this folder.
fn left(folder: &Path) -> usize {
    let folder = folder.canonicalize().expect("a folder");
    let all = std::fs::read_dir("/proc").expect("a list").flatten();
    let is_dead = |process: &Path| {
        let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with(['Z', 'X']))
    };
    all.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder))
        .filter(|entry| !is_dead(&entry.path()))
        .count()
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn check(end: impl FnOnce(Group)) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", CHILDREN]).current_dir(folder.path());
    let (_child, group) = Group::spawn(&mut command).expect("a shell");
    until("all have started", || folder.path().join("started").exists() && left(folder.path()) == 4).await;
    end(group);
    until("none is left", || left(folder.path()) == 0).await;
}

#[tokio::test]
async fn what_is_cut_off_leaves_nothing() {
    check(drop).await;
}

/// The group is never dropped, as in a process that ends by itself when its time is up.
#[tokio::test]
async fn what_nobody_comes_back_to_leaves_nothing() {
    check(|group| {
        std::mem::forget(group);
        end_groups();
    })
    .await;
}
