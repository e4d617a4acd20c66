//! The verbs of reservations.

use crate::reservations::glob::Glob;
use crate::reservations::list::{Listing, Wanted};
use crate::reservations::repository::{Checkout, PlaceError, Repository};
use crate::reservations::{Conflict, Mode, edits, repository, reserve};
use crate::sessions::Principal;
use crate::{Mesh, reservations};
use std::path::Path;
use store::StoreError;

impl Mesh {
    /// Which of these paths other agents hold for themselves alone, who are not known to be gone. A subagent is its
    /// root session's agent too.
    pub async fn held_by_others(
        &self,
        caller: &Principal,
        repository: &Repository,
        paths: &[Glob],
    ) -> Result<Vec<Conflict>, StoreError> {
        edits::held_by_others(&self.core, caller, repository, paths).await
    }

    /// Reservations, by repository and in the order in which they were granted.
    pub async fn reservations(&self, wanted: &Wanted) -> Result<Listing, StoreError> {
        reservations::list::reservations(&self.core, wanted).await
    }

    /// A pattern as it is meant from the top of a working copy. What was typed starts at `folder`, where it is
    /// not absolute. Symlinks before the first `*` are followed, so that one file has one name; an existing
    /// folder stands for everything in it. What exists is meant as it is named, so that `app/[id]/*.tsx` is in
    /// the folder `[id]` where there is one. In another working copy of the same repository it is what it is there:
    /// its worktrees often lie in it.
    pub fn pattern(&self, checkout: &Checkout, folder: &Path, typed: &str) -> Result<Glob, PlaceError> {
        repository::pattern(&self.core, checkout, folder, typed)
    }

    /// The working copy that a folder lies in. Where machines share what is reserved, a path means nothing:
    /// the repository is then what all of them call it, and one that has no such name is this machine's own.
    pub fn checkout(&self, folder: &Path) -> Result<Checkout, PlaceError> {
        repository::checkout(&self.core, folder)
    }

    /// What would stand in the way of a reservation: of this caller's agent, or of anybody's. Changes nothing.
    pub async fn check_reservation(
        &self,
        caller: &Principal,
        repository: &Repository,
        patterns: &[Glob],
        mode: Mode,
    ) -> Result<Vec<Conflict>, StoreError> {
        reserve::check_reservation(&self.core, caller, repository, patterns, mode).await
    }
}
