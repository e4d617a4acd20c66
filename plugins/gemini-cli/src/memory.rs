//! What the adapter remembers between calls, in its state on this machine.
//!
//! - `cleared/ID`: a session that /clear has just ended, its folder and the process of its window. The next session in
//!   the window starts at once, and nothing in its payload names this one.
//! - `untold/ID`: a session that has lost the protocol when Gemini CLI lets no hook add text. The next prompt's
//!   hook adds it.

use relay_mesh_sdk::{Error, Session, dated_state, state, turns};
use serde::{Deserialize, Serialize};

/// The two hooks of a /clear were seen a tenth of a second apart.
const CLEARS_LAST: u64 = 5_000;
/// A window stays open for weeks; older values belong to windows that are closed.
const OTHERS_LAST: u64 = 60 * 24 * 3_600_000;

/// What is known of the window of a session that was cleared.
#[derive(Serialize, Deserialize)]
struct Cleared {
    workdir: String,
    process: Option<String>,
}

/// Remembers that another session will follow this one in the same window.
pub(crate) fn cleared(session: &Session, process: Option<&str>) -> Result<(), Error> {
    let window = Cleared { workdir: session.workdir.clone(), process: process.map(str::to_owned) };
    dated_state::write(&format!("cleared/{}", session.id), &window)
}

/// The session that this one follows in its window. None if its process is unknown and two windows of one folder were
/// cleared at the same time: then the agent registers again, instead of moving to the wrong window.
pub(crate) fn cleared_before(session: &Session, process: Option<&str>) -> Result<Option<String>, Error> {
    dated_state::remove_older_than("cleared/", CLEARS_LAST)?;
    let mut fitting = Vec::new();
    for key in state::keys("cleared/")? {
        let Some(window) = dated_state::read::<Cleared>(&key)? else { continue };
        let is_it = match (process, &window.process) {
            (Some(process), Some(cleared)) => process == cleared,
            (_, _) => window.workdir == session.workdir,
        };
        if is_it {
            fitting.push(key);
        }
    }
    let [key] = fitting.as_slice() else { return Ok(None) };
    let taken = dated_state::take::<Cleared>(key)?;
    Ok(taken.and_then(|_| key.strip_prefix("cleared/")).map(str::to_owned))
}

/// Remembers that a session has lost the protocol.
pub(crate) fn forgets(session: &str) -> Result<(), Error> {
    dated_state::write(&format!("untold/{session}"), &())
}

/// Whether a session has lost the protocol. True once.
pub(crate) fn is_untold(session: &str) -> Result<bool, Error> {
    Ok(dated_state::take::<()>(&format!("untold/{session}"))?.is_some())
}

/// Removes old values. Called when a session starts, which is rare.
pub(crate) fn clear_away() -> Result<(), Error> {
    turns::remove_old()?;
    dated_state::remove_older_than("untold/", OTHERS_LAST)
}
