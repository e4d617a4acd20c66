//! Many processes use one store, and some are killed: nothing acknowledged is lost or doubled, no reader sees half an
//! entry, and a key never has two holders.

#![expect(clippy::disallowed_methods, reason = "these tests start processes of themselves, told apart by a variable")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use store::files::{FilesOptions, FilesStore};
use store::{Durability, Expect, Position, Store};
use tokio::time::timeout;

use support::{entry, key, number, numbers};

/// The order of a started process, as one variable: `append FOLDER FIRST COUNT`, `hold FOLDER N`, `forget FOLDER`.
const ORDER: &str = "STORE_TEST_ORDER";

/// Small segments, so that rotation is tested too.
fn options() -> FilesOptions {
    FilesOptions { rotate_at: 20_000, ..FilesOptions::default() }
}

/// Starts this test binary again, with an order for [`child`].
fn start(order: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(ORDER, order)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

/// Runs in a process of its own.
#[tokio::test]
#[ignore = "started by the other tests, with an order"]
async fn child() {
    let order = std::env::var(ORDER).expect("an order");
    let words: Vec<&str> = order.split(' ').collect();
    match words[..] {
        ["append", folder, first, count] => {
            append_and_tell(folder, first.parse().expect("a number"), count.parse().expect("a number")).await;
        }
        ["hold", folder, rounds] => hold_and_check(folder, rounds.parse().expect("a number")).await,
        ["forget", folder] => forget(folder),
        _ => panic!("no such order: {order}"),
    }
}

/// Prints `ok N` after entry N was acknowledged.
async fn append_and_tell(folder: &str, first: u64, count: u64) {
    let store = FilesStore::open(folder, options()).expect("a store");
    let log = key("agents/bob/inbox");
    for number in first..first + count {
        store.append(&log, &[entry(number)], Expect::Any, Durability::Synced).await.expect("appended");
        tell(&format!("ok {number}"));
    }
}

/// Takes a key repeatedly; prints `held` the first time, and fails if a file that only the holder creates exists
/// already.
async fn hold_and_check(folder: &str, rounds: u64) {
    let store = FilesStore::open(folder, options()).expect("a store");
    let (at, alone) = (key("routes/wakes"), Path::new(folder).join("alone"));
    let mut done = 0;
    while done < rounds {
        let Some(hold) = store.hold(&at).await.expect("asked") else {
            tokio::task::yield_now().await;
            continue;
        };
        fs::File::create_new(&alone).expect("nobody else holds the key");
        fs::remove_file(&alone).expect("removed");
        drop(hold);
        done += 1;
    }
    let kept = loop {
        if let Some(hold) = store.hold(&at).await.expect("asked") {
            break hold;
        }
    };
    tell("held");
    // Until the parent closes the other end, or kills this process.
    std::io::stdin().read_exact(&mut [0]).expect_err("the end of the input");
    drop(kept);
}

/// Prints one whole line in one write, so that a killed process leaves no partial line.
fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).expect("told");
}

/// The lines of a process's output that start with a word.
fn said(child: &mut Child, word: &str) -> impl Iterator<Item = String> + use<> {
    let out = child.stdout.take().expect("its output");
    let word = format!("{word} ");
    BufReader::new(out).lines().map_while(Result::ok).filter_map(move |line| {
        // The test harness writes to the same output, not always in whole lines.
        line.find(&word).map(|at| line[at + word.len()..].to_owned())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_one_of_many_is_killed() {
    const PROCESSES: u64 = 8;
    const EACH: u64 = 300;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    let mut writers = Vec::new();
    for process in 0..PROCESSES {
        let mut child = start(&format!("append {path} {} {EACH}", process * 10_000));
        let lines = said(&mut child, "ok");
        writers.push(std::thread::spawn(move || {
            let mut acknowledged: Vec<u64> = Vec::new();
            for line in lines {
                acknowledged.push(line.parse().expect("a number"));
                // The first two are killed half-way, at an arbitrary step.
                if process < 2 && acknowledged.len() as u64 == EACH / 2 {
                    child.kill().expect("killed");
                }
            }
            let ended = child.wait().expect("ended");
            (process, acknowledged, ended.success())
        }));
    }
    // Meanwhile a reader follows, and never sees half an entry or damage.
    let store = FilesStore::open(folder.path(), options()).expect("a store");
    let log = key("agents/bob/inbox");
    let (mut seen, mut at) = (BTreeMap::new(), Position::START);
    let mut news = store.watch(std::slice::from_ref(&log)).await.expect("a watch");
    let mut follow = async |until: &dyn Fn() -> bool| {
        loop {
            let over = until();
            loop {
                let batch = store.read(&log, at, 1 << 16).await.expect("read");
                assert_eq!(batch.damage, []);
                for entry in &batch.entries {
                    *seen.entry(number(&entry.bytes)).or_insert(0) += 1;
                }
                at = batch.next;
                if batch.at_end {
                    break;
                }
            }
            if over {
                return seen.clone();
            }
            // Also reads after a timeout, because the last writer's end causes no news.
            let _ = timeout(Duration::from_millis(50), news.changed()).await;
        }
    };
    let seen = follow(&|| writers.iter().all(std::thread::JoinHandle::is_finished)).await;
    assert!(seen.values().all(|times| *times == 1), "nothing was seen twice");
    let found = numbers(&store, &log).await;
    assert_eq!(found.len(), seen.len(), "the follower saw everything");
    for writer in writers {
        let (process, acknowledged, ended_well) = writer.join().expect("a thread");
        assert_eq!(ended_well, process >= 2);
        let expected = if process < 2 { EACH / 2 } else { EACH };
        assert!(acknowledged.len() as u64 >= expected, "process {process}: {}", acknowledged.len());
        for number in &acknowledged {
            assert!(seen.contains_key(number), "{number} was acknowledged");
        }
        let own: Vec<u64> = found.iter().copied().filter(|number| number / 10_000 == process).collect();
        assert!(own.is_sorted(), "each process's entries are in its order");
        assert!(own.len() as u64 <= acknowledged.len() as u64 + EACH);
    }
}

/// Removes the file of a key whenever nobody holds it, as a cleanup does, until this process is killed.
fn forget(folder: &str) -> ! {
    let path = Path::new(folder).join("routes/.wakes.hold");
    loop {
        if let Ok(file) = fs::File::open(&path)
            && file.try_lock().is_ok()
            && file.metadata().is_ok_and(|found| found.nlink() > 0)
        {
            fs::remove_file(&path).expect("removed");
        }
    }
}

#[test]
fn a_key_whose_file_is_removed_again_and_again_has_one_holder_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    let mut forgets = start(&format!("forget {path}"));
    let mut children: Vec<Child> = (0..4).map(|_| start(&format!("hold {path} 300"))).collect();
    for child in &mut children {
        drop(child.stdin.take());
    }
    let ended: Vec<bool> = children.iter_mut().map(|child| child.wait().expect("ended").success()).collect();
    forgets.kill().expect("killed");
    forgets.wait().expect("ended");
    assert_eq!(ended, [true; 4], "none found another holder");
}

#[tokio::test]
async fn one_process_at_a_time_holds_a_key_and_a_killed_one_lets_go() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    let store = FilesStore::open(folder.path(), options()).expect("a store");
    let mut children: Vec<Child> = (0..4).map(|_| start(&format!("hold {path} 200"))).collect();
    // Each finally holds the key until it is killed; so they get it one after the other.
    let mut outputs: Vec<_> = children.iter_mut().map(|child| child.stdout.take().expect("its output")).collect();
    let (sender, receiver) = std::sync::mpsc::channel();
    for (nth, output) in outputs.drain(..).enumerate() {
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if line.ends_with("held") {
                    sender.send(nth).expect("told");
                }
            }
        });
    }
    for round in 0..4 {
        let holder = receiver.recv_timeout(Duration::from_secs(30)).expect("somebody holds the key");
        assert!(store.hold(&key("routes/wakes")).await.expect("asked").is_none(), "round {round}");
        let child = &mut children[holder];
        if round % 2 == 0 {
            child.kill().expect("killed");
            assert!(!child.wait().expect("ended").success());
        } else {
            drop(child.stdin.take());
            assert!(child.wait().expect("ended").success(), "it never found another holder");
        }
    }
    assert!(store.hold(&key("routes/wakes")).await.expect("asked").is_some(), "all have let go");
}
