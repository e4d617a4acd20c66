//! Where the data that machines share lies, and everything that depends on it.

use std::sync::Arc;
use std::time::Duration;

use store::{Key, Store};

use crate::ports::machine::Machine;
use crate::reservations::repository::{Checkout, Repository};

/// How many agents are looked up at once on servers, where each lookup is a round trip.
const LOOKUPS_AT_ONCE: usize = 64;
/// Poll interval for presence. Silence raises no event.
const POLL: Duration = Duration::from_secs(5);
/// The same if each poll asks the servers for every agent.
const POLL_OF_SERVERS: Duration = Duration::from_secs(60);

/// Where the data that machines share lies. This is the one place that tells a single machine from several: everything
/// else asks a method here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// In this machine's own folder, beside its local data. There is no other machine.
    OneFolder,
    /// On servers that several machines share and that may be out of reach.
    Servers,
}

impl Topology {
    /// The two stores are one and the same if everything lies in one folder.
    pub(crate) fn of(shared: &Arc<dyn Store>, local: &Arc<dyn Store>) -> Topology {
        if Arc::ptr_eq(shared, local) { Topology::OneFolder } else { Topology::Servers }
    }

    /// Whether the shared data may be out of reach, so that messages wait in an outbox, the last roster is remembered,
    /// and the agents of the command line are noted locally.
    pub(crate) fn may_be_out_of_reach(self) -> bool {
        match self {
            Topology::OneFolder => false,
            Topology::Servers => true,
        }
    }

    /// Whether there may be agents of other machines: an agent may move there, what it does must be told to others,
    /// and its presence is asked over the network.
    pub(crate) fn has_other_machines(self) -> bool {
        match self {
            Topology::OneFolder => false,
            Topology::Servers => true,
        }
    }

    /// Whether one look at all agents also counts their messages. A folder counts nothing.
    pub(crate) fn counts_messages(self) -> bool {
        match self {
            Topology::OneFolder => false,
            Topology::Servers => true,
        }
    }

    /// Whether the event log tells of other machines too, so that a process that has read nothing begins at its end.
    pub(crate) fn reads_events_from_the_end(self) -> bool {
        match self {
            Topology::OneFolder => false,
            Topology::Servers => true,
        }
    }

    /// How many agents are looked up at once.
    pub(crate) fn lookups_at_once(self) -> usize {
        match self {
            Topology::OneFolder => 1,
            Topology::Servers => LOOKUPS_AT_ONCE,
        }
    }

    /// How often presence is polled.
    pub(crate) fn presence_poll(self) -> Duration {
        match self {
            Topology::OneFolder => POLL,
            Topology::Servers => POLL_OF_SERVERS,
        }
    }

    /// The shared keys that a process watches if it serves every session of this machine: on servers only those of
    /// its own clients, since what other machines say to each other is not worth waking for.
    pub(crate) fn keys_to_watch(self, everything: Key, of_clients: impl FnOnce() -> Vec<Key>) -> Vec<Key> {
        match self {
            Topology::OneFolder => vec![everything],
            Topology::Servers => of_clients(),
        }
    }

    /// The name under which a working copy's repository is known. A path means nothing on another machine: there the
    /// repository is what all machines call it, and one without such a name belongs to this machine alone.
    pub(crate) fn repository_of(self, checkout: &Checkout, machine: &dyn Machine) -> Repository {
        match (self, &checkout.everywhere) {
            (Topology::OneFolder, _) => checkout.repository.clone(),
            (Topology::Servers, Some(name)) => Repository::named(name),
            (Topology::Servers, None) => {
                Repository::named(&format!("{}:{}", machine.name(), checkout.repository.as_str()))
            }
        }
    }
}
