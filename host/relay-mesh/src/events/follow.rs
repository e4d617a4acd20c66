//! Following: reads the logs from a cursor on, tells each event once, and waits for more.

use std::time::Duration;

use mesh::Mesh;
use store::StoreError;
use tokio::io::{AsyncRead, AsyncWrite};

use super::outlet::{Cut, Outlet};
use super::words::{Cursor, Said, Subscription, Topic};
use crate::line_reader::{Line, Lines};

/// How many bytes of a log are held at a time for one follower, but for a message that is longer.
const STRETCH: usize = 32 * 1024;
/// How many lines may be wrong before nothing more is said to whoever writes them.
const MOST_MISTAKES: usize = 16;

/// How often a follower that closed its own side is told that this one is there, and found out to be gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

/// How following ended.
#[derive(Debug)]
pub(crate) enum Followed {
    /// The follower is to be told nothing more.
    Cut(Cut),
    /// The store failed.
    Store(StoreError),
}

impl From<Cut> for Followed {
    fn from(cut: Cut) -> Followed {
        Followed::Cut(cut)
    }
}

impl From<StoreError> for Followed {
    fn from(error: StoreError) -> Followed {
        Followed::Store(error)
    }
}

/// Tells a follower what it subscribed to, until it goes or the store fails. `cursor` says how far it was told,
/// also after the end.
pub(crate) async fn follow<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mesh: &Mesh,
    subscription: &Subscription,
    cursor: &mut Option<Cursor>,
    lines: &mut Lines<R>,
    outlet: &mut Outlet<W>,
) -> Followed {
    match tell(mesh, subscription, cursor, lines, outlet).await {
        Ok(never) => never,
        Err(followed) => followed,
    }
}

async fn tell<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mesh: &Mesh,
    subscription: &Subscription,
    cursor: &mut Option<Cursor>,
    lines: &mut Lines<R>,
    outlet: &mut Outlet<W>,
) -> Result<Followed, Followed> {
    // Watching begins before looking, so that nothing can come in between.
    let mut watch = mesh.watch_growth(subscription.inbox()).await?;
    let end = now(mesh, subscription).await?;
    let mut at = subscription.cursor.unwrap_or(end);
    if at.event_log > end.event_log || (subscription.inbox().is_some() && at.inbox > end.inbox) {
        return Err(Cut::Nonsense("the cursor lies beyond the end of the logs: it is of another mesh").into());
    }
    outlet.say(&Said::subscribed(subscription, at)).await?;
    *cursor = Some(at);
    let mut is_written_to = true;
    let mut mistakes = 0;
    loop {
        tell_event_log(mesh, subscription, &mut at, cursor, outlet).await?;
        tell_inbox(mesh, subscription, &mut at, cursor, outlet).await?;
        tokio::select! {
            changed = watch.changed() => changed?,
            line = lines.next(), if is_written_to => match line {
                // It may have closed its own side and read on, as `nc` does at the end of its input.
                Ok(Line::End) => {
                    is_written_to = false;
                    outlet.say(&Said::alive(at)).await?;
                }
                Ok(Line::Text(_) | Line::TooLong) => {
                    mistakes += 1;
                    if mistakes > MOST_MISTAKES {
                        return Err(Cut::Nonsense("too many lines were not understood").into());
                    }
                    outlet.say(&Said::error("a connection follows one subscription; open another for another")).await?;
                }
                Err(error) => return Err(Cut::Gone(error).into()),
            },
            // Whether anybody is still there is then only seen by writing to them.
            () = tokio::time::sleep(SIGN_OF_LIFE), if !is_written_to => outlet.say(&Said::alive(at)).await?,
        }
    }
}

/// Where everything ends now.
async fn now(mesh: &Mesh, subscription: &Subscription) -> Result<Cursor, StoreError> {
    let inbox = match subscription.inbox() {
        Some(agent) => mesh.inbox_end(agent).await?,
        None => Cursor::START.inbox,
    };
    Ok(Cursor { event_log: mesh.event_log_end().await?, inbox })
}

async fn tell_event_log<W: AsyncWrite + Unpin>(
    mesh: &Mesh,
    subscription: &Subscription,
    at: &mut Cursor,
    cursor: &mut Option<Cursor>,
    outlet: &mut Outlet<W>,
) -> Result<(), Followed> {
    if subscription.topics.iter().all(|topic| *topic == Topic::Inbox) {
        return Ok(());
    }
    loop {
        let from = at.event_log;
        let stretch = mesh.event_log_part(from, STRETCH).await?;
        for event in &stretch.events {
            at.event_log = event.next;
            // A line that was begun is ended before anything else is said, so it counts as told.
            *cursor = Some(*at);
            if let Some(topic) = subscription.wants(event) {
                outlet.say(&Said::event(topic, event, *at)).await?;
            }
        }
        let is_stuck = stretch.next == from;
        at.event_log = stretch.next;
        *cursor = Some(*at);
        if stretch.at_end || is_stuck {
            return Ok(());
        }
    }
}

async fn tell_inbox<W: AsyncWrite + Unpin>(
    mesh: &Mesh,
    subscription: &Subscription,
    at: &mut Cursor,
    cursor: &mut Option<Cursor>,
    outlet: &mut Outlet<W>,
) -> Result<(), Followed> {
    let Some(agent) = subscription.inbox() else { return Ok(()) };
    loop {
        let from = at.inbox;
        let mailed = mesh.mailed(agent, from, STRETCH).await?;
        for (message, next) in &mailed.messages {
            at.inbox = *next;
            *cursor = Some(*at);
            outlet.say(&Said::message(message, *at)).await?;
        }
        let is_stuck = mailed.next == from;
        at.inbox = mailed.next;
        *cursor = Some(*at);
        if mailed.at_end || is_stuck {
            return Ok(());
        }
    }
}
