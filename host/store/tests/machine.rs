//! Real limits of the machine: a full disk, a read-only file system, exhausted notifications.

#![expect(clippy::disallowed_methods, reason = "these tests start processes of themselves, told apart by a variable")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use notify::{RecursiveMode, Watcher};
use store::conformance::{Pair, check_watches};
use store::files::{FilesOptions, FilesStore};
use store::{AppendError, Durability, Expect, Store, StoreError, SwapError};

use support::{entry, key, numbers};

/// The order of a started process: the name of a function here, and a folder.
const ORDER: &str = "STORE_TEST_ORDER";

/// Starts this test binary again in its own mount namespace, after a shell has prepared it. `$DIR` is the folder to
/// work in.
fn in_own_mounts(prepare: &str, order: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let this = std::env::current_exe().expect("this program");
    // In a user namespace an ordinary user may mount too, and its limits are separate.
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-ec"])
        .arg(format!("{prepare}\nexec \"$THIS\" child --exact --ignored --nocapture"))
        .env("THIS", this)
        .env("DIR", folder.path())
        .env(ORDER, order)
        .output()
        .expect("unshare is there");
    assert!(
        output.status.success(),
        "{order}:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs in a process of its own.
#[tokio::test]
#[ignore = "started by the other tests, with an order"]
async fn child() {
    let folder = PathBuf::from(std::env::var_os("DIR").expect("a folder"));
    match std::env::var(ORDER).expect("an order").as_str() {
        "fill the disk" => fill_the_disk(&folder).await,
        "read only" => read_only(&folder).await,
        "watch without a notifier" => {
            assert!(notify::recommended_watcher(|_| ()).is_err(), "there is none left");
            watch_without_notifications(&folder).await;
        }
        "watch with two watches" => {
            let mut watcher = notify::recommended_watcher(|_| ()).expect("a notifier");
            let watched =
                ["/", "/proc", "/dev"].map(|path| watcher.watch(Path::new(path), RecursiveMode::NonRecursive));
            assert_eq!(watched.map(|watched| watched.is_ok()), [true, true, false]);
            drop(watcher);
            watch_without_notifications(&folder).await;
        }
        other => panic!("no such order: {other}"),
    }
}

#[test]
fn a_full_disk_is_an_error_and_nothing_is_half_written() {
    in_own_mounts("mount -t tmpfs -o size=256k tmpfs \"$DIR\"", "fill the disk");
}

async fn fill_the_disk(folder: &Path) {
    let store = FilesStore::open(folder.join("store"), FilesOptions::default()).expect("a store");
    let (log, at) = (key("agents/bob/inbox"), key("agents/bob/meta"));
    store.swap(&at, None, Some(b"\"old\""), Durability::Synced).await.expect("swapped");
    let path = store.file_of(&log).expect("a file");
    let big = |number: u64| format!("{{\"n\":{number},\"pad\":\"{}\"}}", "x".repeat(3000)).into_bytes();
    let mut acknowledged = 0;
    let refused = loop {
        match store.append(&log, &[big(acknowledged), big(acknowledged)], Expect::Any, Durability::Synced).await {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 1000, "the disk is small");
    };
    let AppendError::Store(StoreError::Io { what, source, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!((what, source.kind()), (path.display().to_string(), std::io::ErrorKind::StorageFull));
    let length = fs::metadata(&path).expect("the log").len();
    assert_eq!(length, 2 * (0..acknowledged).map(|number| big(number).len() as u64 + 1).sum::<u64>());
    // A value is not replaced by half of another either. (Whether it still fits depends on the page size.)
    let revision = store.get(&at).await.expect("read").map(|value| value.revision);
    let large = format!("\"{}\"", "y".repeat(40_000));
    let refused = store.swap(&at, revision, Some(large.as_bytes()), Durability::Synced).await;
    assert!(matches!(refused, Err(SwapError::Store(StoreError::Io { .. }))), "{refused:?}");
    assert_eq!(store.get(&at).await.expect("read").expect("a value").bytes, b"\"old\"");
    // Existing values can be removed, which frees space.
    fs::write(folder.join("rest"), vec![b'z'; 300_000]).expect_err("the disk is full to the last page");
    let removed = store.swap(&at, revision, None, Durability::Synced).await;
    assert!(matches!(removed, Ok(None)), "{removed:?}");
    fs::remove_file(folder.join("rest")).expect("removed");
    // With free space again, writing continues.
    assert!(store.retire(&log, store.end(&log).await.expect("end")).await.expect("retired") > 0);
    store.append(&log, &[entry(7)], Expect::Any, Durability::Synced).await.expect("appended");
    assert_eq!(numbers(&store, &log).await, [7]);
}

#[test]
fn a_read_only_store_is_read_and_says_why_it_is_not_written() {
    in_own_mounts("mount -t tmpfs tmpfs \"$DIR\"", "read only");
}

async fn read_only(folder: &Path) {
    let (log, at) = (key("agents/bob/inbox"), key("agents/bob/meta"));
    let root = folder.join("store");
    let store = FilesStore::open(&root, FilesOptions::default()).expect("a store");
    store.append(&log, &[entry(0)], Expect::Any, Durability::Synced).await.expect("appended");
    let revision = store.swap(&at, None, Some(b"1"), Durability::Synced).await.expect("swapped");
    drop(store);
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(folder).status().expect("mount");
    assert!(remounted.success());
    let store = FilesStore::open(&root, FilesOptions::default()).expect("it can still be read");
    assert_eq!(numbers(&store, &log).await, [0]);
    assert_eq!(store.get(&at).await.expect("read").expect("a value").bytes, b"1");
    for refused in [
        store.append(&log, &[entry(1)], Expect::Any, Durability::Synced).await.expect_err("read-only"),
        store.append(&key("new/log"), &[entry(1)], Expect::Any, Durability::Process).await.expect_err("read-only"),
    ] {
        let AppendError::Store(StoreError::Io { what, source, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(source.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
        assert!(what.starts_with(&root.display().to_string()), "{what}");
    }
    let refused = store.swap(&at, revision, Some(b"2"), Durability::Process).await;
    assert!(matches!(refused, Err(SwapError::Store(StoreError::Io { .. }))), "{refused:?}");
    assert!(store.hold(&key("routes/wakes")).await.is_err());
    let Err(StoreError::Io { what, source, .. }) = FilesStore::open(folder.join("other"), FilesOptions::default())
    else {
        panic!("no folder can be made here");
    };
    assert_eq!(
        (what, source.kind()),
        (folder.join("other").display().to_string(), std::io::ErrorKind::ReadOnlyFilesystem)
    );
}

#[test]
fn changes_are_noticed_where_the_system_has_no_notifier_left() {
    in_own_mounts("echo 0 > /proc/sys/user/max_inotify_instances", "watch without a notifier");
}

#[test]
fn changes_are_noticed_where_the_system_has_few_watches_left() {
    // The system watches some of the test's folders, but not others.
    in_own_mounts("echo 2 > /proc/sys/user/max_inotify_watches", "watch with two watches");
}

async fn watch_without_notifications(folder: &Path) {
    check_watches(|| {
        let folder = tempfile::tempdir_in(folder).expect("a folder").keep();
        let open = || Arc::new(FilesStore::open(&folder, FilesOptions::default()).expect("a store"));
        Pair { one: open(), other: open() }
    })
    .await;
}
