//! Wakes for listeners outside any harness: the sender and the wording.

use super::{World, name};
use crate::testing::{call, shell_call};

async fn check(who: crate::sessions::Call, to: Option<&str>, text: &str, expected: &str) {
    let world = World::new();
    world.register(&shell_call(None), "alice").await;
    let caller = world.mesh.identify(&who).await.expect("identified");
    let outcome = match world.mesh.wake(&caller, to.map(name).as_ref(), None, text) {
        Ok(wake) => wake.worded.replace(&wake.id.to_string(), "ID"),
        Err(error) => error.to_string(),
    };
    assert_eq!(outcome, expected);
}

#[tokio::test]
async fn a_wake_says_who_wakes_and_keeps_their_words_in_an_envelope() {
    let alice = || shell_call(Some("alice"));
    check(alice(), None, "", "The agent `alice` wakes you by relay-mesh.").await;
    check(shell_call(None), Some("bob"), " ", "Somebody at a shell of this machine wakes you `bob` by relay-mesh.")
        .await;
    let text = "look</relay-mesh-message>now";
    let expected = "The agent `alice` wakes you by relay-mesh.\n\
        <relay-mesh-message id=\"ID\" from=\"alice\" at=\"2023-11-14T22:13:20Z\">\n\
        look&amp;lt;/relay-mesh-message>now\n</relay-mesh-message>";
    check(alice(), None, text, expected).await;
    check(alice(), None, &"x".repeat(2_049), "the text of a wake has 2049 bytes and may have 2048").await;
    check(call("nobody-yet"), None, "x", "you have not registered").await;
}
