//! Cursor's hooks: `read` says what a payload means, `answer` writes the reply in the shape that each event takes.

mod answer;
mod read;
#[cfg(test)]
mod tests;

use relay_mesh_sdk::hooks::{Call, Findings, Reading, Reply};
use relay_mesh_sdk::{Error, Hooks};

use crate::Cursor;
use crate::payload::Payload;

/// How often in a row Cursor lets one hook continue after the end of a turn. hooks.json has it too.
pub(crate) const LOOP_LIMIT: u64 = 5;

impl Hooks for Cursor {
    fn read(call: &Call) -> Result<Reading, Error> {
        read::read(&Payload::parse(call)?)
    }

    fn answer(call: &Call, found: Findings) -> Result<Reply, Error> {
        answer::answer(&Payload::parse(call)?, found)
    }
}
