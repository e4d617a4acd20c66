//! Reservations: `reserve`, `release` and `reservations`.

use mesh::ports::machine::Instant;
use mesh::reservations::repository::Repository;
use mesh::reservations::{Conflict, Mode, Reservation};
use mesh::{RepositoryReservations, Reserved};
use serde::{Serialize, Serializer};
use view::{ConflictView, ReservationDetail, ReservationView, ReservedView};

use super::span;
use crate::render::{Show, Table, printable_line};
use crate::screen::{Column, Screen};

/// The time left of a reservation.
fn left(reservation: &ReservationView) -> String {
    span(reservation.seconds_left * 1_000)
}

fn because(reservation: &ReservationView) -> String {
    reservation.reason.as_ref().map_or_else(String::new, |reason| format!(": {}", printable_line(reason)))
}

/// A conflict, for a line of the guard.
#[derive(Debug)]
pub(crate) struct ConflictShape(ConflictView<ReservationDetail>);

impl ConflictShape {
    pub(crate) fn of(repository: &Repository, conflict: &Conflict, now: Instant) -> ConflictShape {
        ConflictShape(ConflictView::of(conflict, |one| ReservationDetail::of(repository.as_str(), one, now)))
    }

    /// The holder of a path, in one clause.
    pub(crate) fn brief(&self) -> String {
        let ConflictView { at, held, .. } = &self.0;
        let held = &held.reservation;
        format!(
            "{} is held by {} through {} ({}, {} left){}",
            printable_line(at),
            held.owner,
            printable_line(&held.pattern),
            held.mode,
            left(held),
            because(held)
        )
    }
}

/// `relay-mesh reserve`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct ReservedShape(ReservedView<ReservationDetail>);

impl ReservedShape {
    /// The result of `--check`.
    pub(crate) fn checked(repository: &Repository, conflicts: &[Conflict], now: Instant) -> ReservedShape {
        let detail = |one: &Reservation| ReservationDetail::of(repository.as_str(), one, now);
        ReservedShape(ReservedView::checked(conflicts, detail))
    }

    /// The result of a request.
    pub(crate) fn of(repository: &Repository, reserved: &Reserved, now: Instant) -> ReservedShape {
        ReservedShape(ReservedView::of(reserved, |one| ReservationDetail::of(repository.as_str(), one, now)))
    }
}

impl Show for ReservedShape {
    fn text(&self) -> String {
        let ReservedView { outcome: _, reservations, conflicts, taken, given_up } = &self.0;
        let pattern = |one: &ReservationDetail| printable_line(&one.reservation.pattern);
        let taken = taken.iter().map(|one| format!("took {} from {}", pattern(one), one.reservation.owner));
        let given_up = given_up.iter().map(|one| format!("gave up {}", pattern(one)));
        let reserved = reservations.iter().map(|one| {
            let shared = if one.reservation.mode == Mode::Shared.as_str() { ", shared" } else { "" };
            format!("reserved {} for {}{shared}", pattern(one), left(&one.reservation))
        });
        let conflicts = conflicts.iter().map(|conflict| {
            let ConflictView { asked, at, held } = conflict;
            format!(
                "{} is held by {} through {} ({}, {} left, both would hold {}){}",
                printable_line(asked),
                held.reservation.owner,
                pattern(held),
                held.reservation.mode,
                left(&held.reservation),
                printable_line(at),
                because(&held.reservation)
            )
        });
        let lines: Vec<String> = taken.chain(given_up).chain(reserved).chain(conflicts).collect();
        if lines.is_empty() { "free: no agent holds any of it".to_owned() } else { lines.join("\n") }
    }
}

/// `relay-mesh release`.
#[derive(Debug, Serialize)]
pub(crate) struct ReleasedShape {
    /// The released reservations.
    released: Vec<ReservationDetail>,
}

impl ReleasedShape {
    pub(crate) fn of(repository: &Repository, released: &[Reservation], now: Instant) -> ReleasedShape {
        let detail = |one| ReservationDetail::of(repository.as_str(), one, now);
        ReleasedShape { released: released.iter().map(detail).collect() }
    }
}

impl Show for ReleasedShape {
    fn text(&self) -> String {
        let lines = self.released.iter().map(|one| {
            let pattern = printable_line(&one.reservation.pattern);
            match one.status {
                "lapsed" => format!("released {pattern}, which had lapsed"),
                _ => format!("released {pattern}"),
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// `relay-mesh reservations`.
#[derive(Debug, Serialize)]
pub(crate) struct ReservationsShape<'a> {
    /// By repository, in the order in which they were first granted.
    pub(crate) reservations: ListedShapes<'a>,
}

impl Show for ReservationsShape<'_> {
    fn text(&self) -> String {
        if self.reservations.is_empty() { String::new() } else { reservations_table(&self.reservations) }
    }

    fn text_on(&self, screen: &Screen) -> String {
        if self.reservations.is_empty() { String::new() } else { reservations_on(screen, &self.reservations) }
    }
}

/// The table as a terminal shows it.
pub(crate) fn reservations_on(screen: &Screen, reservations: &ListedShapes<'_>) -> String {
    const HEAD: [Column; 6] = [
        Column::cut("PATTERN", 10, 0),
        Column::cut("HELD BY", 7, 0),
        Column::whole("MODE", 3),
        Column::cut("LEFT", 6, 1),
        Column::cut("REPOSITORY", 10, 4),
        Column::cut("REASON", 10, 2),
    ];
    let rows: Vec<Vec<String>> = reservations.iter().map(|one| row(&one).to_vec()).collect();
    screen.table(&HEAD, &rows)
}

/// Reservations whose views are made only while they are serialised: there may be thousands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedShapes<'a> {
    listed: &'a [RepositoryReservations],
    now: Instant,
}

impl<'a> ListedShapes<'a> {
    pub(crate) fn of(listed: &'a [RepositoryReservations], now: Instant) -> ListedShapes<'a> {
        ListedShapes { listed, now }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    fn len(&self) -> usize {
        self.listed.iter().map(|listed| listed.reservations.len()).sum()
    }

    fn iter(&self) -> impl Iterator<Item = ReservationDetail> {
        let now = self.now;
        self.listed.iter().flat_map(move |listed| {
            listed.reservations.iter().map(move |one| ReservationDetail::of(listed.repository.as_str(), one, now))
        })
    }
}

impl Serialize for ListedShapes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// `relay-mesh reservations mode`.
#[derive(Debug, Serialize)]
pub(crate) struct ModeShape {
    /// `advise` or `enforce`.
    pub(crate) mode: &'static str,
    /// `command line`, `environment`, the path of a file, or `default`.
    pub(crate) origin: String,
}

impl Show for ModeShape {
    fn text(&self) -> String {
        format!("{} ({})", self.mode, self.origin)
    }
}

/// The table that `reservations` and `status` show.
pub(crate) fn reservations_table(reservations: &ListedShapes<'_>) -> String {
    let head = ["PATTERN", "HELD BY", "MODE", "LEFT", "REPOSITORY", "REASON"];
    let mut table = Table::new(&head, reservations.len());
    for one in reservations.iter() {
        table.row(row(&one).each_ref().map(String::as_str));
    }
    table.text()
}

fn row(one: &ReservationDetail) -> [String; 6] {
    let reservation = &one.reservation;
    let left = match (&one.taken_by, one.status) {
        (Some(by), _) => format!("taken by {by}"),
        (None, "held") => left(reservation),
        (None, _) => "lapsed".to_owned(),
    };
    [
        printable_line(&reservation.pattern),
        reservation.owner.clone(),
        reservation.mode.to_owned(),
        left,
        printable_line(&one.repository),
        printable_line(reservation.reason.as_deref().unwrap_or_default()),
    ]
}
