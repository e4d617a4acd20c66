//! Errors about reservations.

use mesh::reservations::repository::PlaceError;
use mesh::{ReleaseError, ReserveError};

use super::WHO_ARE_YOU;
use crate::errors::Explain;
use crate::exit::Exit;

impl Explain for PlaceError {
    fn exit(&self) -> Exit {
        match self {
            PlaceError::Glob(_) | PlaceError::Outside { .. } | PlaceError::OfItsOwn { .. } => Exit::Usage,
            PlaceError::Unseen { .. } => Exit::NotFound,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            PlaceError::Glob(_) => {
                Some("`relay-mesh help reserve` shows how patterns are written; quote them for the shell".to_owned())
            }
            PlaceError::Outside { .. } => Some("name another repository by `--repo DIR`".to_owned()),
            PlaceError::OfItsOwn { top, .. } => {
                Some(format!("name that one by `--repo {}`; patterns then start there", top.display()))
            }
            PlaceError::Unseen { .. } => {
                Some("check that it is there, and that it and its symlinks can be read".to_owned())
            }
        }
    }
}

impl Explain for ReserveError {
    fn exit(&self) -> Exit {
        match self {
            ReserveError::NotRegistered => Exit::Refused,
            ReserveError::Nothing | ReserveError::ReasonTooLong(_) => Exit::Usage,
            ReserveError::Full => Exit::Failure,
            ReserveError::Store(_) => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ReserveError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
            ReserveError::Nothing => None,
            ReserveError::ReasonTooLong(_) => Some("say it shorter; details belong into a message".to_owned()),
            ReserveError::Full => {
                Some("reserve by patterns, as in `src/parser/**`, and release what is not needed".to_owned())
            }
            ReserveError::Store(error) => error.hint(),
        }
    }
}

impl Explain for ReleaseError {
    fn exit(&self) -> Exit {
        match self {
            ReleaseError::NotRegistered | ReleaseError::NotYours { .. } => Exit::Refused,
            ReleaseError::NotReserved(_) => Exit::NotFound,
            ReleaseError::Store(_) => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ReleaseError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
            ReleaseError::NotYours { owner, .. } => Some(format!("ask for it: `relay-mesh send {owner} TEXT`")),
            ReleaseError::NotReserved(_) => {
                Some("run `relay-mesh reservations --repo .` to see what is reserved".to_owned())
            }
            ReleaseError::Store(error) => error.hint(),
        }
    }
}
