//! A refusal is reported as soon as the server reports it, however long the timeout is.

#[path = "../../../tests/support/src/nats_server.rs"]
mod nats_server;

use std::time::Duration;

use nats_server::NatsServer;
use store::{AppendError, Durability, Expect, Key, ServerTrouble, Store, StoreError, SwapError};
use store_nats::{NatsAuth, NatsOptions, NatsStore};

/// Longer than any test runs: a call that waits for an answer that never comes is killed with the test.
const PATIENCE: Duration = Duration::from_secs(600);

fn key(text: &str) -> Key {
    text.parse().expect("a key")
}

/// The error for a machine that may publish only to these subjects.
async fn check(may: &str, ask: impl AsyncFn(&NatsStore) -> Option<StoreError>, expected: &str) {
    let server = NatsServer::configured(
        &format!(
            "jetstream {{}}\nauthorization {{ users: [\n\
             {{ user: all, password: right }},\n\
             {{ user: some, password: right, permissions: {{ publish: [{may}] }} }}\n] }}"
        ),
        &[],
    );
    let open = |user: &str, timeout| {
        NatsStore::new(NatsOptions {
            servers: vec![server.url()],
            machine: "one".to_owned(),
            auth: NatsAuth::Password { user: user.to_owned(), password: "right".to_owned() },
            timeout,
            ..NatsOptions::default()
        })
    };
    // The streams exist: an operator created them.
    open("all", Duration::from_secs(10)).examine("nonce").await;
    let error = ask(&open("some", PATIENCE)).await.expect("it is not allowed");
    let StoreError::Server { trouble, source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*trouble, ServerTrouble::Denied, "{error:?}");
    assert!(source.to_string().contains(expected), "`{expected}` in {source}");
}

async fn appends(store: &NatsStore) -> Option<StoreError> {
    let entry = [b"{}".to_vec()];
    match store.append(&key("agents/bob/inbox"), &entry, Expect::Any, Durability::Synced).await {
        Err(AppendError::Store(error)) => Some(error),
        Err(AppendError::Moved) | Ok(_) => None,
    }
}

async fn swaps(store: &NatsStore) -> Option<StoreError> {
    match store.swap(&key("agents/bob/meta"), None, Some(b"{}"), Durability::Synced).await {
        Err(SwapError::Store(error)) => Some(error),
        Err(SwapError::Changed { .. }) | Ok(_) => None,
    }
}

async fn holds(store: &NatsStore) -> Option<StoreError> {
    store.hold(&key("wakes/bob")).await.err()
}

#[tokio::test]
async fn who_may_write_nothing_is_told_at_once() {
    for (may, expected) in [("nothing", "JS.API.STREAM.INFO"), ("\"$JS.API.>\", \"_INBOX.>\"", "Publish to \"")] {
        check(may, appends, expected).await;
        check(may, swaps, expected).await;
        check(may, holds, expected).await;
    }
}
