//! Helpers for an agent's profile: filling gaps from an earlier one, and deriving a name.

use crate::agents::Profile;
use crate::names::AgentName;

/// Fills the empty fields of a profile from another one.
pub(crate) fn fill(profile: &mut Profile, from: &Profile) {
    for (field, other) in [
        (&mut profile.harness, &from.harness),
        (&mut profile.program, &from.program),
        (&mut profile.model, &from.model),
        (&mut profile.project, &from.project),
        (&mut profile.role, &from.role),
        (&mut profile.task, &from.task),
        (&mut profile.issue, &from.issue),
    ] {
        if field.is_none() {
            field.clone_from(other);
        }
    }
    if profile.skills.is_empty() {
        profile.skills.clone_from(&from.skills);
    }
}

/// A name for an agent that asked for none: its harness and the last part of its project's path.
pub(crate) fn made_up(profile: &Profile) -> AgentName {
    let harness = profile.harness.as_deref().or(profile.program.as_deref()).unwrap_or("agent");
    let folder =
        profile.project.as_deref().and_then(|project| project.rsplit(['/', '\\']).find(|part| !part.is_empty()));
    let mut name = String::new();
    for character in format!("{harness}-{}", folder.unwrap_or_default()).to_lowercase().chars() {
        if character.is_ascii_lowercase() || character.is_ascii_digit() {
            name.push(character);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let short: String = name.chars().take(40).collect();
    short.trim_end_matches('-').parse().unwrap_or_else(|_| "agent".parse().expect("`agent` is a name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(harness: Option<&str>, project: Option<&str>, expected: &str) {
        let profile =
            Profile { harness: harness.map(str::to_owned), project: project.map(str::to_owned), ..Profile::default() };
        assert_eq!(made_up(&profile).as_str(), expected);
    }

    #[test]
    fn a_name_is_made_from_harness_and_project() {
        check(Some("claude-code"), Some("/home/u/My App/"), "claude-code-my-app");
        check(None, None, "agent");
        check(Some("shell"), None, "agent");
        check(Some("ÜÜ"), Some("/"), "agent");
        check(Some("x"), Some(&"long".repeat(50)), "x-longlonglonglonglonglonglonglonglonglo");
    }
}
