//! Following: reads the logs from a cursor on, sends each event once, and waits for more.

use std::path::Path;
use std::time::Duration;

use mesh::{Event, Mesh};
use store::StoreError;
use tokio::io::{AsyncRead, AsyncWrite};

use super::deltas::DeltaReader;
use super::outlet::{Cut, Outlet};
use super::topic::Topic;
use super::words::{Cursor, EventLine, Subscription};
use crate::line_reader::{Line, Lines};
use crate::shapes::events::sent;

/// Bytes of a log held at a time for one follower; more only for a longer message.
const STRETCH: usize = 32 * 1024;
/// Wrong lines from one follower before it is disconnected.
const MOST_MISTAKES: usize = 16;

/// How often a follower that closed its sending side gets an `alive` line. Only a failed write shows that it is gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) enum Followed {
    /// The follower is disconnected.
    Cut(Cut),
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

/// Sends a follower what it subscribed to, until it goes or the store fails. `deltas` is the socket of what driven agents
/// say. `cursor` is the position sent so far, also
/// after the end.
pub(crate) async fn follow<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mesh: &Mesh,
    deltas: Option<&Path>,
    subscription: &Subscription,
    cursor: &mut Option<Cursor>,
    lines: &mut Lines<R>,
    outlet: &mut Outlet<W>,
) -> Followed {
    match tell(mesh, deltas, subscription, cursor, lines, outlet).await {
        Ok(never) => never,
        Err(followed) => followed,
    }
}

async fn tell<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mesh: &Mesh,
    deltas: Option<&Path>,
    subscription: &Subscription,
    cursor: &mut Option<Cursor>,
    lines: &mut Lines<R>,
    outlet: &mut Outlet<W>,
) -> Result<Followed, Followed> {
    // Watch before the first read, so that no event is missed in between.
    let mut watch = mesh.watch_growth(subscription.inbox(), subscription.receipts()).await?;
    let end = now(mesh, subscription).await?;
    let mut at = subscription.cursor.unwrap_or(end);
    let is_beyond = at.event_log > end.event_log
        || (subscription.inbox().is_some() && at.inbox > end.inbox)
        || (subscription.receipts().is_some() && at.receipts > end.receipts);
    if is_beyond {
        return Err(Cut::Nonsense("the cursor is beyond the end of the logs: it belongs to another mesh").into());
    }
    outlet.say(&EventLine::subscribed(subscription, at)).await?;
    *cursor = Some(at);
    let wanted = deltas.filter(|_| subscription.topics.contains(&Topic::Deltas));
    let mut said = DeltaReader::of(wanted.map(Path::to_owned), subscription.agent.clone());
    let mut is_written_to = true;
    let mut mistakes = 0;
    loop {
        tell_event_log(mesh, subscription, &mut at, cursor, outlet).await?;
        tell_inbox(mesh, subscription, &mut at, cursor, outlet).await?;
        tell_receipts(mesh, subscription, &mut at, cursor, outlet).await?;
        tokio::select! {
            changed = watch.changed() => changed?,
            delta = said.next() => {
                if delta.is_cut() {
                    return Err(Cut::Nonsense("what agents say came faster than it was read").into());
                }
                outlet.say(&EventLine::Delta(delta)).await?;
            }
            line = lines.next(), if is_written_to => match line {
                // It may have closed its sending side and still read, as `nc` does at the end of its input.
                Ok(Line::End) => {
                    is_written_to = false;
                    outlet.say(&EventLine::alive(at)).await?;
                }
                Ok(Line::Text(_) | Line::TooLong) => {
                    mistakes += 1;
                    if mistakes > MOST_MISTAKES {
                        return Err(Cut::Nonsense("too many lines were not understood").into());
                    }
                    outlet.say(&EventLine::error("a connection follows one subscription; open another for another")).await?;
                }
                Err(error) => return Err(Cut::Gone(error).into()),
            },
            // Once the follower's side is closed, only a write shows whether it is still there.
            () = tokio::time::sleep(SIGN_OF_LIFE), if !is_written_to => outlet.say(&EventLine::alive(at)).await?,
        }
    }
}

/// The current ends of the logs.
async fn now(mesh: &Mesh, subscription: &Subscription) -> Result<Cursor, StoreError> {
    let inbox = match subscription.inbox() {
        Some(agent) => mesh.inbox_end(agent).await?,
        None => Cursor::START.inbox,
    };
    let receipts = match subscription.receipts() {
        Some(agent) => mesh.receipts_end(agent).await?,
        None => Cursor::START.receipts,
    };
    Ok(Cursor { event_log: mesh.event_log_end().await?, inbox, receipts })
}

async fn tell_event_log<W: AsyncWrite + Unpin>(
    mesh: &Mesh,
    subscription: &Subscription,
    at: &mut Cursor,
    cursor: &mut Option<Cursor>,
    outlet: &mut Outlet<W>,
) -> Result<(), Followed> {
    if !subscription.is_of_event_log() {
        return Ok(());
    }
    loop {
        let from = at.event_log;
        let stretch = mesh.event_log_part(from, STRETCH).await?;
        for event in &stretch.events {
            let before = *at;
            at.event_log = event.next;
            let topics = subscription.wants(event);
            for (number, topic) in topics.iter().enumerate() {
                // Only the last line of an event has moved the cursor: who is cut in between gets all of them again.
                let after = if number + 1 == topics.len() { *at } else { before };
                // A line that was begun is always completed first, so it counts as sent.
                *cursor = Some(after);
                outlet.say(&line(mesh, subscription, *topic, event, after).await?).await?;
            }
            *cursor = Some(*at);
        }
        let is_stuck = stretch.next == from;
        at.event_log = stretch.next;
        *cursor = Some(*at);
        if stretch.at_end || is_stuck {
            return Ok(());
        }
    }
}

/// The line of an event. A message that is sent is told whole, unless it is deleted by now.
async fn line(
    mesh: &Mesh,
    subscription: &Subscription,
    topic: Topic,
    event: &Event,
    cursor: Cursor,
) -> Result<EventLine, StoreError> {
    let from = event.details.get("from").and_then(|from| from.as_str());
    let (id, mut to) = sent(event);
    if let Some(agent) = subscription.agent.as_ref().filter(|agent| from != Some(agent.as_str())) {
        // One who got it knows only of itself.
        to.retain(|name| name == agent);
    }
    if let (Topic::Messages, Some(id), Some(first)) = (topic, id, to.first())
        && let Some(message) = mesh.message_in(first, id).await?
    {
        return Ok(EventLine::sent(&message, to.iter().map(ToString::to_string).collect(), cursor));
    }
    Ok(EventLine::event(topic, event, cursor))
}

async fn tell_receipts<W: AsyncWrite + Unpin>(
    mesh: &Mesh,
    subscription: &Subscription,
    at: &mut Cursor,
    cursor: &mut Option<Cursor>,
    outlet: &mut Outlet<W>,
) -> Result<(), Followed> {
    let Some(agent) = subscription.receipts() else { return Ok(()) };
    loop {
        let from = at.receipts;
        let received = mesh.received(agent, from, STRETCH).await?;
        for (receipt, next) in &received.receipts {
            at.receipts = *next;
            *cursor = Some(*at);
            if let Some(line) = EventLine::receipt(receipt, agent, *at) {
                outlet.say(&line).await?;
            }
        }
        let is_stuck = received.next == from;
        at.receipts = received.next;
        *cursor = Some(*at);
        if received.at_end || is_stuck {
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
            outlet.say(&EventLine::message(message, *at)).await?;
        }
        let is_stuck = mailed.next == from;
        at.inbox = mailed.next;
        *cursor = Some(*at);
        if mailed.at_end || is_stuck {
            return Ok(());
        }
    }
}
