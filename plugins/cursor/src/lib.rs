//! The Cursor adapter: the editor and its command line. Pure translation between Cursor's hooks and
//! settings and the words of the mesh; what it must remember between calls is in `memory`.
//!
//! Cursor could not be run where this was written. What is known only from its documents and from
//! other people's recordings is listed in the README beside this crate.

mod hooks;
mod install;
mod memory;
mod payload;
mod push;
mod sessions;
mod tools;

use relay_mesh_sdk::{About, Context, Identity};

/// Cursor, as the mesh meets it.
pub struct Cursor;

impl Identity for Cursor {
    fn describe() -> About {
        About {
            harness: "cursor".into(),
            title: "Cursor".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: vec!["cursor-agent".into()],
            // One server process per window, however many conversations are open in it.
            connection_per_session: false,
        }
    }
}

/// The host's text goes where the hooks at a session's start, after registration and after a
/// compaction put it.
impl Context for Cursor {}

relay_mesh_sdk::export!(Cursor, manifest = "../adapter.toml");
