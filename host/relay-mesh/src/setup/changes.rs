//! What is done to files: planned by an adapter, located, applied and undone by the adapters crate.

use adapters::ApplyError;
use mesh::harness::{Action, Edit, Plan, Scope};

use super::carry::{Performed, shown_path};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;

/// The files of one harness in one scope.
pub(crate) struct Changes<'a> {
    /// What the command was given.
    pub(crate) context: &'a Context,
    /// What it works with.
    pub(crate) open: &'a Open,
    /// The harness.
    pub(crate) harness: &'a str,
    /// Whose settings.
    pub(crate) scope: Scope,
}

impl Changes<'_> {
    /// Where people find the file of an edit.
    pub(crate) fn path_of(&self, edit: &Edit) -> String {
        let home = self.context.environment.home();
        match self.open.adapters.locate(self.harness, edit) {
            Ok(path) => shown_path(&path, home.as_deref()),
            // Applying will refuse it and say why; a dry run still shows what the adapter meant.
            Err(_) => format!("{}/{}", edit.root, edit.path),
        }
    }

    /// Carries a plan out, all of it or nothing.
    pub(crate) fn apply(&self, action: Action, plan: &Plan) -> Result<Performed, CommandError> {
        match self.open.adapters.apply(self.harness, action, self.scope, plan) {
            Ok(_) => Ok(Performed::Done),
            Err(error @ ApplyError::Changed(_)) => Ok(Performed::Outdated(failed(error))),
            Err(error) => Err(failed(error)),
        }
    }

    /// The plan that takes the harness out: byte for byte where nobody touched a file since, and as
    /// the adapter proposes where somebody did.
    pub(crate) fn removal(&self, proposed: Plan) -> Result<Plan, CommandError> {
        self.open.adapters.removal(self.harness, self.scope, proposed).map_err(failed)
    }
}

fn failed(error: ApplyError) -> CommandError {
    let exit = match &error {
        ApplyError::Unknown(_) => Exit::NotFound,
        ApplyError::Denied(_) | ApplyError::ReadOnly(_) | ApplyError::Changed(_) => Exit::Refused,
        ApplyError::Adapter(_)
        | ApplyError::Root(_)
        | ApplyError::Twice(_)
        | ApplyError::Write { .. }
        | ApplyError::Stranded { .. } => Exit::Failure,
        ApplyError::Journal { .. } => Exit::Store,
    };
    CommandError::caused_by("the settings were not changed", error.hint(), exit, error)
}
