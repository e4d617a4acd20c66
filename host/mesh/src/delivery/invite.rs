//! Inviting a session that has not joined: wakes it with the protocol, by the adapter's routes.
//!
//! The session's listener goes first: a connector inside its harness presents the text itself. Of the adapter's routes,
//! one that carries messages carries the whole text. The wake file and every other route only notify, and the session's
//! next hook shows the invitation, once. `invitation.rs` stores it meanwhile.

use store::StoreError;

use crate::core::Core;
use crate::delivery::chain;
use crate::delivery::invitation;
use crate::delivery::invitation::{Invitation, InvitationAnswer, InvitationState, news, worded};
use crate::delivery::loop_guard::next_trace;
use crate::delivery::wake_file::ROUTE;
use crate::delivery::wake_file::{self, Counts};
use crate::messages::receipt::DeliveryStatus;
use crate::messages::{Hold, Priority};
use crate::names::AgentName;
use crate::ports::harness::{Carries, HarnessError, Mail};
use crate::ports::machine::Instant;
use crate::sessions::discover;
use crate::sessions::discover::{LISTEN, RosterError, WakeableSession};
use crate::sessions::record;
use crate::sessions::{Activity, Principal, SessionRef, Transport};

/// Longest text of an invitation, in bytes: it has to fit into any hook's reply together with the protocol.
pub const LONGEST_INVITATION: usize = 2_048;

/// The result of an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invited {
    pub session: SessionRef,
    /// The inviter's name, as shown to the session.
    pub from: AgentName,
    /// The route that took it.
    pub route: String,
    /// The status that the route reached.
    pub status: DeliveryStatus,
    /// When it expires if the session has not seen it.
    pub until: Instant,
}

/// Why an invitation failed.
#[derive(Debug, thiserror::Error)]
pub enum InviteError {
    /// This machine has no such live session.
    #[error("this machine has no live session `{0}`")]
    Unknown(String),
    /// Several harnesses have a session with that id.
    #[error("several sessions are called `{session}`")]
    Ambiguous {
        /// The session's id.
        session: String,
        harnesses: Vec<String>,
    },
    /// The session has an agent already.
    #[error("session `{session}` has joined already, as `{agent}`")]
    Joined { session: String, agent: AgentName },
    /// The session asked its user something, and gets no mail until the user has answered.
    #[error("session `{0}` waits for its user")]
    AwaitsPerson(String),
    /// No route can wake the session.
    #[error("{harness} has no way to wake session `{session}`")]
    NoWay {
        /// The harness's display name.
        harness: String,
        session: String,
    },
    /// The loop guard stopped it.
    #[error("waking is held back: {0}")]
    Held(String),
    /// The session has an unseen invitation of another agent.
    #[error("session `{session}` has an invitation from `{from}` that it has not seen yet")]
    Another {
        session: String,
        /// The other inviter.
        from: AgentName,
    },
    /// The session ended after it was invited.
    #[error("session `{0}` ended before it saw the invitation")]
    Ended(String),
    /// Every route refused.
    #[error("session `{session}` was not woken: {}", .refused.join("; "))]
    Refused {
        session: String,
        /// Each route with its reason.
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
    #[error("the invitation could not be stored")]
    Store(#[from] StoreError),
}

pub(crate) async fn invite(
    core: &Core,
    caller: &Principal,
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
    let found = the_session(core, session, harness).await?;
    let reference = found.reference();
    if let Some(agent) = record::agent_of(core, &reference).await? {
        return Err(InviteError::Joined { session: session.to_owned(), agent });
    }
    if found.activity == Some(Activity::NeedsInput) {
        return Err(InviteError::AwaitsPerson(session.to_owned()));
    }
    if found.wakes_by().is_empty() {
        let harness = found.harness.about().title.clone();
        return Err(InviteError::NoWay { harness, session: session.to_owned() });
    }
    let now = core.machine.now();
    let id = core.new_id(now);
    let working_on = if from.is_shell() { None } else { chain::working_on(core, &from).await? };
    let trace = next_trace(id, working_on);
    if let Some(Hold { reason, .. }) = wake_file::why_not_wake(core, &reference, &from, trace.hops).await? {
        core.event_log
            .note("held", serde_json::json!({ "id": id, "from": from, "session": reference, "reason": reason }))
            .await;
        return Err(InviteError::Held(reason));
    }
    let wanted = Invitation::new(id, from, now, text, trace);
    let invitation = match invitation::keep_invitation(core, &reference, wanted).await? {
        Ok(kept) => kept,
        Err(from) => return Err(InviteError::Another { session: session.to_owned(), from }),
    };
    let (id, from) = (invitation.id, &invitation.from);
    core.event_log.note("invited", serde_json::json!({ "id": id, "from": from, "session": reference })).await;
    if found.is_listened_to {
        // The wake file is the record of all wakes, also of those by a listener.
        wake_file::append_to_wake_file(core, &reference, from, id, Counts::Alone).await?;
        return Ok(invited(&reference, &invitation, LISTEN, DeliveryStatus::Stored));
    }
    match bring(core, &found, &invitation).await? {
        Ok(invited) => Ok(invited),
        Err(refused) => {
            // No notification went out, so the invitation must not turn up at some later hook.
            invitation::forget_invitation(core, &reference, id).await?;
            Err(InviteError::Refused { session: session.to_owned(), refused })
        }
    }
}

pub(crate) async fn remind(core: &Core, invited: Invited) -> Result<Invited, InviteError> {
    let (session, id) = (&invited.session, &invited.session.id);
    let Some(invitation) = invitation::kept_invitation(core, session).await? else { return Ok(invited) };
    match invitation::invitation(core, session).await? {
        Some(InvitationAnswer::Ended) => {
            invitation::forget_invitation(core, session, invitation.id).await?;
            return Err(InviteError::Ended(id.clone()));
        }
        Some(InvitationAnswer::Brought(_) | InvitationAnswer::Joined(_)) | None => return Ok(invited),
        Some(InvitationAnswer::Open(_) | InvitationAnswer::Refused) => {}
    }
    if invited.route == ROUTE {
        wake_file::append_to_wake_file(core, session, &invitation.from, invitation.id, Counts::Alone).await?;
    }
    let refused = match (invited.route == LISTEN, invitation.standing) {
        (true, InvitationState::Refused) => true,
        (true, InvitationState::At(DeliveryStatus::Stored)) => false,
        (_, InvitationState::At(_) | InvitationState::Refused) => return Ok(invited),
    };
    let found = the_session(core, id, Some(&session.harness)).await?;
    if !refused && found.activity == Some(Activity::Busy) {
        return Ok(invited);
    }
    match (bring(core, &found, &invitation).await?, refused) {
        (Ok(another), _) => Ok(another),
        (Err(_), false) => Ok(invited),
        (Err(others), true) => {
            invitation::forget_invitation(core, session, invitation.id).await?;
            let mut every = vec![format!("{LISTEN}: its listener refused it")];
            every.extend(others);
            Err(InviteError::Refused { session: id.clone(), refused: every })
        }
    }
}

/// The one live session with this id.
async fn the_session(core: &Core, session: &str, harness: Option<&str>) -> Result<WakeableSession, InviteError> {
    let (found, _) = discover::find_sessions(core, harness).await?;
    let mut meant: Vec<WakeableSession> = found.into_iter().filter(|found| found.session.id == session).collect();
    match meant.len() {
        0 => Err(InviteError::Unknown(session.to_owned())),
        1 => Ok(meant.remove(0)),
        _ => {
            let harnesses = meant.iter().map(|found| found.reference().harness).collect();
            Err(InviteError::Ambiguous { session: session.to_owned(), harnesses })
        }
    }
}

/// Tries the routes in order until one accepts; otherwise returns every refusal.
async fn bring(
    core: &Core,
    found: &WakeableSession,
    invitation: &Invitation,
) -> Result<Result<Invited, Vec<String>>, StoreError> {
    let reference = found.reference();
    let activity = found.activity.unwrap_or(Activity::Idle);
    let mut refused = Vec::new();
    let mut wakes_counted = false;
    for route in found.waking().filter(|route| route.when.contains(&activity)) {
        if route.name == ROUTE {
            wake_file::append_to_wake_file(core, &reference, &invitation.from, invitation.id, Counts::Alone).await?;
            invitation::advance_invitation(core, &reference, invitation.id, DeliveryStatus::Notified).await?;
            return Ok(Ok(invited(&reference, invitation, &route.name, DeliveryStatus::Notified)));
        }
        if !wakes_counted {
            // The wake file is the record of all wakes, also of those by another route.
            wake_file::append_to_wake_file(core, &reference, &invitation.from, invitation.id, Counts::Alone).await?;
            wakes_counted = true;
        }
        let text = match route.carries {
            Carries::Message => worded(invitation),
            Carries::Notification => news(invitation),
        };
        if route.carries == Carries::Message && text.len() > route.max_bytes as usize {
            refused.push(format!("{}: the invitation does not fit into {} bytes", route.name, route.max_bytes));
            continue;
        }
        let mail = Mail { ids: vec![invitation.id], text, priority: Priority::Normal };
        match found.harness.deliver(&found.session, &route.name, &mail).await {
            Ok(delivered) => {
                let delivered = route.counted(delivered);
                invitation::advance_invitation(core, &reference, invitation.id, delivered.status).await?;
                if route.carries == Carries::Message {
                    // This route carries the text; a hook must not show it a second time.
                    invitation::settle_brought(core, &reference, invitation.id).await?;
                }
                return Ok(Ok(invited(&reference, invitation, &route.name, delivered.status)));
            }
            Err(HarnessError::Busy(_)) => refused.push(format!("{}: busy, try again", route.name)),
            Err(error) => refused.push(format!("{}: {error}", route.name)),
        }
    }
    if refused.is_empty() {
        refused.push(format!("no route of its adapter reaches it while it is {}", activity.as_str()));
    }
    Ok(Err(refused))
}

fn invited(session: &SessionRef, invitation: &Invitation, route: &str, status: DeliveryStatus) -> Invited {
    let Invitation { from, until, .. } = invitation;
    Invited { session: session.clone(), from: from.clone(), route: route.to_owned(), status, until: *until }
}
