//! Decides whether a plan is applied: by the command line, else by asking the user.

use mesh::ports::harness::Plan;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    DryRun,
    Yes,
    Ask,
}

impl Confirmation {
    /// The confirmation from `--dry-run` and `--yes`. A dry run wins over `--yes`.
    pub(crate) fn from_flags(dry_run: bool, yes: bool) -> Confirmation {
        match (dry_run, yes) {
            (true, true | false) => Confirmation::DryRun,
            (false, true) => Confirmation::Yes,
            (false, false) => Confirmation::Ask,
        }
    }
}

/// Whether the user can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Standard input and standard error are a terminal.
    Terminal,
    /// A script, a pipe, an agent.
    Nobody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    NothingToDo,
    ShowOnly,
    Apply,
    Ask,
    /// The user cannot be asked: say how to agree, and change nothing.
    Unasked,
}

pub(crate) fn decision(plan: &Plan, confirmation: Confirmation, audience: Audience) -> Decision {
    match (plan.edits.is_empty(), confirmation, audience) {
        (true, Confirmation::DryRun | Confirmation::Yes | Confirmation::Ask, Audience::Terminal | Audience::Nobody) => {
            Decision::NothingToDo
        }
        (false, Confirmation::DryRun, Audience::Terminal | Audience::Nobody) => Decision::ShowOnly,
        (false, Confirmation::Yes, Audience::Terminal | Audience::Nobody) => Decision::Apply,
        (false, Confirmation::Ask, Audience::Terminal) => Decision::Ask,
        (false, Confirmation::Ask, Audience::Nobody) => Decision::Unasked,
    }
}

/// What the user wants, asked `[y]es [d]iff [N]o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypedAnswer {
    Apply,
    /// See every line first, and be asked again.
    SeeDiff,
    Decline,
}

/// What an answer to `[y]es [d]iff [N]o` means. An empty line means no.
pub(crate) fn typed(answer: &str) -> TypedAnswer {
    let diff = ["d", "diff"].contains(&answer.trim().to_ascii_lowercase().as_str());
    match (is_yes(answer), diff) {
        (true, _) => TypedAnswer::Apply,
        (false, true) => TypedAnswer::SeeDiff,
        (false, false) => TypedAnswer::Decline,
    }
}

/// Whether the answer to `[y/N]` means yes. An empty line means no.
pub(crate) fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use mesh::ports::harness::Edit;

    use super::*;

    fn check(flags: &str, audience: Audience, expected: Decision) {
        let confirmation = Confirmation::from_flags(flags.contains("--dry-run"), flags.contains("--yes"));
        let edit = Edit {
            root: "project".to_owned(),
            path: "x".to_owned(),
            before: None,
            after: Some("y".to_owned()),
            executable: false,
        };
        let plan = Plan { edits: vec![edit], next_steps: Vec::new() };
        assert_eq!(decision(&plan, confirmation, audience), expected, "{flags} with {audience:?}");
        assert_eq!(
            decision(&Plan::default(), confirmation, audience),
            Decision::NothingToDo,
            "{flags} with {audience:?}"
        );
    }

    #[test]
    fn nothing_is_changed_unless_a_person_agreed() {
        check("", Audience::Terminal, Decision::Ask);
        check("", Audience::Nobody, Decision::Unasked);
        check("--yes", Audience::Terminal, Decision::Apply);
        check("--yes", Audience::Nobody, Decision::Apply);
        check("--dry-run", Audience::Terminal, Decision::ShowOnly);
        check("--dry-run --yes", Audience::Nobody, Decision::ShowOnly);
    }

    #[test]
    fn the_diff_is_shown_to_who_asks_for_it() {
        for (answer, expected) in [
            ("y\n", TypedAnswer::Apply),
            ("d\n", TypedAnswer::SeeDiff),
            (" Diff ", TypedAnswer::SeeDiff),
            ("\n", TypedAnswer::Decline),
            ("", TypedAnswer::Decline),
            ("dy", TypedAnswer::Decline),
        ] {
            assert_eq!(typed(answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn only_a_plain_yes_is_a_yes() {
        for (answer, expected) in
            [("y\n", true), ("Yes\n", true), (" y ", true), ("\n", false), ("", false), ("n", false), ("yep", false)]
        {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }
}
