//! What relay-mesh means: agents, presence, messages and their receipts, sessions and delivery.
//!
//! This crate does no I/O of its own and reads no clock. Everything it keeps goes through
//! [`store::Store`]; time, randomness and processes come from a [`Machine`]; everything that is
//! particular to a harness comes from a [`ports::harness::Harness`].

pub mod agents;
mod cleanup;
pub mod commands;
mod delivery;
pub mod messages;
pub mod names;
pub mod ports;
pub mod reservations;
pub mod sessions;
pub mod storage;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use store::Store;
use ulid::Ulid;

pub use agents::adopt::{AdoptError, Adopted};
pub use agents::heartbeat::HeartbeatError;
pub use agents::list::{FindError, Found};
pub use agents::offline_notice::WishError;
pub use agents::register::{Outcome, RegisterError, Registered, Registration};
pub use cleanup::{Broom, Scope, Swept};
pub use commands::order::{FinishError, Order, OrderError, TakeError};
pub use commands::run::{Prospect, Ran, Runner};
pub use delivery::backoff::spaced;
pub use delivery::hook::{HookError, HookOutcome};
pub use delivery::invitation::{Answer, TakenInvitation};
pub use delivery::invite::{InviteError, Invited, LONGEST_INVITATION};
pub use delivery::loop_guard::LoopLimits;
pub use delivery::serve::Served;
pub use messages::address::AddressError;
pub use messages::envelope::{TAG, envelope, timestamp};
pub use messages::fetch::{AckError, Acknowledged, Claim, Fetch, FetchError, Fetched, FetchedMessage};
pub use messages::outbox::Queued;
pub use messages::send::{Audience, SendError, Sent, SentTo};
pub use messages::status::{HeldPair, MeshStatus, MessageStatus, StatusError};
pub use messages::wait::MailWatch;
pub use messages::wake::{LONGEST_WAKE, Wake, WakeError};
pub use messages::watch::Mailed;
pub use reservations::edits::{AUTO_REASON, EditMode, EditRules};
pub use reservations::ledger::{Others, Own};
pub use reservations::list::{Listed, Listing, Wanted};
pub use reservations::reserve::{Given, Release, ReleaseError, Reserve, ReserveError, Reserved};
pub use reservations::written::Written;
pub use sessions::bind::{BindError, Bound};
pub use sessions::discover::{Roster, RosterError, Rostered};
pub use sessions::identify::IdentifyError;
pub use sessions::record::SessionView;
pub use sessions::ticket::TicketError;
pub use storage::event_log::{Event, Stretch};
pub use storage::ownership::Homes;
pub use store::reasons;

// The paths of before, until their callers have moved.
pub use agents as agent;
pub use commands as command;
pub use messages as message;
pub use messages::{protocol, receipt};
pub use ports::{consent, harness, machine};
pub use reservations as reservation;
pub use reservations::{glob, repository};
pub use sessions as session;
pub use storage::migrate as carrying;

use crate::delivery::backoff;
use crate::messages::{idempotency, inbox, send};
use crate::names::{AgentName, MessageId};
use crate::ports::harness::Harnesses;
use crate::ports::machine::{Instant, Machine};
use crate::sessions::ConnectionId;
use crate::storage::{keys, write_behind};

/// What a mesh is made of.
pub struct Parts {
    /// Agents, messages and receipts: shared by every machine that uses this mesh.
    pub shared: Arc<dyn Store>,
    /// Sessions, bells and the ticket key: never leaves this machine. The same store as `shared`
    /// where that one is a folder.
    pub local: Arc<dyn Store>,
    /// The clock and the processes.
    pub machine: Arc<dyn Machine>,
    /// The harnesses.
    pub harnesses: Arc<dyn Harnesses>,
    /// The settings.
    pub limits: Limits,
}

/// What a person may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// When the loop guard stops waking.
    pub loops: LoopLimits,
    /// How long a claim keeps others from presenting a message, in milliseconds.
    pub claim: u64,
    /// How long nothing may be heard of an agent before it counts as away, in milliseconds.
    pub away_after: u64,
    /// How long settled mail is kept, in milliseconds.
    pub keep: u64,
    /// After how long mail that nobody came for expires, in milliseconds.
    pub expire_after: u64,
    /// What happens when files are written that somebody holds.
    pub edits: EditRules,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            loops: LoopLimits::default(),
            claim: 60_000,
            away_after: 10 * 60_000,
            keep: 7 * 24 * 3_600_000,
            expire_after: 30 * 24 * 3_600_000,
            edits: EditRules::default(),
        }
    }
}

/// The mesh. Its verbs are methods, one file each.
pub struct Mesh {
    shared: Arc<dyn Store>,
    local: Arc<dyn Store>,
    machine: Arc<dyn Machine>,
    harnesses: Arc<dyn Harnesses>,
    limits: Limits,
    /// Whose commands the person lets run. Nobody's, until somebody says where to look.
    consents: Arc<dyn consent::Consents>,
    /// Who speaks by which connection of this process. Written by registration, dropped when
    /// the connection closes.
    connections: Mutex<BTreeMap<ConnectionId, AgentName>>,
    /// Every agent that registered by way of a connection of this process, also where each of its calls
    /// has to say who it is. Written by registration, dropped when the connection closes.
    served: Mutex<BTreeMap<ConnectionId, BTreeSet<AgentName>>>,
    /// What this process has read of each inbox so far, so that a second look reads only what is new.
    inboxes: Mutex<BTreeMap<AgentName, Arc<tokio::sync::Mutex<inbox::Inbox>>>>,
    /// Which idempotency keys this process has read in each inbox so far.
    keyed: Mutex<BTreeMap<AgentName, Arc<tokio::sync::Mutex<idempotency::Keyed>>>>,
    /// What this process has read of each inbox to send what had waited. Dropped when nothing waits.
    there: Mutex<BTreeMap<AgentName, Arc<tokio::sync::Mutex<idempotency::There>>>>,
    /// The connections of this process whose clients hold a stream open. Written by whoever serves the
    /// streams; dropped when the connection closes.
    streaming: Mutex<BTreeSet<ConnectionId>>,
    /// The routes of sessions that this process leaves alone for a while, and by an empty name the adapter that
    /// names none. Written by delivery.
    resting: Mutex<backoff::Rests<(sessions::SessionRef, String)>>,
    /// What this process has noted and not written yet.
    minutes: write_behind::Minutes,
    /// The agents of other machines to whom this process has written, as they were a moment ago.
    acquaintances: Mutex<BTreeMap<AgentName, send::Acquaintance>>,
    /// The agents that were this machine's when this process looked last. Written by whoever looks.
    looked_after: Mutex<BTreeMap<AgentName, tokio::time::Instant>>,
    /// Rung when somebody registered in this process, so that delivery looks for new agents.
    joined: tokio::sync::Notify,
}

impl Mesh {
    /// Puts a mesh together. Opens nothing and reads nothing.
    pub fn new(parts: Parts) -> Mesh {
        let Parts { shared, local, machine, harnesses, limits } = parts;
        Mesh {
            shared,
            local,
            machine,
            harnesses,
            limits,
            consents: Arc::new(consent::Nobody),
            connections: Mutex::default(),
            served: Mutex::default(),
            inboxes: Mutex::default(),
            keyed: Mutex::default(),
            there: Mutex::default(),
            streaming: Mutex::default(),
            resting: Mutex::default(),
            minutes: write_behind::Minutes::default(),
            acquaintances: Mutex::default(),
            looked_after: Mutex::default(),
            joined: tokio::sync::Notify::new(),
        }
    }

    /// The same, going by what a person has allowed.
    #[must_use]
    pub fn with_consents(self, consents: Arc<dyn consent::Consents>) -> Mesh {
        Mesh { consents, ..self }
    }

    /// Whether what machines share lies on servers, and not in this machine's own folder.
    pub(crate) fn has_servers(&self) -> bool {
        !Arc::ptr_eq(&self.shared, &self.local)
    }

    /// The harnesses that this mesh knows.
    pub fn harnesses(&self) -> &Arc<dyn Harnesses> {
        &self.harnesses
    }

    /// An id that nothing else has, of what is made at this time.
    pub(crate) fn new_id(&self, at: Instant) -> MessageId {
        MessageId(Ulid::from_parts(at.0, u128::from_be_bytes(self.machine.random())))
    }

    /// Adds an event to the mesh's own diary. Never worth failing for what it describes.
    pub(crate) async fn note(&self, event: &'static str, mut details: serde_json::Value) {
        if let Some(fields) = details.as_object_mut() {
            fields.insert("event".to_owned(), event.into());
            fields.insert("at".to_owned(), self.machine.now().0.into());
        }
        self.note_line(event, &details).await;
    }

    /// The same for an event that is a line already.
    pub(crate) async fn note_line<T: serde::Serialize + Sync>(&self, event: &'static str, line: &T) {
        if let Err(error) = self.jot(&keys::global(), line).await {
            tracing::warn!(event, %error, "an event is missing from the diary");
        }
    }

    /// The machine that it runs on.
    pub fn machine(&self) -> &Arc<dyn Machine> {
        &self.machine
    }
}
