//! Changing files: each is checked first, written to a temporary file, checked again and renamed, and restored if a
//! later one fails.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use mesh::ports::harness::Edit;

use super::ApplyError;
use super::journal::Change;
use crate::roots::Located;

/// The largest settings file that an edit may change, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// A file that is about to be changed and holds what the plan expects.
pub(super) struct Target {
    located: Located,
    /// Its path, for display.
    pub(super) shown: PathBuf,
    edit: Edit,
    /// Its mode; none if the file is absent.
    mode: Option<u32>,
    /// Folders to create for it, outermost first, relative to the located folder.
    folders: Vec<PathBuf>,
}

impl Target {
    /// Compares a file with what an edit expects of it.
    pub(super) fn check(located: Located, shown: PathBuf, edit: &Edit) -> Result<Target, ApplyError> {
        if !is_content(read(&located, &shown)?.as_deref(), edit.before.as_deref()) {
            return Err(ApplyError::Changed(shown));
        }
        let mode = match located.dir.metadata(&located.path) {
            Ok(metadata) => Some(metadata.permissions().mode() & 0o7777),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(wrong("look at", &shown, error)),
        };
        if mode.is_some_and(|mode| mode & 0o200 == 0) {
            return Err(ApplyError::ReadOnly(shown));
        }
        let mut folders: Vec<PathBuf> = located.path.ancestors().skip(1).map(Path::to_owned).collect();
        folders.retain(|folder| !folder.as_os_str().is_empty() && !located.dir.exists(folder));
        folders.reverse();
        Ok(Target { located, shown, edit: edit.clone(), mode, folders })
    }

    /// Whether both are the same file, by whatever path the plan names it.
    pub(super) fn same_file(&self, other: &Target) -> bool {
        self.shown == other.shown
    }

    pub(super) fn change(&self) -> Change {
        let above = self.shown.ancestors().nth(self.located.path.components().count()).unwrap_or(Path::new("/"));
        Change {
            root: self.edit.root.clone(),
            path: self.edit.path.clone(),
            file: Some(self.shown.clone()),
            before: self.edit.before.clone(),
            after: self.edit.after.clone(),
            executable: self.mode.is_some_and(|mode| mode & 0o100 != 0),
            touched: false,
            folders: self.folders.iter().map(|folder| above.join(folder)).collect(),
        }
    }

    fn perform(&self) -> Result<(), ApplyError> {
        let dir = &self.located.dir;
        let before = self.edit.before.as_deref();
        match &self.edit.after {
            Some(content) => {
                for folder in &self.folders {
                    make_folder(dir, folder).map_err(|error| wrong("make the folder of", &self.shown, error))?;
                }
                self.replace(before, content, self.mode_after())
            }
            None => {
                self.still_holds(before)?;
                match dir.remove_file(&self.located.path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(wrong("delete", &self.shown, error)),
                    Ok(()) | Err(_) => self.sync_folder(),
                }
            }
        }
    }

    fn revert(&self) -> Result<(), ApplyError> {
        let restored = self.restore();
        for folder in self.folders.iter().rev() {
            // A folder that is no longer empty stays.
            let _ = self.located.dir.remove_dir(folder);
        }
        restored
    }

    /// Gives a file that holds our content its earlier one. What another program wrote meanwhile stays.
    fn restore(&self) -> Result<(), ApplyError> {
        let (before, after) = (self.edit.before.as_deref(), self.edit.after.as_deref());
        let current = read(&self.located, &self.shown)?;
        if !is_content(current.as_deref(), after) {
            let is_unchanged = is_content(current.as_deref(), before);
            return if is_unchanged { Ok(()) } else { Err(ApplyError::Changed(self.shown.clone())) };
        }
        match before {
            Some(content) => self.replace(after, content, self.mode.unwrap_or(0o644)),
            None => match self.located.dir.remove_file(&self.located.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(wrong("delete", &self.shown, error)),
                Ok(()) | Err(_) => Ok(()),
            },
        }
    }

    /// Refuses if the file no longer holds this.
    fn still_holds(&self, content: Option<&str>) -> Result<(), ApplyError> {
        let current = read(&self.located, &self.shown)?;
        if is_content(current.as_deref(), content) { Ok(()) } else { Err(ApplyError::Changed(self.shown.clone())) }
    }

    fn mode_after(&self) -> u32 {
        match (self.mode, self.edit.executable) {
            (Some(mode), true) => mode | 0o100 | ((mode & 0o044) >> 2),
            (Some(mode), false) => mode,
            (None, true) => 0o755,
            (None, false) => 0o644,
        }
    }

    /// Writes the whole content to a temporary file beside the target and renames it into place, if the target then
    /// still holds what is expected.
    fn replace(&self, expected: Option<&str>, content: &str, mode: u32) -> Result<(), ApplyError> {
        let dir = &self.located.dir;
        let path = &self.located.path;
        // The same name each time: the file of a killed install is overwritten, so they do not pile up.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.relay-mesh.tmp"));
        let write = || -> io::Result<()> {
            match dir.remove_file(&temporary) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let mut file = dir.open_with(&temporary, OpenOptions::new().write(true).create_new(true).mode(mode))?;
            file.write_all(content.as_bytes())?;
            if self.mode.is_some() {
                file.set_permissions(Permissions::from_mode(mode))?;
            }
            file.sync_all()
        };
        let failed = |error| wrong("write", &self.shown, error);
        let written = write().map_err(failed).and_then(|()| self.still_holds(expected));
        let renamed = written.and_then(|()| dir.rename(&temporary, dir, path).map_err(failed));
        if renamed.is_err() {
            let _ = dir.remove_file(&temporary);
        }
        renamed?;
        self.sync_folder()
    }

    fn sync_folder(&self) -> Result<(), ApplyError> {
        let folder = self.located.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // Opened as a file: a folder that cap-std opens as a folder cannot be synced.
        let opened = self.located.dir.open(folder.unwrap_or(Path::new(".")));
        let synced = opened.and_then(|folder| folder.sync_all());
        synced.map_err(|error| wrong("sync the folder of", &self.shown, error))
    }
}

/// Makes all changes, or undoes those that were made.
pub(super) fn all(targets: &[Target]) -> Result<(), ApplyError> {
    for (index, target) in targets.iter().enumerate() {
        if let Err(error) = target.perform() {
            let changed = targets[..=index].iter().rev();
            let left: Vec<PathBuf> =
                changed.filter(|target| target.revert().is_err()).map(|target| target.shown.clone()).collect();
            // The file that failed may fail to be restored and still be unchanged.
            let left: Vec<PathBuf> = left.into_iter().filter(|path| *path != target.shown).collect();
            return Err(match error {
                other if left.is_empty() => other,
                ApplyError::Write { path, source, .. } => ApplyError::Stranded { path, left, source },
                ApplyError::Changed(path) => {
                    let source = io::Error::other("it has changed since the plan was made");
                    ApplyError::Stranded { path, left, source }
                }
                other => other,
            });
        }
    }
    Ok(())
}

/// Removes folders that the install created, innermost first, if they are empty.
pub(super) fn remove_folders(folders: &[PathBuf]) {
    for folder in folders {
        // A folder that holds something, or is already gone, is left alone.
        let _ = std::fs::remove_dir(folder);
    }
}

fn is_content(current: Option<&[u8]>, content: Option<&str>) -> bool {
    current == content.map(str::as_bytes)
}

/// A file's content; none if it is absent.
pub(super) fn read(located: &Located, shown: &Path) -> Result<Option<Vec<u8>>, ApplyError> {
    let file = match located.dir.open(&located.path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong("read", shown, error)),
    };
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| wrong("read", shown, error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(wrong("read", shown, io::Error::other("it is too large for a settings file")));
    }
    Ok(Some(bytes))
}

fn make_folder(dir: &Dir, folder: &Path) -> io::Result<()> {
    match dir.create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn wrong(doing: &'static str, path: &Path, source: io::Error) -> ApplyError {
    ApplyError::Write { doing, path: path.to_owned(), source }
}
