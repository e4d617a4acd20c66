//! The working copy that a caller means.

use std::path::{Path, PathBuf};

use mesh::reservations::repository::Checkout;

use super::ToolCall;
use crate::tool_error::ToolError;

/// The working copy that a caller means, and the folder to which its patterns are relative.
pub(super) fn checkout_of(call: &ToolCall, repo: Option<&str>) -> Result<(Checkout, PathBuf), ToolError> {
    let folder = match (repo, call.caller.workdir()) {
        (Some(named), Some(workdir)) => Path::new(workdir).join(named),
        (Some(named), None) => PathBuf::from(named),
        (None, Some(workdir)) => PathBuf::from(workdir),
        (None, None) => PathBuf::new(),
    };
    if !folder.is_absolute() {
        return Err(ToolError::new("your working folder is unknown", "Pass its absolute path in repo."));
    }
    Ok((call.mesh.checkout(&folder)?, folder))
}
