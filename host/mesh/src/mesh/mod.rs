//! The mesh as other crates see it. The files of this folder hold one line per verb; what a verb does stands in the
//! folder of its concept. Only verbs that need several parts at once are methods of [`Mesh`] there.

mod agents;
mod commands;
mod delivery;
mod messages;
mod reservations;
mod sessions;
mod storage;

use std::sync::Arc;

use crate::Parts;
use crate::agents::remote_cache::RemoteCache;
use crate::core::Core;
use crate::delivery::Delivery;
use crate::messages::inboxes::Inboxes;
use crate::ports::consent::{Consents, Nobody};
use crate::ports::harness::Harnesses;
use crate::ports::machine::Machine;
use crate::sessions::connections::Connections;
use crate::storage::event_log::EventLog;
use crate::topology::Topology;

/// The mesh: what every verb needs, and four parts that each own what this process remembers.
pub struct Mesh {
    /// The stores, the machine, the settings and the event log.
    pub(crate) core: Core,
    /// Which agents speak by which connection of this process.
    pub(crate) connections: Connections,
    /// What this process has read of each inbox.
    pub(crate) inboxes: Inboxes,
    /// Which routes rest after a failure.
    pub(crate) delivery: Delivery,
    /// What this process has just learned of agents from the servers.
    pub(crate) remote: RemoteCache,
}

impl Mesh {
    /// Puts a mesh together. Opens nothing and reads nothing.
    pub fn new(parts: Parts) -> Mesh {
        let Parts { shared, local, machine, harnesses, limits } = parts;
        Mesh {
            core: Core {
                topology: Topology::of(&shared, &local),
                event_log: EventLog::new(Arc::clone(&shared), Arc::clone(&machine)),
                consents: Arc::new(Nobody),
                shared,
                local,
                machine,
                harnesses,
                limits,
            },
            connections: Connections::default(),
            inboxes: Inboxes::default(),
            delivery: Delivery::default(),
            remote: RemoteCache::default(),
        }
    }

    /// The same, with what the user has allowed.
    #[must_use]
    pub fn with_consents(self, consents: Arc<dyn Consents>) -> Mesh {
        Mesh { core: Core { consents, ..self.core }, ..self }
    }

    /// The harnesses that this mesh knows.
    pub fn harnesses(&self) -> &Arc<dyn Harnesses> {
        &self.core.harnesses
    }

    /// The machine that it runs on.
    pub fn machine(&self) -> &Arc<dyn Machine> {
        &self.core.machine
    }
}
