//! The commands, one file each: its arguments with their help, and what it does.

pub(crate) mod ack;
pub(crate) mod agents;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod detect_harness;
pub(crate) mod doctor;
pub(crate) mod down;
pub(crate) mod exit_codes;
pub(crate) mod harnesses;
pub(crate) mod hook;
pub(crate) mod input;
pub(crate) mod install;
pub(crate) mod listen;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod message;
pub(crate) mod plugin;
pub(crate) mod read;
pub(crate) mod register;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod uninstall;
pub(crate) mod up;
pub(crate) mod version;
