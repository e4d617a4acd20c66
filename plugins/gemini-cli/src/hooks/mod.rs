//! Gemini CLI's hooks: `read` says what a payload means, `answer` writes the reply in the shape that each event
//! takes.

mod answer;
mod read;
#[cfg(test)]
mod tests;

use relay_mesh_sdk::hooks::{Call, Findings, Reading, Reply};
use relay_mesh_sdk::{Error, Hooks};

use crate::GeminiCli;
use crate::payload::Payload;

impl Hooks for GeminiCli {
    fn read(call: &Call) -> Result<Reading, Error> {
        read::read(&Payload::parse(call)?)
    }

    fn answer(call: &Call, found: Findings) -> Result<Reply, Error> {
        answer::answer(&Payload::parse(call)?, found)
    }
}
