//! What is remembered between calls, in the adapter's state on this machine.
//!
//! - `call/ID`: a tool call that our PreToolUse hook has just seen, and the session it belongs to.
//!   Written by the hook, taken out by the tools/call that bears the same id.
//! - `window/PID`: the session that a Claude Code process shows. Written at every session start, read
//!   at the next one, because /clear begins a session under a new id in the same process.
//! - `next/ID`: the session that followed one after /clear, for servers whose environment still
//!   names the old one.
//! - `blocks/ID`: how often in a row our Stop hook has kept a session going.
//! - `apart/ID`: a subagent that has registered an agent of its own.

use relay_mesh_sdk::{Error, Session, clock, state};
use serde::{Deserialize, Serialize};

/// A tool call follows its hook at once, or after a person has allowed it.
const CALLS_LAST: u64 = 24 * 3_600_000;
/// A window may stay open for weeks; what is older belongs to a process that is long gone.
const OTHERS_LAST: u64 = 60 * 24 * 3_600_000;
/// How many sessions after /clear are followed before a circle is assumed.
const LONGEST_CHAIN: usize = 64;

#[derive(Debug, Serialize, Deserialize)]
struct Kept<T> {
    /// When it was written, for clearing away.
    at: u64,
    what: T,
}

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
    keep(&format!("call/{tool_use_id}"), Speaker { id, parent, workdir, process })
}

/// The session that made a tool call. Each is told once.
pub(crate) fn take_call(tool_use_id: &str) -> Result<Option<Session>, Error> {
    let kept: Option<Kept<Speaker>> = state::take(&format!("call/{tool_use_id}"))?;
    Ok(kept.map(|Kept { what: Speaker { id, parent, workdir, process }, .. }| Session {
        id,
        parent,
        workdir,
        process,
        route_hint: None,
    }))
}

/// Notes the session that a process shows now and answers the one that it showed before.
pub(crate) fn enter_window(process: u32, session: &str) -> Result<Option<String>, Error> {
    let key = format!("window/{process}");
    let before: Option<Kept<String>> = state::read(&key)?;
    keep(&key, session.to_owned())?;
    Ok(before.map(|kept| kept.what).filter(|before| before != session))
}

/// Notes that a process shows no session any more.
pub(crate) fn leave_window(process: u32) -> Result<(), Error> {
    state::update(&format!("window/{process}"), |_: Option<Kept<String>>| None).map(|_| ())
}

/// Notes that a session goes on under another id.
pub(crate) fn follow(old: &str, new: &str) -> Result<(), Error> {
    keep(&format!("next/{old}"), new.to_owned())
}

/// The id under which a session goes on now.
pub(crate) fn current(session: &str) -> Result<String, Error> {
    let mut at = session.to_owned();
    for _ in 0..LONGEST_CHAIN {
        match state::read::<Kept<String>>(&format!("next/{at}"))? {
            Some(next) => at = next.what,
            None => return Ok(at),
        }
    }
    Ok(session.to_owned())
}

/// How often in a row a session's end of turn was blocked.
pub(crate) fn blocks(session: &str) -> Result<u32, Error> {
    Ok(state::read::<Kept<u32>>(&format!("blocks/{session}"))?.map_or(0, |kept| kept.what))
}

/// Counts one block more.
pub(crate) fn count_block(session: &str) -> Result<(), Error> {
    let at = clock::now();
    let count = |kept: Option<Kept<u32>>| Some(Kept { at, what: kept.map_or(0, |kept| kept.what) + 1 });
    state::update(&format!("blocks/{session}"), count).map(|_| ())
}

/// Begins the count again.
pub(crate) fn forget_blocks(session: &str) -> Result<(), Error> {
    state::update(&format!("blocks/{session}"), |_: Option<Kept<u32>>| None).map(|_| ())
}

/// Notes that a subagent has an agent of its own, so that mail may be shown to it.
pub(crate) fn set_apart(session: &str) -> Result<(), Error> {
    keep(&format!("apart/{session}"), ())
}

/// Whether a subagent has an agent of its own.
pub(crate) fn is_apart(session: &str) -> Result<bool, Error> {
    Ok(state::get(&format!("apart/{session}"))?.is_some())
}

/// Forgets a subagent that ended.
pub(crate) fn forget_apart(session: &str) -> Result<(), Error> {
    state::update(&format!("apart/{session}"), |_: Option<Kept<()>>| None).map(|_| ())
}

/// Clears away what nobody will ask for any more. Called where a session starts, which is rare.
pub(crate) fn clear_away() -> Result<(), Error> {
    let now = clock::now();
    for (prefix, lasts) in [
        ("call/", CALLS_LAST),
        ("window/", OTHERS_LAST),
        ("next/", OTHERS_LAST),
        ("blocks/", OTHERS_LAST),
        ("apart/", OTHERS_LAST),
    ] {
        for key in state::keys(prefix)? {
            let old = |kept: &Kept<serde_json::Value>| now.saturating_sub(kept.at) > lasts;
            state::update(&key, |kept: Option<Kept<serde_json::Value>>| kept.filter(|kept| !old(kept)))?;
        }
    }
    Ok(())
}

fn keep<T: Serialize + serde::de::DeserializeOwned>(key: &str, what: T) -> Result<(), Error> {
    state::write(key, &Kept { at: clock::now(), what })
}
