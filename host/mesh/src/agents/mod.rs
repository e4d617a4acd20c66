//! Agents: how they register, how present they are, and how others find them.

pub(crate) mod adopt;
pub(crate) mod agent;
pub(crate) mod find;
pub(crate) mod heartbeat;
pub(crate) mod list;
pub(crate) mod offline_notice;
pub(crate) mod pause;
pub(crate) mod presence;
pub(crate) mod presence_events;
pub(crate) mod profile;
pub(crate) mod register;
pub(crate) mod remote_cache;
pub(crate) mod remote_presence;
pub(crate) mod restore;
pub(crate) mod retention;

pub use agent::{Agent, AgentSummary, Origin, Presence, Profile};
