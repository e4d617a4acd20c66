//! The connections of this process: which agents registered on each, and which clients hold a stream open.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use crate::names::AgentName;
use crate::sessions::{ConnectionId, Sign, Transport};

/// Each lock is a std mutex: nothing is awaited while it is held.
#[derive(Default)]
pub(crate) struct Connections {
    /// The agent that acts through each connection. Written by registration, dropped when the connection closes.
    speakers: Mutex<BTreeMap<ConnectionId, AgentName>>,
    /// Every agent that registered or called through a connection: this process delivers its mail. Written by
    /// registration and by calls, dropped when the connection closes.
    registered: Mutex<BTreeMap<ConnectionId, BTreeSet<AgentName>>>,
    /// The process of each connection's client, which started this process. Written when it connects, dropped when the
    /// connection closes.
    clients: Mutex<BTreeMap<ConnectionId, u32>>,
    /// The connections whose clients hold a stream open. Written by the HTTP server, dropped when the connection
    /// closes.
    streaming: Mutex<BTreeSet<ConnectionId>>,
}

impl Connections {
    /// Notes that an agent registered through a connection: this process delivers its mail. If the connection is the
    /// agent's own, the agent acts through it from now on.
    pub(crate) fn joined(&self, connection: &ConnectionId, agent: &AgentName, owns_connection: bool) {
        let mut registered = self.registered.lock().expect("no holder of this lock panics");
        registered.entry(connection.clone()).or_default().insert(agent.clone());
        if owns_connection {
            let mut speakers = self.speakers.lock().expect("no holder of this lock panics");
            speakers.insert(connection.clone(), agent.clone());
        }
    }

    /// Notes that an agent calls through a connection: this process delivers its mail. Returns whether that is new.
    pub(crate) fn serves(&self, connection: &ConnectionId, agent: &AgentName) -> bool {
        let mut registered = self.registered.lock().expect("no holder of this lock panics");
        if registered.get(connection).is_some_and(|agents| agents.contains(agent)) {
            return false;
        }
        registered.entry(connection.clone()).or_default().insert(agent.clone())
    }

    /// Notes which process the client of a connection is.
    pub(crate) fn set_client(&self, connection: &ConnectionId, process: u32) {
        self.clients.lock().expect("no holder of this lock panics").insert(connection.clone(), process);
    }

    /// The process of a connection's client, if it started this process.
    pub(crate) fn client(&self, connection: Option<&ConnectionId>) -> Option<u32> {
        self.clients.lock().expect("no holder of this lock panics").get(connection?).copied()
    }

    /// The agents that registered or called through a connection.
    pub(crate) fn agents_by(&self, connection: &ConnectionId) -> BTreeSet<AgentName> {
        self.registered.lock().expect("no holder of this lock panics").get(connection).cloned().unwrap_or_default()
    }

    /// The agent that acts through a connection.
    pub(crate) fn speaker(&self, connection: Option<&ConnectionId>) -> Option<AgentName> {
        self.speakers.lock().expect("no holder of this lock panics").get(connection?).cloned()
    }

    /// Forgets a connection. Returns the agent that acted through it.
    pub(crate) fn closed(&self, connection: &ConnectionId) -> Option<AgentName> {
        self.registered.lock().expect("no holder of this lock panics").remove(connection);
        self.clients.lock().expect("no holder of this lock panics").remove(connection);
        self.streaming.lock().expect("no holder of this lock panics").remove(connection);
        self.speakers.lock().expect("no holder of this lock panics").remove(connection)
    }

    /// Notes whether a client holds a stream open.
    pub(crate) fn set_stream(&self, connection: &ConnectionId, sign: Sign) {
        let mut streaming = self.streaming.lock().expect("no holder of this lock panics");
        match sign {
            Sign::Stream => streaming.insert(connection.clone()),
            Sign::Process | Sign::Calls => streaming.remove(connection),
        };
    }

    /// The evidence that the client of a connection is there.
    pub(crate) fn sign_of(&self, connection: &ConnectionId, transport: Transport) -> Sign {
        match transport {
            Transport::Stdio | Transport::CommandLine => Sign::Process,
            Transport::Http => {
                let streaming = self.streaming.lock().expect("no holder of this lock panics");
                if streaming.contains(connection) { Sign::Stream } else { Sign::Calls }
            }
        }
    }
}
