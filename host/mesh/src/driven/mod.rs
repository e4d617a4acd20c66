//! Driven agents: relay-mesh starts their harness, gives them turns, and ends them. This folder holds what such an agent
//! is, what it was told and may not have shown, and how its mail becomes turns. Processes and frames are the binary's
//! work; what a harness understands is its adapter's ([`crate::ports::driver`]).

pub mod agent;
mod directives;
mod ledger;
pub mod mail;
mod owed;
mod permit;
mod record;
pub mod registry;
mod request;
pub(crate) mod retention;
mod turn;
mod wanted;

pub use directives::{Directive, MOST_DIRECTIVES, Malformed, directive_in_file, directives};
pub use ledger::{GivenPrompt, PromptContent, Settled, settle};
pub use owed::{OwedReply, OwedWords};
pub use permit::{SpawnAsker, SpawnBounds, SpawnRefused, TreeOver, is_allowed, may_ask, tree_over, within_root};
pub use record::{DrivenEnd, DrivenId, DrivenLimits, DrivenRecord, DrivenStage, OverBudget, Spent};
pub use registry::{DrivenError, RequestError};
pub use request::{LONGEST_REQUEST, MOST_REQUESTS, Request, RequestKind, RequestOutcome};
pub use turn::{Turn, after_another_session, guidance};
pub use wanted::WantedAgent;
