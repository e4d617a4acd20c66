//! What commands print: one documented shape per command, as `--json` and as text.
//!
//! What the MCP server shows too is defined in the crate `view`; here is its text, and what only
//! the command line shows. Field names are a promise. Times are RFC 3339 in UTC. A field without a
//! value is left out.

pub(crate) mod acp;
pub(crate) mod agents;
pub(crate) mod allowances;
pub(crate) mod asks;
pub(crate) mod channels;
pub(crate) mod cleanup;
pub(crate) mod commands;
pub(crate) mod conversations;
pub(crate) mod driven;
pub(crate) mod event_hooks;
pub(crate) mod events;
pub(crate) mod guard;
pub(crate) mod harness_servers;
pub(crate) mod mail;
pub(crate) mod migration;
pub(crate) mod nats_auth;
pub(crate) mod page;
pub(crate) mod receipts;
pub(crate) mod reservations;
pub(crate) mod reviews;
pub(crate) mod runs;
pub(crate) mod sarif;
pub(crate) mod server;
pub(crate) mod settings;
pub(crate) mod size;
pub(crate) mod threads;
pub(crate) mod wake;
pub(crate) mod wake_table;

pub(crate) use view::{ago, counted, rfc3339, span};
