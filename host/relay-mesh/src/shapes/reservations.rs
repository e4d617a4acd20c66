//! Reservations: `reserve`, `release` and `reservations`.

use std::borrow::Cow;

use mesh::machine::Instant;
use mesh::repository::Repository;
use mesh::reservation::{Conflict, Mode, Reservation};
use mesh::{Listed, Reserved, Written};
use serde::{Serialize, Serializer};

use super::{as_rfc3339, span};
use crate::render::{Show, Table, on_one_line, printable_line};

/// A reservation.
#[derive(Debug, Serialize)]
pub(crate) struct ReservationShape<'a> {
    /// Its id, which a renewal keeps.
    pub(crate) id: Cow<'a, str>,
    /// Who holds it.
    pub(crate) owner: Cow<'a, str>,
    /// The repository: the folder of its first working copy.
    pub(crate) repository: &'a str,
    /// Of which paths, from the repository's top.
    pub(crate) pattern: Cow<'a, str>,
    /// `exclusive` or `shared`.
    pub(crate) mode: &'static str,
    /// What for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Cow<'a, str>>,
    /// When it was granted or last renewed.
    #[serde(serialize_with = "as_rfc3339")]
    pub(crate) granted: Instant,
    /// When it lapses.
    #[serde(serialize_with = "as_rfc3339")]
    pub(crate) expires: Instant,
    /// `held`, `lapsed` or `taken`.
    pub(crate) state: &'static str,
    /// For how many seconds it is still held.
    pub(crate) seconds_left: u64,
    /// Who took it by force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) taken_by: Option<String>,
    /// The same in milliseconds, for people.
    #[serde(skip)]
    left: u64,
}

impl<'a> ReservationShape<'a> {
    pub(crate) fn of(repository: &'a Repository, reservation: &'a Reservation, now: Instant) -> ReservationShape<'a> {
        ReservationShape::as_written(repository.as_str(), Written::of(reservation), now)
    }

    fn as_written(repository: &'a str, reservation: Written<'a>, now: Instant) -> ReservationShape<'a> {
        let left = if reservation.holds(now) { reservation.left(now) } else { 0 };
        ReservationShape {
            id: reservation.id,
            owner: reservation.owner,
            repository,
            pattern: reservation.pattern,
            mode: reservation.mode.as_str(),
            reason: reservation.reason,
            granted: reservation.granted,
            expires: reservation.expires,
            state: match &reservation.taken {
                Some(_) => "taken",
                None if left > 0 => "held",
                None => "lapsed",
            },
            seconds_left: left.div_ceil(1_000),
            taken_by: reservation.taken.map(|taken| taken.by.into()),
            left,
        }
    }

    fn all(repository: &'a Repository, some: &'a [Reservation], now: Instant) -> Vec<ReservationShape<'a>> {
        some.iter().map(|one| ReservationShape::of(repository, one, now)).collect()
    }

    fn because(&self) -> String {
        self.reason.as_ref().map_or_else(String::new, |reason| format!(": {}", printable_line(reason)))
    }
}

/// What is in the way.
#[derive(Debug, Serialize)]
pub(crate) struct ConflictShape<'a> {
    /// What was asked for, from the repository's top.
    pub(crate) asked: String,
    /// A path that both would hold.
    pub(crate) at: String,
    /// Whose reservation it is.
    pub(crate) held: ReservationShape<'a>,
}

impl<'a> ConflictShape<'a> {
    pub(crate) fn of(repository: &'a Repository, conflict: &'a Conflict, now: Instant) -> ConflictShape<'a> {
        ConflictShape {
            asked: conflict.asked.to_string(),
            at: conflict.at.clone(),
            held: ReservationShape::of(repository, &conflict.held, now),
        }
    }

    /// Of one path, who holds it.
    pub(crate) fn brief(&self) -> String {
        let ConflictShape { at, held, .. } = self;
        format!(
            "{} is held by {} through {} ({}, {} left){}",
            printable_line(at),
            held.owner,
            printable_line(&held.pattern),
            held.mode,
            span(held.left),
            held.because()
        )
    }
}

/// `relay-mesh reserve`.
#[derive(Debug, Serialize)]
pub(crate) struct ReservedShape<'a> {
    /// `reserved`, `free` (nothing is in the way of what was checked) or `held` (by somebody else).
    pub(crate) outcome: &'static str,
    /// What is reserved now.
    pub(crate) reservations: Vec<ReservationShape<'a>>,
    /// What is in the way.
    pub(crate) conflicts: Vec<ConflictShape<'a>>,
    /// What was taken by force.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) taken: Vec<ReservationShape<'a>>,
    /// What the owner itself gave up for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) given_up: Vec<ReservationShape<'a>>,
}

impl<'a> ReservedShape<'a> {
    /// What was only looked at.
    pub(crate) fn checked(repository: &'a Repository, conflicts: &'a [Conflict], now: Instant) -> ReservedShape<'a> {
        let of = |conflict| ConflictShape::of(repository, conflict, now);
        let conflicts: Vec<ConflictShape<'a>> = conflicts.iter().map(of).collect();
        ReservedShape {
            outcome: if conflicts.is_empty() { "free" } else { "held" },
            reservations: Vec::new(),
            conflicts,
            taken: Vec::new(),
            given_up: Vec::new(),
        }
    }

    /// What was asked for.
    pub(crate) fn of(repository: &'a Repository, reserved: &'a Reserved, now: Instant) -> ReservedShape<'a> {
        match reserved {
            Reserved::Granted { granted, taken, given_up } => ReservedShape {
                outcome: "reserved",
                reservations: ReservationShape::all(repository, granted, now),
                conflicts: Vec::new(),
                taken: ReservationShape::all(repository, taken, now),
                given_up: ReservationShape::all(repository, given_up, now),
            },
            Reserved::Held(conflicts) => ReservedShape::checked(repository, conflicts, now),
        }
    }
}

impl Show for ReservedShape<'_> {
    fn text(&self) -> String {
        let taken = self.taken.iter().map(|one| format!("took {} from {}", printable_line(&one.pattern), one.owner));
        let given_up = self.given_up.iter().map(|one| format!("gave up {}", printable_line(&one.pattern)));
        let reserved = self.reservations.iter().map(|one| {
            let shared = if one.mode == Mode::Shared.as_str() { ", shared" } else { "" };
            format!("reserved {} for {}{shared}", printable_line(&one.pattern), span(one.left))
        });
        let conflicts = self.conflicts.iter().map(|conflict| {
            let ConflictShape { asked, at, held } = conflict;
            format!(
                "{} is held by {} through {} ({}, {} left, both would hold {}){}",
                printable_line(asked),
                held.owner,
                printable_line(&held.pattern),
                held.mode,
                span(held.left),
                printable_line(at),
                held.because()
            )
        });
        let lines: Vec<String> = taken.chain(given_up).chain(reserved).chain(conflicts).collect();
        if lines.is_empty() { "free: nobody holds any of it".to_owned() } else { lines.join("\n") }
    }
}

/// `relay-mesh release`.
#[derive(Debug, Serialize)]
pub(crate) struct ReleasedShape<'a> {
    /// What was reserved and is no more.
    pub(crate) released: Vec<ReservationShape<'a>>,
}

impl<'a> ReleasedShape<'a> {
    pub(crate) fn of(repository: &'a Repository, released: &'a [Reservation], now: Instant) -> ReleasedShape<'a> {
        ReleasedShape { released: ReservationShape::all(repository, released, now) }
    }
}

impl Show for ReleasedShape<'_> {
    fn text(&self) -> String {
        let lines = self.released.iter().map(|one| match one.state {
            "lapsed" => format!("released {}, which had lapsed", printable_line(&one.pattern)),
            _ => format!("released {}", printable_line(&one.pattern)),
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// `relay-mesh reservations`.
#[derive(Debug, Serialize)]
pub(crate) struct ReservationsShape<'a> {
    /// By repository, and in the order in which they were first granted.
    pub(crate) reservations: ListedShapes<'a>,
}

impl Show for ReservationsShape<'_> {
    fn text(&self) -> String {
        if self.reservations.is_empty() { String::new() } else { reservations_table(&self.reservations) }
    }
}

/// What was listed, a [`ReservationShape`] each: they come by the thousand, so that each is made when it is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedShapes<'a> {
    listed: &'a [Listed<'a>],
    now: Instant,
}

impl<'a> ListedShapes<'a> {
    pub(crate) fn of(listed: &'a [Listed<'a>], now: Instant) -> ListedShapes<'a> {
        ListedShapes { listed, now }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    fn len(&self) -> usize {
        self.listed.iter().map(|listed| listed.reservations.len()).sum()
    }

    fn iter(&self) -> impl Iterator<Item = ReservationShape<'a>> {
        let now = self.now;
        let of = move |listed: &'a Listed<'a>| {
            let each = listed.reservations.iter().cloned();
            each.map(move |one| ReservationShape::as_written(&listed.repository, one, now))
        };
        self.listed.iter().flat_map(of)
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
        let left = match (&one.taken_by, one.state) {
            (Some(by), _) => &format!("taken by {by}"),
            (None, "held") => &span(one.left),
            (None, _) => "lapsed",
        };
        table.row([
            &on_one_line(&one.pattern),
            &one.owner,
            one.mode,
            left,
            &on_one_line(one.repository),
            &on_one_line(one.reason.as_deref().unwrap_or_default()),
        ]);
    }
    table.text()
}
