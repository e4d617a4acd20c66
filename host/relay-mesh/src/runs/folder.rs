//! Where runs are kept: one folder each, readable by any process of the user.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mesh::ports::machine::{Instant, Machine};
use mesh::runs::{RunId, RunRecord, RunStage};
use processes::guard::Running;
use store::Durability;

use super::alive;
use super::by_session;
use super::record_folder::{RECORD, ids_beside, newest_first};
use crate::atomic_write;
use crate::errors::Explain;
use crate::exit::Exit;
use crate::process_info;
use crate::unix;

/// The folder of runs in the data folder.
const RUNS: &str = "runs";
/// Marks runs that have not ended, so that looking for them costs nothing of the past.
const LIVE: &str = "live";
/// The file that says that the process which worked on a run could not bring it to its end, and does so no more.
const GIVEN_UP: &str = "given-up";
/// How often to look whether another one still has the lock of all runs.
const LOOK: Duration = Duration::from_millis(10);

/// Why a run's files could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunsError {
    #[error("no run has the id `{0}`")]
    Unknown(String),
    #[error("`{0}` is not a run's id")]
    NotAnId(String),
    #[error("`{typed}` may mean {}", .candidates.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Ambiguous { typed: String, candidates: Vec<RunId> },
    #[error("the files of run {id} could not be read")]
    Unreadable { id: RunId, source: io::Error },
    #[error("the files of run {id} could not be written")]
    Unwritable { id: RunId, source: io::Error },
    #[error("the folder of runs `{}` could not be used", path.display())]
    Folder { path: PathBuf, source: io::Error },
}

impl Explain for RunsError {
    fn exit(&self) -> Exit {
        match self {
            RunsError::Unknown(_) => Exit::NotFound,
            RunsError::NotAnId(_) | RunsError::Ambiguous { .. } => Exit::Usage,
            RunsError::Unreadable { .. } | RunsError::Unwritable { .. } | RunsError::Folder { .. } => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            RunsError::Unknown(_) | RunsError::NotAnId(_) => "run `relay-mesh runs list` to see which there are",
            RunsError::Ambiguous { .. } => "write more of it",
            RunsError::Unreadable { .. } => "`relay-mesh runs gc` deletes the files of runs that are over",
            RunsError::Unwritable { .. } | RunsError::Folder { .. } => {
                "see whether the disk is full and the data folder is yours"
            }
        };
        Some(hint.to_owned())
    }
}

/// The id that was typed: whole, or its first characters if only one of `known` begins so.
pub(crate) fn whole_id(typed: &str, known: impl FnOnce() -> Vec<RunId>) -> Result<RunId, RunsError> {
    let wanted = typed.trim().to_ascii_uppercase();
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let is_of_an_id = |byte: u8| byte.is_ascii_digit() || (byte.is_ascii_uppercase() && !b"ILOU".contains(&byte));
    if wanted.is_empty() || wanted.len() >= RUN_ID_LENGTH || !wanted.bytes().all(is_of_an_id) {
        return Err(RunsError::NotAnId(typed.to_owned()));
    }
    let candidates: Vec<RunId> = known().into_iter().filter(|id| id.to_string().starts_with(&wanted)).collect();
    match candidates.as_slice() {
        [only] => Ok(*only),
        [] => Err(RunsError::Unknown(typed.to_owned())),
        _ => Err(RunsError::Ambiguous { typed: typed.to_owned(), candidates }),
    }
}

/// How many characters an id has.
const RUN_ID_LENGTH: usize = 26;

/// All runs of a data folder.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    pub(super) root: PathBuf,
}

/// The files of one run.
#[derive(Clone, Debug)]
pub(crate) struct RunFolder {
    pub(crate) id: RunId,
    pub(crate) root: PathBuf,
    live: PathBuf,
    /// Held while this process works on the run.
    held: Option<Arc<File>>,
}

impl Runs {
    pub(crate) fn of(data: &Path) -> Runs {
        Runs { root: data.join(RUNS) }
    }

    /// The folder of a run, whether it exists or not.
    pub(crate) fn folder(&self, id: RunId) -> RunFolder {
        let (root, live) = (self.root.join(id.to_string()), self.root.join(LIVE).join(id.to_string()));
        RunFolder { id, root, live, held: None }
    }

    /// Makes the folder of a new run. It is not listed until its record is there.
    pub(crate) fn create(&self, id: RunId) -> Result<RunFolder, RunsError> {
        let mut folder = self.folder(id);
        let made = || {
            for path in [&self.root.join(LIVE), &folder.files()] {
                unix::make_private_folder(path)?;
            }
            fs::write(&folder.live, "")
        };
        made().map_err(|source| RunsError::Unwritable { id, source })?;
        folder.work_on()?;
        Ok(folder)
    }

    /// The run of an id as a user types it.
    pub(crate) fn find(&self, typed: &str) -> Result<(RunFolder, RunRecord), RunsError> {
        if typed == "last" {
            let newest = self.ids().into_iter().next().ok_or_else(|| RunsError::Unknown(typed.to_owned()))?;
            return self.load(newest);
        }
        self.load(whole_id(typed, || ids_beside(&self.root))?)
    }

    pub(crate) fn load(&self, id: RunId) -> Result<(RunFolder, RunRecord), RunsError> {
        let folder = self.folder(id);
        let record = folder.record()?;
        Ok((folder, record))
    }

    /// The ids of all runs, the newest first.
    pub(crate) fn ids(&self) -> Vec<RunId> {
        newest_first(&self.root)
    }

    /// The runs that have not ended, as far as their files say.
    pub(crate) fn live(&self) -> Vec<(RunFolder, RunRecord)> {
        let ids = newest_first(&self.root.join(LIVE)).into_iter().rev();
        ids.filter_map(|id| self.load(id).ok()).filter(|(_, record)| record.ended.is_none()).collect()
    }

    /// The records of runs that were started since a time.
    pub(crate) fn since(&self, since: Instant) -> Vec<RunRecord> {
        let young = self.ids().into_iter().take_while(|id| id.made() >= since);
        young.filter_map(|id| self.load(id).ok()).map(|(_, record)| record).collect()
    }

    /// Deletes the marks of before a time whose run is gone, and the names of the sessions of such runs.
    pub(crate) fn delete_marks_alone(&self, before: Instant) {
        let marks = newest_first(&self.root.join(LIVE)).into_iter().filter(|id| id.made() < before);
        for folder in marks.map(|id| self.folder(id)).filter(|folder| !folder.root.exists()) {
            let _gone = fs::remove_file(&folder.live);
        }
        for name in by_session::left_behind(&self.root) {
            let _gone = fs::remove_file(name);
        }
    }

    /// Locks out every other process that starts, applies or deletes runs, until it is dropped.
    pub(crate) async fn alone(&self) -> Result<File, RunsError> {
        let failed = |source| RunsError::Folder { path: self.root.clone(), source };
        unix::make_private_folder(&self.root).map_err(failed)?;
        let folder = File::open(&self.root).map_err(failed)?;
        loop {
            match folder.try_lock() {
                Ok(()) => return Ok(folder),
                // Another task of this process may hold it: to block here would keep that one from going on.
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOOK).await,
                Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Interrupted => {}
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
    }
}

impl RunFolder {
    /// Says that this process works on the run, for as long as it has this folder or a copy of it.
    pub(crate) fn work_on(&mut self) -> Result<(), RunsError> {
        let held = alive::hold(&self.live).map_err(|source| RunsError::Unwritable { id: self.id, source })?;
        self.held = Some(Arc::new(held));
        Ok(())
    }

    /// Says that this process works on the run no more, although it lives and the run has not ended. An empty file has
    /// room on most full disks, where a record has none.
    pub(crate) fn give_up(&self) {
        if let Err(error) = fs::write(self.root.join(GIVEN_UP), "") {
            tracing::warn!(%error, run = %self.id, "the next command cannot conclude a run while this process lives");
        }
    }

    /// Whether a process has said so.
    pub(super) fn was_given_up(&self) -> bool {
        self.root.join(GIVEN_UP).exists()
    }

    pub(crate) fn record(&self) -> Result<RunRecord, RunsError> {
        let id = self.id;
        match fs::read(self.root.join(RECORD)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(RunsError::Unknown(id.to_string())),
            Err(source) => Err(RunsError::Unreadable { id, source }),
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| RunsError::Unreadable { id, source: error.into() })
            }
        }
    }

    /// Replaces the record in one step.
    pub(crate) fn keep(&self, record: &RunRecord) -> Result<(), RunsError> {
        let unwritable = |source| RunsError::Unwritable { id: self.id, source };
        let bytes = serde_json::to_vec(record).map_err(|error| unwritable(error.into()))?;
        self.write(RECORD, &bytes)?;
        if record.ended.is_some() {
            // A marker that stays costs one look at a run that has ended.
            let _gone = fs::remove_file(&self.live);
            if let Some(runs) = self.root.parent() {
                by_session::note(runs, record);
            }
        }
        Ok(())
    }

    /// Replaces one of its files in one step.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RunsError> {
        let written = atomic_write::replace(&self.root.join(name), bytes, 0o600, Durability::Process);
        written.map_err(|source| RunsError::Unwritable { id: self.id, source })
    }

    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, RunsError> {
        fs::read(self.root.join(name)).map_err(|source| RunsError::Unreadable { id: self.id, source })
    }

    /// The run's own folder for what its harness reads: a schema, a set of servers.
    pub(crate) fn files(&self) -> PathBuf {
        self.root.join("files")
    }

    /// Git's objects and index for this run, until it has ended.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.root.join("scratch")
    }

    pub(crate) fn worktree(&self) -> PathBuf {
        self.root.join("worktree")
    }

    /// What the run has reported, one JSON line each.
    pub(crate) fn events(&self) -> PathBuf {
        self.root.join("events.jsonl")
    }

    /// A file of one start of the harness's program.
    pub(crate) fn of_attempt(&self, what: &str, attempt: u32) -> PathBuf {
        self.root.join(format!("{what}-{attempt}"))
    }

    /// The processes of the last start, while they run.
    pub(crate) fn running(&self, attempt: u32) -> Option<Running> {
        serde_json::from_slice(&fs::read(self.of_attempt("running", attempt)).ok()?).ok()
    }

    /// Deletes everything of the run.
    pub(crate) fn delete(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.root)?;
        match fs::remove_file(&self.live) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Where the run stands now. While its guard lives it is being ended, and counts as running.
    pub(crate) fn stage(&self, record: &RunRecord, machine: &dyn Machine) -> RunStage {
        let guarded = || {
            let guard = self.running(record.attempts).map(|running| process_info::named(running.guard));
            guard.is_some_and(|guard| machine.runs(guard))
        };
        let is_worked_on = !self.was_given_up() && alive::is_worked_on(&self.live, record.supervisor, machine);
        match record.stage(is_worked_on) {
            RunStage::Abandoned if guarded() => RunStage::Running,
            stage => stage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_id_is_enough_if_only_one_run_begins_so() {
        let known = || {
            ["01JD8Z3K5V0000000000000000", "01JD8Z3K5V0000000000000001", "01JE8Z3K5V0000000000000000"]
                .map(|id| id.parse().expect("an id"))
                .to_vec()
        };
        for (typed, expected) in [
            ("01JE", "01JE8Z3K5V0000000000000000"),
            ("01je8z", "01JE8Z3K5V0000000000000000"),
            ("01JD8Z3K5V0000000000000001", "01JD8Z3K5V0000000000000001"),
            ("01JF", "no run has the id `01JF`"),
            ("01JD", "`01JD` may mean 01JD8Z3K5V0000000000000000, 01JD8Z3K5V0000000000000001"),
            ("", "`` is not a run's id"),
            ("../x", "`../x` is not a run's id"),
        ] {
            let found = whole_id(typed, known).map_or_else(|error| error.to_string(), |id| id.to_string());
            assert_eq!(found, expected, "{typed}");
        }
    }
}
