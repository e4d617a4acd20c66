//! The working copy that a caller means.

use std::path::{Path, PathBuf};

use mesh::repository::Checkout;

use super::ToolCall;
use crate::tool_error::ToolError;

/// The working copy that a caller means, and the folder at which its patterns start.
pub(super) fn checkout_of(call: &ToolCall, repo: Option<&str>) -> Result<(Checkout, PathBuf), ToolError> {
    let folder = match (repo, call.caller.workdir()) {
        (Some(named), Some(workdir)) => Path::new(workdir).join(named),
        (Some(named), None) => PathBuf::from(named),
        (None, Some(workdir)) => PathBuf::from(workdir),
        (None, None) => PathBuf::new(),
    };
    if !folder.is_absolute() {
        return Err(ToolError::new("it is not known in which folder you work", "Pass its absolute path in repo."));
    }
    Ok((call.mesh.checkout(&folder)?, folder))
}
