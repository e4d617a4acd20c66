//! Inviting a session that has not joined: it is woken with the protocol, by the adapter's own routes.
//!
//! There is no inbox yet that could keep an invitation, so it is kept with the session, on this machine
//! only. A route that carries text carries it whole. The bell and every other route bring only the
//! news, and the next hook of the session shows it, once.

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError};

use crate::bell::ROUTE;
use crate::envelope::{beside, who};
use crate::harness::{HarnessError, Load, Mail};
use crate::loops::next_trace;
use crate::machine::Instant;
use crate::message::{Priority, Trace};
use crate::names::{AgentName, MessageId};
use crate::protocol::PROTOCOL;
use crate::receipt::Rung;
use crate::records::{self, Next};
use crate::roster::{Found, RosterError};
use crate::session::{Activity, Caller, SessionRef, Transport};
use crate::{Mesh, keys};

/// The longest text that goes with an invitation, in bytes: it has to fit into any hook's answer beside
/// the protocol.
pub const LONGEST_INVITATION: usize = 2_048;

/// How an invitation went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invited {
    /// The session.
    pub session: SessionRef,
    /// Who invites, as the session is told.
    pub from: AgentName,
    /// The route that took it.
    pub route: String,
    /// How far it got by that route.
    pub rung: Rung,
}

/// Where an invitation stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nobody has seen it yet.
    Open,
    /// It stood in front of the model.
    Shown,
    /// The session has joined.
    Joined(AgentName),
}

/// Why nobody was invited.
#[derive(Debug, thiserror::Error)]
pub enum InviteError {
    /// No such session lives here.
    #[error("no session `{0}` lives on this machine")]
    Unknown(String),
    /// Several harnesses have a session of that name.
    #[error("several sessions are called `{session}`")]
    Ambiguous {
        /// The name.
        session: String,
        /// The harnesses.
        harnesses: Vec<String>,
    },
    /// It has an agent already.
    #[error("session `{session}` has joined already, as `{agent}`")]
    Joined {
        /// The session.
        session: String,
        /// Its agent.
        agent: AgentName,
    },
    /// It asked its person something, and nothing is brought to it until they answered.
    #[error("session `{0}` waits for its person")]
    AwaitsPerson(String),
    /// Its harness has no way to wake it.
    #[error("{harness} has no way to wake session `{session}`")]
    NoWay {
        /// The harness, as people read it.
        harness: String,
        /// The session.
        session: String,
    },
    /// The loop guard stopped it.
    #[error("waking is held back: {0}")]
    Held(String),
    /// Every way refused.
    #[error("session `{session}` was not woken: {}", .refused.join("; "))]
    Refused {
        /// The session.
        session: String,
        /// Each route and why.
        refused: Vec<String>,
    },
    /// The text is too long.
    #[error("the text of an invitation has {0} bytes and may have {LONGEST_INVITATION}")]
    TooLong(usize),
    /// The caller is not registered.
    #[error("you have not registered")]
    NotRegistered,
    /// The roster could not be read.
    #[error(transparent)]
    Roster(#[from] RosterError),
    /// The store failed.
    #[error("the invitation could not be kept")]
    Store(#[from] StoreError),
}

/// An invitation, as it is kept under `invitations/HARNESS/ID` in the local store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Invitation {
    id: MessageId,
    from: AgentName,
    at: Instant,
    body: String,
    /// The chain that it belongs to: whoever joins by it works on that chain.
    trace: Trace,
    /// Until when one hook has it to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claimed_until: Option<Instant>,
    /// When it stood in front of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shown: Option<Instant>,
}

impl Mesh {
    /// Invites a live session of this machine to join.
    pub async fn invite(
        &self,
        caller: &Caller,
        session: &str,
        harness: Option<&str>,
        text: &str,
    ) -> Result<Invited, InviteError> {
        if text.len() > LONGEST_INVITATION {
            return Err(InviteError::TooLong(text.len()));
        }
        let from = match (&caller.agent, caller.transport) {
            (Some(agent), _) => agent.clone(),
            (None, Transport::CommandLine) => AgentName::shell(),
            (None, Transport::Stdio | Transport::Http) => return Err(InviteError::NotRegistered),
        };
        let found = self.the_session(session, harness).await?;
        let reference = found.reference();
        if let Some(agent) = self.agent_of(&reference).await? {
            return Err(InviteError::Joined { session: session.to_owned(), agent });
        }
        if found.activity == Some(Activity::AwaitingHuman) {
            return Err(InviteError::AwaitsPerson(session.to_owned()));
        }
        if found.waking().next().is_none() {
            let harness = found.harness.about().title.clone();
            return Err(InviteError::NoWay { harness, session: session.to_owned() });
        }
        let now = self.machine.now();
        let id = self.new_id(now);
        let working_on = if from.is_shell() { None } else { self.working_on(&from).await? };
        let trace = next_trace(id, working_on);
        if let Some(reason) = self.why_not_wake(&reference, &from, trace.hops).await? {
            self.note("held", serde_json::json!({ "id": id, "from": from, "session": reference, "reason": reason }))
                .await;
            return Err(InviteError::Held(reason));
        }
        let invitation =
            Invitation { id, from, at: now, body: text.to_owned(), trace, claimed_until: None, shown: None };
        let kept = invitation.clone();
        records::update(
            self.local.as_ref(),
            &keys::invitation(&reference),
            Durability::Synced,
            |_: Option<Invitation>| (Next::Put(kept.clone()), ()),
        )
        .await?;
        self.note("invited", serde_json::json!({ "id": id, "from": invitation.from, "session": reference })).await;
        match self.bring(&found, &invitation).await? {
            Ok((route, rung)) => Ok(Invited { session: reference, from: invitation.from, route, rung }),
            Err(refused) => {
                // Nobody was told of it, so it must not turn up at some later hook.
                self.forget_invitation(&reference, id).await?;
                Err(InviteError::Refused { session: session.to_owned(), refused })
            }
        }
    }

    /// Where the invitation of a session stands; none where it was not invited.
    pub async fn invitation(&self, session: &SessionRef) -> Result<Option<Answer>, StoreError> {
        if let Some(agent) = self.agent_of(session).await? {
            return Ok(Some(Answer::Joined(agent)));
        }
        let kept = records::load::<Invitation>(self.local.as_ref(), &keys::invitation(session)).await?;
        Ok(kept.map(|(_, invitation)| if invitation.shown.is_some() { Answer::Shown } else { Answer::Open }))
    }

    /// Rings once more for an invitation that nobody has seen: a session that has only just begun does
    /// not watch its bell yet.
    pub async fn remind(&self, invited: &Invited) -> Result<(), StoreError> {
        let key = keys::invitation(&invited.session);
        match records::load::<Invitation>(self.local.as_ref(), &key).await? {
            Some((_, invitation)) if invitation.shown.is_none() && invited.route == ROUTE => {
                self.add_to_bell(&invited.session, &invitation.from, invitation.id).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The one live session that is meant.
    async fn the_session(&self, session: &str, harness: Option<&str>) -> Result<Found, InviteError> {
        let (found, _) = self.find_sessions(harness).await?;
        let mut meant: Vec<Found> = found.into_iter().filter(|found| found.session.id == session).collect();
        match meant.len() {
            0 => Err(InviteError::Unknown(session.to_owned())),
            1 => Ok(meant.remove(0)),
            _ => {
                let harnesses = meant.iter().map(|found| found.reference().harness).collect();
                Err(InviteError::Ambiguous { session: session.to_owned(), harnesses })
            }
        }
    }

    /// Tries the routes in order until one takes it; else every refusal.
    async fn bring(
        &self,
        found: &Found,
        invitation: &Invitation,
    ) -> Result<Result<(String, Rung), Vec<String>>, StoreError> {
        let reference = found.reference();
        let activity = found.activity.unwrap_or(Activity::Idle);
        let mut refused = Vec::new();
        let mut wakes_counted = false;
        for route in found.waking().filter(|route| route.when.contains(&activity)) {
            if route.name == ROUTE {
                self.add_to_bell(&reference, &invitation.from, invitation.id).await?;
                return Ok(Ok((route.name.clone(), Rung::Offered)));
            }
            if !wakes_counted {
                // The bell's file is the record of wakes, also of those by another route.
                self.add_to_bell(&reference, &invitation.from, invitation.id).await?;
                wakes_counted = true;
            }
            let text = match route.load {
                Load::Letter => worded(invitation),
                Load::Bell => news(invitation),
            };
            if route.load == Load::Letter && text.len() > route.room as usize {
                refused.push(format!("{}: the invitation does not fit into {} bytes", route.name, route.room));
                continue;
            }
            let mail = Mail { ids: vec![invitation.id], text, priority: Priority::Normal };
            match found.harness.deliver(&found.session, &route.name, &mail).await {
                Ok(delivered) => {
                    if route.load == Load::Letter {
                        // The text is on its way by this route; a hook must not show it a second time.
                        self.confirm_invitation(&reference, invitation.id).await?;
                    }
                    return Ok(Ok((route.name.clone(), delivered.rung)));
                }
                Err(HarnessError::Busy(_)) => refused.push(format!("{}: busy, try again", route.name)),
                Err(error) => refused.push(format!("{}: {error}", route.name)),
            }
        }
        if refused.is_empty() {
            refused.push(format!("no way reaches it while it is {}", activity.as_str()));
        }
        Ok(Err(refused))
    }

    /// Takes the invitation of a session for one hook's answer, where it has room for it.
    pub(crate) async fn take_invitation(&self, session: &SessionRef, room: usize) -> Result<Option<Mail>, StoreError> {
        let now = self.machine.now();
        let until = now.plus(self.limits.claim);
        let key = keys::invitation(session);
        let fits = |kept: &Invitation| {
            kept.shown.is_none() && kept.claimed_until.is_none_or(|until| until <= now) && worded(kept).len() <= room
        };
        let taken =
            records::update(self.local.as_ref(), &key, Durability::Process, |kept: Option<Invitation>| match kept {
                Some(kept) if fits(&kept) => {
                    (Next::Put(Invitation { claimed_until: Some(until), ..kept.clone() }), Some(kept))
                }
                Some(_) | None => (Next::Keep, None),
            })
            .await?;
        Ok(taken.map(|kept| Mail { ids: vec![kept.id], text: worded(&kept), priority: Priority::Normal }))
    }

    /// Gives back an invitation that a hook had no place for.
    pub(crate) async fn give_back_invitation(&self, session: &SessionRef) -> Result<(), StoreError> {
        self.change_invitation(session, |kept| Some(Invitation { claimed_until: None, ..kept })).await
    }

    /// Notes that an invitation stood in front of the model.
    pub async fn confirm_invitation(&self, session: &SessionRef, id: MessageId) -> Result<(), StoreError> {
        let now = self.machine.now();
        let shown = |kept: Invitation| {
            let shown = if kept.id == id { Some(now) } else { kept.shown };
            Some(Invitation { shown, claimed_until: None, ..kept })
        };
        self.change_invitation(session, shown).await
    }

    /// The session has joined: its invitation is settled, and its agent works on the chain that it came by.
    pub(crate) async fn settle_invitation(&self, session: &SessionRef, agent: &AgentName) -> Result<(), StoreError> {
        let key = keys::invitation(session);
        let kept = records::load::<Invitation>(self.local.as_ref(), &key).await?;
        let Some((_, Invitation { id, trace, .. })) = kept else { return Ok(()) };
        self.works_on(agent, trace).await?;
        self.forget_invitation(session, id).await
    }

    async fn forget_invitation(&self, session: &SessionRef, id: MessageId) -> Result<(), StoreError> {
        self.change_invitation(session, |kept| (kept.id != id).then_some(kept)).await
    }

    async fn change_invitation(
        &self,
        session: &SessionRef,
        change: impl Fn(Invitation) -> Option<Invitation> + Send + Sync,
    ) -> Result<(), StoreError> {
        let key = keys::invitation(session);
        records::update(self.local.as_ref(), &key, Durability::Process, |kept: Option<Invitation>| match kept {
            None => (Next::Keep, ()),
            Some(kept) => match change(kept.clone()) {
                Some(changed) if changed == kept => (Next::Keep, ()),
                Some(changed) => (Next::Put(changed), ()),
                None => (Next::Remove, ()),
            },
        })
        .await
    }
}

/// The invitation, with what the inviter wrote inside an envelope, and the protocol.
fn worded(invitation: &Invitation) -> String {
    let Invitation { id, from, at, body, .. } = invitation;
    format!("{}\n\n{PROTOCOL}", beside(&news(invitation), *id, *at, from, from, body))
}

/// The news alone. It says who invites, and nothing of what they wrote.
fn news(invitation: &Invitation) -> String {
    format!(
        "{} invites you to join the relay-mesh, by which coding agents exchange messages. To join, call \
         register_agent; to stay out, do nothing.",
        who(&invitation.from)
    )
}
