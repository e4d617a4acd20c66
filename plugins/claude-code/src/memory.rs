//! What is remembered between calls, in the adapter's state on this machine.
//!
//! - `call/ID`: a tool call that our PreToolUse hook has just seen, and the session it belongs to.
//!   Written by the hook, taken out by the tools/call that bears the same id.
//! - `window/PID`: the session that a Claude Code process shows. Written at every session start, read
//!   at the next one, because /clear begins a session under a new id in the same process.
//! - `next/ID`: the session that followed one after /clear, for servers whose environment still
//!   names the old one.

use relay_mesh_sdk::{Error, Session, kept};
use serde::{Deserialize, Serialize};

/// A tool call follows its hook at once, or after a person has allowed it.
const CALLS_LAST: u64 = 24 * 3_600_000;
/// A window may stay open for weeks; what is older belongs to a process that is long gone.
const OTHERS_LAST: u64 = 60 * 24 * 3_600_000;
/// How many sessions after /clear are followed before a circle is assumed.
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

/// Remembers that a session is about to make a tool call.
pub(crate) fn remember_call(tool_use_id: &str, session: &Session) -> Result<(), Error> {
    let Session { id, parent, workdir, process, route_hint: _ } = session.clone();
    kept::write(&format!("call/{tool_use_id}"), &Speaker { id, parent, workdir, process })
}

/// The session that made a tool call. Each is told once.
pub(crate) fn take_call(tool_use_id: &str) -> Result<Option<Session>, Error> {
    let kept: Option<Speaker> = kept::take(&format!("call/{tool_use_id}"))?;
    Ok(kept.map(|Speaker { id, parent, workdir, process }| Session { id, parent, workdir, process, route_hint: None }))
}

/// Notes the session that a process shows now and answers the one that it showed before.
pub(crate) fn enter_window(process: u32, session: &str) -> Result<Option<String>, Error> {
    let key = format!("window/{process}");
    let before: Option<String> = kept::read(&key)?;
    kept::write(&key, &session)?;
    Ok(before.filter(|before| before != session))
}

/// Notes that a process shows no session any more.
pub(crate) fn leave_window(process: u32) -> Result<(), Error> {
    kept::forget(&format!("window/{process}"))
}

/// Notes that a session goes on under another id.
pub(crate) fn follow(old: &str, new: &str) -> Result<(), Error> {
    kept::write(&format!("next/{old}"), &new)
}

/// The id under which a session goes on now.
pub(crate) fn current(session: &str) -> Result<String, Error> {
    let mut at = session.to_owned();
    for _ in 0..LONGEST_CHAIN {
        match kept::read::<String>(&format!("next/{at}"))? {
            Some(next) => at = next,
            None => return Ok(at),
        }
    }
    Ok(session.to_owned())
}

/// Clears away what nobody will ask for any more. Called where a session starts, which is rare.
pub(crate) fn clear_away() -> Result<(), Error> {
    for (prefix, lasts) in [("call/", CALLS_LAST), ("window/", OTHERS_LAST), ("next/", OTHERS_LAST)] {
        kept::clear_away(prefix, lasts)?;
    }
    Ok(())
}
