//! Repositories, and how a path or a pattern that a user typed maps to one.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::core::Core;
use crate::reservations::glob::{Flaw, Glob, InvalidGlob, Literally};

/// The characters that make a path a pattern.
const PATTERN: [char; 6] = ['*', '?', '[', '{', '}', '\\'];

/// The unit that reservations belong to: all working copies of one repository share it. A folder without version
/// control is its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Repository(String);

impl Repository {
    /// A repository by its identity: the path that its working copies share, or its name across machines.
    pub fn named(identity: &str) -> Repository {
        Repository(identity.to_owned())
    }

    /// Its identity, also for display.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A working copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// The repository that it belongs to.
    pub repository: Repository,
    /// The name that every machine with a clone of it uses: the name in the project's settings, or the remote that it
    /// is fetched from. None if there is neither.
    pub everywhere: Option<String>,
    /// Its top folder, with every symlink followed.
    pub top: PathBuf,
}

/// A resolved path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The path without symlinks, `.` and `..`.
    pub path: PathBuf,
    /// What is there.
    pub found: PathKind,
}

/// What is at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing yet.
    Nothing,
    Folder,
    /// Anything else.
    File,
}

/// Why a path or pattern names nothing in the repository.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The text is not a pattern.
    #[error(transparent)]
    Glob(#[from] InvalidGlob),
    /// It leaves the repository: through `..`, through a symlink, or because it is elsewhere.
    #[error("`{path}` lies outside of the repository `{}`", top.display())]
    Outside {
        /// The path that was asked for.
        path: String,
        /// The repository's top folder.
        top: PathBuf,
    },
    /// It is inside a nested repository, such as a submodule.
    #[error("`{path}` lies in a repository of its own, `{}`", top.display())]
    OfItsOwn {
        /// The path that was asked for.
        path: String,
        /// The nested repository's top folder.
        top: PathBuf,
    },
    /// The file system could not resolve it.
    #[error("`{path}` cannot be looked at")]
    Unseen {
        /// The path that was asked for.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

pub(crate) fn checkout(core: &Core, folder: &Path) -> Result<Checkout, PlaceError> {
    let unseen = |source| PlaceError::Unseen { path: folder.display().to_string(), source };
    known_everywhere(core, folder).map_err(unseen)
}

/// `checkout`, with the error of the file system.
pub(crate) fn known_everywhere(core: &Core, folder: &Path) -> io::Result<Checkout> {
    let mut checkout = core.machine.checkout(folder)?;
    checkout.repository = core.topology.repository_of(&checkout, core.machine.as_ref());
    Ok(checkout)
}

/// The working copy that contains a path. For a new path, the folders above it may be new too.
pub(crate) fn known_around(core: &Core, path: &Path) -> Option<Checkout> {
    path.ancestors().find_map(|folder| known_everywhere(core, folder).ok())
}

pub(crate) fn pattern(core: &Core, checkout: &Checkout, folder: &Path, typed: &str) -> Result<Glob, PlaceError> {
    let is_there =
        |path: &str| core.machine.resolve(&folder.join(path)).is_ok_and(|resolved| resolved.found != PathKind::Nothing);
    let (literal, rest) = split(typed, is_there);
    // Parse errors quote the text as it was typed, so it is parsed before the prefix is added.
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
    let everything = resolved.found == PathKind::Folder || within.is_empty() || literal.ends_with('/');
    Ok(match rest {
        "" if everything => Glob::of_path(within, Literally::WhatIsIn)?,
        "" => Glob::of_path(within, Literally::ThePath)?,
        rest if within.is_empty() => rest.parse()?,
        rest => format!("{}/{rest}", Glob::of_path(within, Literally::ThePath)?).parse()?,
    })
}

/// The working copy that contains a path, if it is not `checkout`.
fn nearest(core: &Core, checkout: &Checkout, path: &Path) -> io::Result<Option<Checkout>> {
    if !path.starts_with(&checkout.top) {
        return Ok(known_around(core, path));
    }
    let within = path.ancestors().take_while(|folder| *folder != checkout.top);
    for folder in within {
        if core.machine.resolve(&folder.join(".git")).is_ok_and(|git| git.found != PathKind::Nothing) {
            let nearest = known_everywhere(core, folder)?;
            return Ok((nearest.top != checkout.top).then_some(nearest));
        }
    }
    Ok(None)
}

/// Splits a pattern into the literal path at its beginning and the rest. The rest starts at the first component that
/// has a special character and does not exist literally.
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
