//! The promises about watches: they may wake without a change, and never miss one.

use std::future::Future;
use std::sync::Arc;

use tokio::time::timeout;

use super::{PATIENCE, Pair, append, key, read_all};
use crate::{Durability, Key, Position, Store, Watch};

pub(super) async fn check(make: &impl Fn() -> Pair) {
    a_watch_tells_of_logs_and_values_that_are_not_there_yet(make()).await;
    a_change_before_the_wait_is_told(make()).await;
    a_wait_that_was_given_up_loses_nothing(make()).await;
    one_watch_covers_several_keys(make()).await;
    a_follower_of_a_log_misses_nothing(make()).await;
}

/// Waits for news until a condition holds; a store that misses the news fails here.
async fn until<Truth: Future<Output = bool>>(watch: &mut dyn Watch, mut truth: impl FnMut() -> Truth) {
    let waited = timeout(PATIENCE, async {
        while !truth().await {
            watch.changed().await.expect("a watch");
        }
    });
    waited.await.expect("a watch tells of every change");
}

async fn watch(store: &dyn Store, under: &str) -> Box<dyn Watch> {
    store.watch(&[key(under)]).await.expect("a watch")
}

async fn a_watch_tells_of_logs_and_values_that_are_not_there_yet(pair: Pair) {
    for (under, change) in
        [("w1/bob/inbox", "w1/bob/inbox"), ("w2", "w2/bob/inbox"), ("w3/bob", "w3/bob/deep/down/inbox")]
    {
        let mut news = watch(&*pair.one, under).await;
        let at = key(change);
        append(&*pair.other, &at, 0..1).await;
        until(&mut *news, || async { pair.one.end(&at).await.expect("end") != Position::START }).await;
        let meta = at.child("meta");
        pair.other.swap(&meta, None, Some(b"1"), Durability::Process).await.expect("swapped");
        until(&mut *news, || async { pair.one.get(&meta).await.expect("read").is_some() }).await;
        let revision = pair.one.get(&meta).await.expect("read").map(|value| value.revision);
        pair.other.swap(&meta, revision, None, Durability::Process).await.expect("removed");
        until(&mut *news, || async { pair.one.get(&meta).await.expect("read").is_none() }).await;
    }
}

async fn a_change_before_the_wait_is_told(pair: Pair) {
    let at = key("watched/before");
    append(&*pair.one, &at, 0..1).await;
    let mut news = watch(&*pair.one, "watched/before").await;
    append(&*pair.other, &at, 1..2).await;
    timeout(PATIENCE, news.changed()).await.expect("told of what came before the wait").expect("a watch");
}

async fn a_wait_that_was_given_up_loses_nothing(pair: Pair) {
    let at = key("watched/given-up");
    append(&*pair.one, &at, 0..1).await;
    let mut news = watch(&*pair.one, "watched").await;
    for round in 1..20 {
        {
            // Polled once and dropped, as `select!` does with a branch that is not ready.
            let waiting = news.changed();
            tokio::pin!(waiting);
            tokio::select! { biased; _ = &mut waiting => {}, () = std::future::ready(()) => {} }
        }
        append(&*pair.other, &at, round..round + 1).await;
        let seen = || async { read_all(&*pair.one, &at, Position::START, 1 << 20).await.0.len() as u64 == round + 1 };
        until(&mut *news, seen).await;
    }
}

async fn one_watch_covers_several_keys(pair: Pair) {
    let keys: Vec<Key> = ["several/a", "several/b", "elsewhere/c"].map(key).to_vec();
    let mut news = pair.one.watch(&keys).await.expect("a watch");
    for at in &keys {
        append(&*pair.other, at, 0..1).await;
        until(&mut *news, || async { pair.one.end(at).await.expect("end") != Position::START }).await;
    }
}

/// A reader that only ever reads after news must see everything, also over retired segments.
async fn a_follower_of_a_log_misses_nothing(pair: Pair) {
    const ENTRIES: u64 = 300;
    let at = key("followed/inbox");
    let mut news = watch(&*pair.one, "followed/inbox").await;
    let (writer, log) = (Arc::clone(&pair.other), at.clone());
    let writing = tokio::spawn(async move {
        for number in 0..ENTRIES {
            append(&*writer, &log, number..number + 1).await;
            if number % 7 == 0 {
                tokio::task::yield_now().await;
            }
        }
    });
    let (mut numbers, mut from) = (Vec::new(), Position::START);
    let followed = timeout(PATIENCE, async {
        while numbers.len() < usize::try_from(ENTRIES).expect("a small number") {
            news.changed().await.expect("a watch");
            let (more, next) = read_all(&*pair.one, &at, from, 200).await;
            numbers.extend(more);
            from = next;
        }
    });
    followed.await.expect("a watch tells of every change");
    writing.await.expect("a writer");
    assert_eq!(numbers, (0..ENTRIES).collect::<Vec<_>>());
}
