//! How far a harness is set up, found by asking its adapter what an install would still change.

use mcp::Profile;
use mesh::harness::{Action, Harness, HarnessError, Scope, Setup};

use super::installed::{Installed, judge};
use super::request::{HostUrl, Installation, Reach, setup};

/// What was found of one harness in one scope.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Whose settings were looked at.
    pub(crate) scope: Scope,
    /// How far it is set up there.
    pub(crate) installed: Installed,
    /// The setup that fits what is there best, for the adapter to check.
    pub(crate) setup: Setup,
}

/// Looks at one scope. A setup by which nothing would change is the one that is there; where
/// neither fits, the adapter is asked about the plainer one.
pub(crate) async fn look(
    harness: &dyn Harness,
    scope: Scope,
    installation: &Installation,
    host: &HostUrl,
) -> Result<Found, HarnessError> {
    let stdio = setup(Action::Install, scope, &Reach::Stdio(None), installation);
    let remove = harness.propose(&Setup { action: Action::Remove, ..stdio.clone() }).await?;
    let installed = match harness.propose(&stdio).await {
        Ok(install) => judge(&install, &remove),
        // Something stands in an install's way, and a removal can tell that ours is there already: what
        // is wrong with it is for the adapter's check to say.
        Err(HarnessError::Failed(_)) if !remove.edits.is_empty() => {
            return Ok(Found { scope, installed: Installed::Outdated, setup: stdio });
        }
        Err(error) => return Err(error),
    };
    if installed == Installed::Outdated {
        let others = Profile::all().map(|tools| Reach::Stdio(Some(tools))).into_iter();
        for reach in others.chain([Reach::Http(host.clone())]) {
            let other = setup(Action::Install, scope, &reach, installation);
            let by_other = judge(&harness.propose(&other).await?, &remove);
            if by_other == Installed::Yes {
                return Ok(Found { scope, installed: by_other, setup: other });
            }
        }
    }
    Ok(Found { scope, installed, setup: stdio })
}
