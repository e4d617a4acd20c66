//! Delivery: how stored messages reach live sessions, by which routes, and what holds them back.

pub(crate) mod backoff;
pub(crate) mod chain;
pub(crate) mod hook;
pub(crate) mod invitation;
pub(crate) mod invite;
pub(crate) mod loop_guard;
pub(crate) mod next_route;
pub(crate) mod pass;
pub(crate) mod scheduler;
pub(crate) mod serve;
pub(crate) mod wake_file;
