//! Agents and their mail as the user sees them, with `relay-mesh agents` and `relay-mesh read`.

use serde_json::Value;

use crate::stage::Stage;

/// The session that an agent is bound to.
pub fn session_of(stage: &Stage, name: &str) -> Option<String> {
    agent(stage, name)?["session"].as_str().map(str::to_owned)
}

/// An agent's presence: `busy`, `needs-input`, `idle`, `away` or `offline`.
pub fn presence_of(stage: &Stage, name: &str) -> Option<String> {
    agent(stage, name)?["presence"].as_str().map(str::to_owned)
}

/// The names of all agents.
pub fn agents(stage: &Stage) -> Vec<String> {
    listed(stage).iter().filter_map(|agent| agent["name"].as_str().map(str::to_owned)).collect()
}

/// An agent's unread mail.
pub fn unread(stage: &Stage, name: &str) -> Vec<String> {
    let mail = said(&stage.relay_ok(&["read", "--agent", name, "--unread", "--json"]));
    let messages = mail["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().map(ToString::to_string).collect()
}

/// The texts of a list of messages, in its order.
pub fn bodies(mail: &Value) -> Vec<String> {
    let messages = mail["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().map(|message| message["body"].as_str().unwrap_or_default().to_owned()).collect()
}

fn agent(stage: &Stage, name: &str) -> Option<Value> {
    listed(stage).into_iter().find(|agent| agent["name"] == name)
}

fn listed(stage: &Stage) -> Vec<Value> {
    said(&stage.relay_ok(&["agents", "--json"]))["agents"].as_array().cloned().unwrap_or_default()
}

fn said(words: &str) -> Value {
    serde_json::from_str(words).expect("--json writes JSON")
}
