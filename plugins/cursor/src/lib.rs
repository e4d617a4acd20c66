//! The Cursor adapter, for the editor and its command line. It only translates between Cursor's hooks and settings
//! and the types of the mesh; `memory` holds what it must remember between calls.
//!
//! We could not run Cursor. The README beside this crate lists what we know only from Cursor's documents and from
//! recordings by others.

mod evidence;
mod hooks;
mod install;
mod memory;
mod payload;
mod push;
mod sessions;
mod tools;

use relay_mesh_sdk::{About, Context, Identity};

/// The adapter for Cursor.
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

/// Passes the host's text on; the hooks at a session's start, after registration and after a compaction show it.
impl Context for Cursor {}

relay_mesh_sdk::export!(Cursor, [evidence], manifest = "../adapter.toml");
