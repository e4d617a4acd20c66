//! Lookups: what an indexed log finds is what a plain scan finds, whatever became of its indexes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde::{Deserialize, Serialize};
use store::files::{FilesOptions, FilesStore};
use store::memory::MemoryStore;
use store::{Durability, Entry, Expect, IndexRule, Indexed, Key, Position, Seek, Store, Term};

/// An entry of these tests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    id: String,
    at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    filling: String,
}

impl Line {
    fn terms(&self) -> Vec<Term> {
        let key = self.key.as_ref().map(|key| Term::scattered(format!("\"key\":\"{key}\"")));
        std::iter::once(Term::growing(self.id.clone())).chain(key).collect()
    }
}

struct Rule(u32);

impl IndexRule for Rule {
    fn version(&self) -> u32 {
        self.0
    }

    fn of(&self, _: &Key, entry: &[u8]) -> Indexed {
        let Ok(line) = serde_json::from_slice::<Line>(entry) else { return Indexed::default() };
        Indexed { terms: line.terms(), at: Some(line.at) }
    }
}

fn log() -> Key {
    "agents/bob/inbox".parse().expect("a key")
}

fn open(folder: &Path, version: u32) -> FilesStore {
    let options = FilesOptions {
        durability: Durability::Process,
        rotate_at: 400,
        rule: Some(Arc::new(Rule(version))),
        ..FilesOptions::default()
    };
    FilesStore::open(folder, options).expect("opened")
}

async fn append(store: &dyn Store, line: &Line) {
    let entry = serde_json::to_vec(line).expect("JSON");
    store.append(&log(), &[entry], Expect::Any, Durability::Process).await.expect("appended");
}

fn indexes(folder: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(folder.join("agents/bob")).into_iter().flatten();
    let mut all: Vec<PathBuf> = names.map(|name| name.expect("a name").path()).collect();
    all.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".index.")));
    all.sort();
    all
}

fn lines_of(entries: &[Entry]) -> Vec<Line> {
    entries.iter().map(|entry| serde_json::from_slice(&entry.bytes).expect("a line")).collect()
}

/// Something that happens to a log.
#[derive(Clone, Debug)]
enum Deed {
    Append(Line),
    /// The store is closed and opened again, perhaps by a program with another rule.
    Reopen(u32),
    /// An index is lost.
    Remove(prop::sample::Index),
    /// An index is cut.
    Cut(prop::sample::Index, prop::sample::Index),
    /// A byte of an index changes.
    Flip(prop::sample::Index, prop::sample::Index),
    /// An index takes another's place.
    Swap(prop::sample::Index, prop::sample::Index),
    /// A segment's tail is torn off by a power loss, or a line of it is overwritten.
    Damage(prop::sample::Index),
    /// What is older than a position is retired.
    Retire(prop::sample::Index),
}

fn line() -> impl Strategy<Value = Line> {
    // Ids mostly grow with the time, and sometimes the clock steps back; few ids, so that some are there twice.
    (0..60_u64, 0..8_u64, prop::option::of("[a-c]"), 0..60_usize).prop_map(|(at, jitter, key, filling)| Line {
        id: format!("id-{:04}-and-more-than-16", (at * 10).saturating_sub(jitter * 3)),
        at,
        key,
        filling: "x".repeat(filling),
    })
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let any = any::<prop::sample::Index>;
    let deed = prop_oneof![
        12 => line().prop_map(Deed::Append),
        1 => (1..3_u32).prop_map(Deed::Reopen),
        1 => any().prop_map(Deed::Remove),
        1 => (any(), any()).prop_map(|(which, to)| Deed::Cut(which, to)),
        1 => (any(), any()).prop_map(|(which, at)| Deed::Flip(which, at)),
        1 => (any(), any()).prop_map(|(one, other)| Deed::Swap(one, other)),
        1 => any().prop_map(Deed::Damage),
        1 => any().prop_map(Deed::Retire),
    ];
    prop::collection::vec(deed, 1..80)
}

async fn everything(store: &dyn Store) -> Vec<Entry> {
    let (mut all, mut from) = (Vec::new(), Position::START);
    loop {
        let batch = store.read(&log(), from, 1 << 20).await.expect("read");
        all.extend(batch.entries);
        if batch.at_end {
            return all;
        }
        from = batch.next;
    }
}

/// Every lookup against the scan of everything.
async fn check(store: &FilesStore) -> TestCaseResult {
    let all = everything(store).await;
    let lines = lines_of(&all);
    let terms = [Term::growing("id-0100-and-more-than-16"), Term::growing("id-0600"), Term::scattered("\"key\":\"b\"")];
    let some: Vec<Term> = lines.iter().step_by(7).flat_map(Line::terms).chain(terms).collect();
    for asked in some.iter().map(std::slice::from_ref).chain([&some[..]]) {
        let found = store.find(&log(), asked).await.expect("found");
        let expected: Vec<&Entry> = all
            .iter()
            .zip(&lines)
            .filter(|(_, line)| line.terms().iter().any(|term| asked.contains(term)))
            .map(|(entry, _)| entry)
            .collect();
        let found: Vec<&Entry> = found
            .iter()
            .filter(|entry| lines_of(std::slice::from_ref(*entry))[0].terms().iter().any(|term| asked.contains(term)))
            .collect();
        prop_assert_eq!(found, expected, "{:?}", asked);
    }
    for at in [0, 1, 20, 40, 60, 100] {
        let reached = store.seek(&log(), Seek::Time(at)).await.expect("sought").expect("it has an index");
        let missed = all.iter().zip(&lines).find(|(entry, line)| entry.at < reached && line.at >= at);
        prop_assert_eq!(missed, None, "from {:?}", reached);
    }
    for id in lines.iter().map(|line| line.id.as_str()).take(5).chain(["id-0000", "id-0300", "z"]) {
        let reached = store.seek(&log(), Seek::Term(id)).await.expect("sought").expect("it has an index");
        let missed = all.iter().zip(&lines).find(|(entry, line)| entry.at < reached && line.id.as_str() >= id);
        prop_assert_eq!(missed, None, "{} from {:?}", id, reached);
    }
    let lowest = store.lowest_term(&log(), Position::START).await.expect("read");
    let expected = lines.iter().map(|line| &line.id[..16]).min();
    prop_assert_eq!(lowest.as_deref(), expected);
    for from in all.iter().step_by(7).map(|entry| entry.at) {
        let lowest = store.lowest_term(&log(), from).await.expect("read");
        let of_rest = all.iter().zip(&lines).filter(|(entry, _)| entry.at >= from).map(|(_, line)| &line.id[..16]);
        prop_assert!(
            lowest.as_deref() <= of_rest.min() && lowest.as_deref() >= expected,
            "{:?} from {:?}",
            lowest,
            from
        );
    }
    for limit in [1, 100, 1 << 20] {
        let (mut back, mut before) = (Vec::new(), store.end(&log()).await.expect("end"));
        loop {
            let batch = store.read_back(&log(), before, limit).await.expect("read");
            prop_assert!(batch.at_end || batch.next < before, "it goes on");
            back.extend(batch.entries.into_iter().rev());
            if batch.at_end {
                break;
            }
            before = batch.next;
        }
        back.reverse();
        prop_assert_eq!(&back, &all, "backwards by {}", limit);
    }
    Ok(())
}

/// A process was killed after it had noted that a segment is gone, and before it deleted the file.
#[tokio::test]
async fn a_deletion_that_was_interrupted_is_finished() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 1);
    for at in 0..40 {
        let line = Line { id: format!("id-{at:04}-0123456789abcdef"), at, key: None, filling: "x".repeat(40) };
        append(&store, &line).await;
    }
    let files = folder.path().join("agents/bob");
    let oldest = files.join("inbox.jsonl.1");
    let text = fs::read(&oldest).expect("it was sealed");
    let all = everything(&store).await;
    assert!(store.retire(&log(), all[20].at).await.expect("retired") > 0);
    let left = everything(&store).await;
    assert!(!oldest.exists() && left.len() < all.len());
    fs::write(&oldest, text).expect("written");
    let store = open(folder.path(), 1);
    assert_eq!(store.retire(&log(), Position::START).await.expect("retired"), 0);
    assert!(!oldest.exists());
    assert_eq!(everything(&store).await, left);
}

async fn happens(deeds: Vec<Deed>) -> TestCaseResult {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = open(folder.path(), 1);
    let pick = |which: prop::sample::Index| {
        let all = indexes(folder.path());
        (!all.is_empty()).then(|| all[which.index(all.len())].clone())
    };
    for deed in deeds {
        match deed {
            Deed::Append(line) => append(&store, &line).await,
            Deed::Reopen(version) => store = open(folder.path(), version),
            Deed::Remove(which) => pick(which).into_iter().for_each(|path| fs::remove_file(path).expect("removed")),
            Deed::Cut(which, to) => {
                if let Some(path) = pick(which) {
                    let bytes = fs::read(&path).expect("read");
                    fs::write(&path, &bytes[..to.index(bytes.len() + 1)]).expect("cut");
                }
            }
            Deed::Flip(which, at) => {
                if let Some(path) = pick(which) {
                    let mut bytes = fs::read(&path).expect("read");
                    if !bytes.is_empty() {
                        let at = at.index(bytes.len());
                        bytes[at] ^= 0x10;
                        fs::write(&path, bytes).expect("changed");
                    }
                }
            }
            Deed::Swap(one, other) => {
                if let (Some(one), Some(other)) = (pick(one), pick(other))
                    && one != other
                {
                    fs::copy(&one, &other).expect("copied");
                }
            }
            Deed::Damage(which) => {
                let folder = folder.path().join("agents/bob");
                let active = folder.join("inbox.jsonl");
                if let Ok(bytes) = fs::read(&active)
                    && !bytes.is_empty()
                {
                    fs::write(&active, &bytes[..which.index(bytes.len())]).expect("cut");
                }
            }
            Deed::Retire(which) => {
                let all = everything(&store).await;
                if !all.is_empty() {
                    store.retire(&log(), all[which.index(all.len())].at).await.expect("retired");
                }
            }
        }
        check(&store).await?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn an_indexed_log_finds_what_a_scan_finds(deeds in deeds()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        runtime.block_on(happens(deeds))?;
    }
}

fn numbered(number: u64) -> Line {
    Line { id: format!("id-{number:04}-and-more-than-16"), at: number, key: None, filling: "x".repeat(80) }
}

/// A store with that many numbered entries.
async fn filled(folder: &Path, count: u64) -> FilesStore {
    let store = open(folder, 1);
    for number in 0..count {
        append(&store, &numbered(number)).await;
    }
    store
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recent_entry_is_found_without_a_look_at_the_past() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path(), 200).await;
    let all = indexes(folder.path());
    assert!(all.len() > 20, "{all:?}");
    // Segments that cannot have it are not opened: they are gone, and it is found all the same.
    for number in 0..20 {
        fs::remove_file(folder.path().join(format!("agents/bob/inbox.jsonl.{number}"))).expect("removed");
    }
    let found = store.find(&log(), &[Term::growing(numbered(190).id)]).await.expect("found");
    assert_eq!(lines_of(&found), [numbered(190)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_entry_is_found_without_a_look_at_what_came_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path(), 200).await;
    let oldest = [Term::growing(numbered(0).id)];
    assert_eq!(lines_of(&store.find(&log(), &oldest).await.expect("found")), [numbered(0)]);
    let index = |number: u64| folder.path().join(format!("agents/bob/.inbox.index.{number}"));
    let between = 1..40;
    for number in between.clone() {
        fs::remove_file(index(number)).expect("removed");
    }
    assert_eq!(lines_of(&store.find(&log(), &oldest).await.expect("found")), [numbered(0)]);
    assert!(!between.clone().any(|number| index(number).exists()), "the indexes in between were not needed");
    // Nor is an id that was never there looked for in each of them.
    assert_eq!(store.find(&log(), &[Term::growing("id-0000-and-more-than-15")]).await.expect("found"), []);
    assert!(!between.clone().any(|number| index(number).exists()), "{:?}", indexes(folder.path()));
    // A catalog that is lost is made again.
    fs::remove_file(folder.path().join("agents/bob/.inbox.index.all")).expect("removed");
    assert_eq!(lines_of(&store.find(&log(), &oldest).await.expect("found")), [numbered(0)]);
    assert!(folder.path().join("agents/bob/.inbox.index.all").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_sought_to_its_entry_and_without_its_index_to_its_segment() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path(), 200).await;
    let all = everything(&store).await;
    let sought = async |number: u64| {
        let id = numbered(number).id;
        store.seek(&log(), Seek::Term(&id)).await.expect("sought").expect("it has an index")
    };
    for (number, entry) in (0..150).zip(&all) {
        assert_eq!(sought(number).await, entry.at, "{number}");
    }
    // One between two ids begins at the second.
    let between = store.seek(&log(), Seek::Term("id-0100-b")).await.expect("sought");
    assert_eq!(between, Some(all[101].at));
    // Its rows are damaged: no entry is missed, and more are read.
    let all_indexes = indexes(folder.path());
    for path in &all_indexes {
        let mut bytes = fs::read(path).expect("read");
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(path, bytes).expect("written");
    }
    let reached: Vec<Position> = vec![sought(97).await, sought(98).await, sought(99).await];
    assert!(reached.iter().zip(&all[97..]).all(|(reached, entry)| *reached <= entry.at), "{reached:?}");
    assert!(reached.iter().zip(&all[97..]).any(|(reached, entry)| *reached < entry.at), "{reached:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_does_not_grow_with_what_was_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path(), 200).await;
    let catalog = || fs::metadata(folder.path().join("agents/bob/.inbox.index.all")).expect("a catalog").len();
    let before = catalog();
    for number in 200..1_000 {
        append(&store, &numbered(number)).await;
        if number % 100 == 0 {
            let end = store.end(&log()).await.expect("an end");
            store.retire(&log(), end).await.expect("retired");
        }
    }
    assert!(catalog() <= before, "{} after {before}", catalog());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_term_without_order_is_looked_for_no_further_back_than_it_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 1);
    for number in 0..200 {
        append(&store, &Line { key: Some(format!("k{number}")), ..numbered(number) }).await;
    }
    for number in 0..20 {
        fs::remove_file(folder.path().join(format!("agents/bob/.inbox.index.{number}"))).expect("removed");
    }
    let key = |number: u64| Term::scattered(format!("\"key\":\"k{number}\""));
    let since = numbered(150).at;
    assert_eq!(store.find(&log(), &[key(180).since(since)]).await.expect("found").len(), 1);
    assert_eq!(store.find(&log(), &[key(3).since(since)]).await.expect("found"), []);
    assert!(!folder.path().join("agents/bob/.inbox.index.7").exists(), "what is older was not looked into");
    assert_eq!(store.find(&log(), &[key(3)]).await.expect("found").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_that_somebody_removed_hides_itself_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path(), 40).await;
    for path in indexes(folder.path()) {
        fs::remove_file(path).expect("removed");
    }
    fs::remove_file(folder.path().join("agents/bob/inbox.jsonl.4")).expect("removed");
    for number in [39, 20, 1] {
        let found = store.find(&log(), &[Term::growing(numbered(number).id)]).await.expect("found");
        assert_eq!(lines_of(&found), [numbered(number)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_cannot_be_written_costs_a_scan_and_no_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    {
        let plain = FilesOptions { rotate_at: 400, durability: Durability::Process, ..FilesOptions::default() };
        let store = FilesStore::open(folder.path(), plain).expect("opened");
        for number in 0..40 {
            append(&store, &numbered(number)).await;
        }
    }
    assert_eq!(indexes(folder.path()), Vec::<PathBuf>::new(), "a program without a rule writes none");
    // A folder in the place of each draft: as root, permissions would stop nobody.
    for number in 0..20 {
        fs::create_dir(folder.path().join(format!("agents/bob/.inbox.index.{number}"))).expect("made");
    }
    let store = open(folder.path(), 1);
    let found = store.find(&log(), &[Term::growing(numbered(3).id)]).await.expect("found");
    assert_eq!(lines_of(&found), [numbered(3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_goes_with_its_segment_and_an_abandoned_draft_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path(), 40).await;
    let first = folder.path().join("agents/bob/.inbox.index.0");
    fs::remove_file(&first).expect("removed");
    let draft = first.with_extension("draft");
    fs::write(&draft, "of a process that was killed").expect("written");
    let written = fs::metadata(&draft).and_then(|found| found.modified()).expect("written");
    let long_ago = written - std::time::Duration::from_secs(3_600);
    fs::File::options().write(true).open(&draft).and_then(|file| file.set_modified(long_ago)).expect("aged");
    store.find(&log(), &[Term::growing(numbered(0).id)]).await.expect("found");
    assert!(first.exists() && !draft.exists(), "{:?}", indexes(folder.path()));
    store.retire(&log(), store.end(&log()).await.expect("end")).await.expect("retired");
    assert_eq!(indexes(folder.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_store_without_an_index_finds_the_same_by_reading() {
    let store = MemoryStore::new();
    for number in 0..10 {
        append(&store, &numbered(number)).await;
    }
    let found = store.find(&log(), &[Term::growing(numbered(7).id)]).await.expect("found");
    assert_eq!(lines_of(&found), [numbered(7)]);
    assert_eq!(store.seek(&log(), Seek::Time(5)).await.expect("sought"), None);
    let last = store.read_back(&log(), store.end(&log()).await.expect("end"), 1).await.expect("read");
    assert_eq!((lines_of(&last.entries), last.at_end), (vec![numbered(9)], false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lookups_of_one_process_hold_while_another_seals_and_retires() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other) = (open(folder.path(), 1), open(folder.path(), 1));
    // Everything from `kept` up to `written` is there for good.
    let (kept, written) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let writer = {
        let (kept, written) = (Arc::clone(&kept), Arc::clone(&written));
        tokio::spawn(async move {
            for number in 0..300 {
                append(&one, &numbered(number)).await;
                written.store(number + 1, Ordering::Release);
                if number % 50 == 49 {
                    let old = number - 40;
                    kept.store(old, Ordering::Release);
                    let before = one.find(&log(), &[Term::growing(numbered(old).id)]).await.expect("found")[0].at;
                    one.retire(&log(), before).await.expect("retired");
                }
            }
        })
    };
    let mut round = 0;
    while !writer.is_finished() {
        let written = written.load(Ordering::Acquire);
        let number = kept.load(Ordering::Acquire) + 45 + round % 5;
        round += 1;
        if number < written {
            let found = other.find(&log(), &[Term::growing(numbered(number).id)]).await.expect("found");
            let kept = kept.load(Ordering::Acquire);
            assert!(lines_of(&found) == [numbered(number)] || number < kept, "{number} of {written}, kept from {kept}");
        }
        let sought = other.seek(&log(), Seek::Time(written)).await.expect("sought").expect("it has an index");
        assert!(sought <= other.end(&log()).await.expect("end"));
    }
    writer.await.expect("it wrote everything");
}
