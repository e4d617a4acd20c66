//! What both kinds of kills ask of a stage.

use test_support::{Stage, presence_of, wait_for};

pub(crate) const TEXT: &str = "Mind the gap";

/// What arrives unasked wakes an idle session at once. Of low priority, it waits for a hook.
pub(crate) const QUIETLY: &[&str] = &["--priority", "low"];

pub(crate) fn is_missed(stage: &Stage) {
    wait_for("the session is missed", || (presence_of(stage, "alice")? == "offline").then_some(()));
}

/// The id of alice's only message.
pub(crate) fn only(stage: &Stage) -> String {
    let mail: serde_json::Value =
        serde_json::from_str(&stage.relay_ok(&["read", "--agent", "alice", "--json"])).expect("--json writes JSON");
    mail["messages"][0]["id"].as_str().expect("a message has an id").to_owned()
}
