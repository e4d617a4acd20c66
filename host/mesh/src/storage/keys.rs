//! The keys of everything in the stores. No other file spells keys.

use store::Key;

use crate::driven::DrivenId;
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::reservations::repository::Repository;
use crate::sessions::SessionRef;

/// The leaf of an agent's record.
pub(crate) const META: &str = "meta";
/// The leaf of an agent's inbox.
pub(crate) const INBOX: &str = "inbox";
/// The leaf of the receipts of an inbox.
pub(crate) const RECEIPTS: &str = "receipts";
/// Leaf of the log of what an agent sent.
pub(crate) const SENT: &str = "sent";
/// The leaf of the cursor: a hint from where on to read inbox and receipts.
pub(crate) const CURSOR: &str = "cursor";
/// The leaf of an agent's channels.
pub(crate) const CHANNELS: &str = "channels";
/// The leaf of an agent's heartbeat.
pub(crate) const HEARTBEAT: &str = "heartbeat";

fn constant(text: &'static str) -> Key {
    text.parse().expect("a constant of this file is a key")
}

pub(crate) fn agents() -> Key {
    constant("agents")
}

fn of_agent(name: &AgentName, leaf: &str) -> Key {
    agents().child(name.as_str()).child(leaf)
}

pub(crate) fn meta(name: &AgentName) -> Key {
    of_agent(name, META)
}

pub(crate) fn inbox(name: &AgentName) -> Key {
    of_agent(name, INBOX)
}

/// The receipts of the messages in an agent's inbox.
pub(crate) fn receipts(name: &AgentName) -> Key {
    of_agent(name, RECEIPTS)
}

/// The agent's own list of what it sent.
pub(crate) fn sent(name: &AgentName) -> Key {
    of_agent(name, SENT)
}

/// The positions in inbox and receipts before which everything is settled. A hint.
pub(crate) fn cursor(name: &AgentName) -> Key {
    of_agent(name, CURSOR)
}

/// The chain of messages that an agent of this machine works on.
pub(crate) fn work(name: &AgentName) -> Key {
    works().child(name.as_str())
}

/// What all agents of this machine work on.
pub(crate) fn works() -> Key {
    constant("work")
}

/// The last sign of life of an agent without a session.
pub(crate) fn heartbeat(name: &AgentName) -> Key {
    of_agent(name, HEARTBEAT)
}

/// The channels that an agent has joined.
pub(crate) fn channels_of(name: &AgentName) -> Key {
    of_agent(name, CHANNELS)
}

/// Marks that an agent existed, if a migration found nothing of it except messages that it had sent.
pub(crate) fn known(name: &AgentName) -> Key {
    of_agent(name, "known")
}

pub(crate) fn reservations() -> Key {
    constant("reservations")
}

pub(crate) fn reservations_of(repository: &Repository) -> Key {
    reservations().child(repository.as_str())
}

/// Which repositories the folders of this machine were when something in them was reserved.
pub(crate) fn reserved_folders() -> Key {
    constant("folders")
}

pub(crate) fn reserved_folder(mark: &str) -> Key {
    reserved_folders().child(mark)
}

pub(crate) fn commands() -> Key {
    constant("commands")
}

pub(crate) fn command(id: MessageId) -> Key {
    commands().child(&id.to_string())
}

/// The lock for running commands in a session.
pub(crate) fn running(session: &SessionRef) -> Key {
    constant("running").child(&session.harness).child(&session.id)
}

/// The event log.
pub(crate) fn global() -> Key {
    constant("global")
}

/// Messages that wait on this machine until the servers are reachable.
pub(crate) fn outbox() -> Key {
    constant("outbox")
}

/// One waiting message. Keys sort in the order of insertion.
pub(crate) fn outgoing(number: u64, id: MessageId) -> Key {
    outbox().child(&format!("{number:012}-{id}"))
}

/// The lock for sending the outbox.
pub(crate) fn draining() -> Key {
    constant("draining")
}

/// The agents that were registered on this machine's command line.
pub(crate) fn speakers() -> Key {
    constant("speakers")
}

/// Marks that an agent was registered on this machine's command line.
pub(crate) fn speaker(name: &AgentName) -> Key {
    speakers().child(name.as_str())
}

/// The agents as this machine last saw them.
pub(crate) fn last_roster() -> Key {
    constant("roster")
}

/// The servers' stores that this machine has used.
pub(crate) fn known_stores() -> Key {
    constant("stores")
}

/// Which agents are offline, up to where the event log was read. A hint.
pub(crate) fn offline() -> Key {
    constant("offline")
}

/// All requests for offline notices.
pub(crate) fn offline_notices() -> Key {
    constant("offline-notices")
}

/// The sessions of this machine that have ended.
pub(crate) fn ended_sessions() -> Key {
    constant("ended")
}

/// The record of a session that has ended.
pub(crate) fn ended_session(session: &SessionRef) -> Key {
    ended_sessions().child(&session.harness).child(&session.id)
}

/// The agents that want a notice when this agent goes offline.
pub(crate) fn offline_notice(of: &AgentName) -> Key {
    offline_notices().child(of.as_str())
}

/// The driven agents of this machine.
pub(crate) fn driven_agents() -> Key {
    constant("driven")
}

pub(crate) fn driven(id: DrivenId) -> Key {
    driven_agents().child(&id.to_string())
}

/// Those that have ended.
pub(crate) fn ended_driven() -> Key {
    constant("driven-ended")
}

pub(crate) fn ended_driven_of(id: DrivenId) -> Key {
    ended_driven().child(&id.to_string())
}

/// There while the user wants none of them to be driven.
pub(crate) fn driving_off() -> Key {
    constant("driving-off")
}

/// Held by the process that drives them.
pub(crate) fn driving() -> Key {
    constant("driving")
}

/// The threads of tools, by the day on which they began.
pub(crate) fn threads() -> Key {
    constant("threads")
}

/// Those that began on the day of this time.
pub(crate) fn threads_of(began: Instant) -> Key {
    const DAY: u64 = 24 * 3_600_000;
    threads().child(&format!("{:06}", began.0 / DAY))
}

/// What a thread summed up.
pub(crate) fn thread_summary(thread: &str) -> Key {
    constant("thread-summaries").child(thread)
}

/// The agents that the user of this machine has paused.
pub(crate) fn pauses() -> Key {
    constant("paused")
}

pub(crate) fn pause(name: &AgentName) -> Key {
    pauses().child(name.as_str())
}

/// Questions to the user of this machine.
pub(crate) fn asks() -> Key {
    constant("asks")
}

/// One question, by its id or by what makes it the same whenever it is asked.
pub(crate) fn ask(slot: &str) -> Key {
    asks().child(slot)
}

/// Held by the process that carries out event hooks.
pub(crate) fn carrying_hooks() -> Key {
    constant("carrying-hooks")
}

/// When the user last changed their event hooks. It is in a folder that is always there and in which hardly anything ever
/// changes: every process that lives for long watches it, and shall be woken by nothing else.
pub(crate) fn hooks_changed() -> Key {
    constant("keys/event-hooks")
}

/// Up to where the event log was read for them.
pub(crate) fn hook_cursor() -> Key {
    constant("event-hooks/cursor")
}

/// Events that hooks are for.
pub(crate) fn hook_invocations() -> Key {
    constant("event-hooks/invocations")
}

pub(crate) fn hook_invocation(id: &str) -> Key {
    hook_invocations().child(id)
}

pub(crate) fn sessions() -> Key {
    constant("sessions")
}

pub(crate) fn session(session: &SessionRef) -> Key {
    sessions().child(&session.harness).child(&session.id)
}

/// The log that gets a line whenever mail should wake a session.
pub(crate) fn wake_file(session: &SessionRef) -> Key {
    constant("wakes").child(&session.harness).child(&session.id)
}

pub(crate) fn invitations() -> Key {
    constant("invitations")
}

/// The invitation of a session that has not joined.
pub(crate) fn invitation(session: &SessionRef) -> Key {
    invitations().child(&session.harness).child(&session.id)
}

pub(crate) fn listeners() -> Key {
    constant("listeners")
}

pub(crate) fn listener(session: &SessionRef) -> Key {
    listeners().child(&session.harness).child(&session.id)
}

/// The lock for delivering mail to a session.
pub(crate) fn delivery(session: &SessionRef) -> Key {
    constant("deliveries").child(&session.harness).child(&session.id)
}

/// The secret key that signs tickets.
pub(crate) fn ticket_key() -> Key {
    constant("keys/ticket")
}
