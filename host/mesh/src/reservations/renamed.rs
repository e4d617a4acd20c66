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

/// Notes which folder a repository is, once something in it is reserved. The time is one from before that was granted,
/// so that nothing in this folder is older. Only logs an error.
pub(crate) async fn note(core: &Core, repository: &Repository, at: Instant) {
    let Some(mark) = folder_of(core, repository).and_then(|folder| core.machine.folder_mark(&folder)) else { return };
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

/// Moves the reservations of a repository's former name to its present one, if its folder was renamed. Those of another
/// folder that has that name now stay.
pub(crate) async fn follow(core: &Core, repository: &Repository) -> Result<(), StoreError> {
    let Some(mark) = folder_of(core, repository).and_then(|folder| core.machine.folder_mark(&folder)) else {
        return Ok(());
    };
    let began = core.machine.now();
    let Some(noted) = noted_under(core, &mark).await?.filter(|noted| noted.repository != *repository) else {
        return Ok(());
    };
    // One folder at two paths, as a mount gives it, was not renamed.
    let is_still_there = folder_of(core, &noted.repository).and_then(|folder| core.machine.folder_mark(&folder));
    if is_still_there.as_ref() == Some(&mark) {
        return Ok(());
    }
    let successor = match &is_still_there {
        Some(mark) => noted_under(core, mark).await?.filter(|other| other.repository == noted.repository),
        None => None,
    };
    let former = keys::reservations_of(&noted.repository);
    let left_behind = records::load::<Ledger>(core.shared.as_ref(), &former).await?.map(|(_, ledger)| ledger);
    let mut moved = left_behind.map(|ledger| ledger.reservations).unwrap_or_default();
    moved.retain(|one| successor.as_ref().is_none_or(|successor| one.granted < successor.at));
    if !moved.is_empty() {
        let take = |old: Option<Ledger>| {
            let mut now = old.unwrap_or_else(|| Ledger::new(repository.clone()));
            let known = now.reservations.clone();
            let new = moved.iter().filter(|one| known.iter().all(|other| other.id != one.id));
            now.reservations.extend(new.cloned());
            (Next::Put(now), ())
        };
        // First there, then gone here: a process that is killed in between leaves them at both, and the next one goes on.
        records::update(core.shared.as_ref(), &keys::reservations_of(repository), Durability::Process, take).await?;
        let gone = |old: Option<Ledger>| {
            let Some(mut rest) = old else { return (Next::Keep, ()) };
            rest.reservations.retain(|one| moved.iter().all(|other| other.id != one.id));
            (if rest.reservations.is_empty() { Next::Remove } else { Next::Put(rest) }, ())
        };
        records::update(core.shared.as_ref(), &former, Durability::Process, gone).await?;
    }
    note(core, repository, began).await;
    Ok(())
}

/// What is noted of a folder, if that can be read.
async fn noted_under(core: &Core, mark: &str) -> Result<Option<ReservedFolder>, StoreError> {
    match records::load::<ReservedFolder>(core.local.as_ref(), &keys::reserved_folder(mark)).await {
        Ok(noted) => Ok(noted.map(|(_, noted)| noted)),
        Err(StoreError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The folder that a repository is named by, if it is named by one of this machine.
fn folder_of(core: &Core, repository: &Repository) -> Option<PathBuf> {
    let path = core.topology.folder_of(repository, core.machine.as_ref())?;
    Path::new(path).is_absolute().then(|| PathBuf::from(path))
}
