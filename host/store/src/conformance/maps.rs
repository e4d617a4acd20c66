//! The promises about maps and holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::timeout;

use super::{PATIENCE, Pair, key};
use crate::{ChildLeaf, Durability, Key, Leaf, Moved, Moving, Revision, Store, SwapError};

pub(super) async fn check(make: &impl Fn() -> Pair) {
    a_value_is_there_for_everybody_until_it_is_removed(make()).await;
    a_swap_happens_only_at_the_expected_revision(make()).await;
    revisions_go_on_after_a_value_was_removed(make()).await;
    of_many_who_swap_at_once_each_counts_once(make()).await;
    what_is_not_json_is_no_value(make()).await;
    keys_are_listed_under_a_prefix_in_order(make()).await;
    many_children_are_read_at_once(make()).await;
    one_at_a_time_holds_a_key(make()).await;
    where_no_hosts_are_kept_apart_a_home_needs_no_moving(make()).await;
}

async fn swap(
    store: &dyn Store,
    at: &Key,
    expected: Option<Revision>,
    next: Option<&str>,
) -> Result<Option<Revision>, SwapError> {
    store.swap(at, expected, next.map(str::as_bytes), Durability::Process).await
}

async fn value(store: &dyn Store, at: &Key) -> Option<(u64, String)> {
    let found = store.get(at).await.expect("read");
    found.map(|found| (found.revision.0, String::from_utf8(found.bytes).expect("text")))
}

async fn a_value_is_there_for_everybody_until_it_is_removed(pair: Pair) {
    let at = key("map/one");
    assert_eq!(value(&*pair.one, &at).await, None);
    assert_eq!(swap(&*pair.one, &at, None, None).await.expect("nothing to remove"), None);
    let first = pair.one.swap(&at, None, Some(b"{\"a\":1}"), Durability::Synced).await.expect("swapped");
    let first = first.expect("a revision");
    assert_ne!(first, Revision(0));
    assert_eq!(value(&*pair.other, &at).await, Some((first.0, "{\"a\":1}".to_owned())));
    let second = swap(&*pair.other, &at, Some(first), Some("[2]")).await.expect("swapped").expect("a revision");
    assert!(second > first);
    assert_eq!(value(&*pair.one, &at).await, Some((second.0, "[2]".to_owned())));
    let removed = pair.one.swap(&at, Some(second), None, Durability::Synced).await.expect("removed");
    assert_eq!(removed, None);
    assert_eq!(value(&*pair.other, &at).await, None);
}

async fn a_swap_happens_only_at_the_expected_revision(pair: Pair) {
    let at = key("map/expected");
    let wrong = swap(&*pair.one, &at, Some(Revision(1)), Some("1")).await;
    assert!(matches!(wrong, Err(SwapError::Changed { current: None })), "{wrong:?}");
    let revision = swap(&*pair.one, &at, None, Some("1")).await.expect("swapped");
    for (expected, next) in [(None, Some("2")), (None, None), (Some(Revision(u64::MAX)), Some("2"))] {
        match swap(&*pair.other, &at, expected, next).await {
            Err(SwapError::Changed { current }) => assert_eq!(current, revision),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(value(&*pair.other, &at).await.map(|(_, text)| text), Some("1".to_owned()));
}

async fn revisions_go_on_after_a_value_was_removed(pair: Pair) {
    let at = key("map/again");
    let mut last = Revision(0);
    for round in 0..3 {
        let next = swap(&*pair.one, &at, None, Some("1")).await.expect("swapped").expect("a revision");
        assert!(next > last, "round {round}: {next:?} after {last:?}");
        swap(&*pair.other, &at, Some(next), None).await.expect("removed");
        last = next;
    }
}

async fn of_many_who_swap_at_once_each_counts_once(pair: Pair) {
    let at = key("map/counter");
    let mut tasks = Vec::new();
    for task in 0..8 {
        let (store, at) = (Arc::clone(if task % 2 == 0 { &pair.one } else { &pair.other }), at.clone());
        tasks.push(tokio::spawn(async move {
            let mut done = 0;
            while done < 10 {
                let found = store.get(&at).await.expect("read");
                let (revision, count) = match found {
                    Some(found) => {
                        let text = String::from_utf8(found.bytes).expect("text");
                        (Some(found.revision), text.parse::<u64>().expect("a number"))
                    }
                    None => (None, 0),
                };
                let next = (count + 1).to_string();
                match store.swap(&at, revision, Some(next.as_bytes()), Durability::Process).await {
                    Ok(_) => done += 1,
                    Err(SwapError::Changed { .. }) => {}
                    Err(SwapError::Store(error)) => panic!("{error}"),
                }
            }
        }));
    }
    for task in tasks {
        task.await.expect("a task");
    }
    assert_eq!(value(&*pair.one, &at).await.map(|(_, text)| text), Some("80".to_owned()));
}

async fn what_is_not_json_is_no_value(pair: Pair) {
    let at = key("map/refused");
    for text in ["", "{", "torn"] {
        assert!(matches!(swap(&*pair.one, &at, None, Some(text)).await, Err(SwapError::Store(_))), "{text:?}");
    }
    assert_eq!(value(&*pair.one, &at).await, None);
}

async fn keys_are_listed_under_a_prefix_in_order(pair: Pair) {
    for text in ["a/b", "a/b/c", "a/b/c/d", "a/bc", "a/a", "b/x"] {
        swap(&*pair.one, &key(text), None, Some("1")).await.expect("swapped");
    }
    let log = key("a/b/log");
    super::append(&*pair.one, &log, 0..1).await;
    for (prefix, expected) in [
        ("a", &["a/a", "a/b", "a/b/c", "a/b/c/d", "a/bc"][..]),
        ("a/b", &["a/b", "a/b/c", "a/b/c/d"]),
        ("a/b/c/d", &["a/b/c/d"]),
        ("c", &[]),
        ("a/b/log", &[]),
    ] {
        let keys = pair.other.list(&key(prefix)).await.expect("listed");
        assert_eq!(keys, expected.iter().map(|text| key(text)).collect::<Vec<_>>(), "under {prefix}");
    }
}

async fn many_children_are_read_at_once(pair: Pair) {
    // Enough children that a store with several threads uses them.
    let many: Vec<Key> = (0..300).map(|number| key("many").child(&format!("one-{number}"))).collect();
    for (number, at) in many.iter().enumerate() {
        swap(&*pair.one, &at.child("meta"), None, Some(&number.to_string())).await.expect("swapped");
    }
    swap(&*pair.one, &many[7].child("beat"), None, Some("[7]")).await.expect("swapped");
    super::append(&*pair.one, &many[8].child("mail"), 0..1).await;
    // None of these is a child: no such value, a value of its own, one further below, a log.
    for text in ["many/without/beat", "many/alone", "many/deep/er/meta"] {
        swap(&*pair.one, &key(text), None, Some("1")).await.expect("swapped");
    }
    super::append(&*pair.one, &key("many/logs/meta"), 0..1).await;
    let gone = swap(&*pair.one, &key("many/gone/meta"), None, Some("1")).await.expect("swapped");
    swap(&*pair.one, &key("many/gone/meta"), gone, None).await.expect("removed");
    let beside = [Leaf::Value("beat"), Leaf::Log("mail")];
    let seen = super::children(&*pair.other, &key("many"), "meta", &beside).await;
    let mut expected: Vec<_> = many.iter().map(Key::leaf).collect();
    expected.sort();
    assert_eq!(seen.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), expected);
    for (name, value, beside) in seen {
        let number = name.strip_prefix("one-").expect("one of the many");
        assert_eq!(value, number.as_bytes(), "{name}");
        match (&beside[..], number) {
            ([ChildLeaf::Unknown, ChildLeaf::Unknown], _) => {}
            ([ChildLeaf::Value(Ok(beat)), ChildLeaf::Nothing], "7") => assert_eq!(beat.bytes, b"[7]"),
            ([ChildLeaf::Nothing, ChildLeaf::Unknown | ChildLeaf::Appends(1)], "8") => {}
            ([ChildLeaf::Nothing, ChildLeaf::Nothing], number) => assert!(!["7", "8"].contains(&number), "{number}"),
            (beside, number) => panic!("beside {number}: {beside:?}"),
        }
    }
    // A second read sees the changes since: one added, one changed, one added and removed, one removed.
    let meta = |number: usize| many[number].child("meta");
    swap(&*pair.one, &key("many/late/meta"), None, Some("\"late\"")).await.expect("swapped");
    let (revision, _) = value(&*pair.one, &meta(3)).await.expect("a value");
    swap(&*pair.one, &meta(3), Some(Revision(revision)), Some("\"new\"")).await.expect("swapped");
    let brief = swap(&*pair.one, &key("many/brief/meta"), None, Some("1")).await.expect("swapped");
    swap(&*pair.one, &key("many/brief/meta"), brief, None).await.expect("removed");
    let (revision, _) = value(&*pair.one, &meta(4)).await.expect("a value");
    swap(&*pair.one, &meta(4), Some(Revision(revision)), None).await.expect("removed");
    let seen = super::children(&*pair.other, &key("many"), "meta", &[]).await;
    let values: BTreeMap<String, Vec<u8>> = seen.into_iter().map(|(name, value, _)| (name, value)).collect();
    assert_eq!(values.len(), many.len());
    for (name, expected) in
        [("late", Some("\"late\"")), ("one-3", Some("\"new\"")), ("one-4", None), ("one-5", Some("5")), ("brief", None)]
    {
        assert_eq!(values.get(name).map(Vec::as_slice), expected.map(str::as_bytes), "{name}");
    }
    assert!(super::children(&*pair.other, &key("nobody"), "meta", &beside).await.is_empty());
}

async fn one_at_a_time_holds_a_key(pair: Pair) {
    let at = key("routes/wakes");
    let held = pair.one.hold(&at).await.expect("asked").expect("nobody had it");
    assert_eq!(held.key(), &at);
    assert!(pair.other.hold(&at).await.expect("asked").is_none(), "somebody else has it");
    assert!(pair.one.hold(&at).await.expect("asked").is_none(), "one has it already");
    assert!(pair.other.hold(&key("routes/other")).await.expect("asked").is_some());
    drop(held);
    // A store that has to tell its server releases it soon, but not at once.
    let given_back = timeout(PATIENCE, async {
        while pair.other.hold(&at).await.expect("asked").is_none() {
            tokio::task::yield_now().await;
        }
    });
    given_back.await.expect("it was given back");
}

async fn where_no_hosts_are_kept_apart_a_home_needs_no_moving(pair: Pair) {
    let (home, log) = (key("agents/alice"), key("agents/alice/receipts"));
    let moving = Moving { home: &home, left: &[], decides: &log, fence: b"{}" };
    assert_eq!(pair.other.move_home(&moving).await.expect("asked"), None, "nobody is there");
    let at = key("agents/alice/meta");
    swap(&*pair.one, &at, None, Some("{}")).await.expect("swapped");
    assert_eq!(pair.other.move_home(&moving).await.expect("asked"), Some(Moved::default()), "and nothing is moved");
    assert_eq!(value(&*pair.other, &at).await.map(|(_, text)| text).as_deref(), Some("{}"));
}
