//! The reservations of one repository, and every decision about them. Pure: time is passed in.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::reservations::edits::AUTO_REASON;
use crate::reservations::glob::Glob;
use crate::reservations::repository::Repository;
use crate::reservations::{Conflict, Mode, Reservation, Takeover, Ttl};
use crate::sessions::SessionRef;

/// How long ended reservations are still shown by `reservations --expired`, in milliseconds.
const REMEMBERED: u64 = 3_600_000;
/// Maximum number of reservations of a repository. All of them are stored in one value.
pub(super) const MOST: usize = 5_000;

/// All reservations of a repository, stored as one value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ledger {
    /// Stored here because the key may contain only its digest.
    pub(crate) repository: Repository,
    /// In the order in which they were first granted.
    pub(crate) reservations: Vec<Reservation>,
}

/// A request for reservations.
#[derive(Clone, Debug)]
pub(super) struct ReservationRequest {
    pub(super) owner: AgentName,
    pub(super) session: Option<SessionRef>,
    /// The patterns, each with the id for a new reservation of it.
    pub(super) patterns: Vec<(MessageId, Glob)>,
    pub(super) mode: Mode,
    pub(super) ttl: Ttl,
    pub(super) reason: Option<String>,
    pub(super) others: Others,
    pub(super) own: Own,
}

/// What happens to other agents' reservations that conflict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Others {
    /// They stay, and nothing is granted.
    #[default]
    Respect,
    /// They are taken by force.
    Take,
}

/// What happens to the asker's own reservations that overlap the new ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Own {
    /// They stay.
    #[default]
    Keep,
    /// They are given up: the new reservations replace them, usually by narrower ones.
    GiveUp,
}

/// The decision. Either all patterns are granted, or none.
#[derive(Clone, Debug)]
pub(super) enum RequestOutcome {
    Granted { granted: Vec<Reservation>, taken: Vec<Reservation>, given_up: Vec<Reservation> },
    Held(Vec<Conflict>),
    Full,
}

/// A path that was reserved automatically for the agent that writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByTheWay {
    pub(crate) pattern: Glob,
    /// Whether it was newly reserved rather than renewed.
    pub(crate) is_new: bool,
}

impl Ledger {
    pub(super) fn new(repository: Repository) -> Ledger {
        Ledger { repository, reservations: Vec::new() }
    }

    /// The reservations that conflict with these patterns, for this asker or for any.
    pub(super) fn conflicts(
        &self,
        asker: Option<&AgentName>,
        patterns: &[Glob],
        mode: Mode,
        now: Instant,
    ) -> Vec<Conflict> {
        let in_the_way = |held: &&Reservation| {
            held.holds(now) && asker.is_none_or(|asker| held.owner != *asker) && mode.excludes(held.mode)
        };
        let mut conflicts = Vec::new();
        for held in self.reservations.iter().filter(in_the_way) {
            let met = patterns.iter().filter_map(|asked| Some((asked, asked.overlap(&held.pattern)?)));
            conflicts.extend(met.map(|(asked, at)| Conflict { asked: asked.clone(), held: held.clone(), at }));
        }
        conflicts
    }

    /// The exclusive reservations of agents other than `editors` that contain these paths.
    pub(crate) fn exclusive(&self, editors: &BTreeSet<AgentName>, paths: &[Glob], now: Instant) -> Vec<Conflict> {
        // A shared reservation conflicts with exclusive ones only.
        let mut conflicts = self.conflicts(None, paths, Mode::Shared, now);
        conflicts.retain(|conflict| !editors.contains(&conflict.held.owner));
        conflicts
    }

    /// Reserves paths automatically for an agent that is about to write them. A path that any reservation covers is
    /// left alone: another agent's excludes it, the agent's own is enough. Only earlier automatic reservations are
    /// renewed.
    pub(crate) fn reserve_in_passing(
        &mut self,
        owner: &AgentName,
        session: Option<&SessionRef>,
        paths: &[(MessageId, Glob)],
        ttl: Ttl,
        now: Instant,
    ) -> Vec<ByTheWay> {
        self.forget(now);
        let mut reserved = Vec::new();
        for (id, path) in paths {
            let is_renewed = |held: &Reservation| {
                held.owner == *owner && held.pattern == *path && held.reason.as_deref() == Some(AUTO_REASON)
            };
            let meets = |held: &&Reservation| held.holds(now) && held.pattern.overlap(path).is_some();
            let mut met = self.reservations.iter().filter(meets);
            let is_new = met.clone().next().is_none();
            if !met.all(is_renewed) || (is_new && self.reservations.len() >= MOST) {
                continue;
            }
            let asked = ReservationRequest {
                owner: owner.clone(),
                session: session.cloned(),
                patterns: Vec::new(),
                mode: Mode::Exclusive,
                ttl,
                reason: Some(AUTO_REASON.to_owned()),
                others: Others::Respect,
                own: Own::Keep,
            };
            self.put(&asked, *id, path, now);
            reserved.push(ByTheWay { pattern: path.clone(), is_new });
        }
        reserved
    }

    /// Grants the request, or returns the conflicts.
    pub(super) fn grant(&mut self, asked: &ReservationRequest, now: Instant) -> RequestOutcome {
        self.forget(now);
        let patterns: Vec<Glob> = asked.patterns.iter().map(|(_, pattern)| pattern.clone()).collect();
        let conflicts = self.conflicts(Some(&asked.owner), &patterns, asked.mode, now);
        let taken = match asked.others {
            Others::Respect if !conflicts.is_empty() => return RequestOutcome::Held(conflicts),
            Others::Respect => Vec::new(),
            Others::Take => self.take(&asked.owner, &conflicts, now),
        };
        let given_up = match asked.own {
            Own::Keep => Vec::new(),
            Own::GiveUp => self.give_up(&asked.owner, &patterns, now),
        };
        let granted: Vec<Reservation> =
            asked.patterns.iter().map(|(id, pattern)| self.put(asked, *id, pattern, now)).collect();
        if self.reservations.len() > MOST {
            RequestOutcome::Full
        } else {
            RequestOutcome::Granted { granted, taken, given_up }
        }
    }

    /// Adds a reservation, or renews its owner's reservation of the same pattern. Lapsed reservations that conflict
    /// with it are ended for good: otherwise both would hold if the clock went back.
    fn put(&mut self, asked: &ReservationRequest, id: MessageId, pattern: &Glob, now: Instant) -> Reservation {
        for old in &mut self.reservations {
            if old.owner != asked.owner
                && old.taken.is_none()
                && now >= old.expires
                && asked.mode.excludes(old.mode)
                && old.pattern.overlap(pattern).is_some()
            {
                old.taken = Some(Takeover { by: asked.owner.clone(), at: now, told: true });
            }
        }
        let mut new = Reservation {
            id,
            owner: asked.owner.clone(),
            pattern: pattern.clone(),
            mode: asked.mode,
            reason: asked.reason.clone(),
            granted: now,
            expires: now.plus(asked.ttl.milliseconds()),
            session: asked.session.clone(),
            taken: None,
        };
        let same = |old: &&mut Reservation| old.owner == new.owner && old.pattern == new.pattern && old.taken.is_none();
        match self.reservations.iter_mut().find(same) {
            Some(old) => {
                new.id = old.id;
                new.reason = new.reason.or_else(|| old.reason.take());
                // The clock went back since then: the earlier promise still holds.
                if now < old.granted {
                    new.expires = new.expires.max(old.expires);
                }
                old.clone_from(&new);
            }
            None => self.reservations.push(new.clone()),
        }
        new
    }

    fn take(&mut self, by: &AgentName, conflicts: &[Conflict], at: Instant) -> Vec<Reservation> {
        let mut taken = Vec::new();
        for reservation in &mut self.reservations {
            if conflicts.iter().any(|conflict| conflict.held.id == reservation.id) {
                reservation.taken = Some(Takeover { by: by.clone(), at, told: false });
                taken.push(reservation.clone());
            }
        }
        taken
    }

    fn give_up(&mut self, owner: &AgentName, patterns: &[Glob], now: Instant) -> Vec<Reservation> {
        let wider = |old: &mut Reservation| {
            old.owner == *owner
                && old.holds(now)
                && !patterns.contains(&old.pattern)
                && patterns.iter().any(|pattern| pattern.overlap(&old.pattern).is_some())
        };
        self.reservations.extract_if(.., wider).collect()
    }

    /// Removes an owner's reservations of these patterns, or all of its reservations that still hold.
    pub(super) fn release(&mut self, owner: &AgentName, patterns: Option<&[Glob]>, now: Instant) -> Vec<Reservation> {
        self.forget(now);
        let meant = |old: &mut Reservation| {
            let named = match patterns {
                Some(patterns) => patterns.iter().any(|pattern| old.pattern.is_of_same_place(pattern)),
                None => old.holds(now),
            };
            old.owner == *owner && old.taken.is_none() && named
        };
        self.reservations.extract_if(.., meant).collect()
    }

    /// Taken reservations whose owners have not been told.
    pub(super) fn untold(&self) -> Vec<Reservation> {
        let untold = |old: &&Reservation| old.taken.as_ref().is_some_and(|taken| !taken.told);
        self.reservations.iter().filter(untold).cloned().collect()
    }

    /// Marks the owners of these as told.
    pub(super) fn told(&mut self, ids: &[MessageId]) {
        for reservation in self.reservations.iter_mut().filter(|reservation| ids.contains(&reservation.id)) {
            if let Some(taken) = &mut reservation.taken {
                taken.told = true;
            }
        }
    }

    /// Removes reservations that ended a while ago.
    fn forget(&mut self, now: Instant) {
        self.reservations.retain(|old| match &old.taken {
            Some(taken) => !taken.told || now.since(taken.at) < REMEMBERED,
            None => now.since(old.expires) < REMEMBERED,
        });
        // If there is no room, ended reservations need not be remembered.
        if self.reservations.len() >= MOST {
            self.clean_up(now);
        }
    }

    /// Removes every ended reservation. Returns those removed.
    pub(crate) fn clean_up(&mut self, now: Instant) -> Vec<Reservation> {
        let over = |old: &mut Reservation| match &old.taken {
            Some(taken) => taken.told,
            None => now >= old.expires,
        };
        self.reservations.extract_if(.., over).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_MINUTES: u64 = 600_000;

    /// A ledger in which bob edits as many files as a repository may have reservations.
    fn full() -> Ledger {
        let mut ledger = Ledger { repository: Repository::named("/r"), reservations: Vec::new() };
        assert_eq!(reserved(&mut ledger, "bob", "f0.rs", 0), "f0.rs new");
        let one = ledger.reservations[0].clone();
        ledger.reservations.extend(
            (1..MOST).map(|number| Reservation {
                pattern: format!("f{number}.rs").parse().expect("a pattern"),
                ..one.clone()
            }),
        );
        ledger
    }

    /// What is reserved automatically when an agent edits a file at `now` milliseconds.
    fn reserved(ledger: &mut Ledger, owner: &str, path: &str, now: u64) -> String {
        let id = "01JD8Z3K5V0000000000000000".parse().expect("an id");
        let paths = [(id, path.parse().expect("a pattern"))];
        let ttl = Ttl::new(TEN_MINUTES).expect("a time");
        let reserved = ledger.reserve_in_passing(&owner.parse().expect("a name"), None, &paths, ttl, Instant(now));
        let told = reserved.iter().map(|one| format!("{} {}", one.pattern, if one.is_new { "new" } else { "renewed" }));
        told.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_is_reserved_in_passing_stops_where_a_repository_is_full_and_takes_nothing_from_anybody() {
        let mut ledger = full();
        assert_eq!(reserved(&mut ledger, "alice", "src/a.rs", 1), "", "an edit goes on without a reservation");
        assert_eq!(reserved(&mut ledger, "bob", "src/b.rs", 1), "");
        assert_eq!(ledger.reservations.len(), MOST);
        assert_eq!(reserved(&mut ledger, "bob", "f7.rs", 1), "f7.rs renewed", "what is reserved already is renewed");
        // All but one have lapsed: remembering them must not prevent new reservations.
        assert_eq!(reserved(&mut ledger, "alice", "src/a.rs", TEN_MINUTES), "src/a.rs new");
        let left: Vec<String> = ledger.reservations.iter().map(|one| one.pattern.to_string()).collect();
        assert_eq!(left, ["f7.rs", "src/a.rs"]);
    }
}
