//! Repositories, and what a path or a pattern that somebody typed means in one.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::core::Core;
use crate::reservations::glob::{Flaw, Glob, InvalidGlob, Literally};

/// The characters from which on a path is a pattern.
const PATTERN: [char; 6] = ['*', '?', '[', '{', '}', '\\'];

/// What reservations are kept for: all working copies of one repository share it, and a folder without
/// version control is one of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Repository(String);

impl Repository {
    /// A repository by its identity: the path of what its working copies share, or what machines call it.
    pub fn named(identity: &str) -> Repository {
        Repository(identity.to_owned())
    }

    /// Its identity, for people too.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A working copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// Of which repository.
    pub repository: Repository,
    /// What every machine with a clone of it calls it: the name in the project's settings, or where it is
    /// fetched from. None where nothing says so.
    pub everywhere: Option<String>,
    /// Its uppermost folder, with every symlink followed.
    pub top: PathBuf,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The path without symlinks, `.` and `..`.
    pub path: PathBuf,
    /// What lies there.
    pub found: Found,
}

/// What lies at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing yet.
    Nothing,
    /// A folder.
    Folder,
    /// Anything else.
    File,
}

/// Why nothing in a repository is meant.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The text is no pattern.
    #[error(transparent)]
    Glob(#[from] InvalidGlob),
    /// It leads out of the repository, by `..`, by a symlink, or because it is somewhere else.
    #[error("`{path}` lies outside of the repository `{}`", top.display())]
    Outside {
        /// What was asked for.
        path: String,
        /// The uppermost folder.
        top: PathBuf,
    },
    /// It leads into a repository that lies in this one, such as a submodule.
    #[error("`{path}` lies in a repository of its own, `{}`", top.display())]
    OfItsOwn {
        /// What was asked for.
        path: String,
        /// That one's uppermost folder.
        top: PathBuf,
    },
    /// The file system does not say.
    #[error("`{path}` cannot be looked at")]
    Unseen {
        /// What was asked for.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

pub(crate) fn checkout(core: &Core, folder: &Path) -> Result<Checkout, PlaceError> {
    let unseen = |source| PlaceError::Unseen { path: folder.display().to_string(), source };
    known_everywhere(core, folder).map_err(unseen)
}

/// The same, with the file system's own words where it does not say.
pub(crate) fn known_everywhere(core: &Core, folder: &Path) -> io::Result<Checkout> {
    let mut checkout = core.machine.checkout(folder)?;
    checkout.repository = core.topology.repository_of(&checkout, core.machine.as_ref());
    Ok(checkout)
}

/// The working copy around a path. The folders of what is new may be new too.
pub(crate) fn known_around(core: &Core, path: &Path) -> Option<Checkout> {
    path.ancestors().find_map(|folder| known_everywhere(core, folder).ok())
}

pub(crate) fn pattern(core: &Core, checkout: &Checkout, folder: &Path, typed: &str) -> Result<Glob, PlaceError> {
    let is_there =
        |path: &str| core.machine.resolve(&folder.join(path)).is_ok_and(|resolved| resolved.found != Found::Nothing);
    let (literal, rest) = split(typed, is_there);
    // What is wrong is told in the words that were typed, before anything is put in front of them.
    let parsed = match literal.contains(PATTERN) {
        true if rest.is_empty() => None,
        true => Some(rest.parse::<Glob>()),
        false => Some(typed.parse::<Glob>()),
    };
    match parsed {
        Some(Err(error)) if !matches!(error.flaw, Flaw::Absolute | Flaw::Nowhere) => return Err(error.into()),
        Some(_) | None => {}
    }
    let unseen = |source| PlaceError::Unseen { path: typed.to_owned(), source };
    let resolved = core.machine.resolve(&folder.join(literal)).map_err(unseen)?;
    let nearest = self::nearest(core, checkout, &resolved.path).map_err(unseen)?;
    let top = match &nearest {
        Some(nearest) if nearest.repository == checkout.repository => &nearest.top,
        Some(nearest) if nearest.top.starts_with(&checkout.top) => {
            return Err(PlaceError::OfItsOwn { path: typed.to_owned(), top: nearest.top.clone() });
        }
        Some(_) | None => &checkout.top,
    };
    let outside = || PlaceError::Outside { path: typed.to_owned(), top: checkout.top.clone() };
    let within = resolved.path.strip_prefix(top).map_err(|_| outside())?;
    let within = within.to_str().ok_or_else(|| unseen(io::ErrorKind::InvalidFilename.into()))?;
    let everything = resolved.found == Found::Folder || within.is_empty() || literal.ends_with('/');
    Ok(match rest {
        "" if everything => Glob::of_path(within, Literally::WhatIsIn)?,
        "" => Glob::of_path(within, Literally::ThePath)?,
        rest if within.is_empty() => rest.parse()?,
        rest => format!("{}/{rest}", Glob::of_path(within, Literally::ThePath)?).parse()?,
    })
}

/// The working copy that a path lies in, where it is another one than this.
fn nearest(core: &Core, checkout: &Checkout, path: &Path) -> io::Result<Option<Checkout>> {
    if !path.starts_with(&checkout.top) {
        return Ok(known_around(core, path));
    }
    let within = path.ancestors().take_while(|folder| *folder != checkout.top);
    for folder in within {
        if core.machine.resolve(&folder.join(".git")).is_ok_and(|git| git.found != Found::Nothing) {
            let nearest = known_everywhere(core, folder)?;
            return Ok((nearest.top != checkout.top).then_some(nearest));
        }
    }
    Ok(None)
}

/// The path at the beginning of a pattern, and what follows from the first component on that is more than a name:
/// that has a special character in it and is not there as it is written.
fn split(typed: &str, is_there: impl Fn(&str) -> bool) -> (&str, &str) {
    let mut end = 0;
    for component in typed.split_inclusive('/') {
        let behind = end + component.len();
        if component.contains(PATTERN) && !is_there(&typed[..behind]) {
            break;
        }
        end = behind;
    }
    typed.split_at(end)
}
