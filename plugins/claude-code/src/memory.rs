//! What the adapter remembers between calls, in its state on this machine.
//!
//! - `call/ID`: a tool call that our PreToolUse hook has seen, and its session. The hook writes it, the tools/call
//!   with the same id takes it.
//! - `window/PID`: the session that a Claude Code process shows. Each session start writes it and reads the
//!   previous one, because /clear starts a session with a new id in the same process.
//! - `next/ID`: the session that followed this one after /clear, for servers whose environment still names the old
//!   one.

use relay_mesh_sdk::{Error, Session, dated_state};
use serde::{Deserialize, Serialize};

/// A tool call follows its hook at once, or after the user has allowed it.
const CALLS_LAST: u64 = 24 * 3_600_000;
/// A window may stay open for weeks; older values belong to processes that have ended.
const OTHERS_LAST: u64 = 60 * 24 * 3_600_000;
/// The longest chain of /clear that is followed, in case it is circular.
const LONGEST_CHAIN: usize = 64;

/// The parts of a session that a later call needs.
#[derive(Debug, Serialize, Deserialize)]
struct Speaker {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    workdir: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
}

/// Remembers that a session is about to call a tool.
pub(crate) fn remember_call(tool_use_id: &str, session: &Session) -> Result<(), Error> {
    let Session { id, parent, workdir, process, route_hint: _ } = session.clone();
    dated_state::write(&format!("call/{tool_use_id}"), &Speaker { id, parent, workdir, process })
}

/// Takes the session that called a tool. A second call finds none.
pub(crate) fn take_call(tool_use_id: &str) -> Result<Option<Session>, Error> {
    let kept: Option<Speaker> = dated_state::take(&format!("call/{tool_use_id}"))?;
    Ok(kept.map(|Speaker { id, parent, workdir, process }| Session { id, parent, workdir, process, route_hint: None }))
}

/// Sets the session that a process shows now and returns the previous one.
pub(crate) fn enter_window(process: u32, session: &str) -> Result<Option<String>, Error> {
    let key = format!("window/{process}");
    let before: Option<String> = dated_state::read(&key)?;
    dated_state::write(&key, &session)?;
    Ok(before.filter(|before| before != session))
}

/// Removes the session that a process showed.
pub(crate) fn leave_window(process: u32) -> Result<(), Error> {
    dated_state::forget(&format!("window/{process}"))
}

/// Remembers that a session continues under another id.
pub(crate) fn follow(old: &str, new: &str) -> Result<(), Error> {
    dated_state::write(&format!("next/{old}"), &new)
}

/// The id under which a session continues now.
pub(crate) fn current(session: &str) -> Result<String, Error> {
    let mut at = session.to_owned();
    for _ in 0..LONGEST_CHAIN {
        match dated_state::read::<String>(&format!("next/{at}"))? {
            Some(next) => at = next,
            None => return Ok(at),
        }
    }
    Ok(session.to_owned())
}

/// Removes old values. Called when a session starts, which is rare.
pub(crate) fn clear_away() -> Result<(), Error> {
    for (prefix, lasts) in [("call/", CALLS_LAST), ("window/", OTHERS_LAST), ("next/", OTHERS_LAST)] {
        dated_state::remove_older_than(prefix, lasts)?;
    }
    Ok(())
}
