//! What agents of every harness are told in the same words.

/// A skill in the format that harnesses share (SKILL.md with a front matter): when and how to talk
/// with other agents. Read when a task calls for it.
pub const SKILL: &str = include_str!("../assets/SKILL.md");
