//! Waiting for the disk blocks only the callers that wait, and one sync serves them together.

mod support;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use store::files::{Disk, FilesOptions, FilesStore, RealDisk};
use store::{Durability, Expect, Store};

use support::{entry, key, numbers};

/// A disk whose syncs report their start, and end on command.
struct SlowDisk {
    began: Sender<()>,
    may_end: Mutex<Receiver<()>>,
    syncs: AtomicUsize,
}

impl Disk for SlowDisk {
    fn sync(&self, file: &File, path: &Path) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        self.began.send(()).expect("somebody listens");
        // Once the sender is dropped, no sync waits any more.
        let _ = self.may_end.lock().expect("a lock").recv();
        RealDisk.sync(file, path)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn thirty_two_senders_wait_for_the_disk_and_stall_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let ((began, begins), (end, may_end)) = (channel(), channel());
    let disk = Arc::new(SlowDisk { began, may_end: Mutex::new(may_end), syncs: AtomicUsize::new(0) });
    let opened = FilesStore::open_on(Arc::<SlowDisk>::clone(&disk), folder.path(), FilesOptions::default());
    let (store, log) = (Arc::new(opened.expect("a store")), key("inbox"));
    let send = |number: u64| {
        let (store, log) = (Arc::clone(&store), log.clone());
        tokio::spawn(async move { store.append(&log, &[entry(number)], Expect::Any, Durability::Synced).await })
    };
    let mut senders = vec![send(0)];
    let begun = tokio::task::spawn_blocking(move || begins.recv().map(|()| begins)).await;
    let _begins = begun.expect("a thread").expect("a sync began");
    senders.extend((1..32).map(send));
    // The only thread of this runtime still appends, reads and swaps, although a sync is in progress.
    while numbers(&*store, &log).await.len() < 32 {
        tokio::task::yield_now().await;
    }
    let quick = store.append(&log, &[entry(32)], Expect::Any, Durability::Process).await;
    quick.expect("answered while others wait for the disk");
    assert!(senders.iter().all(|sender| !sender.is_finished()), "nobody was told too early");
    drop(end);
    for sender in senders {
        sender.await.expect("a task").expect("appended");
    }
    let syncs = disk.syncs.load(Ordering::SeqCst);
    assert!(syncs <= 3, "32 senders were served by {syncs} syncs");
}
