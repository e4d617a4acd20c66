//! Only the owner can access a store. The only test in its file, because the umask is process-wide.

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::Mode;
use store::files::{FilesOptions, FilesStore};
use store::{Durability, Expect, Store};

use support::{entry, key};

/// The wrong permissions of files and folders in a folder.
fn wrong_permissions(folder: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in fs::read_dir(folder).expect("names") {
        let path = name.expect("a name").path();
        let found = fs::metadata(&path).expect("a file");
        let expected = if found.is_dir() { 0o700 } else { 0o600 };
        if found.mode() & 0o777 != expected {
            wrong.push(format!("{} {:o}", path.display(), found.mode() & 0o777));
        }
        if found.is_dir() {
            wrong.extend(wrong_permissions(&path));
        }
    }
    wrong
}

#[tokio::test]
async fn nobody_else_reaches_the_store_whatever_the_umask_and_whatever_was_before() {
    for umask in [0o000, 0o022, 0o077, 0o277] {
        let folder = tempfile::tempdir().expect("a folder");
        let before = rustix::process::umask(Mode::from_raw_mode(umask));
        let root = folder.path().join("store");
        use_everything(&root).await;
        rustix::process::umask(before);
        assert_eq!(wrong_permissions(folder.path()), Vec::<String>::new(), "umask {umask:03o}");
        // Widened permissions are removed by the next use.
        for path in [root.clone(), root.join("agents/bob/inbox.jsonl"), root.join("agents/bob/.inbox.lock")] {
            let wider = fs::metadata(&path).expect("a file").mode() | 0o055;
            fs::set_permissions(&path, fs::Permissions::from_mode(wider)).expect("made wider");
        }
        use_everything(&root).await;
        assert_eq!(wrong_permissions(folder.path()), Vec::<String>::new(), "after they were made wider");
    }
}

async fn use_everything(root: &Path) {
    let options = FilesOptions { rotate_at: 100, ..FilesOptions::default() };
    let store = FilesStore::open(root, options).expect("a store");
    for number in 0..3 {
        let appended = store.append(&key("agents/bob/inbox"), &[entry(number)], Expect::Any, Durability::Synced).await;
        appended.expect("appended");
    }
    let at = key("agents/bob/meta");
    let revision = store.get(&at).await.expect("read").map(|value| value.revision);
    store.swap(&at, revision, Some(b"1"), Durability::Synced).await.expect("swapped");
    assert!(store.hold(&key("routes/wakes")).await.expect("asked").is_some());
}
