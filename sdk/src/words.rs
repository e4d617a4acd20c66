//! Texts that agents and people of every harness get.

use crate::Error;

/// An error as part of a sentence for a person.
pub fn explain(error: &Error) -> String {
    match error {
        Error::NotFound(why) | Error::Denied(why) | Error::Unsupported(why) | Error::Failed(why) => why.clone(),
        Error::Busy(after_ms) => format!("it is busy for {after_ms} ms"),
    }
}

/// A skill (SKILL.md with front matter): when and how to talk with other agents. Harnesses load it when a task
/// calls for it.
pub const SKILL: &str = include_str!("../assets/SKILL.md");

/// The skill without its front matter, for a harness that needs another one.
pub fn skill_body() -> &'static str {
    let body = SKILL.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    body.map_or(SKILL, |(_, body)| body.trim_start())
}
