//! Reservations as clients see them, and the working copy that a caller means.

use std::path::{Path, PathBuf};

use mesh::machine::Instant;
use mesh::repository::Checkout;
use mesh::reservation::Conflict;
use mesh::{Written, timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::Visit;
use crate::refusal::Refusal;
use crate::twins::quoted;

/// A reservation.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReservationTwin {
    owner: String,
    /// Paths from the top of the repository.
    pattern: String,
    /// exclusive or shared
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    expires: String,
    seconds_left: u64,
}

impl ReservationTwin {
    pub(super) fn of(reservation: &Written<'_>, now: Instant) -> ReservationTwin {
        ReservationTwin {
            owner: reservation.owner.to_string(),
            pattern: reservation.pattern.to_string(),
            mode: reservation.mode.as_str(),
            reason: reservation.reason.as_deref().map(str::to_owned),
            expires: timestamp(reservation.expires),
            seconds_left: reservation.left(now).div_ceil(1_000),
        }
    }

    pub(super) fn text(&self) -> String {
        let reason = self.reason.as_ref().map_or_else(String::new, |reason| format!(", for {}", quoted(reason)));
        let ReservationTwin { owner, pattern, mode, seconds_left, .. } = self;
        format!("{} is held by {owner} ({mode}, {seconds_left} s left{reason})", quoted(pattern))
    }
}

/// What is in the way.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ConflictTwin {
    /// What you asked for.
    asked: String,
    /// A path that both would hold.
    at: String,
    held: ReservationTwin,
}

impl ConflictTwin {
    pub(super) fn of(conflict: &Conflict, now: Instant) -> ConflictTwin {
        ConflictTwin {
            asked: conflict.asked.to_string(),
            at: conflict.at.clone(),
            held: ReservationTwin::of(&Written::of(&conflict.held), now),
        }
    }

    pub(super) fn text(&self) -> String {
        format!("{}; both would hold {}", self.held.text(), quoted(&self.at))
    }
}

/// The working copy that a caller means, and the folder at which its patterns start.
pub(super) fn meant(visit: &Visit, repo: Option<&str>) -> Result<(Checkout, PathBuf), Refusal> {
    let folder = match (repo, visit.caller.workdir()) {
        (Some(named), Some(workdir)) => Path::new(workdir).join(named),
        (Some(named), None) => PathBuf::from(named),
        (None, Some(workdir)) => PathBuf::from(workdir),
        (None, None) => PathBuf::new(),
    };
    if !folder.is_absolute() {
        return Err(Refusal::new("it is not known in which folder you work", "Pass its absolute path in repo."));
    }
    Ok((visit.mesh.checkout(&folder)?, folder))
}
