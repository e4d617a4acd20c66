//! The folder of one driven agent.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use mesh::DryRun;
use mesh::driven::DrivenId;
use mesh::ports::data_files::Amount;
use mesh::ports::machine::{Instant, Machine as _};
use processes::git::Git;
use store::StoreError;

use super::program::ProgramFiles;
use crate::compose::Open;
use crate::retention::folders;
use crate::runs::changes::remove_if_clean;
use crate::runs::retention::holds_work;
use crate::runs::worktrees;
use crate::unix;

/// The folder of the data folder that has them.
const FOLDER: &str = "spawned";
/// How long a folder may be without a record while its agent is being started, in milliseconds.
const BEGINS: u64 = 3_600_000;

/// One such folder, whether it exists or not.
#[derive(Clone, Debug)]
pub(crate) struct DrivenFolder {
    pub(crate) root: PathBuf,
}

impl DrivenFolder {
    pub(crate) fn of(data: &Path, id: DrivenId) -> DrivenFolder {
        DrivenFolder { root: data.join(FOLDER).join(id.to_string()) }
    }

    /// The exclusive right to count the agents of a data folder and begin one, until it is dropped.
    pub(crate) async fn alone(data: &Path) -> io::Result<File> {
        let all = data.join(FOLDER);
        let waits = move || {
            unix::make_private_folder(&all)?;
            let all = File::open(&all)?;
            all.lock()?;
            Ok(all)
        };
        // Another task of this process may hold it: to wait here would keep that one from going on.
        tokio::task::spawn_blocking(waits).await?
    }

    pub(crate) fn create(&self) -> io::Result<()> {
        unix::make_private_folder(&self.files())?;
        unix::make_private_folder(&self.outbox())
    }

    /// What its harness reads: a set of servers, settings.
    pub(crate) fn files(&self) -> PathBuf {
        self.root.join("files")
    }

    pub(crate) fn worktree(&self) -> PathBuf {
        self.root.join("worktree")
    }

    /// What it did and said, one JSON line each.
    pub(crate) fn transcript(&self) -> PathBuf {
        self.root.join("transcript.jsonl")
    }

    /// Where the agent puts what its final words name: messages, and the agents that it wants.
    pub(crate) fn outbox(&self) -> PathBuf {
        self.root.join("outbox")
    }

    /// The files of a program that is about to be started for this agent alone.
    pub(super) fn of_program(&self) -> ProgramFiles {
        ProgramFiles::within(&self.root)
    }

    /// Where a prompt's run writes, if the harness is run for each. What the last one wrote is deleted.
    pub(super) fn of_output(&self) -> PathBuf {
        let path = self.root.join("output");
        let _missing = std::fs::remove_file(&path);
        path
    }

    /// Deletes all of it.
    pub(crate) fn delete(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Removes the worktrees of agents that ended before a time and that hold nothing. Returns those that hold work.
pub(crate) async fn remove_worktrees(
    open: &Open,
    git: &Git,
    before: Instant,
    dry_run: DryRun,
) -> Result<Vec<String>, StoreError> {
    let mut kept = Vec::new();
    for record in open.mesh.ended_driven_agents_made(..before).await? {
        if record.ended.as_ref().is_none_or(|end| end.at >= before) {
            continue;
        }
        match holds_work(git, &record.workplace).await {
            Some(folder) => kept.push(folder),
            None if dry_run == DryRun::No => drop(remove_if_clean(git, &record.workplace).await),
            None => {}
        }
    }
    Ok(kept)
}

/// Deletes the folders of agents that have no record any more, or only counts them. Without a record it is not known what
/// a worktree holds beyond its commit: it stays, and is named in `kept`, unless nobody has worked in it.
pub(crate) async fn clean_up(
    data: &Path,
    open: &Open,
    git: &Git,
    (dry_run, kept): (DryRun, &mut Vec<String>),
) -> Result<Amount, StoreError> {
    let mut deleted = Amount::default();
    let left = without_record(data, open).await?;
    if left.is_empty() {
        return Ok(deleted);
    }
    // An agent that its user has agreed to has an id as old as the question. Its folder is made with this lock held, and
    // its record too.
    let _alone = match DrivenFolder::alone(data).await {
        Ok(alone) => alone,
        Err(error) => {
            tracing::debug!(%error, "folders of driven agents stay until the next cleanup");
            return Ok(deleted);
        }
    };
    for id in left {
        match open.mesh.driven(id).await {
            Ok(None) => {}
            // A damaged one is for `doctor --store --fix`.
            Ok(Some(_)) | Err(StoreError::Damaged { .. }) => continue,
            Err(error) => return Err(error),
        }
        let folder = DrivenFolder::of(data, id);
        let worktree = folder.worktree();
        if !gives_up_worktree(git, &worktree, dry_run).await {
            kept.extend(worktree.exists().then(|| worktree.display().to_string()));
            continue;
        }
        folders::delete(&folder.root, dry_run, &mut deleted);
    }
    Ok(deleted)
}

/// The ids of folders that had no record when this looked.
async fn without_record(data: &Path, open: &Open) -> Result<Vec<DrivenId>, StoreError> {
    let entries = std::fs::read_dir(data.join(FOLDER)).into_iter().flatten().flatten();
    let ids: Vec<DrivenId> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let (known, now) = (open.mesh.known_driven_ids().await?, open.machine.now());
    // The folder of an agent that is just being started comes before its record.
    let is_old = |id: &DrivenId| now.since(id.made()) >= BEGINS;
    Ok(ids.into_iter().filter(|id| is_old(id) && !known.contains(id)).collect())
}

/// Whether there is no worktree any more. One in which nobody has worked is removed: its process was killed before the
/// agent had a record.
async fn gives_up_worktree(git: &Git, worktree: &Path, dry_run: DryRun) -> bool {
    match worktrees::noted(worktree) {
        None => !worktree.exists(),
        Some(noted) if dry_run == DryRun::Yes => holds_work(git, &noted).await.is_none(),
        Some(noted) => remove_if_clean(git, &noted).await,
    }
}
