//! What relay-mesh means: agents, presence, messages and their receipts, sessions and delivery.
//!
//! This crate does no I/O of its own and reads no clock. Everything it keeps goes through
//! [`store::Store`]; time, randomness and processes come from a [`Machine`]; everything that is
//! particular to a harness comes from a [`Harness`].

pub mod agent;
pub mod harness;
pub mod machine;
pub mod message;
pub mod names;
pub mod receipt;
pub mod session;
