//! What relay-mesh means: agents, presence, messages and their receipts, sessions and delivery.
//!
//! This crate does no I/O of its own and reads no clock. Everything it keeps goes through
//! [`store::Store`]; time, randomness and processes come from a [`Machine`]; everything that is
//! particular to a harness comes from a [`ports::harness::Harness`].

pub mod agents;
mod cleanup;
pub mod commands;
mod core;
mod delivery;
mod mesh;
pub mod messages;
pub mod names;
pub mod ports;
pub mod reservations;
pub mod sessions;
pub mod storage;
mod topology;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use store::Store;

pub use agents::adopt::{AdoptError, Adopted};
pub use agents::heartbeat::HeartbeatError;
pub use agents::list::{FindError, Found};
pub use agents::offline_notice::OfflineNoticeError;
pub use agents::register::{RegisterError, RegisterOutcome, Registered, Registration};
pub use cleanup::{Cleanup, DryRun, Scope};
pub use commands::order::{FinishError, Order, OrderError, TakeError};
pub use commands::run::{Prospect, Ran, Runner};
pub use delivery::backoff::spaced;
pub use delivery::hook::{HookError, HookOutcome};
pub use delivery::invitation::{InvitationAnswer, TakenInvitation};
pub use delivery::invite::{InviteError, Invited, LONGEST_INVITATION};
pub use delivery::loop_guard::LoopLimits;
pub use delivery::serve::Served;
pub use mesh::Mesh;
pub use messages::address::AddressError;
pub use messages::envelope::{TAG, envelope, timestamp};
pub use messages::fetch::{AckError, Acknowledged, Fetch, FetchError, Fetched, FetchedMessage, Lease};
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
pub use storage::event_log::{Event, Stretch, kind_of_today};
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

use crate::ports::harness::Harnesses;
use crate::ports::machine::Machine;

/// What a mesh is made of.
pub struct Parts {
    /// Agents, messages and receipts: shared by every machine that uses this mesh.
    pub shared: Arc<dyn Store>,
    /// Sessions, wake files and the ticket key: never leaves this machine. The same store as `shared`
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
    /// How long a lease keeps others from presenting a message, in milliseconds.
    pub lease: u64,
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
            lease: 60_000,
            away_after: 10 * 60_000,
            keep: 7 * 24 * 3_600_000,
            expire_after: 30 * 24 * 3_600_000,
            edits: EditRules::default(),
        }
    }
}
