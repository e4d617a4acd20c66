//! Finds how far a harness is set up by asking its adapter what an install would still change.

use mcp::Profile;
use mesh::ports::harness::{Action, Harness, HarnessError, Scope, Setup};

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

/// Examines one scope. The setup that would change nothing is the installed one; if none matches, the plain stdio setup
/// is assumed.
pub(crate) async fn look(
    harness: &dyn Harness,
    scope: Scope,
    installation: &Installation,
    host: &ServerUrl,
) -> Result<ScopeSurvey, HarnessError> {
    let stdio = setup(Action::Install, scope, &Reach::Stdio(None), installation);
    let remove = harness.propose(&Setup { action: Action::Remove, ..stdio.clone() }).await?;
    let installed = match harness.propose(&stdio).await {
        Ok(install) => judge(&install, &remove),
        // Something blocks an install, but the removal plan shows that our settings are there: the adapter's check
        // reports what is wrong.
        Err(HarnessError::Failed(_)) if !remove.edits.is_empty() => {
            return Ok(ScopeSurvey { scope, installed: Installed::Outdated, setup: stdio });
        }
        Err(error) => return Err(error),
    };
    if installed == Installed::Outdated {
        let others = Profile::all().map(|tools| Reach::Stdio(Some(tools)));
        for reach in others.chain([Reach::Http(host.clone())]) {
            let other = setup(Action::Install, scope, &reach, installation);
            let by_other = judge(&harness.propose(&other).await?, &remove);
            if by_other == Installed::Yes {
                return Ok(ScopeSurvey { scope, installed: by_other, setup: other });
            }
        }
    }
    Ok(ScopeSurvey { scope, installed, setup: stdio })
}
