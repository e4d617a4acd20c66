//! What adapters with hooks remember about a session's turns: how often in a row a hook kept the turn from
//! ending, and which subagents have registered an agent of their own.
//!
//! ```
//! use relay_mesh_sdk::{testing::Fakes, turns};
//!
//! let _host = Fakes::default().start();
//! assert!(turns::may_go_on("s1", false)?);
//! for _ in 0..turns::MOST_BLOCKS {
//!     turns::count_block("s1")?;
//! }
//! assert!(!turns::may_go_on("s1", true)?, "the limit is reached");
//! assert!(turns::may_go_on("s1", false)?, "another turn resets the count");
//! # Ok::<(), relay_mesh_sdk::Error>(())
//! ```

use crate::{Error, dated_state};

/// 60 days: windows stay open for weeks, and older values belong to sessions that have ended.
const MAX_AGE: u64 = 60 * 24 * 3_600_000;

/// How often in a row our hook may keep a turn from ending. Harnesses have a limit of their own and warn the
/// user when it is reached; this one is lower.
pub const MOST_BLOCKS: u32 = 6;

/// Whether our hook may keep a turn from ending once more. `again` means that the harness says a hook has
/// already kept this turn going; otherwise the count is reset.
pub fn may_go_on(session: &str, again: bool) -> Result<bool, Error> {
    if !again {
        forget_blocks(session)?;
    }
    Ok(dated_state::read::<u32>(&blocks(session))?.unwrap_or(0) < MOST_BLOCKS)
}

/// Counts that our hook kept a turn from ending.
pub fn count_block(session: &str) -> Result<(), Error> {
    dated_state::update(&blocks(session), |count: Option<u32>| Some(count.unwrap_or(0) + 1))
}

/// Resets the count.
pub fn forget_blocks(session: &str) -> Result<(), Error> {
    dated_state::forget(&blocks(session))
}

/// Remembers that a subagent has an agent of its own, so hooks may show it mail. Until then it speaks as its
/// root session's agent and must not take that agent's mail.
pub fn set_apart(session: &str) -> Result<(), Error> {
    dated_state::write(&apart(session), &())
}

/// Whether [`set_apart`] was called for a subagent.
pub fn is_apart(session: &str) -> Result<bool, Error> {
    dated_state::exists(&apart(session))
}

/// Forgets a subagent that ended.
pub fn forget_apart(session: &str) -> Result<(), Error> {
    dated_state::forget(&apart(session))
}

/// Removes values of ended sessions. Call it when a session starts.
pub fn remove_old() -> Result<(), Error> {
    dated_state::remove_older_than("blocks/", MAX_AGE)?;
    dated_state::remove_older_than("apart/", MAX_AGE)
}

fn blocks(session: &str) -> String {
    format!("blocks/{session}")
}

fn apart(session: &str) -> String {
    format!("apart/{session}")
}
