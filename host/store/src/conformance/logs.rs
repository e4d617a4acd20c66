//! The promises about logs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Pair, append, key, number_of, numbered, read_all};
use crate::{AppendError, Durability, Expect, Position, Store, Term};

pub(super) async fn check(make: &impl Fn() -> Pair) {
    an_absent_log_reads_as_empty(make()).await;
    entries_come_back_in_order_to_everybody(make()).await;
    a_read_goes_on_where_the_last_one_ended(make()).await;
    what_is_not_json_on_one_line_is_refused(make()).await;
    an_append_that_expects_an_end_happens_only_there(make()).await;
    of_many_who_expect_one_end_one_is_served(make()).await;
    entries_of_one_append_have_nothing_in_between(make()).await;
    retired_entries_are_gone_and_the_rest_is_read_on(make()).await;
    a_removed_log_is_empty_and_can_begin_anew(make()).await;
    any_stretch_of_a_log_can_be_synced(make()).await;
    a_log_is_read_backwards(make()).await;
    entries_are_found_by_their_terms(make()).await;
    what_is_found_stays_found_while_a_log_grows(make()).await;
    entries_are_read_at_their_positions(make()).await;
}

async fn an_absent_log_reads_as_empty(pair: Pair) {
    let log = key("logs/absent");
    let batch = pair.one.read(&log, Position::START, 1000).await.expect("read");
    assert_eq!((batch.entries, batch.next, batch.at_end), (Vec::new(), Position::START, true));
    assert_eq!(pair.one.end(&log).await.expect("end"), Position::START);
    assert_eq!(pair.one.retire(&log, Position(u64::MAX)).await.expect("retired"), 0);
    pair.one.remove(&log).await.expect("removed");
    append_nothing(&*pair.one).await;
}

async fn append_nothing(store: &dyn Store) {
    let log = key("logs/nothing");
    let end = store.append(&log, &[], Expect::Any, Durability::Synced).await.expect("appended");
    assert_eq!(end, store.end(&log).await.expect("end"));
}

async fn entries_come_back_in_order_to_everybody(pair: Pair) {
    let log = key("logs/ordered");
    append(&*pair.one, &log, 0..3).await;
    append(&*pair.other, &log, 3..4).await;
    let entries = numbered(4..6);
    let end = pair.one.append(&log, &entries, Expect::Any, Durability::Synced).await.expect("appended");
    for store in [&pair.one, &pair.other] {
        let (numbers, read_to) = read_all(&**store, &log, Position::START, 1 << 20).await;
        assert_eq!(numbers, (0..6).collect::<Vec<_>>());
        assert_eq!(read_to, end);
        assert_eq!(store.end(&log).await.expect("end"), end);
    }
}

async fn a_read_goes_on_where_the_last_one_ended(pair: Pair) {
    let log = key("logs/continued");
    for number in 0..50 {
        append(&*pair.one, &log, number..number + 1).await;
    }
    for limit in [0, 1, 20, 100, 1 << 20] {
        let (numbers, end) = read_all(&*pair.other, &log, Position::START, limit).await;
        assert_eq!(numbers, (0..50).collect::<Vec<_>>(), "in pieces of {limit}");
        append(&*pair.one, &log, 50..51).await;
        assert_eq!(read_all(&*pair.other, &log, end, limit).await.0, [50], "from there on");
        let again = pair.one.read(&log, Position::START, 1 << 20).await.expect("read");
        let last = again.entries.last().expect("an entry");
        assert_eq!(read_all(&*pair.other, &log, last.at, limit).await.0, [50], "from an entry on");
        // Reset for the next limit.
        pair.one.remove(&log).await.expect("removed");
        append(&*pair.one, &log, 0..50).await;
    }
}

async fn what_is_not_json_on_one_line_is_refused(pair: Pair) {
    let log = key("logs/refused");
    for entry in [&b"{\n}"[..], b"", b"torn", b"{\"a\":", b"\"\xff\""] {
        let entries = [b"{}".to_vec(), entry.to_vec()];
        let refused = pair.one.append(&log, &entries, Expect::Any, Durability::Process).await;
        assert!(matches!(refused, Err(AppendError::Store(_))), "{entry:?}");
    }
    assert_eq!(pair.one.end(&log).await.expect("end"), Position::START, "nothing of a refused append is there");
}

async fn an_append_that_expects_an_end_happens_only_there(pair: Pair) {
    let log = key("logs/expected");
    let entries = numbered(0..1);
    let expecting = |store: Arc<dyn Store>, at| {
        let (log, entries) = (log.clone(), entries.clone());
        async move { store.append(&log, &entries, Expect::End(at), Durability::Process).await }
    };
    let first = expecting(Arc::clone(&pair.one), Position::START).await.expect("the log was empty");
    let late = expecting(Arc::clone(&pair.other), Position::START).await;
    assert!(matches!(late, Err(AppendError::Moved)), "{late:?}");
    let second = expecting(Arc::clone(&pair.other), first).await.expect("nothing had come since");
    assert!(second > first);
    assert!(matches!(expecting(pair.one, first).await, Err(AppendError::Moved)));
    assert_eq!(read_all(&*pair.other, &log, Position::START, 1000).await.0.len(), 2);
}

async fn of_many_who_expect_one_end_one_is_served(pair: Pair) {
    let log = key("logs/contended");
    let mut tasks = Vec::new();
    for task in 0..8_u64 {
        let (store, log) = (Arc::clone(if task % 2 == 0 { &pair.one } else { &pair.other }), log.clone());
        tasks.push(tokio::spawn(async move {
            // Each counts up to ten more, and decides again whenever another writer was faster.
            let mut done = 0;
            let mut at = Position::START;
            let mut count = 0;
            while done < 10 {
                let batch = store.read(&log, at, 1 << 20).await.expect("read");
                count += batch.entries.len() as u64;
                at = batch.next;
                if !batch.at_end {
                    continue;
                }
                match store.append(&log, &numbered(count..count + 1), Expect::End(at), Durability::Process).await {
                    Ok(_) => done += 1,
                    Err(AppendError::Moved) => {}
                    Err(AppendError::Store(error)) => panic!("{error}"),
                }
            }
        }));
    }
    for task in tasks {
        task.await.expect("a task");
    }
    let (numbers, _) = read_all(&*pair.one, &log, Position::START, 1 << 20).await;
    assert_eq!(numbers, (0..80).collect::<Vec<_>>());
}

async fn entries_of_one_append_have_nothing_in_between(pair: Pair) {
    let log = key("logs/together");
    let mut tasks = Vec::new();
    for task in 0..4_u64 {
        let (store, log) = (Arc::clone(if task % 2 == 0 { &pair.one } else { &pair.other }), log.clone());
        tasks.push(tokio::spawn(async move {
            for round in 0..10 {
                let start = (task * 10 + round) * 3;
                append(&*store, &log, start..start + 3).await;
            }
        }));
    }
    for task in tasks {
        task.await.expect("a task");
    }
    let batch = pair.one.read(&log, Position::START, 1 << 20).await.expect("read");
    let mut starts = BTreeMap::new();
    for three in batch.entries.chunks(3) {
        let numbers: Vec<u64> = three.iter().map(|entry| number_of(&entry.bytes)).collect();
        assert_eq!(numbers, (numbers[0]..numbers[0] + 3).collect::<Vec<_>>());
        *starts.entry(numbers[0]).or_insert(0) += 1;
    }
    assert_eq!(starts.into_values().collect::<Vec<_>>(), [1; 40], "each once");
}

async fn retired_entries_are_gone_and_the_rest_is_read_on(pair: Pair) {
    let log = key("logs/retired");
    let mut middle = Position::START;
    for number in 0..40 {
        let end = append(&*pair.one, &log, number..number + 1).await;
        if number == 19 {
            middle = end;
        }
    }
    let (_, end) = read_all(&*pair.other, &log, Position::START, 1000).await;
    assert_eq!(pair.other.retire(&log, Position::START).await.expect("retired"), 0);
    pair.other.retire(&log, middle).await.expect("retired");
    let (numbers, _) = read_all(&*pair.one, &log, Position::START, 1000).await;
    let first = *numbers.first().expect("entries that are kept");
    assert!(first <= 20, "nothing after the position is retired, and the first left is {first}");
    assert_eq!(numbers, (first..40).collect::<Vec<_>>());
    assert_eq!(read_all(&*pair.one, &log, middle, 1000).await.0, (20..40).collect::<Vec<_>>());
    // All entries may be retired; the end stays where it was, and reading continues from there.
    pair.one.retire(&log, end).await.expect("retired");
    assert_eq!(read_all(&*pair.other, &log, Position::START, 1000).await.0, Vec::<u64>::new());
    let at_end = pair.other.append(&log, &numbered(40..41), Expect::End(end), Durability::Process).await;
    at_end.expect("nothing was appended after the end");
    assert_eq!(read_all(&*pair.one, &log, end, 1000).await.0, [40]);
    assert_eq!(read_all(&*pair.one, &log, Position::START, 1000).await.0, [40]);
}

async fn a_removed_log_is_empty_and_can_begin_anew(pair: Pair) {
    let log = key("logs/removed");
    append(&*pair.one, &log, 0..10).await;
    let (_, old) = read_all(&*pair.other, &log, Position::START, 1000).await;
    pair.other.remove(&log).await.expect("removed");
    assert_eq!(read_all(&*pair.one, &log, Position::START, 1000).await.0, Vec::<u64>::new());
    append(&*pair.one, &log, 10..11).await;
    for from in [Position::START, old] {
        assert_eq!(read_all(&*pair.other, &log, from, 1000).await.0, [10], "from {from:?}");
    }
}

async fn any_stretch_of_a_log_can_be_synced(pair: Pair) {
    let log = key("logs/synced");
    for position in [Position::START, Position(1), Position(u64::MAX)] {
        pair.one.sync(&log, position).await.expect("there is nothing to sync");
    }
    assert_eq!(pair.one.end(&log).await.expect("end"), Position::START, "syncing begins no log");
    let mut ends = Vec::new();
    for number in 0..40 {
        ends.push(append(&*pair.one, &log, number..number + 1).await);
    }
    for end in ends.iter().rev().chain([&Position(u64::MAX)]) {
        pair.other.sync(&log, *end).await.expect("synced");
    }
    pair.one.retire(&log, ends[30]).await.expect("retired");
    for end in &ends {
        pair.other.sync(&log, *end).await.expect("what is retired needs no sync");
    }
    assert_eq!(pair.one.end(&log).await.expect("end"), ends[39], "syncing changes nothing");
}

async fn a_log_is_read_backwards(pair: Pair) {
    let (log, between) = (key("logs/backwards"), key("logs/between"));
    let nothing = pair.one.read_back(&log, Position::START, 100).await.expect("read");
    assert_eq!((nothing.entries.len(), nothing.at_end), (0, true));
    let mut ends = Vec::new();
    for number in 0..40 {
        append(&*pair.one, &between, number..number + 1).await;
        ends.push(append(&*pair.one, &log, number..number + 1).await);
    }
    append(&*pair.one, &between, 0..1_000).await;
    for limit in [0, 1, 50, 1 << 20] {
        for count in [40, 17, 1] {
            let (mut numbers, mut before) = (Vec::new(), ends[count - 1]);
            loop {
                let batch = pair.other.read_back(&log, before, limit).await.expect("read");
                assert!(batch.entries.is_sorted_by_key(|entry| entry.at), "{batch:?}");
                assert!(batch.at_end || !batch.entries.is_empty(), "at least one entry, or the beginning");
                numbers.extend(batch.entries.iter().rev().map(|entry| number_of(&entry.bytes)));
                if batch.at_end {
                    break;
                }
                before = batch.next;
            }
            numbers.reverse();
            assert_eq!(numbers, (0..count as u64).collect::<Vec<_>>(), "{count} in pieces of {limit}");
        }
    }
    pair.one.retire(&log, ends[39]).await.expect("retired");
    let nothing = pair.other.read_back(&log, ends[39], 100).await.expect("read");
    assert_eq!((nothing.entries.len(), nothing.at_end), (0, true), "retired entries are gone");
}

async fn entries_are_found_by_their_terms(pair: Pair) {
    let log = key("logs/found");
    let terms = |numbers: &[u64]| -> Vec<Term> {
        numbers.iter().map(|number| Term::growing(format!("\"n\":{number}}}"))).collect()
    };
    assert_eq!(pair.one.find(&log, &terms(&[1])).await.expect("found"), []);
    append(&*pair.one, &log, 0..40).await;
    append(&*pair.one, &log, 7..8).await;
    for (asked, expected) in [(&[7][..], &[7, 7][..]), (&[39, 3], &[3, 39]), (&[99], &[]), (&[], &[])] {
        let found = pair.other.find(&log, &terms(asked)).await.expect("found");
        let numbers: Vec<u64> = found.iter().map(|entry| number_of(&entry.bytes)).collect();
        assert_eq!(numbers, expected, "{asked:?}");
        let (from, _) = read_all(&*pair.one, &log, Position::START, 1 << 20).await;
        assert_eq!(from.len(), 41);
        for entry in found {
            let there = pair.one.read(&log, entry.at, 1).await.expect("read");
            assert_eq!(there.entries.first(), Some(&entry), "its position is where it is read");
        }
    }
}

async fn what_is_found_stays_found_while_a_log_grows(pair: Pair) {
    let log = key("logs/growing");
    let found = async |numbers: &[u64]| -> Vec<u64> {
        let terms: Vec<Term> = numbers.iter().map(|number| Term::growing(format!("\"n\":{number}}}"))).collect();
        let mut both = Vec::new();
        for store in [&pair.one, &pair.other] {
            let found = store.find(&log, &terms).await.expect("found");
            both.push(found.iter().map(|entry| number_of(&entry.bytes)).collect::<Vec<_>>());
        }
        assert_eq!(both[0], both[1], "what one finds, another one finds");
        both.swap_remove(0)
    };
    let mut middle = Position::START;
    for round in 0..5_u64 {
        // Each round ends with a number of the first one, so that the numbers do not only grow.
        for number in round * 100..round * 100 + 99 {
            append(&*pair.one, &log, number..number + 1).await;
        }
        let end = append(&*pair.other, &log, round..round + 1).await;
        middle = if round == 2 { end } else { middle };
        let last = round * 100 + 98;
        assert_eq!(found(&[round]).await, [round, round], "round {round}");
        assert_eq!(found(&[last, 50]).await, [50, last], "round {round}");
        assert_eq!(found(&[last + 1]).await, [0; 0], "what is not there, in round {round}");
    }
    pair.one.retire(&log, middle).await.expect("retired");
    let (left, _) = read_all(&*pair.other, &log, Position::START, 1 << 20).await;
    for number in [0, 3, 4, 50, 250, 298, 350, 498] {
        let expected: Vec<u64> = left.iter().copied().filter(|one| *one == number).collect();
        assert_eq!(found(&[number]).await, expected, "{number}, after the older ones were retired");
    }
    pair.other.remove(&log).await.expect("removed");
    assert_eq!(found(&[350, 498]).await, [0; 0], "nothing is left of a removed log");
    append(&*pair.one, &log, 498..499).await;
    assert_eq!(found(&[350, 498]).await, [498], "it begins anew");
}

async fn entries_are_read_at_their_positions(pair: Pair) {
    let (log, other) = (key("logs/places"), key("logs/elsewhere"));
    // Some appends of one entry and some of several, with another log's in between.
    for number in 0..30 {
        append(&*pair.one, &log, number * 3..number * 3 + 1).await;
        append(&*pair.one, &other, number..number + 1).await;
        append(&*pair.one, &log, number * 3 + 1..number * 3 + 3).await;
    }
    let all = pair.other.read(&log, Position::START, 1 << 20).await.expect("read").entries;
    assert_eq!(all.len(), 90);
    for every in [1, 2, 7, 89] {
        let wanted: Vec<_> = all.iter().step_by(every).cloned().collect();
        // In no order, and one of them twice.
        let mut at: Vec<Position> = wanted.iter().rev().map(|entry| entry.at).collect();
        at.push(at[0]);
        assert_eq!(pair.one.entries_at(&log, &at).await.expect("read"), wanted, "every {every}");
    }
    assert_eq!(pair.one.entries_at(&log, &[]).await.expect("read"), []);
    let gone = [pair.one.end(&log).await.expect("end"), Position(u64::MAX)];
    assert_eq!(pair.one.entries_at(&log, &gone).await.expect("read"), [], "there is nothing");
    let foreign = pair.one.read(&other, Position::START, 1).await.expect("read").entries[0].at;
    let here = pair.one.entries_at(&log, &[foreign]).await.expect("read");
    assert!(here.iter().all(|entry| all.contains(entry)), "of this log alone: {here:?}");
    pair.one.retire(&log, all[60].at).await.expect("retired");
    let kept = pair.one.read(&log, Position::START, 1 << 20).await.expect("read").entries;
    let at: Vec<Position> = all.iter().map(|entry| entry.at).collect();
    assert_eq!(pair.other.entries_at(&log, &at).await.expect("read"), kept, "what was retired is gone");
}
