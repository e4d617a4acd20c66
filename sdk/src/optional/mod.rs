//! The interfaces that an adapter may leave out. Each is one file: its trait, its bindings and its macro
//! `export`, which [`export!`](crate::export) calls for every name in its list.
//!
//! To add one, write its file after the pattern of [`commands`] and name it here.

pub mod commands;
pub mod driver;
pub mod evidence;
pub mod runner;
