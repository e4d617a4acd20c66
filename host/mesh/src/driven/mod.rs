//! Driven agents: relay-mesh starts their harness, gives them turns, and ends them. This folder holds what such an agent
//! is, what it was told and may not have shown, and how its mail becomes turns. Processes and frames are the binary's
//! work; what a harness understands is its adapter's ([`crate::ports::driver`]).

pub mod agent;
mod ledger;
pub mod mail;
mod record;
pub mod registry;
mod request;
pub(crate) mod retention;
mod turn;

pub use ledger::{Given, GivenContent, Settled, settle};
pub use record::{DrivenEnd, DrivenId, DrivenLimits, DrivenRecord, DrivenStage, OverBudget, Spent};
pub use registry::{DrivenError, RequestError};
pub use request::{LONGEST_REQUEST, MOST_REQUESTS, Request, RequestKind, RequestOutcome};
pub use turn::{Turn, guidance};
