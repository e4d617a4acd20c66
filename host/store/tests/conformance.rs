//! Both backends keep the promises of every store.

use std::sync::Arc;
use std::time::Duration;

use store::conformance::{Pair, check};
use store::files::{FilesOptions, FilesStore, Watching};
use store::memory::MemoryStore;

/// Two openings of a folder that exists as long as the test.
fn files(folders: &tempfile::TempDir, options: &FilesOptions) -> Pair {
    let folder = tempfile::tempdir_in(folders.path()).expect("a folder").keep();
    let open = || Arc::new(FilesStore::open(&folder, options.clone()).expect("a store"));
    Pair { one: open(), other: open() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn files_conform_on_a_server() {
    let folders = tempfile::tempdir().expect("a folder");
    check(|| files(&folders, &FilesOptions::default())).await;
}

#[tokio::test]
async fn files_conform_in_a_short_lived_command() {
    let folders = tempfile::tempdir().expect("a folder");
    check(|| files(&folders, &FilesOptions::default())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn files_conform_when_every_few_entries_begin_a_segment() {
    let folders = tempfile::tempdir().expect("a folder");
    let options = FilesOptions { rotate_at: 40, ..FilesOptions::default() };
    check(|| files(&folders, &options)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn files_conform_when_changes_are_polled() {
    let folders = tempfile::tempdir().expect("a folder");
    let options = FilesOptions { watching: Watching::Polled(Duration::from_millis(5)), ..FilesOptions::default() };
    check(|| files(&folders, &options)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_conforms() {
    check(|| {
        let one = MemoryStore::new();
        Pair { other: Arc::new(one.clone()), one: Arc::new(one) }
    })
    .await;
}
