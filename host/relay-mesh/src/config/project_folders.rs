//! The data folders that projects name. What is in a data folder counts as its user's: installed adapters and what they
//! may do, agents that are continued, keys. A repository could bring such a folder, so one that a project's settings name
//! may not be in a repository, and counts only if it was made here or its user took it as their own (docs/adr/0042).
//!
//! The folder has a mark that nobody can guess, and the same mark is in a file beside the user's settings.

use std::fs::{self, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use store::Durability;

use super::default_dir::default_dir;
use super::user_file::UserFile;
use super::{ConfigError, Origin, Settings};
use crate::atomic_write;
use crate::environment::Environment;
use crate::git_checkout;
use crate::unix::{self, PermissionsExt as _};

/// Relative to the configuration folder.
const FILE: &str = "relay-mesh/folders.toml";
const HEAD: &str = "# The data folders that your projects name and that were made here, or that you took as your own by\n\
                    # `relay-mesh store trust`. What is in any other is not used.\n";
/// The line that an entry begins with.
const ENTRY: &str = "[[folder]]";
/// The file in the data folder.
const MARK: &str = "mark";

/// A data folder that a project names.
#[derive(Clone, Debug)]
pub(crate) struct ProjectFolder {
    dir: PathBuf,
    /// The settings that name it.
    named_by: PathBuf,
    /// The user's home, which is no project, whatever settings lie in it.
    home: Option<PathBuf>,
    file: UserFile,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    folder: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    dir: PathBuf,
    mark: String,
}

impl ProjectFolder {
    /// The folder of these settings, if a project names it, and it is not the one that its user has anyway.
    pub(crate) fn of(settings: &Settings, environment: &Environment) -> Result<Option<ProjectFolder>, ConfigError> {
        let Origin::Project(named_by) = &settings.dir.origin else { return Ok(None) };
        let dir = real(&settings.dir.value);
        if default_dir(environment).is_some_and(|own| real(&own.value) == dir) {
            return Ok(None);
        }
        let file = UserFile::of(FILE, HEAD, environment)?;
        let home = environment.home().map(|home| real(&home));
        Ok(Some(ProjectFolder { dir, named_by: named_by.clone(), home, file }))
    }

    /// Refuses a folder whose content may have come with a repository. Changes nothing.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.check_place()?;
        if self.is_empty() || self.is_known()? {
            return Ok(());
        }
        Err(ConfigError::NotMadeHere { dir: self.dir.clone(), named_by: self.named_by.clone() })
    }

    /// Every pull may bring something into a folder that is in a repository, however it was made.
    fn check_place(&self) -> Result<(), ConfigError> {
        let project = self.named_by.parent().map(real).filter(|project| Some(project) != self.home.as_ref());
        let is_in_project = project.is_some_and(|project| self.dir.starts_with(project));
        let there = self.dir.ancestors().find(|folder| folder.exists());
        if is_in_project || there.is_some_and(|folder| git_checkout::top_of(folder).is_some()) {
            return Err(ConfigError::InARepository { dir: self.dir.clone(), named_by: self.named_by.clone() });
        }
        Ok(())
    }

    /// The same, and makes a folder that is not there yet.
    pub(crate) fn make(&self) -> Result<(), ConfigError> {
        self.check()?;
        if !self.is_empty() {
            return Ok(());
        }
        let _alone = self.file.alone()?;
        // Another process may have made it meanwhile.
        if self.is_empty() { self.mark() } else { self.check() }
    }

    /// Takes the folder as its user's own; false if it was before.
    pub(crate) fn trust(&self) -> Result<bool, ConfigError> {
        self.check_place()?;
        let _alone = self.file.alone()?;
        let is_new = self.is_empty() || !self.is_known()?;
        if is_new {
            self.mark()?;
        }
        Ok(is_new)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether nothing is in it but what a process left that was killed while it made the folder.
    fn is_empty(&self) -> bool {
        let is_left = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(&format!(".{MARK}."));
        match fs::read_dir(&self.dir) {
            Ok(mut entries) => entries.all(|entry| entry.is_ok_and(|entry| is_left(&entry.file_name()))),
            // One that is no folder, or cannot be read, is not empty.
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    fn is_known(&self) -> Result<bool, ConfigError> {
        let Ok(mark) = fs::read_to_string(self.dir.join(MARK)) else { return Ok(false) };
        let entries = self.file.parse::<File>(&self.file.text()?)?.folder;
        Ok(entries.iter().any(|entry| entry.dir == self.dir && entry.mark == mark.trim()))
    }

    /// Notes the mark in the user's file first: a process that is killed in between leaves an entry that nothing has.
    fn mark(&self) -> Result<(), ConfigError> {
        let unwritable = |source| ConfigError::Unwritable { path: self.dir.join(MARK), source };
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| unwritable(io::Error::other(error.to_string())))?;
        let mark = hex::encode(bytes);
        let text = self.file.text()?;
        self.file.parse::<File>(&text)?;
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let entry = format!("{ENTRY}\ndir = {}\nmark = {}\n", quoted(&self.dir.to_string_lossy()), quoted(&mark));
        self.file.write_with(&text, &entry)?;
        unix::make_private_folder(&self.dir).map_err(unwritable)?;
        // An empty one that was there may be open to others.
        fs::set_permissions(&self.dir, Permissions::from_mode(0o700)).map_err(unwritable)?;
        atomic_write::replace(&self.dir.join(MARK), mark.as_bytes(), 0o600, Durability::Synced).map_err(unwritable)
    }
}

/// The folder without links on the way to it, as far as it is there.
fn real(dir: &Path) -> PathBuf {
    let Ok(real) = fs::canonicalize(dir) else {
        let Some((parent, name)) = dir.parent().zip(dir.file_name()) else { return dir.to_owned() };
        return self::real(parent).join(name);
    };
    real
}
