//! A store in one word that names its kind too: `files:DIR`. The folder is the data folder that `dir`
//! names as well; the other spelling is for when there are stores of more than one kind.

use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// A store of files, by its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilesAt(pub(crate) PathBuf);

/// Why a word names no store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidStore {
    /// One that this version cannot open.
    #[error("`{0}` asks for the NATS backend, which is not part of this version; on one machine it is `files:DIR`")]
    Nats(String),
    /// No kind of store that there is.
    #[error("`{0}` is not a store: write `files:DIR`, as in `files:/srv/mesh`")]
    Unknown(String),
}

impl FromStr for FilesAt {
    type Err = InvalidStore;

    fn from_str(text: &str) -> Result<FilesAt, InvalidStore> {
        match text.split_once(':') {
            Some(("files", folder)) if !folder.is_empty() => Ok(FilesAt(PathBuf::from(folder))),
            Some(("nats" | "tls", rest)) if rest.starts_with("//") => Err(InvalidStore::Nats(text.to_owned())),
            Some(_) | None => Err(InvalidStore::Unknown(text.to_owned())),
        }
    }
}

impl<'de> Deserialize<'de> for FilesAt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FilesAt, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The one folder that a place names by `dir`, by `store` or by both; an error where they differ.
pub(super) fn folder(dir: Option<PathBuf>, store: Option<FilesAt>) -> Result<Option<PathBuf>, Differ> {
    match (dir, store) {
        (Some(dir), Some(FilesAt(store))) if dir != store => Err(Differ),
        (dir, store) => Ok(dir.or(store.map(|FilesAt(folder)| folder))),
    }
}

/// `dir` and `store` of one place name two folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Differ;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_a_folder_of_files() {
        for (text, expected) in [
            ("files:/srv/mesh", "/srv/mesh"),
            ("files:data", "data"),
            ("files:a:b", "a:b"),
            ("files:", "`files:` is not a store: write `files:DIR`, as in `files:/srv/mesh`"),
            ("/srv/mesh", "`/srv/mesh` is not a store: write `files:DIR`, as in `files:/srv/mesh`"),
            ("redis://here", "`redis://here` is not a store: write `files:DIR`, as in `files:/srv/mesh`"),
            (
                "nats://here:4222",
                "`nats://here:4222` asks for the NATS backend, which is not part of this version; on one machine it is \
                 `files:DIR`",
            ),
        ] {
            let outcome = match text.parse::<FilesAt>() {
                Ok(FilesAt(folder)) => folder.display().to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(outcome, expected);
        }
    }

    #[test]
    fn two_folders_from_one_place_are_none() {
        let (dir, store) = (|| Some(PathBuf::from("/d")), |folder: &str| Some(FilesAt(PathBuf::from(folder))));
        assert_eq!(folder(None, None), Ok(None));
        assert_eq!(folder(dir(), None), Ok(dir()));
        assert_eq!(folder(None, store("/d")), Ok(dir()));
        assert_eq!(folder(dir(), store("/d")), Ok(dir()));
        assert_eq!(folder(dir(), store("/s")), Err(Differ));
    }
}
