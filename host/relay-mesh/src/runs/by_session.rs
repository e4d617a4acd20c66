//! Which runs ended with a session, found by names of files: reading every record would cost what is kept.
//!
//! For each run that has ended there is an empty file `ID.SESSION` in `runs/sessions`, where SESSION is a digest of what its
//! harness called the session. They are derived from the records: the record of a run without one is read, and the file is
//! made then, so any of them may be deleted at any time.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use mesh::runs::{RunId, RunRecord};
use sha2::{Digest as _, Sha256};

use super::Runs;
use crate::unix;

/// The folder with these files, in the folder of runs.
const SESSIONS: &str = "sessions";
/// How many bytes of the digest a name has.
const BYTES: usize = 16;

/// What the names say of one session.
struct Noted {
    /// The runs that have a file.
    all: HashSet<RunId>,
    /// Those that may have ended with the session.
    with_it: HashSet<RunId>,
}

impl Runs {
    /// The records of the runs that ended with a session, the newest first. Reads no others but those of runs that have no
    /// file yet, such as the ones that go on.
    pub(crate) fn ended_with(&self, session: &str) -> impl Iterator<Item = RunRecord> {
        let noted = Noted::read(&self.root, session);
        let may_be = move |id: &RunId| !noted.all.contains(id) || noted.with_it.contains(id);
        let records = self.ids().into_iter().filter(may_be).filter_map(move |id| self.load(id).ok());
        let records = records.map(|(_, record)| record).inspect(move |record| note(&self.root, record));
        records.filter(move |record| session_of(record) == Some(session))
    }
}

impl Noted {
    fn read(runs: &Path, session: &str) -> Noted {
        let wanted = digest(session);
        let mut noted = Noted { all: HashSet::new(), with_it: HashSet::new() };
        for (id, name) in names(runs) {
            noted.all.insert(id);
            if name.ends_with(&wanted) {
                noted.with_it.insert(id);
            }
        }
        noted
    }
}

/// Makes the file of a run that has ended. One that cannot be made costs the next lookup a look at the record.
pub(super) fn note(runs: &Path, record: &RunRecord) {
    if record.ended.is_none() {
        return;
    }
    let ended_with = session_of(record).map_or_else(|| "none".to_owned(), digest);
    let path = runs.join(SESSIONS).join(format!("{}.{ended_with}", record.id));
    if path.exists() {
        return;
    }
    if let Err(error) = unix::make_private_folder(&runs.join(SESSIONS)).and_then(|()| fs::write(&path, "")) {
        tracing::debug!(%error, run = %record.id, "the session of a run is looked up in its record");
    }
}

/// The files of runs that are gone.
pub(super) fn left_behind(runs: &Path) -> impl Iterator<Item = PathBuf> {
    let is_gone = move |(id, _): &(RunId, String)| !runs.join(id.to_string()).exists();
    names(runs).filter(is_gone).map(move |(_, name)| runs.join(SESSIONS).join(name))
}

/// The names in the folder, each with its run.
fn names(runs: &Path) -> impl Iterator<Item = (RunId, String)> {
    let entries = fs::read_dir(runs.join(SESSIONS)).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let id: RunId = name.split_once('.')?.0.parse().ok()?;
        Some((id, name))
    })
}

fn session_of(record: &RunRecord) -> Option<&str> {
    record.ended.as_ref()?.session.as_deref()
}

/// A session may be any text, and a name of a file may not.
fn digest(session: &str) -> String {
    hex::encode(&Sha256::digest(session.as_bytes())[..BYTES])
}
