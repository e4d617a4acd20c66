//! The adapters that the user installed, and the grants that the user gave to each. They are in the folder
//! `plugins/` of the data folder, which every process of this machine reads and only this user may write to.
//! `plugins/NAME.json` is the record: the version, its grants, and whether it is enabled.
//! `plugins/NAME/DIGEST/NAME.wasm` is the component, and `adapter.toml` beside it is its manifest, taken out of the
//! component if it was inside. A process that changes any of this holds `plugins/.lock`.
//!
//! The record is replaced by a rename, so each reader sees one version whole, and an install that was killed leaves
//! only a folder that no record names. A reader takes no lock. Looking up a name costs a look at one file, so the
//! number of installed adapters does not slow down a hook of a built-in one.

mod change;
mod record;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub use change::{FoundVersion, Install};
pub use record::{Consented, Enablement, InstalledVersion, Record};

use crate::cache::state_of;
use crate::digest::Digest;
use crate::grants::{Consent, Consents};
use crate::manifest::{Manifest, is_name};
use crate::package::read_manifest;
use crate::signature::PublisherKey;
use crate::sources::{Candidate, Source};
use crate::unix::{self, MetadataExt};

/// The adapters that the user installed.
#[derive(Debug)]
pub struct InstalledAdapters {
    folder: PathBuf,
    /// The keys of publishers that the user's settings refuse.
    refused: Vec<PublisherKey>,
    // A std mutex: nothing is awaited while it is held; the section looks at one file.
    seen: Mutex<BTreeMap<String, CachedEntry>>,
}

/// One record, as last read.
#[derive(Clone, Debug)]
struct CachedEntry {
    /// The state of the record's file, by which a change is noticed.
    stamp: String,
    held: InstalledEntry,
}

/// A record and the adapter that it names.
#[derive(Clone, Debug)]
pub(crate) struct InstalledEntry {
    pub(crate) record: Arc<Record>,
    /// The adapter, enabled or not; or why the installed files cannot be used. None if only consents are kept.
    pub(crate) candidate: Option<Result<Arc<Candidate>, String>>,
}

/// Why the installed adapters could not be read or changed. Nothing has changed unless the error says so.
#[derive(Debug, thiserror::Error)]
pub enum InstalledError {
    /// The operating system refused.
    #[error("could not {doing} `{path}`")]
    Io {
        /// What was being done.
        doing: &'static str,
        path: PathBuf,
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A record that cannot be understood.
    #[error("the record `{path}` is damaged: {why}")]
    Damaged {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another user could have written to it.
    #[error("`{path}` {why}, so no adapter is taken from it")]
    Unsafe {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another process changed this adapter since the command read it.
    #[error("`{0}` was changed by another command meanwhile")]
    Changed(String),
    /// Nothing of this name is installed.
    #[error("no adapter is installed by the name `{0}`")]
    Absent(String),
}

impl InstalledError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            InstalledError::Io { source, path, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    "make room on the disk and run it again".to_owned()
                }
                _ => format!("look at `{}`: it must be yours and writable", path.display()),
            },
            InstalledError::Damaged { path, .. } => {
                format!("remove `{}` and install the adapter again", path.display())
            }
            InstalledError::Unsafe { path, .. } => format!("make it yours alone: `chmod go-w {}`", path.display()),
            InstalledError::Changed(_) => "run the same command again: it reads the current state".to_owned(),
            InstalledError::Absent(_) => "`relay-mesh plugin list` shows which there are".to_owned(),
        }
    }
}

impl InstalledAdapters {
    /// The adapters installed in this folder, which the first install makes. Reads nothing yet.
    pub fn new(folder: PathBuf) -> InstalledAdapters {
        InstalledAdapters { folder, refused: Vec::new(), seen: Mutex::default() }
    }

    /// The same, without the adapters that are signed by these keys alone.
    #[must_use]
    pub fn refusing(self, keys: Vec<PublisherKey>) -> InstalledAdapters {
        InstalledAdapters { refused: keys, ..self }
    }

    /// Those of the keys that the user does not refuse.
    pub fn trusted(&self, keys: &[PublisherKey]) -> Vec<PublisherKey> {
        keys.iter().copied().filter(|key| !self.refused.contains(key)).collect()
    }

    /// The names of the adapters that are installed and signed by this key.
    pub fn signed_by(&self, key: &PublisherKey) -> Result<Vec<String>, InstalledError> {
        let names = self.names()?.into_iter();
        let signed = |name: &String| {
            let record = self.record(name).ok().flatten();
            record.and_then(|record| Some(record.installed.as_ref()?.publishers.contains(key))).unwrap_or(false)
        };
        Ok(names.filter(signed).collect())
    }

    /// The record of one adapter.
    pub fn record(&self, name: &str) -> Result<Option<Arc<Record>>, InstalledError> {
        Ok(self.held(name)?.map(|held| held.record))
    }

    /// The names of all adapters that have a record, in order.
    pub fn names(&self) -> Result<Vec<String>, InstalledError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(io("read", &self.folder)(source)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let file = entry.map_err(io("read", &self.folder))?.file_name();
            let name = file.to_str().and_then(|file| file.strip_suffix(".json"));
            names.extend(name.filter(|name| is_name(name)).map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }

    /// The folder of all installed adapters.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of an adapter's record.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// The path of the component of an installed version.
    pub fn component_of(&self, name: &str, digest: &Digest) -> PathBuf {
        self.version_folder(name, digest).join(format!("{name}.wasm"))
    }

    /// One adapter and its record. Looks at one file if nothing changed.
    pub(crate) fn held(&self, name: &str) -> Result<Option<InstalledEntry>, InstalledError> {
        // Names come from command lines and harnesses, and become paths here.
        if !is_name(name) {
            return Ok(None);
        }
        let path = self.path_of(name);
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            Err(source) => return Err(io("read", &path)(source)),
        };
        let stamp = state_of(&metadata);
        {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(seen) = seen.get(name).filter(|seen| seen.stamp == stamp) {
                return Ok(Some(seen.held.clone()));
            }
        }
        self.check_owner()?;
        own(&path, &metadata)?;
        let record = Arc::new(self.read(name, &path)?);
        let candidate = record.installed.as_ref().map(|installed| self.candidate(name, installed).map(Arc::new));
        let held = InstalledEntry { record, candidate };
        if matches!(held.candidate, Some(Err(_))) {
            // Not cached: it may be repaired without a change of its record.
            return Ok(Some(held));
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(name.to_owned(), CachedEntry { stamp, held: held.clone() });
        Ok(Some(held))
    }

    fn read(&self, name: &str, path: &Path) -> Result<Record, InstalledError> {
        let bytes = fs::read(path).map_err(io("read", path))?;
        let damaged = |why: String| InstalledError::Damaged { path: path.to_owned(), why };
        let record: Record = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if record.name == name { Ok(record) } else { Err(damaged(format!("it is about `{}`", record.name))) }
    }

    /// The installed version, if its files are unchanged since the install.
    fn candidate(&self, name: &str, installed: &InstalledVersion) -> Result<Candidate, String> {
        let component = self.component_of(name, &installed.digest);
        if !installed.publishers.is_empty() && self.trusted(&installed.publishers).is_empty() {
            return Err(format!("your settings refuse the key that signed it; {AGAIN} as its publisher signs it now"));
        }
        let text = read_manifest(&component.with_file_name("adapter.toml"))
            .map_err(|error| format!("its manifest cannot be read: {error}; install it again"))?;
        if Digest::of_adapter(&installed.component, &text) != installed.digest {
            return Err(format!("its manifest is not the one that was installed; {AGAIN}"));
        }
        let metadata =
            fs::metadata(&component).map_err(|error| format!("its component cannot be read: {error}; {AGAIN}"))?;
        if state_of(&metadata) != installed.file {
            let bytes =
                fs::read(&component).map_err(|error| format!("its component cannot be read: {error}; {AGAIN}"))?;
            if Digest::of(&bytes) != installed.component {
                return Err(format!("its component is not the one that was installed; {AGAIN}"));
            }
        }
        let manifest = Manifest::parse(&text).map_err(|error| format!("its manifest is wrong in {error}"))?;
        let source = Source::Installed(component);
        let mut candidate = Candidate::on_disk(manifest, installed.digest, installed.component, source);
        candidate.since = Some(installed.since.unwrap_or(installed.at));
        Ok(candidate)
    }

    /// Copies one adapter, with what the user granted it, into the folder of installed adapters of another data folder.
    /// Nothing is copied if none of this name is installed.
    pub fn copy(&self, name: &str, to: &Path) -> std::io::Result<()> {
        let Ok(Some(held)) = self.held(name) else { return Ok(()) };
        let there = InstalledAdapters::new(to.to_owned());
        unix::make_private_folder(to)?;
        // One that is not in use as a file here may be in a plugin folder, with consents of the user.
        if let (Some(installed), Some(Ok(_))) = (&held.record.installed, &held.candidate) {
            let (from, component) =
                (self.component_of(name, &installed.digest), there.component_of(name, &installed.digest));
            unix::make_private_folder(&there.version_folder(name, &installed.digest))?;
            fs::copy(from.with_file_name("adapter.toml"), component.with_file_name("adapter.toml"))?;
            fs::copy(from, component)?;
        }
        fs::copy(self.path_of(name), there.path_of(name)).map(drop)
    }

    /// Whether an adapter is installed and its files are unchanged.
    pub fn is_sound(&self, name: &str) -> bool {
        matches!(self.held(name), Ok(Some(InstalledEntry { candidate: Some(Ok(_)), .. })))
    }

    /// Checks all files of an installed adapter by their digests, whatever the noted state of its file.
    pub(crate) fn audit(&self, name: &str, installed: &InstalledVersion) -> Result<Candidate, String> {
        self.candidate(name, &InstalledVersion { file: String::new(), ..installed.clone() })
    }

    fn version_folder(&self, name: &str, digest: &Digest) -> PathBuf {
        self.folder.join(name).join(&digest.to_string()[..16])
    }

    fn check_owner(&self) -> Result<(), InstalledError> {
        let metadata = fs::metadata(&self.folder).map_err(io("read", &self.folder))?;
        own(&self.folder, &metadata)
    }
}

const AGAIN: &str = "remove it and install it again";

impl Consents for InstalledAdapters {
    fn given(&self, adapter: &str, digest: &Digest) -> Consent {
        match self.record(adapter) {
            Ok(record) => record.map_or_else(Consent::default, |record| record.consent(digest)),
            Err(error) => {
                tracing::warn!(adapter, error = &error as &dyn std::error::Error, "nothing is granted");
                Consent::default()
            }
        }
    }
}

/// Checks that only this user can have written to the file or folder.
fn own(path: &Path, metadata: &fs::Metadata) -> Result<(), InstalledError> {
    let refuse = |why| Err(InstalledError::Unsafe { path: path.to_owned(), why });
    if metadata.uid() != unix::user() {
        refuse("belongs to another user")
    } else if metadata.mode() & 0o022 != 0 && !metadata.is_symlink() {
        refuse("can be written to by others")
    } else if metadata.is_symlink() {
        refuse("is a symbolic link")
    } else {
        Ok(())
    }
}

fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> InstalledError {
    let path = path.to_owned();
    move |source| InstalledError::Io { doing, path, source }
}

#[cfg(test)]
mod tests;
