//! Whether a harness is set up in a scope, judged by what its adapter would still change.

use mesh::ports::harness::{Plan, Scope};

/// How far a harness is set up in one scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Installed {
    /// An install would change nothing.
    Yes,
    /// Some of our settings are there, but an install would change something.
    Outdated,
    /// None of our settings are there.
    No,
    /// There are no files to set up: the user configures the client by hand.
    ByHand,
}

impl Installed {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Installed::Yes => "installed",
            Installed::Outdated => "outdated",
            Installed::No => "not installed",
            Installed::ByHand => "by hand",
        }
    }
}

/// How far a harness is set up, judged by its install plan and its removal plan.
pub(crate) fn judge(install: &Plan, remove: &Plan) -> Installed {
    match (install.edits.is_empty(), remove.edits.is_empty()) {
        (true, false) => Installed::Yes,
        (false, false) => Installed::Outdated,
        (false, true) => Installed::No,
        (true, true) => Installed::ByHand,
    }
}

pub(crate) fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Project => "project",
        Scope::User => "user",
    }
}

#[cfg(test)]
mod tests {
    use mesh::ports::harness::Edit;

    use super::*;

    fn plan(edits: usize) -> Plan {
        let edit = Edit {
            root: "project".to_owned(),
            path: "x".to_owned(),
            before: None,
            after: Some("y".to_owned()),
            executable: false,
        };
        Plan { edits: vec![edit; edits], next_steps: Vec::new() }
    }

    #[test]
    fn what_is_installed_shows_in_what_is_left_to_do() {
        for (to_install, to_remove, expected) in
            [(0, 2, Installed::Yes), (1, 2, Installed::Outdated), (2, 0, Installed::No), (0, 0, Installed::ByHand)]
        {
            assert_eq!(judge(&plan(to_install), &plan(to_remove)), expected, "{to_install} and {to_remove}");
        }
    }
}
