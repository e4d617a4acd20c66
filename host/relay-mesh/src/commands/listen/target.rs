//! An agent or session whose mail `listen` prints, and the task that follows it.

use std::sync::Arc;
use std::time::Duration;

use mesh::messages::LONGEST_BODY;
use mesh::names::{AgentName, MessageId};
use mesh::sessions::{Activity, SessionRef};
use mesh::{Fetch, FetchError, FetchedMessage, Lease, MailWatch, Mesh, TakenInvitation};
use store::{Hold, StoreError};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Milliseconds before the store is tried again after a first fault.
const AFTER_A_FAULT: u64 = 2_000;
/// After this long without a fault, the next fault counts as a first one.
const WELL: Duration = Duration::from_secs(60);
/// Retry interval while another process delivers mail to the session.
const WHILE_HELD: Duration = Duration::from_millis(200);

/// The agent or session whose mail is followed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Agent(AgentName),
    /// The agent bound to this session, once there is one.
    Session(SessionRef),
}

impl Target {
    /// The session's id, if the target is a session.
    pub(super) fn session(&self) -> Option<&str> {
        match self {
            Target::Agent(_) => None,
            Target::Session(session) => Some(&session.id),
        }
    }
}

/// What a task found for its target.
pub(super) struct Arrival {
    pub(super) target: Target,
    pub(super) news: Finding,
}

pub(super) enum Finding {
    /// An agent is bound to the session, for the first time or instead of another.
    Agent(AgentName),
    /// A message, leased.
    Message(Box<FetchedMessage>, Lease),
    /// An invitation of a session that has no agent, leased.
    Invitation(Box<TakenInvitation>),
    /// A fault. The task tries again.
    Fault(String),
}

/// Until when a target rests, if it does. Written when a connector refuses a message.
pub(super) type Rest = Option<Instant>;

/// Follows a target until `stop`, or until the receiver of `news` is gone. The task is never dropped half-way:
/// every lease it takes is either sent on or released.
pub(super) async fn follow(
    mesh: Arc<Mesh>,
    target: Target,
    mut rest: watch::Receiver<Rest>,
    news: mpsc::Sender<Arrival>,
    mut known: Option<AgentName>,
    stop: CancellationToken,
) {
    let mut failed = 0;
    let mut invited = None;
    loop {
        let began = Instant::now();
        let outcome = follow_once(&mesh, &target, &mut rest, &news, &mut known, &mut invited, &stop).await;
        let words = match outcome {
            Ok(()) => break,
            Err(error) => error.to_string(),
        };
        if news.send(Arrival { target: target.clone(), news: Finding::Fault(words) }).await.is_err() {
            break;
        }
        failed = if began.elapsed() > WELL { 0 } else { failed };
        let wait = Duration::from_millis(mesh::spaced(AFTER_A_FAULT, failed));
        failed += 1;
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(wait) => {}
        }
    }
    if let Target::Session(session) = &target
        && let Err(error) = mesh.listens_no_more(session).await
    {
        tracing::warn!(%error, "a session counts as listened for until this process ends");
    }
}

/// Returns on `stop`, when the receiver of `news` is gone, or with a fault.
async fn follow_once(
    mesh: &Mesh,
    target: &Target,
    rest: &mut watch::Receiver<Rest>,
    news: &mpsc::Sender<Arrival>,
    known: &mut Option<AgentName>,
    invited: &mut Option<MessageId>,
    stop: &CancellationToken,
) -> Result<(), FetchError> {
    let mut lease: Option<Box<dyn Hold>> = None;
    loop {
        let held = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            found = agent_of(mesh, target, *invited) => found?,
        };
        let Held { agent, activity, mut moved, stopped_for } = match held {
            Occupied::Joined(held) => held,
            Occupied::Invited(session) => {
                let Some(taken) = mesh.take_invitation_to_bring(&session, *invited).await? else { continue };
                // One process prints an invitation once: a connector that does not know the line must not
                // keep the session's hooks from showing it.
                *invited = Some(taken.id);
                let id = taken.id;
                if news
                    .send(Arrival { target: target.clone(), news: Finding::Invitation(Box::new(taken)) })
                    .await
                    .is_err()
                {
                    mesh.give_back_invitation(&session, id).await?;
                    return Ok(());
                }
                continue;
            }
        };
        if known.as_ref() != Some(&agent) {
            *known = Some(agent.clone());
            if news.send(Arrival { target: target.clone(), news: Finding::Agent(agent.clone()) }).await.is_err() {
                return Ok(());
            }
        }
        // One lease for each message, because each is confirmed on its own.
        let ask = Fetch { limit: 1, max_length: LONGEST_BODY, interrupting: activity, ..Fetch::default() };
        let mut mail: Option<MailWatch<'_>> = None;
        let found = loop {
            let waited = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = over(stopped_for) => Waited::Session,
                waited = wait(mesh, target, &agent, &ask, &mut moved, rest, (&mut lease, &mut mail)) => waited?,
            };
            match waited {
                Waited::Session => break None,
                Waited::Mail => {}
            }
            let fetched = mesh.fetch(&agent, &ask).await?;
            if let (Some(message), Some(lease)) = (fetched.messages.into_iter().next(), fetched.lease) {
                break Some((message, lease));
            }
        };
        let Some((message, lease)) = found else { continue };
        let arrival = Arrival { target: target.clone(), news: Finding::Message(Box::new(message), lease) };
        if let Err(mpsc::error::SendError(Arrival { news: Finding::Message(_, lease), .. })) = news.send(arrival).await
        {
            mesh.release(lease).await?;
            return Ok(());
        }
    }
}

/// Waits until the target has rested and mail may be delivered to it, or until its session has changed. A refusal
/// that comes meanwhile makes it rest again.
async fn wait<'a>(
    mesh: &'a Mesh,
    target: &Target,
    agent: &AgentName,
    ask: &Fetch,
    moved: &mut Option<Box<dyn store::Watch>>,
    rest: &mut watch::Receiver<Rest>,
    (lease, watch): (&mut Option<Box<dyn Hold>>, &mut Option<MailWatch<'a>>),
) -> Result<Waited, FetchError> {
    let changed = async {
        match moved {
            Some(moved) => moved.changed().await,
            None => std::future::pending().await,
        }
    };
    let mail = async {
        loop {
            let until = *rest.borrow_and_update();
            if let Some(until) = until.filter(|until| *until > Instant::now()) {
                // Other routes may deliver to the session meanwhile.
                *lease = None;
                tokio::time::sleep_until(until).await;
            }
            tokio::select! {
                biased;
                Ok(()) = rest.changed() => {}
                outcome = mail_for(mesh, target, agent, ask, (&mut *lease, &mut *watch)) => return outcome,
            }
        }
    };
    tokio::select! {
        outcome = changed => outcome.map(|()| Waited::Session).map_err(FetchError::from),
        outcome = mail => outcome.map(|()| Waited::Mail),
    }
}

/// Waits until a fetch may return mail; the first call returns at once. For a session it first waits for the right
/// to deliver to it.
async fn mail_for<'a>(
    mesh: &'a Mesh,
    target: &Target,
    agent: &AgentName,
    ask: &Fetch,
    (lease, watch): (&mut Option<Box<dyn Hold>>, &mut Option<MailWatch<'a>>),
) -> Result<(), FetchError> {
    if let Target::Session(session) = target {
        while lease.is_none() {
            *lease = mesh.hold_delivery(session).await?;
            if lease.is_none() {
                tokio::time::sleep(WHILE_HELD).await;
            }
        }
    }
    match watch {
        Some(watch) => watch.may_have_come(ask).await,
        None => {
            // Watch before reading, so that no change is missed in between.
            *watch = Some(mesh.watch_mail(agent).await?);
            Ok(())
        }
    }
}

/// Waits as long as its user's stop counts.
async fn over(stopped_for: Option<Duration>) {
    match stopped_for {
        Some(left) => tokio::time::sleep(left).await,
        None => std::future::pending().await,
    }
}

/// What ended the wait.
enum Waited {
    Mail,
    Session,
}

struct Held {
    agent: AgentName,
    /// What the session does; none if the target is an agent.
    activity: Option<Activity>,
    /// Changes when any of this may have changed.
    moved: Option<Box<dyn store::Watch>>,
    /// How long its mail waits for the user who stopped it.
    stopped_for: Option<Duration>,
}

/// What a target has by now: an agent or an invitation.
enum Occupied {
    Joined(Held),
    /// It has no agent, and is invited.
    Invited(SessionRef),
}

/// Waits for the target's agent, or for an invitation while it has none.
async fn agent_of(mesh: &Mesh, target: &Target, invited: Option<MessageId>) -> Result<Occupied, StoreError> {
    match target {
        Target::Agent(agent) => {
            Ok(Occupied::Joined(Held { agent: agent.clone(), activity: None, moved: None, stopped_for: None }))
        }
        Target::Session(session) => {
            // Watch before reading, so that no change is missed in between.
            let mut watch = mesh.watch_sessions(&session.harness).await?;
            loop {
                // Noted again each time: another process that listened for the session may have ended.
                mesh.listens_for(session).await?;
                if let Some(view) = mesh.session(session).await?
                    && let Some(agent) = view.record.agent
                {
                    let stopped_for = view.stopped_for.map(Duration::from_millis);
                    // After a stop its user has the next word, as they have while it asks them.
                    let activity = if stopped_for.is_some() { Activity::NeedsInput } else { view.activity };
                    let held = Held { agent, activity: Some(activity), moved: Some(watch), stopped_for };
                    return Ok(Occupied::Joined(held));
                }
                if mesh.invitation_waits(session, invited).await? {
                    return Ok(Occupied::Invited(session.clone()));
                }
                watch.changed().await?;
            }
        }
    }
}
