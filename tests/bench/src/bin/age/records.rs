//! The keys and the lines of the product that no crate offers: spelled here once more, and compared with the
//! product's own by `shapes.rs`.

use bench::Failure;
use mesh::messages::Message;
use mesh::names::MessageId;
use serde_json::json;
use store::Key;

/// The agents of every folder.
pub(crate) const AGENTS: usize = 20;
/// The harness of all sessions.
pub(crate) const HARNESS: &str = "claude-code";

/// The name of an agent. The first one belongs to the command line, all others to sessions.
pub(crate) fn agent(number: usize) -> String {
    format!("agent-{number:02}")
}

/// The id of an agent's nth session, as the harness would spell it.
pub(crate) fn session_id(agent: usize, index: u64) -> String {
    format!("{agent:08x}-4c2f-4a8e-9d0e-{index:012x}")
}

/// A key by its segments.
pub(crate) fn key(segments: &[&str]) -> Result<Key, Failure> {
    Ok(segments.join("/").parse()?)
}

/// The key of what an agent has.
pub(crate) fn of_agent(number: usize, leaf: &str) -> Result<Key, Failure> {
    key(&["agents", &agent(number), leaf])
}

/// The key of what a session has, below `sessions`, `wakes` or `deliveries`.
pub(crate) fn of_session(kind: &str, id: &str) -> Result<Key, Failure> {
    key(&[kind, HARNESS, id])
}

/// The record of a session that began and was last heard at these times. One that is not over watches its wake file. A
/// hook of each had room for mail.
pub(crate) fn session(id: &str, of: usize, workdir: &str, (began, heard): (u64, u64), is_over: bool) -> String {
    let mut record = json!({
        "session": { "harness": HARNESS, "id": id },
        "workdir": workdir,
        // A process of a machine that has been started anew since.
        "client": { "pid": 4_711, "start": 1, "space": { "system": 1, "boot": 1, "namespace": 1 } },
        "agent": agent(of),
        "activity": if is_over { "ended" } else { "idle" },
        "heard": heard,
        "first_seen": began,
    });
    if !is_over {
        record["watches_wake_file"] = true.into();
    }
    record["hooks_carry_mail"] = true.into();
    record["stands_alone"] = true.into();
    record.to_string()
}

/// A line of the sender's `sent` log.
pub(crate) fn sent(message: &Message) -> String {
    let Message { id, at, to, subject, thread, .. } = message;
    json!({ "id": id, "at": at, "to": [to], "subject": subject, "thread": thread }).to_string()
}

/// The event log's line for a sent message.
pub(crate) fn sent_event(message: &Message, at: u64) -> String {
    let Message { id, from, to, .. } = message;
    json!({ "id": id, "from": from, "to": [to], "event": "sent", "at": at }).to_string()
}

/// The event log's line for an agent that registered from a session.
pub(crate) fn registered_event(agent: &str, at: u64) -> String {
    json!({ "agent": agent, "harness": HARNESS, "event": "registered", "at": at }).to_string()
}

/// The first line of a wake file.
pub(crate) fn first_wake(at: u64) -> String {
    json!({ "at": at, "counts": "never" }).to_string()
}

/// A wake file's line for a message.
pub(crate) fn wake(message: &Message, at: u64) -> String {
    json!({ "at": at, "from": message.from, "message": message.id, "counts": "with-others" }).to_string()
}

/// The cursor of an inbox.
pub(crate) fn cursor(inbox: u64, receipts: u64) -> String {
    json!({ "inbox": inbox, "receipts": receipts }).to_string()
}

/// The chain of messages that an agent works on.
pub(crate) fn work(root: MessageId, hops: u32, at: u64) -> String {
    json!({ "trace": { "root": root, "hops": hops }, "at": at }).to_string()
}

/// The sign of life of an agent of the command line.
pub(crate) fn heartbeat(at: u64) -> String {
    json!({ "at": at }).to_string()
}
