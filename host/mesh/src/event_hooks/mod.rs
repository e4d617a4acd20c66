//! Event hooks: what the user has carried out when something happens on the mesh.
//!
//! A hook says which events it is for and what is to be done. Each event that it is for becomes one [`Invocation`], a
//! record under a key that follows from hook and event, so that it is made once whoever reads the event log. One process
//! at a time reads the log and carries invocations out; what that means for a command, a message and a webhook is the
//! binary's. Hooks are the user's settings and never leave this machine, nor do their invocations.

mod hook;
mod invocation;
mod rate;
pub(crate) mod retention;
mod store;
mod tell;

pub use hook::{EventHook, HookAction, HookMatch, HookTrigger, InvalidMatch, Occurrence, UnknownTrigger};
pub use invocation::{
    Attempt, DEAD_KEPT, FINISHED_KEPT, Invocation, InvocationStage, MOST_TRIES, next_stage, retry_after,
};
pub use rate::{MOST_PER_MINUTE, MOST_WAITING, RateLimit};
pub use store::HookReader;
pub(crate) use tell::HookCause;
