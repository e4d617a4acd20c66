//! The domain of relay-mesh: agents, presence, messages and their receipts, sessions and delivery.
//!
//! This crate does no I/O of its own and reads no clock. It stores everything through [`store::Store`]; it takes time,
//! randomness and processes from a [`Machine`], and everything specific to a harness from a
//! [`ports::harness::Harness`].

pub mod agents;
pub mod allowances;
pub mod asks;
pub mod audit;
mod cleanup;
pub mod commands;
mod conversations;
mod core;
mod delivery;
pub mod driven;
pub mod event_hooks;
mod mesh;
pub mod messages;
pub mod names;
pub mod ports;
pub mod reservations;
pub mod reviews;
pub mod runs;
pub mod sessions;
pub mod storage;
pub mod tool_threads;
mod topology;
pub mod turns;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use store::Store;

pub use agents::adopt::{AdoptError, Adopted};
pub use agents::find::AgentMatch;
pub use agents::heartbeat::HeartbeatError;
pub use agents::list::FindError;
pub use agents::offline_notice::OfflineNoticeError;
pub use agents::pause::PauseError;
pub use agents::register::{Adoptable, RegisterError, RegisterOutcome, Registered, Registration};
pub use agents::retention::ForgetError;
pub use asks::answer::AnswerError;
pub use asks::ask::AskError;
pub use asks::list::FindAskError;
pub use cleanup::{Cleanup, DryRun, RecordKind, Scope, Tally};
pub use commands::order::{FinishError, Order, OrderError, TakeError};
pub use commands::run::{Prospect, Ran, Runner};
pub use conversations::{
    MailReader, NewestThreads, Pair, Search, SearchHit, SearchHits, Thread, ThreadError, ThreadFilter, ThreadSummary,
    Threads, folded,
};
pub use delivery::backoff::spaced;
pub use delivery::evidence::ROUTE_OF_DRIVERS;
pub use delivery::hook::{HookError, HookOutcome};
pub use delivery::invitation::{InvitationAnswer, TakenInvitation};
pub use delivery::invite::{InviteError, Invited, LONGEST_INVITATION};
pub use delivery::loop_guard::LoopLimits;
pub use delivery::serve::Served;
pub use mesh::Mesh;
pub use messages::address::AddressError;
pub use messages::all_receipts::{GrownReceipts, ReceiptCounts};
pub use messages::envelope::{Enveloped, Presented, TAG, envelope, harmless, timestamp};
pub use messages::fetch::{AckError, Acknowledged, BodyRange, Fetch, FetchError, Fetched, FetchedMessage, Lease};
pub use messages::id_prefix::{IdError, SHORTEST_PREFIX, check as check_id};
pub use messages::outbox::Queued;
pub use messages::send::{Audience, SendError, Sent, SentTo, WaitsFor};
pub use messages::status::{MeshStatus, MessageStatus, StatusError, StuckMail};
pub use messages::wait::MailWatch;
pub use messages::wake::{LONGEST_WAKE, Wake, WakeError};
pub use messages::watch::{Mailed, ReceiptsOf, Received};
pub use reservations::edits::{AUTO_REASON, EditMode, EditRules};
pub use reservations::ledger::{Others, Own};
pub use reservations::list::{RepositoryReservations, ReservationFilter};
pub use reservations::reserve::{Release, ReleaseError, Released, Reserve, ReserveError, Reserved};
pub use sessions::bind::{BindError, Bound};
pub use sessions::discover::{Roster, RosterError, Rostered};
pub use sessions::identify::IdentifyError;
pub use sessions::record::SessionView;
pub use sessions::ticket::TicketError;
pub use storage::damage::DamagedRecord;
pub use storage::event_log::{EVENT_KINDS, Event, Stretch, kind_of_today};
pub use storage::index_rule::MeshIndexRule;
pub use storage::known_store::KnownStore;
pub use storage::ownership::AgentOwnership;
pub use store::reasons;

// Old module paths, until their callers have moved.

use crate::ports::harness::Harnesses;
use crate::ports::machine::Machine;

/// The parts that [`Mesh::new`] puts together.
pub struct Parts {
    /// Agents, messages and receipts: shared by every machine that uses this mesh.
    pub shared: Arc<dyn Store>,
    /// Sessions, wake files and the ticket key, which never leave this machine. The same store as `shared` if that is a
    /// folder.
    pub local: Arc<dyn Store>,
    /// Clock, processes and random numbers.
    pub machine: Arc<dyn Machine>,
    /// The harnesses that have an adapter.
    pub harnesses: Arc<dyn Harnesses>,
    /// The user's settings.
    pub limits: Limits,
}

/// The user's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The limits of the loop guard.
    pub loops: LoopLimits,
    /// How long a lease keeps others from presenting a message, in milliseconds.
    pub lease: u64,
    /// After how long without a sign of life an agent counts as away, in milliseconds.
    pub away_after: u64,
    /// How long mail waits at most for the next prompt of a user who stopped a turn, in milliseconds.
    pub after_stop: u64,
    /// Whether mail may start a turn in a session that no terminal shows.
    pub background: bool,
    /// How long settled mail is kept, in milliseconds.
    pub keep: u64,
    /// After how long unread mail expires, in milliseconds.
    pub expire_after: u64,
    /// How long a question to the user waits before it counts as refused, in milliseconds.
    pub ask_patience: u64,
    /// What happens when an agent edits a file that another agent has reserved.
    pub edits: EditRules,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            loops: LoopLimits::default(),
            lease: 60_000,
            away_after: 10 * 60_000,
            after_stop: 10 * 60_000,
            background: false,
            keep: 7 * 24 * 3_600_000,
            expire_after: 30 * 24 * 3_600_000,
            ask_patience: 10 * 60_000,
            edits: EditRules::default(),
        }
    }
}
