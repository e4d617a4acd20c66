//! What is remembered between calls, in the adapter's state on this machine.
//!
//! - `cleared/ID`: a session that /clear has just ended, and its folder. The session that follows in the
//!   same window begins at once, and nothing in its payload names the one before.
//! - `untold/ID`: a session that has lost what it was told, at a moment where Gemini CLI lets a hook add
//!   nothing. The next prompt is the first place.

use relay_mesh_sdk::{Error, Session, kept, state, turns};

/// Seen: a tenth of a second between the two hooks of a /clear.
const CLEARS_LAST: u64 = 5_000;
/// A window stays open for weeks; what is older belongs to one that is long gone.
const OTHERS_LAST: u64 = 60 * 24 * 3_600_000;

/// Notes that another session will follow this one in the same window.
pub(crate) fn cleared(session: &Session) -> Result<(), Error> {
    kept::write(&format!("cleared/{}", session.id), &session.workdir)
}

/// The session that this one follows in its window. None where two windows of one folder were cleared at
/// the same moment: then nobody's agent is given to the wrong window, and it registers again.
pub(crate) fn cleared_before(session: &Session) -> Result<Option<String>, Error> {
    kept::clear_away("cleared/", CLEARS_LAST)?;
    let mut fitting = Vec::new();
    for key in state::keys("cleared/")? {
        if kept::read::<String>(&key)?.as_deref() == Some(session.workdir.as_str()) {
            fitting.push(key);
        }
    }
    let [key] = fitting.as_slice() else { return Ok(None) };
    let taken = kept::take::<String>(key)?;
    Ok(taken.and_then(|_| key.strip_prefix("cleared/")).map(str::to_owned))
}

/// Notes that a session does not know the protocol any more.
pub(crate) fn forgets(session: &str) -> Result<(), Error> {
    kept::write(&format!("untold/{session}"), &())
}

/// Whether a session has to be told the protocol. Answers yes once.
pub(crate) fn is_untold(session: &str) -> Result<bool, Error> {
    Ok(kept::take::<()>(&format!("untold/{session}"))?.is_some())
}

/// Clears away what nobody will ask for any more. Called where a session starts, which is rare.
pub(crate) fn clear_away() -> Result<(), Error> {
    turns::clear_away()?;
    kept::clear_away("untold/", OTHERS_LAST)
}
