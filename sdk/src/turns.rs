//! What adapters with hooks remember of a session's turns: how often in a row its end was put off,
//! and which subagents have joined by themselves.
//!
//! ```
//! use relay_mesh_sdk::{testing::Fakes, turns};
//!
//! let _lent = Fakes::default().lend();
//! assert!(turns::may_go_on("s1", false)?);
//! for _ in 0..turns::MOST_BLOCKS {
//!     turns::count_block("s1")?;
//! }
//! assert!(!turns::may_go_on("s1", true)?, "it was put off often enough");
//! assert!(turns::may_go_on("s1", false)?, "a turn of its own begins the count anew");
//! # Ok::<(), relay_mesh_sdk::Error>(())
//! ```

use crate::{Error, kept};

/// Turns end, windows stay open for weeks; what is older belongs to a session that is long gone.
const LASTS: u64 = 60 * 24 * 3_600_000;

/// How often in a row a hook of ours may keep a session going at its turn's end. Harnesses stop such
/// a row themselves and tell the person; we stop before.
pub const MOST_BLOCKS: u32 = 6;

/// Whether a turn's end may be put off once more. `again` where the harness says that this end follows
/// one that was put off; else the count begins anew.
pub fn may_go_on(session: &str, again: bool) -> Result<bool, Error> {
    if !again {
        forget_blocks(session)?;
    }
    Ok(kept::read::<u32>(&blocks(session))?.unwrap_or(0) < MOST_BLOCKS)
}

/// Counts one end more that was put off.
pub fn count_block(session: &str) -> Result<(), Error> {
    kept::update(&blocks(session), |count: Option<u32>| Some(count.unwrap_or(0) + 1))
}

/// Begins the count anew.
pub fn forget_blocks(session: &str) -> Result<(), Error> {
    kept::forget(&blocks(session))
}

/// Notes that a subagent has an agent of its own, so that mail may be shown to it. Until then it
/// speaks as its root session's agent, whose mail it must not take away.
pub fn set_apart(session: &str) -> Result<(), Error> {
    kept::write(&apart(session), &())
}

/// Whether a subagent has an agent of its own.
pub fn is_apart(session: &str) -> Result<bool, Error> {
    kept::is_kept(&apart(session))
}

/// Forgets a subagent that ended.
pub fn forget_apart(session: &str) -> Result<(), Error> {
    kept::forget(&apart(session))
}

/// Clears away what nobody will ask for any more. To be called where a session starts.
pub fn clear_away() -> Result<(), Error> {
    kept::clear_away("blocks/", LASTS)?;
    kept::clear_away("apart/", LASTS)
}

fn blocks(session: &str) -> String {
    format!("blocks/{session}")
}

fn apart(session: &str) -> String {
    format!("apart/{session}")
}
