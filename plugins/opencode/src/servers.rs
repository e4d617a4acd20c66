//! The OpenCode servers of this machine that connectors told of, for looking after them later. Kept
//! under `server/PORT` in the adapter's state, which no other machine sees.

use relay_mesh_sdk::{Error, kept, state};

use crate::payload::Server;

/// A server that nobody told of for so long is not asked after any more.
const LASTS: u64 = 7 * 24 * 3_600_000;

/// Keeps a server, and clears away what is old. Called where a session begins, which is rare.
pub(crate) fn remember(server: Option<&Server>) -> Result<(), Error> {
    let Some(server) = server else { return Ok(()) };
    kept::clear_away("server/", LASTS)?;
    kept::write(&key(server.port), server)
}

/// Every server that was told of.
pub(crate) fn known() -> Result<Vec<Server>, Error> {
    let mut known = Vec::new();
    for key in state::keys("server/")? {
        known.extend(kept::read::<Server>(&key)?);
    }
    Ok(known)
}

/// Forgets one where nobody listens any more.
pub(crate) fn forget(port: u16) -> Result<(), Error> {
    kept::forget(&key(port))
}

fn key(port: u16) -> String {
    format!("server/{port}")
}
