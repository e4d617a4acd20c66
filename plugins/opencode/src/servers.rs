//! The OpenCode servers of this machine that connectors reported, for later checks. Stored under `server/PORT` in
//! the adapter's state, which no other machine sees.

use relay_mesh_sdk::{Error, dated_state, state};

use crate::payload::Server;

/// A server without a report for this long is no longer checked.
const LASTS: u64 = 7 * 24 * 3_600_000;

/// Stores a server and removes old ones. Called when a session starts, which is rare.
pub(crate) fn remember(server: Option<&Server>) -> Result<(), Error> {
    let Some(server) = server else { return Ok(()) };
    dated_state::remove_older_than("server/", LASTS)?;
    dated_state::write(&key(server.port), server)
}

pub(crate) fn known() -> Result<Vec<Server>, Error> {
    let mut known = Vec::new();
    for key in state::keys("server/")? {
        known.extend(dated_state::read::<Server>(&key)?);
    }
    Ok(known)
}

/// Forgets a server that no longer listens.
pub(crate) fn forget(port: u16) -> Result<(), Error> {
    dated_state::forget(&key(port))
}

fn key(port: u16) -> String {
    format!("server/{port}")
}
