//! The guard: a pre-commit hook of one repository that stops a commit of what another agent holds. It respects
//! whatever manages the hooks there, and is taken out to the byte.

pub(crate) mod block;
pub(crate) mod git;
mod place;

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use block::{Form, Starts};
use git::Git;
use store::Durability;

use crate::atomic_write;
pub(crate) use place::{GuardError, Manager, Place, choose};

/// Where a hook is kept that our own stands in the place of.
const KEPT: &str = ".before-relay-mesh";

/// What came of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Installed {
    /// It stands there now.
    Now(Place),
    /// It stood there already, just so.
    Already(Place),
}

/// Installs the guard, or renews it.
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
        // Ours stands in the place of another one, which is kept beside it; or it did, and somebody removed it.
        Old::Nothing => alone(&place, &starts),
        Old::Text(text) if block::is_whole(text) => alone(&place, &starts),
        Old::Text(_) | Old::Other => {
            let kept = kept(&place.file);
            // Without its hook the repository is not left for a moment: it has both names until ours takes the first.
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

/// Takes the guard out of every file in which it may stand. Gives those.
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

/// The files in which the guard stands.
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

/// What lies where a hook is expected.
enum Old {
    Nothing,
    Text(String),
    /// A program, a symlink, a script that is switched off: nothing that lines can be put into.
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

/// Our hook as a file of its own. It runs the one that is kept beside it, where there is one.
fn alone(place: &Place, starts: &Starts<'_>) -> String {
    let kept = kept(&place.file);
    let then = kept.exists().then(|| name_of(&kept));
    block::whole(starts, place.form, then.as_deref())
}

/// Git may run the hook meanwhile: it finds the old one or the new one.
fn write(file: &Path, text: &str, mode: Option<u32>) -> io::Result<()> {
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder)?;
    atomic_write::replace(file, text.as_bytes(), mode.unwrap_or(0o755) & 0o7777, Durability::Synced)
}

/// Whether both names are there and lead to the same file, or are the same link.
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

impl Place {
    /// Whether our lines can stand among those of a file that is there.
    fn takes_lines(&self, text: &str) -> bool {
        let runs = fs::metadata(&self.file).is_ok_and(|found| found.permissions().mode() & 0o111 != 0);
        match (self.manager, self.form) {
            // It is sourced by husky, whether or not it could be run.
            (Manager::Husky, _) | (_, Form::Lefthook) => true,
            (Manager::Git | Manager::HooksPath | Manager::Lefthook | Manager::PreCommit, Form::Script) => {
                runs && block::is_of_a_shell(text)
            }
        }
    }
}
