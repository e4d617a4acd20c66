//! A stored invitation and its life: who may present it, its status, when it expires.
//!
//! The session has no inbox yet, so its invitation is stored with the session, on this machine only. Its presenter, a
//! hook or the session's listener, leases it first, as with mail.

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError};

use crate::cleanup::{DryRun, RecordKind, Tally};
use crate::core::Core;
use crate::delivery::chain;
use crate::messages::envelope::{beside, who};
use crate::messages::protocol::PROTOCOL;
use crate::messages::receipt::DeliveryStatus;
use crate::messages::{Priority, Trace};
use crate::names::{AgentName, MessageId};
use crate::ports::harness::Mail;
use crate::ports::machine::Instant;
use crate::sessions::{Activity, SessionRef};
use crate::sessions::{record, retention};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// After how many milliseconds an unseen invitation expires: its request is soon outdated.
pub(crate) const LAPSES: u64 = 3_600_000;

/// The state of an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvitationAnswer {
    /// Not presented yet; with its status.
    Open(DeliveryStatus),
    /// Presented to the model, or carried by a route that reported this status.
    Brought(DeliveryStatus),
    /// The session's listener refused it.
    Refused,
    /// The session ended.
    Ended,
    /// The session joined as this agent.
    Joined(AgentName),
}

/// An invitation, leased to its session's listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenInvitation {
    /// Its id, which the listener quotes in its reports.
    pub id: MessageId,
    /// The inviter.
    pub from: AgentName,
    /// When it was made.
    pub at: Instant,
    /// When it expires.
    pub until: Instant,
    /// The text for the model: the inviter's name, their text inside an envelope, and the protocol.
    pub text: String,
}

/// An invitation, stored under `invitations/HARNESS/ID` in the local store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Invitation {
    pub(crate) id: MessageId,
    pub(crate) from: AgentName,
    pub(crate) at: Instant,
    /// When it expires.
    pub(crate) until: Instant,
    pub(crate) body: String,
    /// The chain it belongs to: an agent that joins by this invitation works on that chain.
    pub(crate) trace: Trace,
    /// Its status. Written by its presenter.
    pub(crate) standing: InvitationState,
    /// Until when one presenter has it exclusively.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leased_until: Option<Instant>,
    /// When it was presented or carried; set if no further presenter is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    brought: Option<Instant>,
}

/// An invitation's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InvitationState {
    At(DeliveryStatus),
    /// The listener refused it. A hook may still present it.
    Refused,
}

impl Invitation {
    pub(crate) fn new(id: MessageId, from: AgentName, at: Instant, body: &str, trace: Trace) -> Invitation {
        Invitation {
            id,
            from,
            at,
            until: at.plus(LAPSES),
            body: body.to_owned(),
            trace,
            standing: InvitationState::At(DeliveryStatus::Stored),
            leased_until: None,
            brought: None,
        }
    }

    /// Whether it has neither been presented nor expired.
    fn is_open(&self, now: Instant) -> bool {
        self.brought.is_none() && now < self.until
    }

    /// Whether it is open and not leased.
    fn is_free(&self, now: Instant) -> bool {
        self.is_open(now) && self.leased_until.is_none_or(|until| until <= now)
    }

    /// Whether the listener may present it. The listener gets each invitation once, whatever the result.
    fn may_be_brought(&self, now: Instant, last: Option<MessageId>) -> bool {
        self.is_free(now) && self.standing != InvitationState::Refused && last != Some(self.id)
    }

    /// The same invitation after it reached a status.
    fn at(self, status: DeliveryStatus, now: Instant, lease: u64) -> Invitation {
        let standing = match self.standing {
            InvitationState::At(reached) => InvitationState::At(reached.max(status)),
            InvitationState::Refused if status == DeliveryStatus::Stored => InvitationState::Refused,
            InvitationState::Refused => InvitationState::At(status),
        };
        match status.settles() {
            true => Invitation { standing, leased_until: None, brought: self.brought.or(Some(now)), ..self },
            false => {
                let leased_until = self.leased_until.map(|until| until.max(now.plus(lease)));
                Invitation { standing, leased_until, ..self }
            }
        }
    }
}

/// What to store if the session may have been invited before. Keeps the older invitation if the same inviter only
/// repeats it. Returns the other inviter's name as an error while another agent's invitation is open.
fn beside_older(
    older: Option<Invitation>,
    newer: &Invitation,
    now: Instant,
) -> (Next<Invitation>, Result<Invitation, AgentName>) {
    match older {
        Some(older) if older.is_open(now) && older.from != newer.from => (Next::Keep, Err(older.from)),
        Some(older) if older.is_open(now) && older.body == newer.body && older.standing != InvitationState::Refused => {
            (Next::Keep, Ok(older))
        }
        Some(_) | None => (Next::Put(newer.clone()), Ok(newer.clone())),
    }
}

pub(crate) async fn invitation(core: &Core, session: &SessionRef) -> Result<Option<InvitationAnswer>, StoreError> {
    if let Some(agent) = record::agent_of(core, session).await? {
        return Ok(Some(InvitationAnswer::Joined(agent)));
    }
    let now = core.machine.now();
    let Some(kept) = kept_invitation(core, session).await? else { return Ok(None) };
    let is_over = record::session(core, session).await?.is_some_and(|view| view.activity == Activity::Ended);
    Ok(match (kept.standing, kept.brought) {
        (InvitationState::At(status), Some(_)) => Some(InvitationAnswer::Brought(status)),
        (InvitationState::Refused, Some(_)) => Some(InvitationAnswer::Brought(DeliveryStatus::Shown)),
        (_, None) if now >= kept.until => None,
        (_, None) if is_over => Some(InvitationAnswer::Ended),
        (InvitationState::At(status), None) => Some(InvitationAnswer::Open(status)),
        (InvitationState::Refused, None) => Some(InvitationAnswer::Refused),
    })
}

pub(crate) async fn invitation_waits(
    core: &Core,
    session: &SessionRef,
    last: Option<MessageId>,
) -> Result<bool, StoreError> {
    let now = core.machine.now();
    let waits = kept_invitation(core, session).await?.is_some_and(|kept| kept.may_be_brought(now, last));
    if !waits {
        return Ok(false);
    }
    // A session that only its harness knows has no record that could say it is busy.
    Ok(record::session(core, session).await?.is_none_or(|view| view.activity == Activity::Idle))
}

pub(crate) async fn take_invitation_to_bring(
    core: &Core,
    session: &SessionRef,
    last: Option<MessageId>,
) -> Result<Option<TakenInvitation>, StoreError> {
    let now = core.machine.now();
    let taken =
        lease_invitation(core, session, |kept| kept.may_be_brought(now, last), DeliveryStatus::Notified).await?;
    Ok(taken.map(|kept| TakenInvitation {
        text: worded(&kept),
        id: kept.id,
        from: kept.from,
        at: kept.at,
        until: kept.until,
    }))
}

pub(crate) async fn advance_invitation(
    core: &Core,
    session: &SessionRef,
    id: MessageId,
    status: DeliveryStatus,
) -> Result<bool, StoreError> {
    let (now, lease) = (core.machine.now(), core.limits.lease);
    change_invitation(core, session, id, |kept| Some(kept.at(status, now, lease))).await
}

pub(crate) async fn refuse_invitation(core: &Core, session: &SessionRef, id: MessageId) -> Result<bool, StoreError> {
    let refused = |kept| Some(Invitation { standing: InvitationState::Refused, leased_until: None, ..kept });
    change_invitation(core, session, id, refused).await
}

pub(crate) async fn give_back_invitation(core: &Core, session: &SessionRef, id: MessageId) -> Result<bool, StoreError> {
    change_invitation(core, session, id, |kept| Some(Invitation { leased_until: None, ..kept })).await
}

/// The stored invitation of a session, whatever its state.
pub(crate) async fn kept_invitation(core: &Core, session: &SessionRef) -> Result<Option<Invitation>, StoreError> {
    let found = records::load::<Invitation>(core.local.as_ref(), &keys::invitation(session)).await?;
    Ok(found.map(|(_, kept)| kept))
}

/// Stores an invitation, or returns the inviter whose invitation is still open.
pub(crate) async fn keep_invitation(
    core: &Core,
    session: &SessionRef,
    wanted: Invitation,
) -> Result<Result<Invitation, AgentName>, StoreError> {
    let now = core.machine.now();
    records::update(core.local.as_ref(), &keys::invitation(session), Durability::Synced, |older| {
        beside_older(older, &wanted, now)
    })
    .await
}

/// Takes the invitation of a session for one hook's reply, if it fits.
pub(crate) async fn take_invitation(
    core: &Core,
    session: &SessionRef,
    max_bytes: usize,
) -> Result<Option<Mail>, StoreError> {
    let now = core.machine.now();
    let fits = |kept: &Invitation| kept.is_free(now) && worded(kept).len() <= max_bytes;
    let taken = lease_invitation(core, session, fits, DeliveryStatus::Stored).await?;
    Ok(taken.map(|kept| Mail { ids: vec![kept.id], text: worded(&kept), priority: Priority::Normal }))
}

/// Notes that a route carries its text: no other presenter is needed, whatever status that route reached.
pub(crate) async fn settle_brought(core: &Core, session: &SessionRef, id: MessageId) -> Result<bool, StoreError> {
    let now = core.machine.now();
    change_invitation(core, session, id, |kept| {
        Some(Invitation { brought: kept.brought.or(Some(now)), leased_until: None, ..kept })
    })
    .await
}

/// Settles the invitation of a session that joined: its agent now works on the invitation's chain.
pub(crate) async fn settle_invitation(core: &Core, session: &SessionRef, agent: &AgentName) -> Result<(), StoreError> {
    let Some(Invitation { id, trace, .. }) = kept_invitation(core, session).await? else { return Ok(()) };
    chain::works_on(core, agent, trace).await?;
    forget_invitation(core, session, id).await
}

pub(crate) async fn forget_invitation(core: &Core, session: &SessionRef, id: MessageId) -> Result<(), StoreError> {
    change_invitation(core, session, id, |_| None).await.map(|_| ())
}

/// Deletes expired invitations.
pub(crate) async fn clean_up_invitations(core: &Core, dry_run: DryRun, tally: &mut Tally) -> Result<(), StoreError> {
    let now = core.machine.now();
    for key in core.local.list(&keys::invitations()).await? {
        if let Some((revision, kept)) = retention::sound::<Invitation>(core, &key).await?
            && now >= kept.until
        {
            retention::remove_one(core, RecordKind::Invitations, (&key, revision), dry_run, tally).await?;
        }
    }
    Ok(())
}

/// Leases the invitation of a session if `may` permits it, and notes the status that it reaches by that.
async fn lease_invitation(
    core: &Core,
    session: &SessionRef,
    may: impl Fn(&Invitation) -> bool + Send + Sync,
    status: DeliveryStatus,
) -> Result<Option<Invitation>, StoreError> {
    let (now, lease) = (core.machine.now(), core.limits.lease);
    let key = keys::invitation(session);
    records::update(core.local.as_ref(), &key, Durability::Process, |kept: Option<Invitation>| match kept {
        Some(kept) if may(&kept) => {
            let leased = Invitation { leased_until: Some(now.plus(lease)), ..kept.clone().at(status, now, lease) };
            (Next::Put(leased), Some(kept))
        }
        Some(_) | None => (Next::Keep, None),
    })
    .await
}

/// Changes the invitation with this id; returns false if the session no longer has it.
async fn change_invitation(
    core: &Core,
    session: &SessionRef,
    id: MessageId,
    change: impl Fn(Invitation) -> Option<Invitation> + Send + Sync,
) -> Result<bool, StoreError> {
    let key = keys::invitation(session);
    records::update(core.local.as_ref(), &key, Durability::Process, |kept: Option<Invitation>| match kept {
        Some(kept) if kept.id == id => match change(kept.clone()) {
            Some(changed) if changed == kept => (Next::Keep, true),
            Some(changed) => (Next::Put(changed), true),
            None => (Next::Remove, true),
        },
        Some(_) | None => (Next::Keep, false),
    })
    .await
}

/// The invitation's text: the news, the inviter's text inside an envelope, and the protocol.
pub(crate) fn worded(invitation: &Invitation) -> String {
    let Invitation { id, from, at, body, .. } = invitation;
    format!("{}\n\n{PROTOCOL}", beside(&news(invitation), *id, *at, from, from, body))
}

/// The news alone: names the inviter, and quotes nothing of their text.
pub(crate) fn news(invitation: &Invitation) -> String {
    format!(
        "{} invites you to join the relay-mesh, through which coding agents exchange messages. To join, call \
         register_agent; to stay out, do nothing.",
        who(&invitation.from)
    )
}
