//! What relay-mesh means: agents, presence, messages and their receipts, sessions and delivery.
//!
//! This crate does no I/O of its own and reads no clock. Everything it keeps goes through
//! [`store::Store`]; time, randomness and processes come from a [`Machine`]; everything that is
//! particular to a harness comes from a [`harness::Harness`].

pub mod agent;
pub mod command;
pub mod glob;
pub mod harness;
pub mod machine;
pub mod message;
pub mod names;
pub mod receipt;
pub mod repository;
pub mod reservation;
pub mod session;

mod address;
mod adopt;
mod agents;
mod bell;
mod bind;
mod caller;
pub mod carrying;
mod commanding;
pub mod consent;
mod delivery;
mod diary;
mod edits;
mod envelope;
mod fetch;
mod heartbeat;
mod homes;
mod hook;
mod inbox;
mod invitation;
mod invite;
mod keep;
mod keys;
mod listeners;
mod loops;
mod minutes;
mod once;
mod outbox;
mod passes;
mod presence;
mod profile;
pub mod protocol;
mod records;
mod register;
mod reservations;
mod roster;
mod running;
mod send;
mod sessions;
mod silence;
mod spacing;
mod status;
mod sweep;
mod telling;
mod ticket;
mod wait;
mod wake;
mod watching;
mod wish;
mod work;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use store::Store;
use ulid::Ulid;

pub use address::AddressError;
pub use adopt::{AdoptError, Adopted};
pub use agents::{FindError, Found};
pub use bind::{BindError, Bound};
pub use caller::IdentifyError;
pub use commanding::{FinishError, Order, OrderError, TakeError};
pub use delivery::Served;
pub use diary::{Event, Stretch};
pub use edits::{AUTO_REASON, EditMode, EditRules};
pub use envelope::{TAG, envelope, timestamp};
pub use fetch::{AckError, Acknowledged, Claim, Fetch, FetchError, Fetched, FetchedMessage};
pub use heartbeat::HeartbeatError;
pub use homes::Homes;
pub use hook::{HookError, HookOutcome};
pub use invitation::{Answer, TakenInvitation};
pub use invite::{InviteError, Invited, LONGEST_INVITATION};
pub use loops::LoopLimits;
pub use outbox::Queued;
pub use register::{Outcome, RegisterError, Registered, Registration};
pub use reservations::{
    Given, Listed, Listing, Others, Own, Release, ReleaseError, Reserve, ReserveError, Reserved, Wanted, Written,
};
pub use roster::{Roster, RosterError, Rostered};
pub use running::{Prospect, Ran, Runner};
pub use send::{Audience, SendError, Sent, SentTo};
pub use sessions::SessionView;
pub use spacing::spaced;
pub use status::{HeldPair, MeshStatus, MessageStatus, StatusError};
pub use store::reasons;
pub use sweep::{Broom, Scope, Swept};
pub use ticket::TicketError;
pub use wait::MailWatch;
pub use wake::{LONGEST_WAKE, Wake, WakeError};
pub use watching::Mailed;
pub use wish::WishError;

use crate::harness::Harnesses;
use crate::machine::{Instant, Machine};
use crate::names::{AgentName, MessageId};
use crate::session::ConnectionId;

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
    keyed: Mutex<BTreeMap<AgentName, Arc<tokio::sync::Mutex<once::Keyed>>>>,
    /// What this process has read of each inbox to send what had waited. Dropped when nothing waits.
    there: Mutex<BTreeMap<AgentName, Arc<tokio::sync::Mutex<once::There>>>>,
    /// The connections of this process whose clients hold a stream open. Written by whoever serves the
    /// streams; dropped when the connection closes.
    streaming: Mutex<BTreeSet<ConnectionId>>,
    /// The routes of sessions that this process leaves alone for a while, and by an empty name the adapter that
    /// names none. Written by delivery.
    resting: Mutex<spacing::Rests<(session::SessionRef, String)>>,
    /// What this process has noted and not written yet.
    minutes: minutes::Minutes,
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
            minutes: minutes::Minutes::default(),
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
