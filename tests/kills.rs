//! The real clients, each killed between the hand-over of a message and the request to its model that would have held
//! it, at every route. Opened again, each brings the message to its model, marked as perhaps repeated if its text had
//! gone out, and no status said "shown" before. What is seen here is the table of evidence in docs/receipts.md.

#[path = "kills/claude_code.rs"]
mod claude_code;
#[path = "kills/codex.rs"]
mod codex;
#[path = "kills/gemini.rs"]
mod gemini;
#[path = "kills/opencode.rs"]
mod opencode;

use std::sync::Arc;

use test_support::{Stage, presence_of, wait_for};

const TEXT: &str = "Mind the gap";

fn stage() -> Arc<Stage> {
    Arc::new(Stage::new(env!("CARGO_BIN_EXE_relay-mesh")))
}

/// What arrives unasked wakes an idle session at once. Of low priority, it waits for a hook.
const QUIETLY: &[&str] = &["--priority", "low"];

fn is_missed(stage: &Stage) {
    wait_for("the session is missed", || (presence_of(stage, "alice")? == "offline").then_some(()));
}

/// The id of alice's only message.
fn only(stage: &Stage) -> String {
    let mail: serde_json::Value =
        serde_json::from_str(&stage.relay_ok(&["read", "--agent", "alice", "--json"])).expect("--json writes JSON");
    mail["messages"][0]["id"].as_str().expect("a message has an id").to_owned()
}
