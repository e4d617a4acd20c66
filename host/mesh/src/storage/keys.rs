//! Where everything lies in the stores. The one place that spells keys.

use store::Key;

use crate::names::{AgentName, MessageId};
use crate::reservations::repository::Repository;
use crate::sessions::SessionRef;

/// What an agent's record is called below its name.
pub(crate) const META: &str = "meta";
/// What the messages sent to an agent are called.
pub(crate) const INBOX: &str = "inbox";
/// What became of those messages.
pub(crate) const RECEIPTS: &str = "receipts";
/// The hint from where on both are read.
pub(crate) const CURSOR: &str = "cursor";
/// What an agent's sign of life is called.
pub(crate) const HEARTBEAT: &str = "heartbeat";

fn constant(text: &'static str) -> Key {
    text.parse().expect("a constant of this file is a key")
}

/// All agents.
pub(crate) fn agents() -> Key {
    constant("agents")
}

fn of_agent(name: &AgentName, leaf: &str) -> Key {
    agents().child(name.as_str()).child(leaf)
}

/// An agent's record.
pub(crate) fn meta(name: &AgentName) -> Key {
    of_agent(name, META)
}

/// The messages sent to an agent.
pub(crate) fn inbox(name: &AgentName) -> Key {
    of_agent(name, INBOX)
}

/// What became of them.
pub(crate) fn receipts(name: &AgentName) -> Key {
    of_agent(name, RECEIPTS)
}

/// What an agent sent, for its own eyes.
pub(crate) fn sent(name: &AgentName) -> Key {
    of_agent(name, "sent")
}

/// Before which places of inbox and receipts nothing unsettled lies. A hint.
pub(crate) fn cursor(name: &AgentName) -> Key {
    of_agent(name, CURSOR)
}

/// The chain of messages that an agent of this machine works on.
pub(crate) fn work(name: &AgentName) -> Key {
    constant("work").child(name.as_str())
}

/// When an agent without a session was last heard of.
pub(crate) fn heartbeat(name: &AgentName) -> Key {
    of_agent(name, HEARTBEAT)
}

/// That an agent was once known, where a move found nothing else of it but what it had sent.
pub(crate) fn known(name: &AgentName) -> Key {
    of_agent(name, "known")
}

/// The reservations of all repositories.
pub(crate) fn reservations() -> Key {
    constant("reservations")
}

/// The reservations of one repository.
pub(crate) fn reservations_of(repository: &Repository) -> Key {
    reservations().child(repository.as_str())
}

/// All commands.
pub(crate) fn commands() -> Key {
    constant("commands")
}

/// One command.
pub(crate) fn command(id: MessageId) -> Key {
    commands().child(&id.to_string())
}

/// The right to run commands in a session.
pub(crate) fn running(session: &SessionRef) -> Key {
    constant("running").child(&session.harness).child(&session.id)
}

/// Every event of the mesh, in order.
pub(crate) fn global() -> Key {
    constant("global")
}

/// What waits on this machine until the servers can be reached.
pub(crate) fn outbox() -> Key {
    constant("outbox")
}

/// One sending that waits. Keys have the order in which they were put there.
pub(crate) fn outgoing(number: u64, id: MessageId) -> Key {
    outbox().child(&format!("{number:012}-{id}"))
}

/// Who is sending what waits just now.
pub(crate) fn draining() -> Key {
    constant("draining")
}

/// That an agent was registered on this machine's command line.
pub(crate) fn speaker(name: &AgentName) -> Key {
    constant("speakers").child(name.as_str())
}

/// The agents as this machine last saw them.
pub(crate) fn last_roster() -> Key {
    constant("roster")
}

/// Which agents are offline, as far as the event log was read. A hint.
pub(crate) fn offline() -> Key {
    constant("offline")
}

/// The agents about which somebody wants a notice when they go offline.
pub(crate) fn offline_notices() -> Key {
    constant("offline-notices")
}

/// Who wants a notice when this agent goes offline.
pub(crate) fn offline_notice(of: &AgentName) -> Key {
    offline_notices().child(of.as_str())
}

/// All sessions of this machine.
pub(crate) fn sessions() -> Key {
    constant("sessions")
}

/// One session of this machine.
pub(crate) fn session(session: &SessionRef) -> Key {
    sessions().child(&session.harness).child(&session.id)
}

/// The log that gains a line whenever mail for a session should wake it.
pub(crate) fn wake_file(session: &SessionRef) -> Key {
    constant("wakes").child(&session.harness).child(&session.id)
}

/// All invitations.
pub(crate) fn invitations() -> Key {
    constant("invitations")
}

/// The invitation of a session that has not joined.
pub(crate) fn invitation(session: &SessionRef) -> Key {
    invitations().child(&session.harness).child(&session.id)
}

/// Who listens for which session.
pub(crate) fn listeners() -> Key {
    constant("listeners")
}

/// Who listens for a session.
pub(crate) fn listener(session: &SessionRef) -> Key {
    listeners().child(&session.harness).child(&session.id)
}

/// Who is bringing mail to a session just now.
pub(crate) fn delivery(session: &SessionRef) -> Key {
    constant("deliveries").child(&session.harness).child(&session.id)
}

/// The secret under which tickets are made.
pub(crate) fn ticket_key() -> Key {
    constant("keys/ticket")
}
