//! Reservations: agents reserve paths of a repository, and no two reservations that exclude each other hold at once.

use store::{Durability, StoreError};

use crate::agents;
use crate::agents::presence;
use crate::core::Core;
use crate::messages::Draft;
use crate::names::{AgentName, MessageId};
use crate::reservations::glob::Glob;
use crate::reservations::ledger::{Asked, Ledger, MOST, Others, Own, Verdict};
use crate::reservations::repository::Repository;
use crate::reservations::{Conflict, LONGEST_REASON, Mode, Reservation, Ttl};
use crate::sessions::Principal;
use crate::storage::keys;
use crate::storage::records::{self, Next};
use crate::{Mesh, SendError};

/// What an agent wants to reserve.
#[derive(Clone, Debug)]
pub struct Reserve {
    /// In which repository.
    pub repository: Repository,
    /// What. All of it is granted, or nothing.
    pub patterns: Vec<Glob>,
    /// Whether others may hold it too.
    pub mode: Mode,
    /// For how long.
    pub ttl: Ttl,
    /// What for.
    pub reason: Option<String>,
    /// What happens to others' reservations in the way.
    pub others: Others,
    /// What happens to the agent's own that overlap.
    pub own: Own,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// Everything was granted.
    Granted {
        /// What the agent holds now, in the order in which it asked.
        granted: Vec<Reservation>,
        /// What was taken for it, from whom.
        taken: Vec<Reservation>,
        /// What the agent itself gave up for it.
        given_up: Vec<Reservation>,
    },
    /// Nothing was granted, because of these.
    Held(Vec<Conflict>),
}

/// Why nothing could be reserved.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// The caller is not registered.
    #[error("you have not registered")]
    NotRegistered,
    /// No pattern was named.
    #[error("nothing was named to be reserved")]
    Nothing,
    /// The reason is too long.
    #[error("the reason has {0} bytes and may have {LONGEST_REASON}")]
    ReasonTooLong(usize),
    /// Too many.
    #[error("the repository has {MOST} reservations, and no room for more")]
    Full,
    /// The store failed.
    #[error("the reservations could not be stored")]
    Store(#[from] StoreError),
}

/// What an agent gives back.
#[derive(Clone, Debug)]
pub enum Release {
    /// What it reserved by these patterns.
    These(Vec<Glob>),
    /// All that it holds in the repository.
    All,
}

/// What an agent has given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its reservations, which are none any more.
    pub released: Vec<Reservation>,
}

/// Why nothing was released.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The caller is not registered.
    #[error("you have not registered")]
    NotRegistered,
    /// Somebody else's.
    #[error("`{pattern}` is reserved by `{owner}`, not by you")]
    NotYours {
        /// What was to be released.
        pattern: Glob,
        /// Who holds it.
        owner: AgentName,
    },
    /// Nobody's.
    #[error("you have no reservation of `{0}`")]
    NotReserved(Glob),
    /// The store failed.
    #[error("the reservations could not be stored")]
    Store(#[from] StoreError),
}

impl Mesh {
    /// Reserves paths for the caller's agent, or says who holds them.
    pub async fn reserve(&self, caller: &Principal, wanted: Reserve) -> Result<Reserved, ReserveError> {
        let owner = caller.agent().ok_or(ReserveError::NotRegistered)?.clone();
        if let Some(reason) = wanted.reason.as_ref().filter(|reason| reason.len() > LONGEST_REASON) {
            return Err(ReserveError::ReasonTooLong(reason.len()));
        }
        let mut patterns: Vec<(MessageId, Glob)> = Vec::new();
        for pattern in wanted.patterns {
            if patterns.iter().all(|(_, other)| *other != pattern) {
                patterns.push((self.core.new_id(self.core.machine.now()), pattern));
            }
        }
        if patterns.is_empty() {
            return Err(ReserveError::Nothing);
        }
        let asked = Asked {
            owner: owner.clone(),
            session: caller.session().cloned(),
            patterns,
            mode: wanted.mode,
            ttl: wanted.ttl,
            reason: wanted.reason,
            others: wanted.others,
            own: wanted.own,
        };
        let (verdict, somebody_is_to_be_told) = change_ledger(&self.core, &wanted.repository, |ledger| {
            let verdict = ledger.grant(&asked, self.core.machine.now());
            let changed = matches!(verdict, Verdict::Granted { .. });
            (changed, (verdict, !ledger.untold().is_empty()))
        })
        .await?;
        presence::beat(&self.core, &owner).await;
        let (granted, taken, given_up) = match verdict {
            Verdict::Granted { granted, taken, given_up } => (granted, taken, given_up),
            Verdict::Held(conflicts) => return Ok(Reserved::Held(conflicts)),
            Verdict::Full => return Err(ReserveError::Full),
        };
        let patterns: Vec<&Glob> = granted.iter().map(|reservation| &reservation.pattern).collect();
        let expires = granted.first().map(|reservation| reservation.expires);
        self.core
            .event_log
            .note(
                "reserved",
                serde_json::json!({
                    "agent": owner, "repository": wanted.repository, "patterns": patterns, "mode": wanted.mode,
                    "expires": expires,
                }),
            )
            .await;
        for reservation in &taken {
            let Reservation { owner: from, pattern, .. } = reservation;
            let details = serde_json::json!({
                "agent": owner, "from": from, "repository": wanted.repository, "pattern": pattern,
            });
            self.core.event_log.note("reservation-taken", details).await;
        }
        if somebody_is_to_be_told {
            self.tell_of_taken(caller, &wanted.repository).await?;
        }
        Ok(Reserved::Granted { granted, taken, given_up })
    }

    /// Gives back what the caller's agent has reserved.
    pub async fn release_reservations(
        &self,
        caller: &Principal,
        repository: &Repository,
        what: &Release,
    ) -> Result<Given, ReleaseError> {
        let owner = caller.agent().ok_or(ReleaseError::NotRegistered)?.clone();
        let patterns = match what {
            Release::These(patterns) => Some(patterns.as_slice()),
            Release::All => None,
        };
        let released = change_ledger(&self.core, repository, |ledger| {
            let now = self.core.machine.now();
            // What is refused leaves everything as it was, also what could have been released.
            if let Some(error) = patterns.into_iter().flatten().find_map(|one| refusal(ledger, &owner, one, now)) {
                return (false, Err(error));
            }
            let released = ledger.release(&owner, patterns, now);
            (!released.is_empty(), Ok(released))
        })
        .await??;
        presence::beat(&self.core, &owner).await;
        if !released.is_empty() {
            let patterns: Vec<&Glob> = released.iter().map(|reservation| &reservation.pattern).collect();
            let details = serde_json::json!({ "agent": owner, "repository": repository, "patterns": patterns });
            self.core.event_log.note("released", details).await;
        }
        self.tell_of_taken(caller, repository).await?;
        Ok(Given { released })
    }

    /// Sends a message to everybody whose reservation was taken and who has not been told, also where whoever
    /// took it ended before they could.
    pub(crate) async fn tell_of_taken(&self, caller: &Principal, repository: &Repository) -> Result<(), StoreError> {
        let untold = self::ledger(&self.core, repository).await?.map(|ledger| ledger.untold()).unwrap_or_default();
        let mut told = Vec::new();
        for reservation in untold {
            let Some(taken) = &reservation.taken else { continue };
            let draft = Draft {
                body: format!(
                    "{} took over `{}` in {}, which you had reserved. Ask {} before you go on there.",
                    taken.by,
                    reservation.pattern,
                    repository.as_str(),
                    taken.by
                ),
                idempotency_key: Some(format!("reservation-taken-{}", reservation.id)),
                ..Draft::default()
            };
            let outcome = match agents::list::load_agent(&self.core, &reservation.owner).await? {
                Some(_) => self.tell(caller, &taken.by, &reservation.owner, draft).await,
                // It was removed, and nobody is left who could be told.
                None => Ok(()),
            };
            match outcome {
                // That it was said before in other words is no reason to say it again.
                Ok(()) | Err(SendError::OtherUnderKey { .. }) => told.push(reservation.id),
                Err(SendError::Store { source, .. } | SendError::Unreadable(source)) => return Err(source),
                Err(error) => tracing::warn!(owner = %reservation.owner, %error, "nobody was told of what was taken"),
            }
        }
        if told.is_empty() {
            return Ok(());
        }
        change_ledger(&self.core, repository, |ledger| {
            ledger.told(&told);
            (true, ())
        })
        .await
    }
}

pub(crate) async fn check_reservation(
    core: &Core,
    caller: &Principal,
    repository: &Repository,
    patterns: &[Glob],
    mode: Mode,
) -> Result<Vec<Conflict>, StoreError> {
    let ledger = ledger_near(core, repository, patterns).await?;
    let now = core.machine.now();
    Ok(ledger.map(|ledger| ledger.conflicts(caller.agent(), patterns, mode, now)).unwrap_or_default())
}

pub(crate) async fn ledger(core: &Core, repository: &Repository) -> Result<Option<Ledger>, StoreError> {
    let key = keys::reservations_of(repository);
    Ok(records::load::<Ledger>(core.shared.as_ref(), &key).await?.map(|(_, ledger)| ledger))
}

/// The same with those reservations alone that could meet one of these patterns.
pub(crate) async fn ledger_near(
    core: &Core,
    repository: &Repository,
    patterns: &[Glob],
) -> Result<Option<Ledger>, StoreError> {
    let key = keys::reservations_of(repository);
    let Some(value) = core.shared.get(&key).await? else { return Ok(None) };
    let near = crate::reservations::written::near(&value.bytes, patterns);
    near.map(Some).map_err(|why| StoreError::Damaged { what: core.shared.place(&key), why: why.to_string() })
}

/// Changes a repository's reservations by a pure decision, which also says whether it changed anything.
pub(crate) async fn change_ledger<R: Send>(
    core: &Core,
    repository: &Repository,
    mut decide: impl FnMut(&mut Ledger) -> (bool, R) + Send,
) -> Result<R, StoreError> {
    let key = keys::reservations_of(repository);
    // A reservation binds those who live. Whoever held one before a loss of power has died with it.
    records::update(core.shared.as_ref(), &key, Durability::Process, |old: Option<Ledger>| {
        let existed = old.is_some();
        let mut ledger = old.unwrap_or_else(|| Ledger::new(repository.clone()));
        let (changed, answer) = decide(&mut ledger);
        let next = match (changed, ledger.reservations.is_empty()) {
            (false, _) => Next::Keep,
            (true, true) if existed => Next::Remove,
            (true, true) => Next::Keep,
            (true, false) => Next::Put(ledger),
        };
        (next, answer)
    })
    .await
}

/// Why an agent may not release a pattern.
fn refusal(
    ledger: &Ledger,
    owner: &AgentName,
    pattern: &Glob,
    now: crate::ports::machine::Instant,
) -> Option<ReleaseError> {
    let mut of_pattern = ledger.reservations.iter().filter(|one| one.pattern.is_of_same_place(pattern));
    // One that has lapsed may be released like any other: its owner could not know.
    if of_pattern.clone().any(|one| one.owner == *owner) {
        return None;
    }
    Some(match of_pattern.find(|one| one.holds(now)) {
        Some(held) => ReleaseError::NotYours { pattern: pattern.clone(), owner: held.owner.clone() },
        None => ReleaseError::NotReserved(pattern.clone()),
    })
}
