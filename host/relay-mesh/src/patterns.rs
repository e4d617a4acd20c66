//! Patterns of reservations, as they are typed in a folder.

use std::path::Path;

use mesh::Mesh;
use mesh::reservations::glob::Glob;
use mesh::reservations::repository::Repository;

use crate::errors::CommandError;

/// The repository that a folder is in, and the typed patterns relative to the repository's top.
pub(crate) fn meant(mesh: &Mesh, folder: &Path, typed: &[String]) -> Result<(Repository, Vec<Glob>), CommandError> {
    let checkout = mesh.checkout(folder)?;
    let patterns = typed.iter().map(|typed| mesh.pattern(&checkout, folder, typed)).collect::<Result<_, _>>()?;
    Ok((checkout.repository, patterns))
}
