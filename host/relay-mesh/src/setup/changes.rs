//! Changes of files: an adapter plans them; the adapters crate locates, applies and undoes them.

use adapters::ApplyError;
use mesh::ports::harness::{Action, Edit, Plan, Scope};

use super::apply::{Performed, shown_path};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;

/// The settings files of one harness in one scope.
pub(crate) struct Changes<'a> {
    pub(crate) context: &'a Context,
    pub(crate) open: &'a Open,
    pub(crate) harness: &'a str,
    pub(crate) scope: Scope,
}

impl Changes<'_> {
    /// The path of an edit's file, for display.
    pub(crate) fn path_of(&self, edit: &Edit) -> String {
        let home = self.context.environment.home();
        match self.open.adapters.locate(self.harness, edit) {
            Ok(path) => shown_path(&path, home.as_deref()),
            // Applying will refuse the path with a reason; a dry run still shows what the adapter proposed.
            Err(_) => format!("{}/{}", edit.root, edit.path),
        }
    }

    /// Applies a plan, all of it or nothing.
    pub(crate) fn apply(&self, action: Action, plan: &Plan) -> Result<Performed, CommandError> {
        match self.open.adapters.apply(self.harness, action, self.scope, plan) {
            Ok(_) => Ok(Performed::Done),
            Err(error @ ApplyError::Changed(_)) => Ok(Performed::Outdated(failed(error))),
            Err(error) => Err(failed(error)),
        }
    }

    /// The plan that removes our settings: restores every byte of a file that was not changed since, and follows the
    /// adapter's proposal for the others.
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
