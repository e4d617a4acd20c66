//! The guard: a pre-commit hook of one repository that blocks commits of paths that another agent holds. It works with
//! hook managers, and uninstalling restores every byte.

pub(crate) mod block;
pub(crate) mod git;
mod place;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use block::{Form, Starts};
use git::Git;
use store::Durability;

use crate::atomic_write;
use crate::unix::{MetadataExt, PermissionsExt};
pub(crate) use place::{GuardError, HookFile, Manager, choose};

/// Suffix of the original hook that ours replaces.
const KEPT: &str = ".before-relay-mesh";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Installed {
    Now(HookFile),
    /// It was there already, identical.
    Already(HookFile),
}

pub(crate) fn install(git: &Git, program: &Path, data_folder: Option<&Path>) -> Result<Installed, GuardError> {
    let place = place::choose(git)?;
    let starts = match place.is_shared {
        true => Starts::Anywhere,
        false => Starts::Here { program, data_folder },
    };
    let failed = |source| GuardError::File { path: place.file.clone(), source };
    let old = read(&place.file).map_err(failed)?;
    let new = match &old {
        Old::Text(text) if !block::is_whole(text) && place.takes_lines(text) => block::with(text, &starts, place.form),
        // Ours replaced another hook, which is kept beside it, or was removed since.
        Old::Nothing => alone(&place, &starts),
        Old::Text(text) if block::is_whole(text) => alone(&place, &starts),
        Old::Text(_) | Old::Other => {
            let kept = kept(&place.file);
            // The repository is never without its hook: it has both names until ours takes the first.
            if !is_one_file(&place.file, &kept) {
                if kept.symlink_metadata().is_ok() {
                    return Err(GuardError::Kept(kept));
                }
                fs::hard_link(&place.file, &kept).map_err(failed)?;
            }
            if let Err(source) = write(&place.file, &alone(&place, &starts), None) {
                fs::remove_file(&kept).map_err(failed)?;
                return Err(failed(source));
            }
            return Ok(Installed::Now(place));
        }
    };
    match &old {
        Old::Text(text) if *text == new => Ok(Installed::Already(place)),
        Old::Nothing | Old::Text(_) | Old::Other => {
            let mode = fs::metadata(&place.file).ok().map(|found| found.permissions().mode());
            write(&place.file, &new, mode).map_err(failed)?;
            Ok(Installed::Now(place))
        }
    }
}

/// Removes the guard from every file that contains it. Returns those files.
pub(crate) fn uninstall(git: &Git) -> Result<Vec<PathBuf>, GuardError> {
    let mut files = Vec::new();
    for file in found(git)? {
        let failed = |source| GuardError::File { path: file.clone(), source };
        let Old::Text(text) = read(&file).map_err(failed)? else { continue };
        let kept = kept(&file);
        if block::is_whole(&text) && kept.symlink_metadata().is_ok() {
            fs::rename(&kept, &file).map_err(failed)?;
        } else if block::is_whole(&text) {
            fs::remove_file(&file).map_err(failed)?;
        } else if let Some(rest) = block::without(&text) {
            let mode = fs::metadata(&file).map_err(failed)?.permissions().mode();
            write(&file, &rest, Some(mode)).map_err(failed)?;
        }
        files.push(file);
    }
    Ok(files)
}

/// The files that contain the guard.
pub(crate) fn found(git: &Git) -> Result<Vec<PathBuf>, GuardError> {
    let mut files = Vec::new();
    for file in place::candidates(git) {
        match read(&file) {
            Ok(Old::Text(text)) if block::without(&text).is_some() => files.push(file),
            Ok(Old::Nothing | Old::Text(_) | Old::Other) => {}
            Err(source) => return Err(GuardError::File { path: file, source }),
        }
    }
    Ok(files)
}

/// The file at the hook's path.
enum Old {
    Nothing,
    Text(String),
    /// A program or a symlink: our lines cannot be inserted.
    Other,
}

fn read(file: &Path) -> io::Result<Old> {
    match file.symlink_metadata() {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Old::Nothing);
        }
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => return Ok(Old::Other),
        Ok(_) => {}
    }
    Ok(String::from_utf8(fs::read(file)?).map_or(Old::Other, Old::Text))
}

/// Our hook as a separate file. It runs the original hook kept beside it, if any.
fn alone(place: &HookFile, starts: &Starts<'_>) -> String {
    let kept = kept(&place.file);
    let then = kept.exists().then(|| name_of(&kept));
    block::whole(starts, place.form, then.as_deref())
}

/// Replaced atomically, because git may run the hook meanwhile.
fn write(file: &Path, text: &str, mode: Option<u32>) -> io::Result<()> {
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder)?;
    atomic_write::replace(file, text.as_bytes(), mode.unwrap_or(0o755) & 0o7777, Durability::Synced)
}

/// Whether both paths exist and are the same file or the same symlink.
fn is_one_file(file: &Path, other: &Path) -> bool {
    let place = |path: &Path| path.symlink_metadata().map(|found| (found.dev(), found.ino())).ok();
    place(file).is_some_and(|found| place(other) == Some(found))
}

fn kept(file: &Path) -> PathBuf {
    file.with_file_name(format!("{}{KEPT}", name_of(file)))
}

fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl HookFile {
    /// Whether our lines can be inserted into the existing file.
    fn takes_lines(&self, text: &str) -> bool {
        let runs = fs::metadata(&self.file).is_ok_and(|found| found.permissions().mode() & 0o111 != 0);
        match (self.manager, self.form) {
            // husky sources it, so it need not be executable.
            (Manager::Husky, _) | (_, Form::Lefthook) => true,
            (Manager::Git | Manager::HooksPath | Manager::Lefthook | Manager::PreCommit, Form::Script) => {
                runs && block::is_of_a_shell(text)
            }
        }
    }
}
