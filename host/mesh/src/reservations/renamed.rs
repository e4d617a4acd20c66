//! A repository whose folder was renamed keeps its reservations: they are stored under its path, and this machine notes
//! which folder that was.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError};

use crate::core::Core;
use crate::ports::machine::Instant;
use crate::reservations::ledger::Ledger;
use crate::reservations::repository::Repository;
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// Which repository a folder was when something in it was reserved last. Stored under the folder's own mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReservedFolder {
    pub(crate) repository: Repository,
    pub(crate) at: Instant,
}

/// Notes which folder a repository is, once something in it is reserved. Only logs an error.
pub(crate) async fn note(core: &Core, repository: &Repository) {
    let Some(mark) = folder_of(core, repository).and_then(|folder| core.machine.folder_mark(&folder)) else { return };
    let at = core.machine.now();
    let put = |old: Option<ReservedFolder>| match old {
        Some(old) if old.repository == *repository => (Next::Keep, ()),
        Some(_) | None => (Next::Put(ReservedFolder { repository: repository.clone(), at }), ()),
    };
    if let Err(error) =
        records::update(core.local.as_ref(), &keys::reserved_folder(&mark), Durability::Process, put).await
    {
        tracing::debug!(%error, "if the repository's folder is renamed, its reservations stay with its old name");
    }
}

/// Moves the reservations of a repository's former name to its present one, if its folder was renamed.
pub(crate) async fn follow(core: &Core, repository: &Repository) -> Result<(), StoreError> {
    let Some(mark) = folder_of(core, repository).and_then(|folder| core.machine.folder_mark(&folder)) else {
        return Ok(());
    };
    let noted = match records::load::<ReservedFolder>(core.local.as_ref(), &keys::reserved_folder(&mark)).await {
        Ok(Some((_, noted))) if noted.repository != *repository => noted,
        Ok(_) | Err(StoreError::Damaged { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    // One folder at two paths, as a mount gives it, was not renamed.
    let is_still_there = folder_of(core, &noted.repository).and_then(|folder| core.machine.folder_mark(&folder));
    if is_still_there.as_ref() == Some(&mark) {
        return Ok(());
    }
    let former = keys::reservations_of(&noted.repository);
    if let Some((_, ledger)) = records::load::<Ledger>(core.shared.as_ref(), &former).await? {
        let take = |old: Option<Ledger>| {
            let mut now = old.unwrap_or_else(|| Ledger::new(repository.clone()));
            let known = now.reservations.clone();
            let moved = ledger.reservations.iter().filter(|one| known.iter().all(|other| other.id != one.id));
            now.reservations.extend(moved.cloned());
            (Next::Put(now), ())
        };
        // First there, then gone here: a process that is killed in between leaves them at both, and the next one goes on.
        records::update(core.shared.as_ref(), &keys::reservations_of(repository), Durability::Process, take).await?;
        let gone = |_: Option<Ledger>| (Next::<Ledger>::Remove, ());
        records::update(core.shared.as_ref(), &former, Durability::Process, gone).await?;
    }
    note(core, repository).await;
    Ok(())
}

/// The folder that a repository is named by, if it is named by one of this machine.
fn folder_of(core: &Core, repository: &Repository) -> Option<PathBuf> {
    let path = core.topology.folder_of(repository, core.machine.as_ref())?;
    Path::new(path).is_absolute().then(|| PathBuf::from(path))
}
