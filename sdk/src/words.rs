//! What agents of every harness are told in the same words.

/// A skill in the format that harnesses share (SKILL.md with a front matter): when and how to talk
/// with other agents. Read when a task calls for it.
pub const SKILL: &str = include_str!("../assets/SKILL.md");

/// The same without its front matter, for a harness that wants another one.
pub fn skill_body() -> &'static str {
    let body = SKILL.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    body.map_or(SKILL, |(_, body)| body.trim_start())
}
