//! The children of a prefix, read in bulk: names relative to one open folder, no file opened but the values
//! themselves, and two threads if there are many.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use super::shared::Shared;
use super::value::{self, ValueBytes};
use crate::unix;
use crate::{Child, ChildLeaf, Key, Leaf, Revision, StoreError, Taker, Versioned};

/// The number of children from which two threads share the work. The second one halves the wait; on most machines a
/// third would cost more to start than it gains.
const CROWD: usize = 128;

/// Reads every child of a prefix that has a value `leaf`.
pub(super) fn look(
    shared: &Shared,
    prefix: &Key,
    leaf: &str,
    beside: &[Leaf<'_>],
    takers: [Taker<'_>; 2],
) -> Result<(), StoreError> {
    let path = shared.root.join(prefix.as_str());
    let Some(names) = Names::of(&path)? else { return Ok(()) };
    let names = names.in_order();
    let folder = File::open(&path).map_err(StoreError::io("could not list", &path))?;
    let beside: Vec<LeafFiles> = beside.iter().map(LeafFiles::of).collect();
    let glance = Glance { path, folder, value: format!("{leaf}.json"), beside };
    let (ours, theirs) = names.split_at(if names.len() < CROWD { names.len() } else { names.len() / 2 });
    let [first, second] = takers;
    thread::scope(|scope| {
        let helper = || glance.at(theirs, second);
        let helper = (!theirs.is_empty()).then(|| thread::Builder::new().spawn_scoped(scope, helper));
        glance.at(ours, first)?;
        match helper {
            None => Ok(()),
            Some(Ok(helper)) => helper.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // The system could not start a thread.
            Some(Err(_)) => glance.at(theirs, first),
        }
    })
}

/// The names of a folder's subfolders that are segments of keys, in one text.
#[derive(Default)]
struct Names {
    text: String,
    each: Vec<Range<usize>>,
}

impl Names {
    /// None if there is no such folder.
    fn of(path: &Path) -> Result<Option<Names>, StoreError> {
        let failed = || StoreError::io("could not list", path);
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(failed()(error)),
        };
        let mut names = Names::default();
        for entry in entries {
            let entry = entry.map_err(failed())?;
            if entry.file_type().map_err(failed())?.is_dir()
                && let Some(name) = entry.file_name().to_str()
                // A name that is not a key segment is not the store's.
                && Key::is_segment(name)
            {
                let begin = names.text.len();
                names.text.push_str(name);
                names.each.push(begin..names.text.len());
            }
        }
        Ok(Some(names))
    }

    fn in_order(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.each.iter().map(|at| &self.text[at.clone()]).collect();
        names.sort_unstable();
        names
    }
}

/// What to read of each child, and the folder.
struct Glance {
    path: PathBuf,
    folder: File,
    /// The file of the value.
    value: String,
    beside: Vec<LeafFiles>,
}

/// The files of a leaf beside the value.
enum LeafFiles {
    Value(String),
    Log { lock: String, active: String },
}

impl LeafFiles {
    fn of(leaf: &Leaf<'_>) -> LeafFiles {
        match leaf {
            Leaf::Value(leaf) => LeafFiles::Value(format!("{leaf}.json")),
            Leaf::Log(leaf) => LeafFiles::Log { lock: format!(".{leaf}.lock"), active: format!("{leaf}.jsonl") },
        }
    }
}

/// A value, or why its file is damaged.
type ReadValue = Result<(Revision, ValueBytes), StoreError>;

/// A path relative to the open folder.
struct FileName {
    text: String,
    /// Length of the subfolder's name, with the slash.
    folder: usize,
}

impl FileName {
    fn enter(&mut self, folder: &str) {
        self.text.clear();
        self.text.push_str(folder);
        self.text.push('/');
        self.folder = self.text.len();
    }

    /// The file of this name in the current subfolder.
    fn of(&mut self, name: &str) -> &str {
        self.text.truncate(self.folder);
        self.text.push_str(name);
        &self.text
    }
}

impl Glance {
    fn at(&self, names: &[&str], take: Taker<'_>) -> Result<(), StoreError> {
        let mut file = FileName { text: String::with_capacity(256), folder: 0 };
        let (mut bytes, mut bytes_beside) = (Vec::with_capacity(4 << 10), Vec::new());
        let mut beside = Vec::with_capacity(self.beside.len());
        for name in names {
            file.enter(name);
            let Some(value) = self.value(file.of(&self.value), &mut bytes)? else { continue };
            beside.clear();
            for files in &self.beside {
                beside.push(match files {
                    LeafFiles::Value(name) => match self.value(file.of(name), &mut bytes_beside)? {
                        Some(value) => ChildLeaf::Value(value.map(|(revision, value_bytes)| Versioned {
                            revision,
                            bytes: value_bytes.of(&bytes_beside).to_vec(),
                        })),
                        None => ChildLeaf::Nothing,
                    },
                    LeafFiles::Log { lock, active } => {
                        // A log without its file and its lock file reads as empty.
                        let is_empty = self.is_missing(file.of(lock)) && self.is_missing(file.of(active));
                        if is_empty { ChildLeaf::Nothing } else { ChildLeaf::Unknown }
                    }
                });
            }
            let value = match value {
                Ok((_, ref value_bytes)) => Ok(value_bytes.of(&bytes)),
                Err(damage) => Err(damage),
            };
            take(Child { name, value, beside: &mut beside });
        }
        Ok(())
    }

    /// Reads the file of a value and returns the value's range in it, or why it is damaged; none if there is no value.
    fn value(&self, file: &str, bytes: &mut Vec<u8>) -> Result<Option<ReadValue>, StoreError> {
        let opened = unix::open_in(&self.folder, file);
        match opened.and_then(|opened| value::read_all(&opened, bytes)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                let why = "it is a folder".to_owned();
                return Ok(Some(Err(value::damaged(&self.path.join(file), why))));
            }
            Err(error) => match StoreError::io("could not read", &self.path.join(file))(error) {
                error @ StoreError::Damaged { .. } => return Ok(Some(Err(error))),
                error => return Err(error),
            },
        }
        let understood = value::understood(bytes).map_err(|why| value::damaged(&self.path.join(file), why));
        Ok(understood.transpose())
    }

    fn is_missing(&self, file: &str) -> bool {
        unix::is_missing_in(&self.folder, file)
    }
}
