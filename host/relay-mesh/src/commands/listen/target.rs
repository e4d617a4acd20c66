//! What is listened for, and the task that follows it.

use std::sync::Arc;
use std::time::Duration;

use mesh::message::LONGEST_BODY;
use mesh::names::{AgentName, MessageId};
use mesh::session::{Activity, SessionRef};
use mesh::{Fetch, FetchError, FetchedMessage, Lease, MailWatch, Mesh, TakenInvitation};
use store::{Hold, StoreError};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// After a first fault the store is tried again after so many milliseconds.
const AFTER_A_FAULT: u64 = 2_000;
/// What went well for longer has failed for another reason than the last time.
const WELL: Duration = Duration::from_secs(60);
/// How often it is seen whether another process still brings mail to the session.
const WHILE_HELD: Duration = Duration::from_millis(200);

/// Whose mail is followed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// An agent's.
    Agent(AgentName),
    /// That of whatever agent is bound to a session, once one is.
    Session(SessionRef),
}

impl Target {
    /// The session's id, where it is one.
    pub(super) fn session(&self) -> Option<&str> {
        match self {
            Target::Agent(_) => None,
            Target::Session(session) => Some(&session.id),
        }
    }
}

/// What a task has to say.
pub(super) struct Arrival {
    /// For which target.
    pub(super) target: Target,
    /// What.
    pub(super) news: Found,
}

/// What came up.
pub(super) enum Found {
    /// An agent is bound to the session, for the first time or instead of another.
    Agent(AgentName),
    /// A message, leased.
    Message(Box<FetchedMessage>, Lease),
    /// An invitation of a session that has no agent, leased.
    Invitation(Box<TakenInvitation>),
    /// A fault. It is tried again.
    Fault(String),
}

/// Until when a target rests; none where it does not. Written when a connector refuses a message.
pub(super) type Rest = Option<Instant>;

/// Follows a target until it is told to stop or nobody takes its news any more. It is never
/// dropped half-way: between a lease and its news there is always somebody who has the lease.
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
        if news.send(Arrival { target: target.clone(), news: Found::Fault(words) }).await.is_err() {
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

/// Returns when it was told to stop or nobody takes its news any more, or with a fault.
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
        let Held { agent, activity, mut moved } = match held {
            Occupied::Joined(held) => held,
            Occupied::Invited(session) => {
                let Some(taken) = mesh.take_invitation_to_bring(&session, *invited).await? else { continue };
                // Each is printed once by one process: a connector that does not know the line must not keep
                // the session's hooks from showing it.
                *invited = Some(taken.id);
                let id = taken.id;
                if news
                    .send(Arrival { target: target.clone(), news: Found::Invitation(Box::new(taken)) })
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
            if news.send(Arrival { target: target.clone(), news: Found::Agent(agent.clone()) }).await.is_err() {
                return Ok(());
            }
        }
        // One lease for each message: each is confirmed by itself.
        let ask = Fetch { limit: 1, max_length: LONGEST_BODY, interrupting: activity, ..Fetch::default() };
        let mut mail: Option<MailWatch<'_>> = None;
        let found = loop {
            let waited = tokio::select! {
                () = stop.cancelled() => return Ok(()),
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
        let arrival = Arrival { target: target.clone(), news: Found::Message(Box::new(message), lease) };
        if let Err(mpsc::error::SendError(Arrival { news: Found::Message(_, lease), .. })) = news.send(arrival).await {
            mesh.release(lease).await?;
            return Ok(());
        }
    }
}

/// Waits until the target has rested, and then for mail that may be brought to it now, or until its
/// session has changed. A refusal that comes meanwhile makes it rest again.
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
                // Whatever else can bring mail to the session may do so meanwhile.
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

/// Waits until a fetch may give something, with the right to bring it to the session where there is one: at once
/// where nobody has looked yet.
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
            // Watching begins before looking, so that nothing can come in between.
            *watch = Some(mesh.watch_mail(agent).await?);
            Ok(())
        }
    }
}

/// What the wait was ended by.
enum Waited {
    Mail,
    Session,
}

/// A target's agent, as it stands now.
struct Held {
    agent: AgentName,
    /// What the session does, where the target is one.
    activity: Option<Activity>,
    /// Says that any of this may have changed.
    moved: Option<Box<dyn store::Watch>>,
}

/// What a target waited for.
enum Occupied {
    /// It has an agent.
    Joined(Held),
    /// It has none, and is invited.
    Invited(SessionRef),
}

/// The target's agent, waited for where there is none yet; or an invitation, which comes before there is one.
async fn agent_of(mesh: &Mesh, target: &Target, invited: Option<MessageId>) -> Result<Occupied, StoreError> {
    match target {
        Target::Agent(agent) => Ok(Occupied::Joined(Held { agent: agent.clone(), activity: None, moved: None })),
        Target::Session(session) => {
            // Watching begins before looking, so that nothing can come in between.
            let mut watch = mesh.watch_sessions(&session.harness).await?;
            loop {
                // Said again each time: another process that listened may have gone.
                mesh.listens_for(session).await?;
                if let Some(view) = mesh.session(session).await?
                    && let Some(agent) = view.record.agent
                {
                    let held = Held { agent, activity: Some(view.activity), moved: Some(watch) };
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
