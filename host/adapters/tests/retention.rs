//! What is left by adapters that are gone is deleted once it is old, and nothing of one that is still there.

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use adapters::LeftByAdapters;
use common::Stage;
use mesh::DryRun;
use mesh::ports::data_files::Amount;
use store::files::{FilesOptions, FilesStore};
use store::{Durability, Store};

const WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);

async fn note(store: &dyn Store, key: &str) {
    let key = key.parse().expect("a key");
    store.swap(&key, None, Some(b"{}"), Durability::Process).await.expect("noted");
}

fn written(file: &Path) -> SystemTime {
    fs::metadata(file).and_then(|file| file.modified()).expect("it is there")
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("a name").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("cwasm") || name.ends_with(".json"))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_adapters_that_are_gone_left_goes_after_a_week_and_nothing_else_does() {
    let stage = Stage::with(&["polite"]);
    let (data, cache) = (stage.folder.path().join("data"), stage.folder.path().join("cwasm"));
    let store = Arc::new(FilesStore::open(&data, FilesOptions::default()).expect("a store"));
    let adapters = stage.adapters_with(|settings| {
        settings.store = Arc::<FilesStore>::clone(&store);
        settings.cache = cache.clone();
    });
    note(&*store, "adapters/polite/state/here").await;
    note(&*store, "adapters/removed/state/there").await;
    fs::create_dir_all(&cache).expect("a folder");
    let foreign = format!("{}-0123456789abcdef.cwasm", "0".repeat(64));
    fs::write(cache.join(&foreign), [0; 10]).expect("written");
    fs::write(cache.join("not-ours"), [0; 10]).expect("written");
    // Compiles its component into the same cache.
    adapters.adapter("polite").await.expect("it loads");
    let ours = names(&cache).into_iter().filter(|name| *name != foreign).collect::<Vec<_>>();
    assert!(!ours.is_empty(), "its code is kept there: {:?}", names(&cache));

    let now = written(&cache.join("not-ours"));
    let nothing = LeftByAdapters::default();
    let early = adapters.clean_up(&data, (WEEK, now), DryRun::No).await.expect("cleaned up");
    assert_eq!(early, nothing, "all of it is new");
    let later = now + WEEK + Duration::from_secs(60);
    let told = adapters.clean_up(&data, (WEEK, later), DryRun::Yes).await.expect("looked");
    let noted = fs::metadata(data.join("adapters/removed/state/there.json")).expect("it is still there").len();
    let expected =
        LeftByAdapters { compiled: Amount { count: 1, bytes: 10 }, notes: Amount { count: 1, bytes: noted } };
    assert_eq!(told, expected);
    assert_eq!(adapters.clean_up(&data, (WEEK, later), DryRun::No).await.expect("cleaned up"), expected, "as it said");
    assert_eq!(adapters.clean_up(&data, (WEEK, later), DryRun::No).await.expect("cleaned up"), nothing, "once");
    assert_eq!(names(&cache), ours);
    assert_eq!(names(&data.join("adapters/polite/state")), ["here.json"]);
    assert!(names(&data.join("adapters/removed/state")).is_empty());
}

#[tokio::test]
async fn an_adapter_that_cannot_be_read_is_not_taken_for_gone() {
    let stage = Stage::with(&["polite"]);
    let data = stage.folder.path().join("data");
    let store = Arc::new(FilesStore::open(&data, FilesOptions::default()).expect("a store"));
    fs::write(stage.plugins().join("polite/adapter.toml"), "name = ").expect("damaged");
    let adapters = stage.adapters_with(|settings| settings.store = Arc::<FilesStore>::clone(&store));
    note(&*store, "adapters/polite/state/here").await;
    let later = written(&data.join("adapters/polite/state/here.json")) + WEEK + WEEK;
    let left = adapters.clean_up(&data, (WEEK, later), DryRun::No).await.expect("cleaned up");
    assert_eq!(left, LeftByAdapters::default());
    assert_eq!(names(&data.join("adapters/polite/state")), ["here.json"]);
}
