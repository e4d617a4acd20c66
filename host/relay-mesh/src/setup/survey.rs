//! Finds how far a harness is set up by asking its adapter what an install would still change.

use mcp::Profile;
use mesh::ports::harness::{Action, Harness, HarnessError, Plan, Scope, Setup};

use super::installed::{Installed, judge};
use super::request::{Installation, Reach, ServerUrl, setup};

/// The state of one harness in one scope.
#[derive(Clone, Debug)]
pub(crate) struct ScopeSurvey {
    pub(crate) scope: Scope,
    pub(crate) installed: Installed,
    /// The setup that matches the existing settings best, for the adapter to check.
    pub(crate) setup: Setup,
}

impl ScopeSurvey {
    /// Whether any of our settings are there.
    pub(crate) fn is_set_up(&self) -> bool {
        matches!(self.installed, Installed::Yes | Installed::Outdated)
    }
}

/// Examines one scope. The setup that would change nothing is the installed one; if none matches, it is the one that
/// would replace the least of what is there, the plain stdio setup first.
pub(crate) async fn look(
    harness: &dyn Harness,
    scope: Scope,
    installation: &Installation,
    host: &ServerUrl,
) -> Result<ScopeSurvey, HarnessError> {
    let stdio = setup(Action::Install, scope, &Reach::Stdio(None), installation);
    let remove = harness.propose(&Setup { action: Action::Remove, ..stdio.clone() }).await?;
    let (installed, mut replaced) = match harness.propose(&stdio).await {
        Ok(install) => (judge(&install, &remove), replaced_by(&install)),
        // Something blocks an install, but the removal plan shows that our settings are there: the adapter's check
        // reports what is wrong.
        Err(HarnessError::Failed(_)) if !remove.edits.is_empty() => {
            return Ok(ScopeSurvey { scope, installed: Installed::Outdated, setup: stdio });
        }
        Err(error) => return Err(error),
    };
    let mut likeliest = stdio;
    if installed == Installed::Outdated {
        let others = Profile::all().map(|tools| Reach::Stdio(Some(tools)));
        for reach in others.chain([Reach::Http(host.clone())]) {
            let other = setup(Action::Install, scope, &reach, installation);
            let install = harness.propose(&other).await?;
            let by_other = judge(&install, &remove);
            if by_other == Installed::Yes {
                return Ok(ScopeSurvey { scope, installed: by_other, setup: other });
            }
            let by_this = replaced_by(&install);
            if by_this < replaced {
                (replaced, likeliest) = (by_this, other);
            }
        }
    }
    Ok(ScopeSurvey { scope, installed, setup: likeliest })
}

/// How much of the files' text a plan replaces, in bytes. What it only adds does not count: that was missing.
fn replaced_by(plan: &Plan) -> usize {
    let edits = plan.edits.iter().map(|edit| {
        let (before, after) = (edit.before.as_deref().unwrap_or_default(), edit.after.as_deref().unwrap_or_default());
        let begins = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other).count();
        let (before, after) = (&before.as_bytes()[begins..], &after.as_bytes()[begins..]);
        before.len() - before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count()
    });
    edits.sum()
}

#[cfg(test)]
mod tests {
    use mesh::ports::harness::Edit;

    use super::*;

    #[test]
    fn what_an_install_adds_replaces_nothing() {
        for (before, after, expected) in [
            (None, Some("mcp"), 0),
            (Some("[mcp]"), Some("[mcp --tools core]"), 0),
            (Some("[mcp --tools core]"), Some("[mcp]"), 13),
            (Some("[url]"), Some("[mcp]"), 3),
            (Some("[mcp]"), None, 5),
        ] {
            let edit = Edit {
                root: "project".to_owned(),
                path: "x".to_owned(),
                before: before.map(str::to_owned),
                after: after.map(str::to_owned),
                executable: false,
            };
            let plan = Plan { edits: vec![edit], next_steps: Vec::new() };
            assert_eq!(replaced_by(&plan), expected, "{before:?} {after:?}");
        }
    }
}
