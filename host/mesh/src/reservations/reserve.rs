//! Reserving and releasing: no two conflicting reservations hold at once.

use store::{Durability, StoreError};

use crate::agents;
use crate::agents::presence;
use crate::core::Core;
use crate::messages::Draft;
use crate::names::{AgentName, MessageId};
use crate::reservations::glob::Glob;
use crate::reservations::ledger::{Ledger, MOST, Others, Own, RequestOutcome, ReservationRequest};
use crate::reservations::renamed;
use crate::reservations::repository::Repository;
use crate::reservations::{Conflict, LONGEST_REASON, Mode, Reservation, Ttl};
use crate::sessions::Principal;
use crate::storage::keys;
use crate::storage::records::{self, Next};
use crate::{Mesh, SendError};

/// A request for reservations.
#[derive(Clone, Debug)]
pub struct Reserve {
    /// The repository that contains the paths.
    pub repository: Repository,
    /// The patterns. All of them are granted, or none.
    pub patterns: Vec<Glob>,
    /// Whether other agents may hold them too.
    pub mode: Mode,
    /// How long the reservations last.
    pub ttl: Ttl,
    /// The reason, for other agents.
    pub reason: Option<String>,
    /// What happens to other agents' conflicting reservations.
    pub others: Others,
    /// What happens to the agent's own reservations that overlap.
    pub own: Own,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// Everything was granted.
    Granted {
        /// What the agent holds now, in the order of the request.
        granted: Vec<Reservation>,
        /// Reservations that were taken by force, with their owners.
        taken: Vec<Reservation>,
        /// Reservations that the agent itself gave up.
        given_up: Vec<Reservation>,
    },
    /// Nothing was granted, because of these conflicts.
    Held(Vec<Conflict>),
}

/// Why nothing could be reserved.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// The caller is not registered.
    #[error("you have not registered")]
    NotRegistered,
    /// The request names no pattern.
    #[error("nothing was named to be reserved")]
    Nothing,
    /// The reason is too long.
    #[error("the reason has {0} bytes and may have {LONGEST_REASON}")]
    ReasonTooLong(usize),
    /// The repository has too many reservations.
    #[error("the repository has {MOST} reservations, and no room for more")]
    Full,
    /// The store failed.
    #[error("the reservations could not be stored")]
    Store(#[from] StoreError),
}

/// What an agent releases.
#[derive(Clone, Debug)]
pub enum Release {
    /// The reservations of these patterns.
    These(Vec<Glob>),
    /// Everything that it holds in the repository.
    All,
}

/// The result of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// The reservations that were released.
    pub released: Vec<Reservation>,
}

/// Why nothing was released.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The caller is not registered.
    #[error("you have not registered")]
    NotRegistered,
    /// The pattern is reserved by another agent.
    #[error("`{pattern}` is reserved by `{owner}`, not by you")]
    NotYours {
        /// The pattern to release.
        pattern: Glob,
        /// The agent that holds it.
        owner: AgentName,
    },
    /// No reservation has this pattern.
    #[error("you have no reservation of `{0}`")]
    NotReserved(Glob),
    /// The store failed.
    #[error("the reservations could not be stored")]
    Store(#[from] StoreError),
}

impl Mesh {
    /// Reserves paths for the caller's agent, or returns the conflicts.
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
        let asked = ReservationRequest {
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
            let changed = matches!(verdict, RequestOutcome::Granted { .. });
            (changed, (verdict, !ledger.untold().is_empty()))
        })
        .await?;
        presence::beat(&self.core, &owner).await;
        let (granted, taken, given_up) = match verdict {
            RequestOutcome::Granted { granted, taken, given_up } => (granted, taken, given_up),
            RequestOutcome::Held(conflicts) => return Ok(Reserved::Held(conflicts)),
            RequestOutcome::Full => return Err(ReserveError::Full),
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
            self.tell_of_taken(caller, &wanted.repository).await;
        }
        Ok(Reserved::Granted { granted, taken, given_up })
    }

    /// Releases reservations of the caller's agent.
    pub async fn release_reservations(
        &self,
        caller: &Principal,
        repository: &Repository,
        what: &Release,
    ) -> Result<Released, ReleaseError> {
        let owner = caller.agent().ok_or(ReleaseError::NotRegistered)?.clone();
        let patterns = match what {
            Release::These(patterns) => Some(patterns.as_slice()),
            Release::All => None,
        };
        let released = change_ledger(&self.core, repository, |ledger| {
            let now = self.core.machine.now();
            // A refusal changes nothing: reservations that could have been released stay too.
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
        self.tell_of_taken(caller, repository).await;
        Ok(Released { released })
    }

    /// Sends a message to every owner whose reservation was taken and who has not been told, even if the taker's
    /// process ended before it could. An owner that cannot be told now is told by the next call, and the caller's own request
    /// has taken effect: errors are only logged.
    async fn tell_of_taken(&self, caller: &Principal, repository: &Repository) {
        if let Err(error) = self.try_to_tell_of_taken(caller, repository).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "whose reservations were taken by force could not be looked at or noted");
        }
    }

    async fn try_to_tell_of_taken(&self, caller: &Principal, repository: &Repository) -> Result<(), StoreError> {
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
            let outcome = match agents::list::load_agent(&self.core, &reservation.owner).await {
                Ok(Some(_)) => self.tell(caller, &taken.by, &reservation.owner, draft).await,
                // The agent was removed, so no one is left to tell.
                Ok(None) => Ok(()),
                Err(error) => Err(error.into()),
            };
            match outcome {
                // An earlier try sent it in other words; it is not sent again.
                Ok(()) | Err(SendError::OtherUnderKey { .. }) => told.push(reservation.id),
                Err(error) => {
                    let owner = &reservation.owner;
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(%owner, error, "the owner of a taken reservation could not be told");
                }
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
    let ledger = ledger(core, repository).await?;
    let now = core.machine.now();
    Ok(ledger.map(|ledger| ledger.conflicts(caller.agent(), patterns, mode, now)).unwrap_or_default())
}

pub(crate) async fn ledger(core: &Core, repository: &Repository) -> Result<Option<Ledger>, StoreError> {
    renamed::follow(core, repository).await?;
    let key = keys::reservations_of(repository);
    Ok(records::load::<Ledger>(core.shared.as_ref(), &key).await?.map(|(_, ledger)| ledger))
}

/// Changes a repository's reservations by a pure decision, which also returns whether it changed anything.
pub(crate) async fn change_ledger<R: Send>(
    core: &Core,
    repository: &Repository,
    mut decide: impl FnMut(&mut Ledger) -> (bool, R) + Send,
) -> Result<R, StoreError> {
    renamed::follow(core, repository).await?;
    let key = keys::reservations_of(repository);
    let began = core.machine.now();
    let mut is_put = false;
    // Not synced: a reservation binds running processes only, and its holder dies with the power too.
    let answer = records::update(core.shared.as_ref(), &key, Durability::Process, |old: Option<Ledger>| {
        let existed = old.is_some();
        let mut ledger = old.unwrap_or_else(|| Ledger::new(repository.clone()));
        let (changed, answer) = decide(&mut ledger);
        let next = match (changed, ledger.reservations.is_empty()) {
            (false, _) => Next::Keep,
            (true, true) if existed => Next::Remove,
            (true, true) => Next::Keep,
            (true, false) => Next::Put(ledger),
        };
        is_put = matches!(next, Next::Put(_));
        (next, answer)
    })
    .await?;
    if is_put {
        renamed::note(core, repository, began).await;
    }
    Ok(answer)
}

/// Why an agent may not release a pattern.
fn refusal(
    ledger: &Ledger,
    owner: &AgentName,
    pattern: &Glob,
    now: crate::ports::machine::Instant,
) -> Option<ReleaseError> {
    let mut of_pattern = ledger.reservations.iter().filter(|one| one.pattern.is_of_same_place(pattern));
    // A lapsed reservation may be released like any other: its owner could not know that it lapsed.
    if of_pattern.clone().any(|one| one.owner == *owner) {
        return None;
    }
    Some(match of_pattern.find(|one| one.holds(now)) {
        Some(held) => ReleaseError::NotYours { pattern: pattern.clone(), owner: held.owner.clone() },
        None => ReleaseError::NotReserved(pattern.clone()),
    })
}
