//! The mesh as other crates see it. The files of this folder hold one line per verb; the implementation is in the
//! folder of its concept. Only verbs that need several parts at once are methods of [`Mesh`] there.

mod agents;
mod asks;
mod commands;
mod conversations;
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
use crate::ports::desktop::{Desktop, NoDesktop};
use crate::ports::harness::Harnesses;
use crate::ports::machine::Machine;
use crate::sessions::connections::Connections;
use crate::storage::event_log::EventLog;
use crate::topology::Topology;

/// The mesh: the core that every verb needs, and four parts that each own a piece of this process's state.
pub struct Mesh {
    /// The stores, the machine, the settings and the event log.
    pub(crate) core: Core,
    /// Which agents act through which connection of this process.
    pub(crate) connections: Connections,
    /// The part of each inbox that this process has read.
    pub(crate) inboxes: Inboxes,
    /// Which routes are in backoff after a failure.
    pub(crate) delivery: Delivery,
    /// Recent answers of the servers about agents.
    pub(crate) remote: RemoteCache,
}

impl Mesh {
    /// Builds a mesh without any I/O.
    pub fn new(parts: Parts) -> Mesh {
        let Parts { shared, local, machine, harnesses, limits } = parts;
        Mesh {
            core: Core {
                topology: Topology::of(&shared, &local),
                event_log: EventLog::new(Arc::clone(&shared), Arc::clone(&machine)),
                consents: Arc::new(Nobody),
                desktop: Arc::new(NoDesktop),
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

    /// The same mesh, with the user's consents to run commands.
    #[must_use]
    pub fn with_consents(self, consents: Arc<dyn Consents>) -> Mesh {
        Mesh { core: Core { consents, ..self.core }, ..self }
    }

    /// The same mesh, with a desktop on which the user is told of questions.
    #[must_use]
    pub fn with_desktop(self, desktop: Arc<dyn Desktop>) -> Mesh {
        Mesh { core: Core { desktop, ..self.core }, ..self }
    }

    /// The harnesses that this mesh knows.
    pub fn harnesses(&self) -> &Arc<dyn Harnesses> {
        &self.core.harnesses
    }

    /// A new UUID of version 4.
    pub fn new_uuid(&self) -> String {
        let mut bytes = self.core.machine.random();
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let digits = hex::encode(bytes);
        [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
    }

    /// The machine that this mesh runs on.
    pub fn machine(&self) -> &Arc<dyn Machine> {
        &self.core.machine
    }
}
