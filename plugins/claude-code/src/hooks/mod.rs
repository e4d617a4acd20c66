//! Claude Code's hooks: `read` says what a payload means, `answer` writes the reply in the shape that each event
//! takes.

mod answer;
mod read;
#[cfg(test)]
mod tests;

use relay_mesh_sdk::hooks::{Call, Findings, Reading, Reply};
use relay_mesh_sdk::{Error, Hooks};

use crate::ClaudeCode;
use crate::payload::Payload;

impl Hooks for ClaudeCode {
    fn read(call: &Call) -> Result<Reading, Error> {
        match Payload::parse(call)? {
            Some(payload) => read::read(&payload),
            None => Ok(Reading::nothing()),
        }
    }

    fn answer(call: &Call, found: Findings) -> Result<Reply, Error> {
        match Payload::parse(call)? {
            Some(payload) => answer::answer(&payload, found),
            None => Ok(Reply::silent()),
        }
    }
}
