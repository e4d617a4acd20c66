//! A disk that fails: errors name the file and the reason, and nothing is half written.

mod support;

use std::error::Error as _;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use store::files::{Disk, FilesOptions, FilesStore, RealDisk};
use store::{AppendError, Durability, Expect, Position, Store, StoreError, SwapError};

use support::{entry, key, number, numbers, read_all};

/// A disk on which one operation fails on command.
#[derive(Default)]
struct FaultyDisk {
    /// Free space in bytes.
    room: AtomicU64,
    full: AtomicBool,
    sync_fails: AtomicBool,
}

impl FaultyDisk {
    fn leave_room(&self, bytes: u64) {
        self.room.store(bytes, Ordering::SeqCst);
        self.full.store(true, Ordering::SeqCst);
    }
}

impl Disk for FaultyDisk {
    fn append(&self, file: &File, path: &Path, bytes: &[u8]) -> io::Result<usize> {
        if !self.full.load(Ordering::SeqCst) {
            return RealDisk.append(file, path, bytes);
        }
        let room = usize::try_from(self.room.swap(0, Ordering::SeqCst)).expect("small");
        match room.min(bytes.len()) {
            0 => Err(io::Error::from(io::ErrorKind::StorageFull)),
            taken => RealDisk.append(file, path, &bytes[..taken]),
        }
    }

    fn sync(&self, file: &File, path: &Path) -> io::Result<()> {
        // Like the kernel: an error is reported once, and the next sync claims to be good.
        if self.sync_fails.swap(false, Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()));
        }
        RealDisk.sync(file, path)
    }
}

fn store_on(disk: &Arc<FaultyDisk>, folder: &Path) -> FilesStore {
    FilesStore::open_on(Arc::<FaultyDisk>::clone(disk), folder, FilesOptions::default()).expect("a store")
}

/// The message of an error and of its causes.
fn words(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", words(source)),
        None => error.to_string(),
    }
}

#[tokio::test]
async fn an_append_that_does_not_fit_leaves_the_log_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = Arc::new(FaultyDisk::default());
    let (store, log) = (store_on(&disk, folder.path()), key("inbox"));
    store.append(&log, &[entry(0)], Expect::Any, Durability::Synced).await.expect("appended");
    let before = fs::read(folder.path().join("inbox.jsonl")).expect("the log");
    // From nothing of the first entry to nearly all of both.
    let line = entry(1).len() as u64 + 1;
    for room in [0, 1, line / 2, line, line + 1, 2 * line - 1] {
        disk.leave_room(room);
        let refused = store.append(&log, &[entry(1), entry(2)], Expect::Any, Durability::Synced).await;
        let Err(AppendError::Store(error)) = refused else { panic!("{refused:?} with room for {room}") };
        assert_eq!(
            words(&error),
            format!("could not append to {}/inbox.jsonl: no storage space", folder.path().display())
        );
        assert_eq!(fs::read(folder.path().join("inbox.jsonl")).expect("the log"), before, "room for {room}");
        assert_eq!(numbers(&store, &log).await, [0]);
    }
    disk.full.store(false, Ordering::SeqCst);
    store.append(&log, &[entry(1)], Expect::Any, Durability::Synced).await.expect("there is room again");
    assert_eq!(numbers(&store, &log).await, [0, 1]);
}

#[tokio::test]
async fn a_value_that_does_not_fit_leaves_the_old_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = Arc::new(FaultyDisk::default());
    let (store, at) = (store_on(&disk, folder.path()), key("agents/bob/meta"));
    let first = store.swap(&at, None, Some(b"\"old\""), Durability::Synced).await.expect("swapped");
    disk.leave_room(10);
    let refused = store.swap(&at, first, Some(b"\"new\""), Durability::Synced).await;
    assert!(matches!(refused, Err(SwapError::Store(StoreError::Io { .. }))), "{refused:?}");
    let found = store.get(&at).await.expect("read").expect("a value");
    assert_eq!((Some(found.revision), found.bytes), (first, b"\"old\"".to_vec()));
    assert!(!folder.path().join("agents/bob/.draft").exists(), "the draft takes no room");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_failed_sync_is_told_to_all_who_wait_and_closes_the_segment() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = Arc::new(FaultyDisk::default());
    let (one, other, log) = (store_on(&disk, folder.path()), store_on(&disk, folder.path()), key("inbox"));
    one.append(&log, &[entry(0)], Expect::Any, Durability::Synced).await.expect("appended");
    // Appended by one without a sync; then the other's sync fails for both.
    one.append(&log, &[entry(1)], Expect::Any, Durability::Process).await.expect("appended");
    disk.sync_fails.store(true, Ordering::SeqCst);
    let refused = other.append(&log, &[entry(2)], Expect::Any, Durability::Synced).await;
    let Err(AppendError::Store(error)) = refused else { panic!("{refused:?}") };
    assert!(words(&error).starts_with("could not sync "), "{}", words(&error));
    assert!(error.source().is_some());
    assert!(folder.path().join("inbox.jsonl.0").exists(), "the segment takes nothing more");
    one.append(&log, &[entry(3)], Expect::Any, Durability::Synced).await.expect("a new segment");
    assert_eq!(fs::read(folder.path().join("inbox.jsonl")).expect("the log"), [entry(3), b"\n".to_vec()].concat());
    assert_eq!(numbers(&other, &log).await, [0, 1, 2, 3], "what is there is still read");
}

#[tokio::test]
async fn what_a_failed_sync_left_is_never_called_synced() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = Arc::new(FaultyDisk::default());
    let (one, other, log) = (store_on(&disk, folder.path()), store_on(&disk, folder.path()), key("inbox"));
    let safe = one.append(&log, &[entry(0)], Expect::Any, Durability::Synced).await.expect("appended");
    let unknown = one.append(&log, &[entry(1)], Expect::Any, Durability::Process).await.expect("appended");
    disk.sync_fails.store(true, Ordering::SeqCst);
    for store in [&one, &other, &store_on(&disk, folder.path())] {
        let refused = store.sync(&log, unknown).await.expect_err("the sync failed, now or before");
        assert!(words(&refused).starts_with("could not sync "), "{}", words(&refused));
        store.sync(&log, safe).await.expect("what was synced before still is");
    }
    let later = other.append(&log, &[entry(2)], Expect::Any, Durability::Process).await.expect("a new segment");
    one.sync(&log, later).await.expect("the new segment is synced");
    one.sync(&log, unknown).await.expect_err("the old one is as it was");
}

#[tokio::test]
async fn a_torn_line_and_foreign_lines_cost_themselves_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, log) = (FilesStore::open(folder.path(), FilesOptions::default()).expect("a store"), key("inbox"));
    let path = store.file_of(&log).expect("a file");
    store.append(&log, &[entry(0)], Expect::Any, Durability::Synced).await.expect("appended");
    let mut foreign = fs::read(&path).expect("the log");
    foreign.extend_from_slice(b"not ours\n\0\0\0\n");
    foreign.extend_from_slice(&[entry(1), b"\n{\"n\":2,\"bo".to_vec()].concat());
    fs::write(&path, foreign).expect("written");
    let seen = read_all(&store, &log).await;
    assert_eq!(seen.entries.iter().map(|entry| number(&entry.bytes)).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(seen.damage.iter().map(|damage| damage.bytes).collect::<Vec<_>>(), [9, 4]);
    assert_eq!(store.end(&log).await.expect("end"), seen.next, "an unfinished line is past the end");
    let end = store.append(&log, &[entry(3)], Expect::End(seen.next), Durability::Synced).await.expect("appended");
    let after = store.read(&log, seen.next, 1000).await.expect("read");
    assert_eq!(after.entries.iter().map(|entry| number(&entry.bytes)).collect::<Vec<_>>(), [3]);
    assert_eq!((after.next, after.damage), (end, Vec::new()), "the unfinished line was cut off");
}

#[tokio::test]
async fn a_position_of_a_log_that_lost_its_tail_reads_again_rather_than_passing_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, log) = (FilesStore::open(folder.path(), FilesOptions::default()).expect("a store"), key("inbox"));
    let end = store.append(&log, &[entry(0), entry(1)], Expect::Any, Durability::Process).await.expect("appended");
    let path = store.file_of(&log).expect("a file");
    File::options().write(true).open(&path).expect("the log").set_len(entry(0).len() as u64 + 1).expect("cut");
    assert_eq!(numbers(&store, &log).await, [0]);
    assert_eq!(store.read(&log, end, 1000).await.expect("read").entries.len(), 1, "the one that is left");
    let moved = store.append(&log, &[entry(2)], Expect::End(end), Durability::Process).await;
    assert!(matches!(moved, Err(AppendError::Moved)), "{moved:?}");
    // Longer entries than before now straddle the position.
    store.append(&log, &[vec![b'1'; 3 * entry(0).len()]], Expect::Any, Durability::Process).await.expect("appended");
    assert_eq!(store.read(&log, end, 1000).await.expect("read").entries.len(), 2, "none is passed over");
}

#[tokio::test]
async fn damaged_values_are_named_and_never_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, at) =
        (FilesStore::open(folder.path(), FilesOptions::default()).expect("a store"), key("agents/bob/meta"));
    store.swap(&at, None, Some(b"1"), Durability::Synced).await.expect("swapped");
    let path = folder.path().join("agents/bob/meta.json");
    for text in ["{\"revision\":1,\"val", "\0\0\0\0", "[]"] {
        fs::write(&path, text).expect("written");
        let read = store.get(&at).await;
        let Err(StoreError::Damaged { what, .. }) = read else { panic!("{read:?}") };
        assert_eq!(what, path.display().to_string());
        for expected in [None, Some(store::Revision(1))] {
            let swapped = store.swap(&at, expected, Some(b"2"), Durability::Synced).await;
            assert!(matches!(swapped, Err(SwapError::Store(StoreError::Damaged { .. }))), "{swapped:?}");
        }
        assert_eq!(fs::read_to_string(&path).expect("read"), text);
    }
}

#[test]
fn a_folder_that_cannot_be_opened_is_named_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    for (path, reason) in [
        (file.clone(), "not a directory"),
        (file.join("below"), "Not a directory (os error 20)"),
        ("/proc/no/such".into(), "No such file or directory (os error 2)"),
    ] {
        let Err(error) = FilesStore::open(&path, FilesOptions::default()) else { panic!("{}", path.display()) };
        assert_eq!(words(&error), format!("could not open the store in {}: {reason}", path.display()));
    }
}

#[tokio::test]
async fn a_log_whose_lock_file_was_taken_away_is_read_and_appended_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = key("inbox");
    let options = FilesOptions { rotate_at: 150, ..FilesOptions::default() };
    let store = FilesStore::open(folder.path(), options.clone()).expect("a store");
    for nth in 0..10 {
        store.append(&log, &[entry(nth)], Expect::Any, Durability::Synced).await.expect("appended");
    }
    // As `cp *.jsonl*` leaves it.
    let copy = tempfile::tempdir().expect("a folder");
    for name in fs::read_dir(folder.path()).expect("names") {
        let name = name.expect("a name").file_name();
        if !name.to_string_lossy().starts_with('.') {
            fs::copy(folder.path().join(&name), copy.path().join(&name)).expect("copied");
        }
    }
    let store = FilesStore::open(copy.path(), options).expect("a store");
    assert_eq!(numbers(&store, &log).await, (0..10).collect::<Vec<_>>());
    let end = store.end(&log).await.expect("end");
    assert!(end > Position::START);
    store.append(&log, &[entry(10)], Expect::End(end), Durability::Synced).await.expect("appended");
    assert_eq!(numbers(&store, &log).await, (0..11).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_lock_file_that_is_older_than_its_log_is_not_believed() {
    let log = key("inbox");
    let options = FilesOptions { rotate_at: 150, ..FilesOptions::default() };
    // For each append in turn: the lock file as of then is put back over a log that has continued.
    for age in 0..10 {
        let folder = tempfile::tempdir().expect("a folder");
        let (lock, old) = (folder.path().join(".inbox.lock"), folder.path().join(".old"));
        let store = FilesStore::open(folder.path(), options.clone()).expect("a store");
        for nth in 0..10 {
            store.append(&log, &[entry(nth)], Expect::Any, Durability::Process).await.expect("appended");
            if nth == age {
                fs::copy(&lock, &old).expect("copied");
            }
        }
        fs::rename(&old, &lock).expect("put back");
        let reader = FilesStore::open(folder.path(), options.clone()).expect("a store");
        assert_eq!(numbers(&reader, &log).await, (0..10).collect::<Vec<_>>(), "of age {age}");
        let writer = FilesStore::open(folder.path(), options.clone()).expect("a store");
        for nth in 10..20 {
            writer.append(&log, &[entry(nth)], Expect::Any, Durability::Process).await.expect("appended");
        }
        assert_eq!(numbers(&reader, &log).await, (0..20).collect::<Vec<_>>(), "of age {age}");
    }
}
