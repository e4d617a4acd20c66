//! Lines written besides a message, in a long-lived process: batched, and written once and in order.

use std::sync::Arc;

use store::{Key, Position, Store as _};
use tokio_util::sync::CancellationToken;

use super::machines::{Host, LinkState, two};
use super::{draft, name};
use crate::Served;
use crate::storage::{keys, records};
use crate::testing::session_call;

fn log() -> Key {
    keys::sent(&name("alice"))
}

/// A machine whose long-lived process batches.
async fn gathering() -> (Host, CancellationToken, tokio::task::JoinHandle<()>) {
    let (one, _) = two().await;
    let stop = CancellationToken::new();
    let serving = tokio::spawn(Arc::clone(&one.mesh).deliver(Served::Everyone, stop.clone()));
    // Lines are batched from the time of its first run.
    tokio::task::yield_now().await;
    (one, stop, serving)
}

/// The written lines, abbreviated.
async fn written(host: &Host) -> Vec<String> {
    let mut lines = Vec::new();
    let take = |entry: store::Entry| {
        lines.push(String::from_utf8_lossy(&entry.bytes).trim_matches('"').trim_end_matches('.').to_owned());
    };
    records::scan(&host.servers.store, &log(), Position::START, take).await.expect("read");
    lines
}

#[tokio::test]
async fn what_is_noted_beside_a_sending_is_known_at_once_and_written_in_the_end() {
    let (one, stop, serving) = gathering().await;
    let call = session_call("c", "s1");
    assert_eq!(one.register(&call, "carol").await, "carol");
    let carol = one.mesh.identify(&call).await.expect("identified");
    let sent = one.mesh.send(&carol, &["bob".to_owned()], draft("hello")).await.expect("sent");
    let status = one.mesh.message_status(&carol, sent.id).await.expect("she knows what she sent");
    assert_eq!(status.recipients[0].to, name("bob"));
    stop.cancel();
    serving.await.expect("it ends");
    let there = one.servers.store.end(&keys::sent(&name("carol"))).await.expect("read");
    assert!(there > Position::START, "whoever asks later finds it written");
}

#[tokio::test(start_paused = true)]
async fn what_waited_for_the_servers_is_written_once_and_in_order_and_not_without_end() {
    let (one, stop, serving) = gathering().await;
    one.line(LinkState::Cut);
    // More than one write holds.
    let long = ".".repeat(50_000);
    for number in 0..20 {
        one.mesh.core.event_log.write_behind.log_line(&log(), &format!("{number}{long}")).await.expect("gathered");
    }
    for number in 20..10_020 {
        one.mesh
            .core
            .event_log
            .write_behind
            .log_line(&log(), &number.to_string())
            .await
            .expect("gathered or let go of");
    }
    one.line(LinkState::Good);
    stop.cancel();
    serving.await.expect("it ends");
    let expected: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
    assert!(written(&one).await == expected, "each of the first ten thousand once, and in order");
}
