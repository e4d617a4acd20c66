//! Codex's hooks: `read` says what a payload means, `answer` writes the reply in the shape that each event takes.

mod answer;
mod read;
#[cfg(test)]
mod tests;

use relay_mesh_sdk::hooks::{Call, Findings, Reading, Reply};
use relay_mesh_sdk::{Error, Hooks};

pub(crate) use read::has_hooks;

use crate::Codex;
use crate::payload::Payload;

impl Hooks for Codex {
    fn read(call: &Call) -> Result<Reading, Error> {
        read::read(&Payload::parse(call)?)
    }

    fn answer(call: &Call, found: Findings) -> Result<Reply, Error> {
        answer::answer(&Payload::parse(call)?, found)
    }
}
