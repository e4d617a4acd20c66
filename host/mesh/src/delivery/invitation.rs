//! An invitation as it is kept, and what becomes of it: who may present it, how far it came, when it lapses.
//!
//! There is no inbox yet that could hold it, so it lies with its session, on this machine only. Whoever
//! presents it leases it first, as with mail: a hook's answer, or whoever listens for the session.

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError};

use crate::core::Core;
use crate::delivery::chain;
use crate::messages::envelope::{beside, who};
use crate::messages::protocol::PROTOCOL;
use crate::messages::receipt::DeliveryStatus;
use crate::messages::{Priority, Trace};
use crate::names::{AgentName, MessageId};
use crate::ports::harness::Mail;
use crate::ports::machine::Instant;
use crate::sessions::record;
use crate::sessions::{Activity, SessionRef};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// After how many milliseconds an invitation that nobody has seen lapses: what it asks for is soon past.
pub(crate) const LAPSES: u64 = 3_600_000;

/// Where an invitation stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvitationAnswer {
    /// It is still to be shown; how far it came.
    Open(DeliveryStatus),
    /// It stood in front of the model, or a route took its text and said how far that went.
    Brought(DeliveryStatus),
    /// Whoever listens for the session did not take it.
    Refused,
    /// The session is over.
    Ended,
    /// The session has joined.
    Joined(AgentName),
}

/// An invitation, leased for whoever listens for its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenInvitation {
    /// Its id, by which receipts name it.
    pub id: MessageId,
    /// Who invites.
    pub from: AgentName,
    /// Since when.
    pub at: Instant,
    /// When it lapses.
    pub until: Instant,
    /// What a model may be shown: who invites, what they wrote inside an envelope, and the protocol.
    pub text: String,
}

/// An invitation, as it is kept under `invitations/HARNESS/ID` in the local store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Invitation {
    pub(crate) id: MessageId,
    pub(crate) from: AgentName,
    pub(crate) at: Instant,
    /// When it lapses.
    pub(crate) until: Instant,
    pub(crate) body: String,
    /// The chain that it belongs to: whoever joins by it works on that chain.
    pub(crate) trace: Trace,
    /// How far it came. Written by whoever brings it.
    pub(crate) standing: InvitationState,
    /// Until when one presenter has it to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leased_until: Option<Instant>,
    /// Since when nobody needs to bring it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    brought: Option<Instant>,
}

/// How far an invitation came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InvitationState {
    /// This far.
    At(DeliveryStatus),
    /// Whoever listens did not take it. A hook still may.
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

    /// Whether it is still to be shown.
    fn is_open(&self, now: Instant) -> bool {
        self.brought.is_none() && now < self.until
    }

    /// Whether nobody has it to itself just now.
    fn is_free(&self, now: Instant) -> bool {
        self.is_open(now) && self.leased_until.is_none_or(|until| until <= now)
    }

    /// Whether whoever listens may bring it: each once, whatever came of it.
    fn may_be_brought(&self, now: Instant, last: Option<MessageId>) -> bool {
        self.is_free(now) && self.standing != InvitationState::Refused && last != Some(self.id)
    }

    /// The same, after it came so far.
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

/// What is kept where one is invited who may have been invited before: the older invitation, where its own
/// inviter only repeats it; nothing new, with the other's name, while another's waits to be seen.
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
    // Of a session that only its harness knows nobody says that it works.
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

/// The invitation that lies with a session, whatever became of it.
pub(crate) async fn kept_invitation(core: &Core, session: &SessionRef) -> Result<Option<Invitation>, StoreError> {
    let found = records::load::<Invitation>(core.local.as_ref(), &keys::invitation(session)).await?;
    Ok(found.map(|(_, kept)| kept))
}

/// Keeps an invitation, or names who else's waits there.
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

/// Takes the invitation of a session for one hook's answer, where it has room for it.
pub(crate) async fn take_invitation(
    core: &Core,
    session: &SessionRef,
    room: usize,
) -> Result<Option<Mail>, StoreError> {
    let now = core.machine.now();
    let fits = |kept: &Invitation| kept.is_free(now) && worded(kept).len() <= room;
    let taken = lease_invitation(core, session, fits, DeliveryStatus::Stored).await?;
    Ok(taken.map(|kept| Mail { ids: vec![kept.id], text: worded(&kept), priority: Priority::Normal }))
}

/// A route carries its text: nobody else needs to bring it, however far that route came.
pub(crate) async fn settle_brought(core: &Core, session: &SessionRef, id: MessageId) -> Result<bool, StoreError> {
    let now = core.machine.now();
    change_invitation(core, session, id, |kept| {
        Some(Invitation { brought: kept.brought.or(Some(now)), leased_until: None, ..kept })
    })
    .await
}

/// The session has joined: its invitation is settled, and its agent works on the chain that it came by.
pub(crate) async fn settle_invitation(core: &Core, session: &SessionRef, agent: &AgentName) -> Result<(), StoreError> {
    let Some(Invitation { id, trace, .. }) = kept_invitation(core, session).await? else { return Ok(()) };
    chain::works_on(core, agent, trace).await?;
    forget_invitation(core, session, id).await
}

pub(crate) async fn forget_invitation(core: &Core, session: &SessionRef, id: MessageId) -> Result<(), StoreError> {
    change_invitation(core, session, id, |_| None).await.map(|_| ())
}

/// Removes the invitations that lapsed.
pub(crate) async fn clean_up_invitations(core: &Core) -> Result<(), StoreError> {
    let now = core.machine.now();
    for key in core.local.list(&keys::invitations()).await? {
        records::update(core.local.as_ref(), &key, Durability::Process, |kept: Option<Invitation>| match kept {
            Some(kept) if now >= kept.until => (Next::Remove, ()),
            Some(_) | None => (Next::Keep, ()),
        })
        .await?;
    }
    Ok(())
}

/// Leases the invitation of a session where it may be, and notes how far it came by that.
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

/// Changes this very invitation; false where the session has it no longer.
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

/// The invitation, with what the inviter wrote inside an envelope, and the protocol.
pub(crate) fn worded(invitation: &Invitation) -> String {
    let Invitation { id, from, at, body, .. } = invitation;
    format!("{}\n\n{PROTOCOL}", beside(&news(invitation), *id, *at, from, from, body))
}

/// The news alone. It says who invites, and nothing of what they wrote.
pub(crate) fn news(invitation: &Invitation) -> String {
    format!(
        "{} invites you to join the relay-mesh, by which coding agents exchange messages. To join, call \
         register_agent; to stay out, do nothing.",
        who(&invitation.from)
    )
}
