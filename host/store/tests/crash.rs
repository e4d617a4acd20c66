//! Data acknowledged as synced survives a power loss at any time, whatever happens to the rest; and a torn line affects
//! no other line.

mod support;

use std::sync::Arc;

use store::files::{FilesOptions, FilesStore};
use store::memory::{Fault, MemoryStore, Tail};
use store::{Durability, Expect, IndexRule, Indexed, Key, Position, Store, Term};

use support::power::{Frozen, Names, PowerDisk, Unsynced};
use support::{entry, key, number, numbers, read_all};

/// Several entries to a segment, so that the power also fails in the middle of a rotation.
fn options() -> FilesOptions {
    FilesOptions { rotate_at: 400, ..FilesOptions::default() }
}

/// Writes some of everything; tells the test disk what was acknowledged as synced.
async fn live_through_a_day(store: &dyn Store, disk: &PowerDisk) {
    let (inbox, meta) = (key("agents/bob/inbox"), key("agents/bob/meta"));
    let mut revision = None;
    for round in 0..40_u64 {
        let durability = if round % 3 == 0 { Durability::Process } else { Durability::Synced };
        let entries: Vec<_> = (round * 2..round * 2 + 1 + round % 2).map(entry).collect();
        store.append(&inbox, &entries, Expect::Any, durability).await.expect("appended");
        if matches!(durability, Durability::Synced) {
            disk.acknowledge(format!("inbox {}", round * 2));
        }
        if round % 5 == 0 {
            let value = round.to_string();
            revision = store.swap(&meta, revision, Some(value.as_bytes()), Durability::Synced).await.expect("swapped");
            disk.acknowledge(format!("meta {value}"));
        }
        if round % 7 == 0 {
            let heartbeat = key("agents/bob/heartbeat");
            let old = store.get(&heartbeat).await.expect("read").map(|value| value.revision);
            store.swap(&heartbeat, old, Some(b"\"beat\""), Durability::Process).await.expect("swapped");
        }
    }
}

#[tokio::test]
async fn what_was_acknowledged_outlasts_a_loss_of_power_at_every_sync() {
    let folders = tempfile::tempdir().expect("a folder");
    let root = folders.path().join("store");
    let disk = Arc::new(PowerDisk::new(&root));
    let store = FilesStore::open_on(Arc::<PowerDisk>::clone(&disk), &root, options()).expect("a store");
    live_through_a_day(&store, &disk).await;
    let moments = disk.frozen();
    assert!(moments.len() > 60, "there were only {} syncs", moments.len());
    assert!(moments.iter().any(|moment| moment.acknowledged.len() > 30));
    for (nth, moment) in moments.iter().enumerate() {
        for unsynced in [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept] {
            for names in [Names::AsSynced, Names::AsSeen] {
                check_after(moment, unsynced, names, &format!("sync {nth}, bytes {unsynced:?}, names {names:?}")).await;
            }
        }
    }
}

/// Opens the remains, and compares them with what was acknowledged.
async fn check_after(moment: &Frozen, unsynced: Unsynced, names: Names, when: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    moment.lay_out(folder.path(), unsynced, names);
    // Without syncs: the test is about what was already on disk.
    let options = FilesOptions { durability: Durability::Process, ..options() };
    let store = FilesStore::open(folder.path(), options).expect("a store");
    let inbox = key("agents/bob/inbox");
    let before = read_all(&store, &inbox).await;
    assert_eq!(before.damage, [], "{when}: an unfinished line is no entry, and nothing else is torn");
    let found: Vec<u64> = before.entries.iter().map(|entry| number(&entry.bytes)).collect();
    assert!(found.is_sorted_by(|one, next| one < next), "{when}: {found:?}");
    let value = store.get(&key("agents/bob/meta")).await.expect("a value is whole");
    let value: Option<u64> =
        value.map(|value| String::from_utf8(value.bytes).expect("text").parse().expect("a number"));
    for acknowledged in &moment.acknowledged {
        match acknowledged.split_once(' ').expect("two words") {
            ("inbox", number) => {
                assert!(found.contains(&number.parse().expect("a number")), "{when}: {number} is not in {found:?}");
            }
            (_, least) => assert!(value >= least.parse().ok(), "{when}: {value:?} is older than {least}"),
        }
    }
    // The next append cuts the torn line off, and nothing else is lost.
    store.append(&inbox, &[entry(900), entry(901)], Expect::Any, Durability::Synced).await.expect("appended");
    let after = read_all(&store, &inbox).await;
    assert_eq!(after.damage, [], "{when}");
    let expected: Vec<u64> = found.into_iter().chain([900, 901]).collect();
    assert_eq!(after.entries.iter().map(|entry| number(&entry.bytes)).collect::<Vec<_>>(), expected, "{when}");
}

/// The term of an entry: the beginning of its text.
fn term(number: u64) -> Term {
    Term::scattered(format!("{{\"n\":{number},"))
}

struct Rule;

impl IndexRule for Rule {
    fn version(&self) -> u32 {
        1
    }

    fn of(&self, _: &Key, entry: &[u8]) -> Indexed {
        Indexed { terms: vec![term(number(entry))], at: None }
    }
}

#[tokio::test]
async fn what_was_not_retired_is_found_after_a_loss_of_power_at_every_sync() {
    let folders = tempfile::tempdir().expect("a folder");
    let root = folders.path().join("store");
    let disk = Arc::new(PowerDisk::new(&root));
    let indexed = || FilesOptions { rule: Some(Arc::new(Rule)), ..options() };
    let store = FilesStore::open_on(Arc::<PowerDisk>::clone(&disk), &root, indexed()).expect("a store");
    let log = key("agents/bob/inbox");
    for round in 0..60 {
        store.append(&log, &[entry(round)], Expect::Any, Durability::Synced).await.expect("appended");
        disk.acknowledge(format!("entry {round}"));
        if round % 9 == 8 {
            let all = read_all(&store, &log).await;
            let middle = &all.entries[all.entries.len() / 2];
            // It may take effect before it is answered.
            disk.acknowledge(format!("retired {}", number(&middle.bytes)));
            store.retire(&log, middle.at).await.expect("retired");
        }
    }
    assert!(read_all(&store, &log).await.entries.len() < 30, "segments were retired");
    for (nth, moment) in disk.frozen().iter().enumerate() {
        for (unsynced, names) in [
            (Unsynced::Lost, Names::AsSynced),
            (Unsynced::Torn, Names::AsSeen),
            (Unsynced::Torn, Names::AsSynced),
            (Unsynced::Kept, Names::AsSeen),
        ] {
            let when = format!("sync {nth}, bytes {unsynced:?}, names {names:?}");
            let folder = tempfile::tempdir().expect("a folder");
            moment.lay_out(folder.path(), unsynced, names);
            let options = FilesOptions { durability: Durability::Process, ..indexed() };
            let store = FilesStore::open(folder.path(), options).expect("a store");
            let of = |word| moment.acknowledged.iter().filter_map(move |line| line.strip_prefix(word)?.parse().ok());
            let retired: u64 = of("retired ").max().unwrap_or_default();
            let all = numbers(&store, &log).await;
            for kept in of("entry ").filter(|entry: &u64| *entry >= retired) {
                let found = store.find(&log, &[term(kept)]).await.expect("found");
                let found: Vec<u64> = found.iter().map(|entry| number(&entry.bytes)).filter(|n| *n == kept).collect();
                assert_eq!(found, [kept], "{when}: of {all:?}");
            }
            store.append(&log, &[entry(900)], Expect::Any, Durability::Process).await.expect("appended");
            let found = numbers(&store, &log).await;
            assert!(found.is_sorted_by(|one, next| one < next) && found.last() == Some(&900), "{when}: {found:?}");
        }
    }
}

#[tokio::test]
async fn the_store_in_memory_keeps_what_it_acknowledged_and_loses_what_it_may() {
    let log = key("inbox");
    for (fault, tail, expected) in [
        (None, Tail::Lost, "0 1 then ok, left 0 1"),
        (None, Tail::Kept, "0 1 then ok, left 0 1 2"),
        (None, Tail::Torn, "0 1 then ok, left 0 1 torn"),
        (Some(Fault::Fail), Tail::Kept, "0 then ok, left 0 2"),
        (Some(Fault::FailToSync), Tail::Lost, "0 then ok, left 0"),
        (Some(Fault::FailToSync), Tail::Kept, "0 then ok, left 0 1 2"),
        (Some(Fault::Forget), Tail::Lost, "0 1 then ok, left 0"),
        (Some(Fault::Tear), Tail::Kept, "0 then ok, left 0 torn 2"),
    ] {
        let store = MemoryStore::new();
        let mut acknowledged = Vec::new();
        for (nth, durability) in [(0, Durability::Synced), (1, Durability::Synced), (2, Durability::Process)] {
            if let Some(fault) = fault
                && nth == 1
            {
                store.fail_at(1, fault);
            }
            let appended = store.append(&log, &[entry(nth)], Expect::Any, durability).await;
            match (appended, durability) {
                (Ok(_), Durability::Synced) => acknowledged.push(nth.to_string()),
                (Ok(_), Durability::Process) => acknowledged.push("then ok,".to_owned()),
                (Err(_), _) => {}
            }
        }
        let left = store.crash(tail);
        let batch = left.read(&log, Position::START, 1 << 16).await.expect("read");
        let entries = batch.entries.iter().map(|entry| (entry.at, number(&entry.bytes).to_string()));
        let mut words: Vec<_> =
            entries.chain(batch.damage.iter().map(|damage| (damage.at, "torn".to_owned()))).collect();
        words.sort();
        let words: Vec<String> = words.into_iter().map(|(_, word)| word).collect();
        let found = format!("{} left {}", acknowledged.join(" "), words.join(" "));
        assert_eq!(found, expected, "{fault:?}, {tail:?}");
        assert_eq!(numbers(&store, &log).await.first(), Some(&0), "the store itself goes on");
    }
}
