//! Interfaces of other versions: a component built against 0.1.0 keeps working, and one that needs more than this host
//! offers is refused in one sentence.

mod common;

use std::path::Path;

use common::{Stage, component, hook};
use mesh::ports::harness::{Carries, Harnesses as _, Occasion, Severity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn the_kept_interface_is_the_one_that_ships() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["adapter.wit", "host.wit", "types.wit"] {
        let read = |folder: &str| std::fs::read_to_string(root.join(folder).join(name)).expect("it can be read");
        assert_eq!(
            read("wit/v0.1"),
            read("tests/hostile/frozen/wit"),
            "until 0.1.0 ships, copy wit/v0.1/{name} to tests/hostile/frozen/wit; after that, see the README there"
        );
    }
}

#[tokio::test]
async fn an_adapter_of_0_1_0_loads_and_uses_all_of_it() {
    let stage = Stage::with(&["frozen"]);
    stage.grant(&["state", "notices", "roots.config", "origins.api", "endpoints.lines", "programs.echo"]);
    std::fs::write(stage.home().join(".hostile/notes"), "noted").expect("written");
    let listener = tokio::net::UnixListener::bind(stage.home().join(".hostile/a.sock")).expect("a socket");
    let adapters = stage.adapters();
    let frozen = adapters.get("frozen").await.expect("it loads").expect("it is known");
    assert_eq!(frozen.about().title, "An adapter of 0.1.0");
    assert_eq!(frozen.discover().await.expect("an answer").len(), 1);
    assert_eq!(frozen.protocol("base", Occasion::Compaction, None).await.expect("an answer").as_deref(), Some("base"));
    assert_eq!(frozen.check(&common::setup()).await.expect("an answer")[0].severity, Severity::Ok);
    let one = &frozen.discover().await.expect("an answer")[0];
    assert_eq!(frozen.routes(one).await.expect("an answer")[0].carries, Carries::Message);
    let echoing = async {
        let (mut peer, _) = listener.accept().await.expect("a peer");
        let mut line = vec![0; 100];
        let read = peer.read(&mut line).await.expect("a line");
        peer.write_all(&line[..read]).await.expect("answered");
        // Kept open until the other side closes.
        peer.read(&mut line).await.expect("the end")
    };
    let (reply, _) = tokio::join!(hook(&adapters, "frozen", "any"), echoing);
    let told = reply.expect("it answers").stdout.unwrap_or_default();
    let expected = "1700000000000 Some(\"kept\") [\"a.sock\", \"notes\"] noted false echoed true Some(\"hello\") false";
    assert_eq!(told.replace(" [\"key\"]", ""), expected);
}

async fn check_too_new(name: &str, expected: &str) {
    let stage = Stage::with(&["polite"]);
    stage.put(name, &component(name));
    let told = match stage.adapters().adapter(name).await {
        Ok(found) => format!("loaded: {}", found.is_some()),
        Err(error) => error.to_string(),
    };
    assert_eq!(told, expected);
}

#[tokio::test]
async fn one_that_needs_a_newer_host_says_which() {
    check_too_new(
        "too-new",
        "the adapter `too-new` is written for interface 0.2.0, and this relay-mesh supports 0.1.0: update relay-mesh \
         to one that supports 0.2.0 or later, or build the adapter against an older sdk",
    )
    .await;
    check_too_new(
        "newer",
        "the adapter `newer` is written for interface 0.1.9, and this relay-mesh supports 0.1.0: update relay-mesh \
         to one that supports 0.1.9 or later, or build the adapter against an older sdk",
    )
    .await;
}
