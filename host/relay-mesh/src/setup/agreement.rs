//! Whether a plan is carried out: asked of the person, unless they said so on the command line.

use mesh::harness::Plan;

/// What the person said on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Only show what would happen.
    DryRun,
    /// Go on without asking.
    Yes,
    /// Nothing: ask.
    Ask,
}

impl Wish {
    /// The wish behind `--dry-run` and `--yes`. A dry run changes nothing, whatever else was said.
    pub(crate) fn from_flags(dry_run: bool, yes: bool) -> Wish {
        match (dry_run, yes) {
            (true, true | false) => Wish::DryRun,
            (false, true) => Wish::Yes,
            (false, false) => Wish::Ask,
        }
    }
}

/// Whether somebody is there to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Standard input and standard error are a terminal.
    Terminal,
    /// A script, a pipe, an agent.
    Nobody,
}

/// What to do with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// The plan changes nothing.
    NothingToDo,
    /// Show it and leave it at that.
    ShowOnly,
    /// Carry it out.
    Apply,
    /// Ask, then carry it out or not.
    Ask,
    /// Nobody can be asked: say how to agree, and change nothing.
    Unasked,
}

/// What to do with a plan, by the person's wish and whether they can be asked.
pub(crate) fn course(plan: &Plan, wish: Wish, audience: Audience) -> Course {
    match (plan.edits.is_empty(), wish, audience) {
        (true, Wish::DryRun | Wish::Yes | Wish::Ask, Audience::Terminal | Audience::Nobody) => Course::NothingToDo,
        (false, Wish::DryRun, Audience::Terminal | Audience::Nobody) => Course::ShowOnly,
        (false, Wish::Yes, Audience::Terminal | Audience::Nobody) => Course::Apply,
        (false, Wish::Ask, Audience::Terminal) => Course::Ask,
        (false, Wish::Ask, Audience::Nobody) => Course::Unasked,
    }
}

/// Whether what a person typed after `[y/N]` means yes. An empty line means no.
pub(crate) fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use mesh::harness::Edit;

    use super::*;

    fn check(flags: &str, audience: Audience, expected: Course) {
        let wish = Wish::from_flags(flags.contains("--dry-run"), flags.contains("--yes"));
        let edit = Edit {
            root: "project".to_owned(),
            path: "x".to_owned(),
            before: None,
            after: Some("y".to_owned()),
            executable: false,
        };
        let plan = Plan { edits: vec![edit], next_steps: Vec::new() };
        assert_eq!(course(&plan, wish, audience), expected, "{flags} with {audience:?}");
        assert_eq!(course(&Plan::default(), wish, audience), Course::NothingToDo, "{flags} with {audience:?}");
    }

    #[test]
    fn nothing_is_changed_unless_a_person_agreed() {
        check("", Audience::Terminal, Course::Ask);
        check("", Audience::Nobody, Course::Unasked);
        check("--yes", Audience::Terminal, Course::Apply);
        check("--yes", Audience::Nobody, Course::Apply);
        check("--dry-run", Audience::Terminal, Course::ShowOnly);
        check("--dry-run --yes", Audience::Nobody, Course::ShowOnly);
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
