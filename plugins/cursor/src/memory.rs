//! What the adapter remembers between calls, in its state on this machine.
//!
//! - `call/HEX`: a call of one of our tools that a hook has seen, and its conversation. The hook writes it; the
//!   matching tools/call takes it, or the hook after the tool.
//! - `another/TOOL`: another server of this user has a tool of that name, so its calls get no ticket.
//! - `compacted/ID`: a conversation that was compacted and has not got the protocol since.

use relay_mesh_sdk::plan::digest;
use relay_mesh_sdk::{Error, dated_state, state};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::payload::ToolCall;

/// The longest time from a call's hook to the server: the user may have to allow the call first.
pub(crate) const CALLS_LAST: u64 = 10 * 60_000;
/// After a month without a call, the names of another server's tools are free again.
const OTHERS_LAST: u64 = 30 * 24 * 3_600_000;

/// A call that a hook saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) conversation: String,
    pub(crate) workspaces: Vec<String>,
    tool: String,
    /// A digest of the arguments that does not depend on the order of their members.
    arguments: String,
}

impl Note {
    pub(crate) fn new(conversation: &str, workspaces: &[String], tool: &str, arguments: &Map<String, Value>) -> Note {
        Note {
            conversation: conversation.to_owned(),
            workspaces: workspaces.to_vec(),
            tool: tool.to_owned(),
            arguments: digest_of(arguments),
        }
    }

    fn is_of(&self, tool: &str, arguments: &Map<String, Value>) -> bool {
        self.tool == tool && self.arguments == digest_of(arguments)
    }
}

/// Remembers a call. If two hooks report the same call, it is stored once.
pub(crate) fn remember_call(call: &ToolCall, note: &Note) -> Result<(), Error> {
    dated_state::write(&key_of(call, note), note)
}

/// Remembers a call unless the hook before any tool has stored it: that hook has the call's id, and this one does
/// not.
pub(crate) fn remember_unless_seen(call: &ToolCall, note: &Note) -> Result<(), Error> {
    match calls()?.iter().any(|(_, _, seen)| seen == note) {
        true => Ok(()),
        false => remember_call(call, note),
    }
}

/// Forgets a call that has ended, or that was another server's.
pub(crate) fn forget_call(call: &ToolCall, note: &Note) -> Result<(), Error> {
    dated_state::forget(&key_of(call, note))?;
    for (key, _, _) in calls()?.iter().filter(|(_, _, seen)| seen == note) {
        dated_state::forget(key)?;
    }
    Ok(())
}

/// Forgets every call of a conversation whose turn has ended.
pub(crate) fn forget_calls_of(conversation: &str) -> Result<(), Error> {
    for (key, _, _) in calls()?.iter().filter(|(_, _, note)| note.conversation == conversation) {
        dated_state::forget(key)?;
    }
    Ok(())
}

/// The calls that match what reached the server, oldest first, with their keys.
pub(crate) fn calls_like(tool: &str, arguments: &Map<String, Value>) -> Result<Vec<(String, Note)>, Error> {
    let mut fitting: Vec<_> = calls()?.into_iter().filter(|(_, _, note)| note.is_of(tool, arguments)).collect();
    fitting.sort_by_key(|(_, at, _)| *at);
    Ok(fitting.into_iter().map(|(key, _, note)| (key, note)).collect())
}

/// Remembers that another server has a tool of this name.
pub(crate) fn belongs_to_another(tool: &str) -> Result<(), Error> {
    dated_state::write(&format!("another/{tool}"), &())
}

/// Whether another server has a tool of this name.
pub(crate) fn is_of_another_server(tool: &str) -> Result<bool, Error> {
    dated_state::exists(&format!("another/{tool}"))
}

/// Remembers that a conversation's context is about to be compacted.
pub(crate) fn compacts(conversation: &str) -> Result<(), Error> {
    dated_state::write(&format!("compacted/{:016x}", digest(conversation)), &())
}

/// Whether a conversation was compacted since it last got the protocol. True once.
pub(crate) fn was_compacted(conversation: &str) -> Result<bool, Error> {
    Ok(dated_state::take::<()>(&format!("compacted/{:016x}", digest(conversation)))?.is_some())
}

/// Removes old values.
pub(crate) fn clear_away() -> Result<(), Error> {
    for (prefix, lasts) in [("call/", CALLS_LAST), ("another/", OTHERS_LAST), ("compacted/", OTHERS_LAST)] {
        dated_state::remove_older_than(prefix, lasts)?;
    }
    Ok(())
}

/// Every stored call that is recent enough, with its key and time.
fn calls() -> Result<Vec<(String, u64, Note)>, Error> {
    let now = relay_mesh_sdk::clock::now();
    let mut calls = Vec::new();
    for key in state::keys("call/")? {
        if let Some((at, note)) = dated_state::read_dated::<Note>(&key)?
            && now.saturating_sub(at) <= CALLS_LAST
        {
            calls.push((key, at, note));
        }
    }
    Ok(calls)
}

fn key_of(call: &ToolCall, note: &Note) -> String {
    let which = match &call.use_id {
        Some(id) => format!("{} {id}", note.conversation),
        None => format!("{} {} {}", note.conversation, note.tool, note.arguments),
    };
    format!("call/{:016x}", digest(&which))
}

fn digest_of(arguments: &Map<String, Value>) -> String {
    let text = sorted(&Value::Object(arguments.clone())).to_string();
    format!("{:016x}-{}", digest(&text), text.len())
}

/// The same value with the members of every object sorted by name.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.as_str());
            Value::Object(members.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect())
        }
        Value::Array(elements) => Value::Array(elements.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
