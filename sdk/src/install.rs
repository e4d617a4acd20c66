//! Setting a harness up for the mesh and taking it out again. Adapters plan, the host acts.

use crate::Error;
pub use crate::bindings::exports::relay::adapter::install::{
    Action, Edit, Finding, Plan, Scope, Server, Setup, Severity,
};

/// Plans an install and checks one. By default there is nothing to edit, which is right for a
/// harness that a person sets up by hand.
pub trait Install {
    /// The harness's version, where it is on this machine.
    fn present() -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// The edits that set it up or take it out, from what the files hold now. [`crate::plan`] makes
    /// them so that a second install proposes none.
    fn propose(setup: &Setup) -> Result<Plan, Error> {
        let _ = setup;
        Ok(Plan { edits: Vec::new(), next_steps: Vec::new() })
    }

    /// Whether it is set up, and rightly.
    fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
        let _ = setup;
        Ok(Vec::new())
    }
}

impl Finding {
    /// Something is as it should be.
    pub fn ok(what: impl Into<String>) -> Finding {
        Finding { severity: Severity::Ok, what: what.into(), fix: None }
    }

    /// Something works, and may surprise.
    pub fn warning(what: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, what: what.into(), fix: Some(fix.into()) }
    }

    /// Something does not work.
    pub fn broken(what: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { severity: Severity::Broken, what: what.into(), fix: Some(fix.into()) }
    }
}
