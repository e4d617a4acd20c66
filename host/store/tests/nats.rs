//! The store on a real nats-server does what every store must do.

#[path = "../../../tests/support/src/nats_server.rs"]
mod nats_server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nats_server::NatsServer;
use store::conformance::{Pair, check};
use store::nats::{NatsOptions, NatsStore};

/// Two connections to one server, to streams that nobody else has.
fn pair(server: &NatsServer) -> Pair {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let open = |host: &str| {
        Arc::new(NatsStore::new(NatsOptions {
            servers: vec![server.url()],
            prefix: format!("T{number}"),
            host: host.to_owned(),
            ..NatsOptions::default()
        }))
    };
    Pair { one: open("one"), other: open("other") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nats_conforms() {
    let server = NatsServer::start();
    check(|| pair(&server)).await;
}
