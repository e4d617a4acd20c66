//! Where the shared data is stored, and everything that depends on it.

use std::sync::Arc;
use std::time::Duration;

use store::{Key, Store};

use crate::ports::machine::Machine;
use crate::reservations::repository::{Checkout, Repository};

/// Concurrent agent lookups on servers, where each lookup is a round trip.
const LOOKUPS_AT_ONCE: usize = 64;
/// Poll interval for presence. Silence raises no event.
const POLL: Duration = Duration::from_secs(5);
/// Poll interval for presence if each poll asks the servers for every agent.
const POLL_OF_SERVERS: Duration = Duration::from_secs(60);

/// Where the shared data is stored. Only this type tells a single machine from several; all other code asks its
/// methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// In this machine's data folder, together with its local data. There is no other machine.
    OneFolder,
    /// On servers that several machines share and that may be unreachable.
    Servers,
}

impl Topology {
    /// `shared` and `local` are the same store if there is only one folder.
    pub(crate) fn of(shared: &Arc<dyn Store>, local: &Arc<dyn Store>) -> Topology {
        if Arc::ptr_eq(shared, local) { Topology::OneFolder } else { Topology::Servers }
    }

    /// Whether the shared data may be unreachable. If so, messages wait in an outbox, the last roster is cached, and
    /// the agents of the command line are noted locally.
    pub(crate) fn may_be_out_of_reach(self) -> bool {
        match self {
            Topology::OneFolder => false,
            Topology::Servers => true,
        }
    }

    /// Whether other machines may have agents. If so, an agent may move between machines, machines tell each other what
    /// their sessions do, and presence lookups go over the network.
    pub(crate) fn has_other_machines(self) -> bool {
        match self {
            Topology::OneFolder => false,
            Topology::Servers => true,
        }
    }

    /// Whether listing all agents also counts their messages. A folder store counts nothing.
    pub(crate) fn counts_messages(self) -> bool {
        match self {
            Topology::OneFolder => false,
            Topology::Servers => true,
        }
    }

    /// Whether the event log also holds events of other machines. If so, a process that has read nothing starts at its
    /// end.
    pub(crate) fn reads_events_from_the_end(self) -> bool {
        match self {
            Topology::OneFolder => false,
            Topology::Servers => true,
        }
    }

    /// How many agents to look up concurrently.
    pub(crate) fn lookups_at_once(self) -> usize {
        match self {
            Topology::OneFolder => 1,
            Topology::Servers => LOOKUPS_AT_ONCE,
        }
    }

    pub(crate) fn presence_poll(self) -> Duration {
        match self {
            Topology::OneFolder => POLL,
            Topology::Servers => POLL_OF_SERVERS,
        }
    }

    /// The shared keys that a process watches if it serves every session of this machine: on servers only those of its
    /// own clients, so that traffic between other machines does not wake it.
    pub(crate) fn keys_to_watch(self, everything: Key, of_clients: impl FnOnce() -> Vec<Key>) -> Vec<Key> {
        match self {
            Topology::OneFolder => vec![everything],
            Topology::Servers => of_clients(),
        }
    }

    /// The path in a repository's name, if it is named by a folder of this machine.
    pub(crate) fn folder_of<'a>(self, repository: &'a Repository, machine: &dyn Machine) -> Option<&'a str> {
        match self {
            Topology::OneFolder => Some(repository.as_str()),
            Topology::Servers => repository.as_str().strip_prefix(machine.name())?.strip_prefix(':'),
        }
    }

    /// The name of a working copy's repository. Paths mean nothing on other machines, so on servers this is the name
    /// that all machines derive; a repository without one belongs to this machine alone.
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
