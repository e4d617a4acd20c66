//! What every verb needs: the two stores, the machine, the harnesses, the settings and the event log.

use std::sync::Arc;

use store::Store;
use ulid::Ulid;

use crate::Limits;
use crate::names::MessageId;
use crate::ports::consent::Consents;
use crate::ports::desktop::Desktop;
use crate::ports::harness::Harnesses;
use crate::ports::machine::{Instant, Machine};
use crate::storage::event_log::EventLog;
use crate::topology::Topology;

/// What every verb needs. Constant while the process runs, except for the lines that the event log has not written yet.
pub(crate) struct Core {
    /// Agents, messages, receipts, reservations and commands: shared by every machine of this mesh.
    pub(crate) shared: Arc<dyn Store>,
    /// Sessions, wake files and the ticket key: they never leave this machine.
    pub(crate) local: Arc<dyn Store>,
    pub(crate) machine: Arc<dyn Machine>,
    pub(crate) harnesses: Arc<dyn Harnesses>,
    pub(crate) limits: Limits,
    /// Which senders the user allows to run commands. None until `Mesh::with_consents` sets it.
    pub(crate) consents: Arc<dyn Consents>,
    /// Where the user is told of questions. None until `Mesh::with_desktop` sets it.
    pub(crate) desktop: Arc<dyn Desktop>,
    pub(crate) topology: Topology,
    pub(crate) event_log: EventLog,
}

impl Core {
    /// A new id whose timestamp is `at`.
    pub(crate) fn new_id(&self, at: Instant) -> MessageId {
        MessageId(Ulid::from_parts(at.0, u128::from_be_bytes(self.machine.random())))
    }
}
