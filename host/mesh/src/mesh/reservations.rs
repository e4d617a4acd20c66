//! The verbs of reservations.

use crate::reservations::glob::Glob;
use crate::reservations::list::{RepositoryReservations, ReservationFilter};
use crate::reservations::repository::{Checkout, PlaceError, Repository};
use crate::reservations::{Conflict, Mode, edits, repository, reserve};
use crate::sessions::Principal;
use crate::{Mesh, reservations};
use std::path::Path;
use store::StoreError;

impl Mesh {
    /// Conflicts of these paths with exclusive reservations of other agents that are not known to be offline. A
    /// subagent also counts as its root session's agent.
    pub async fn held_by_others(
        &self,
        caller: &Principal,
        repository: &Repository,
        paths: &[Glob],
    ) -> Result<Vec<Conflict>, StoreError> {
        edits::held_by_others(&self.core, caller, repository, paths).await
    }

    /// Reservations by repository, in the order in which they were granted.
    pub async fn reservations(&self, filter: &ReservationFilter) -> Result<Vec<RepositoryReservations>, StoreError> {
        reservations::list::reservations(&self.core, filter).await
    }

    /// Resolves a typed pattern relative to the top of a working copy. A relative pattern starts at `folder`. Symlinks
    /// before the first `*` are followed, so that one file has one name; an existing folder stands for everything in
    /// it. Existing names are taken literally, so that `app/[id]/*.tsx` means the folder `[id]` if there is one. A path
    /// inside another working copy of the same repository is taken relative to that one: worktrees are often stored
    /// inside their repository.
    pub fn pattern(&self, checkout: &Checkout, folder: &Path, typed: &str) -> Result<Glob, PlaceError> {
        repository::pattern(&self.core, checkout, folder, typed)
    }

    /// The working copy that contains a folder. If machines share reservations, paths mean nothing to the others: the
    /// repository then has the name that all machines derive, and one without such a name is this machine's own.
    pub fn checkout(&self, folder: &Path) -> Result<Checkout, PlaceError> {
        repository::checkout(&self.core, folder)
    }

    /// The conflicts that a reservation by this caller would have. If the caller has no agent, those with any agent.
    /// Changes nothing.
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
