//! Reservations, and the result of a request for one.

use mesh::Reserved;
use mesh::ports::machine::Instant;
use mesh::reservations::{Conflict, Reservation};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

use crate::Timestamp;

// A reservation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ReservationView {
    pub owner: String,
    /// Paths from the top of the repository.
    pub pattern: String,
    /// exclusive or shared
    pub mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub expires: Timestamp,
    // 0 once it has lapsed or was taken.
    pub seconds_left: u64,
}

impl ReservationView {
    /// A reservation at a time.
    pub fn of(reservation: &Reservation, now: Instant) -> ReservationView {
        let left = if reservation.holds(now) { reservation.left(now) } else { 0 };
        ReservationView {
            owner: reservation.owner.to_string(),
            pattern: reservation.pattern.to_string(),
            mode: reservation.mode.as_str(),
            reason: reservation.reason.as_deref().map(str::to_owned),
            expires: Timestamp(reservation.expires),
            seconds_left: left.div_ceil(1_000),
        }
    }
}

// A reservation with what scripts ask for.
#[derive(Clone, Debug, Serialize)]
pub struct ReservationDetail {
    // A renewal keeps it.
    pub id: String,
    #[serde(flatten)]
    pub reservation: ReservationView,
    // The folder of the repository's first working copy.
    pub repository: String,
    // When it was granted or last renewed.
    pub granted: Timestamp,
    // `held`, `lapsed` or `taken`.
    pub status: &'static str,
    // Who took it by force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_by: Option<String>,
}

impl ReservationDetail {
    /// A reservation of a repository at a time.
    pub fn of(repository: &str, one: &Reservation, now: Instant) -> ReservationDetail {
        let reservation = ReservationView::of(one, now);
        let status = match &one.taken {
            Some(_) => "taken",
            None if reservation.seconds_left > 0 => "held",
            None => "lapsed",
        };
        ReservationDetail {
            id: one.id.to_string(),
            reservation,
            repository: repository.to_owned(),
            granted: Timestamp(one.granted),
            status,
            taken_by: one.taken.as_ref().map(|taken| taken.by.to_string()),
        }
    }
}

// What is in the way of a reservation. `R` is a `ReservationView` or a `ReservationDetail`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ConflictView<R> {
    /// What you asked for.
    pub asked: String,
    /// A path that both would hold.
    pub at: String,
    pub held: R,
}

impl<R> ConflictView<R> {
    /// A conflict, with the reservation that is in the way as `view` shows it.
    pub fn of(conflict: &Conflict, view: impl Fn(&Reservation) -> R) -> ConflictView<R> {
        ConflictView { asked: conflict.asked.to_string(), at: conflict.at.clone(), held: view(&conflict.held) }
    }
}

// The result of a request for a reservation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ReservedView<R> {
    pub outcome: ReserveOutcomeView,
    pub reservations: Vec<R>,
    pub conflicts: Vec<ConflictView<R>>,
    /// What was taken from others by force.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<R>,
    // What the owner itself gave up for it. No tool asks for that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub given_up: Vec<R>,
}

// `free`: a check found nothing in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ReserveOutcomeView {
    Reserved,
    Free,
    Held,
}

impl ReserveOutcomeView {
    /// The word that JSON and text use.
    pub fn as_str(self) -> &'static str {
        match self {
            ReserveOutcomeView::Reserved => "reserved",
            ReserveOutcomeView::Free => "free",
            ReserveOutcomeView::Held => "held",
        }
    }
}

impl<R> ReservedView<R> {
    /// The result of a request, with each reservation as `view` shows it.
    pub fn of(reserved: &Reserved, view: impl Fn(&Reservation) -> R) -> ReservedView<R> {
        match reserved {
            Reserved::Granted { granted, taken, given_up } => {
                let all = |some: &[Reservation]| -> Vec<R> { some.iter().map(&view).collect() };
                ReservedView {
                    outcome: ReserveOutcomeView::Reserved,
                    reservations: all(granted),
                    conflicts: Vec::new(),
                    taken: all(taken),
                    given_up: all(given_up),
                }
            }
            Reserved::Held(conflicts) => ReservedView::checked(conflicts, view),
        }
    }

    /// The result of a check, which reserves nothing.
    pub fn checked(conflicts: &[Conflict], view: impl Fn(&Reservation) -> R) -> ReservedView<R> {
        ReservedView {
            outcome: if conflicts.is_empty() { ReserveOutcomeView::Free } else { ReserveOutcomeView::Held },
            reservations: Vec::new(),
            conflicts: conflicts.iter().map(|one| ConflictView::of(one, &view)).collect(),
            taken: Vec::new(),
            given_up: Vec::new(),
        }
    }
}
