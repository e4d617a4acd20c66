//! Following: reads the logs from a cursor on, sends each event once, and waits for more.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mesh::names::AgentName;
use mesh::{Event, Mesh, ReceiptCounts, ReceiptsOf};
use store::{Position, StoreError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant as Moment, sleep_until};

use super::cursor::Cursor;
use super::deltas::DeltaReader;
use super::outlet::{Cut, Outlet};
use super::socket_lines::{EventLine, Subscription};
use super::topic::Topic;
use crate::line_reader::{Lines, NextLine};
use crate::pace::Pace;
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
/// say. `cursor` is the position sent so far, also after the end.
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
    let at = begin(mesh, subscription).await?;
    let wanted = deltas.filter(|_| subscription.topics.contains(&Topic::Deltas));
    let mut said = DeltaReader::of(wanted.map(Path::to_owned), subscription.agent.clone());
    let mut is_written_to = true;
    let mut mistakes = 0;
    let all_receipts = AllReceipts { counts: ReceiptCounts::default(), pace: Pace::unread(Moment::now()) };
    let mut follower = Follower { mesh, subscription, at, sent: cursor, outlet, all_receipts };
    follower.say(&EventLine::subscribed(subscription, &follower.at)).await?;
    loop {
        follower.tell_event_log().await?;
        follower.tell_inbox().await?;
        follower.tell_receipts().await?;
        let due = follower.due();
        tokio::select! {
            changed = watch.changed() => {
                changed?;
                follower.all_receipts.pace.mark();
            }
            () = sleep_until(due.unwrap_or_else(Moment::now)), if due.is_some() => {}
            delta = said.next() => {
                if delta.is_cut() {
                    return Err(Cut::Nonsense("what agents say came faster than it was read").into());
                }
                follower.say(&EventLine::Delta(delta)).await?;
            }
            line = lines.next(), if is_written_to => match line {
                // It may have closed its sending side and still read, as `nc` does at the end of its input.
                Ok(NextLine::End) => {
                    is_written_to = false;
                    follower.say(&EventLine::alive(&follower.at)).await?;
                }
                Ok(NextLine::Text(_) | NextLine::TooLong) => {
                    mistakes += 1;
                    if mistakes > MOST_MISTAKES {
                        return Err(Cut::Nonsense("too many lines were not understood").into());
                    }
                    let wrong = "a connection follows one subscription; open another for another";
                    follower.say(&EventLine::error(wrong)).await?;
                }
                Err(error) => return Err(Cut::Gone(error).into()),
            },
            // Once the follower's side is closed, only a write shows whether it is still there.
            () = tokio::time::sleep(SIGN_OF_LIFE), if !is_written_to => {
                follower.say(&EventLine::alive(&follower.at)).await?;
            }
        }
    }
}

/// Where following starts: at the follower's cursor, or at the current ends of the logs.
async fn begin(mesh: &Mesh, subscription: &Subscription) -> Result<Cursor, Followed> {
    let mut end = Cursor { event_log: mesh.event_log_end().await?, ..Cursor::default() };
    if let Some(agent) = subscription.inbox() {
        end.inbox = mesh.inbox_end(agent).await?;
    }
    match subscription.receipts() {
        None => {}
        Some(ReceiptsOf::One(agent)) => end.receipts = mesh.receipts_end(agent).await?,
        // Of use only to those who begin at the ends.
        Some(ReceiptsOf::All) if subscription.cursor.is_none() => {
            end.all_receipts = Arc::new(mesh.ends_of_receipts().await?);
        }
        Some(ReceiptsOf::All) => {}
    }
    let Some(at) = subscription.cursor.clone() else { return Ok(end) };
    let (is_another, is_beyond_receipts) = match subscription.receipts() {
        None => (false, false),
        Some(ReceiptsOf::One(_)) => (!at.all_receipts.is_empty(), at.receipts > end.receipts),
        // An agent whose position is beyond the end was deleted since, and registered anew.
        Some(ReceiptsOf::All) => (at.receipts != Position::START, false),
    };
    if is_another {
        return Err(Cut::Nonsense("the cursor is of another subscription: `delivery` of one agent, or of all").into());
    }
    let is_beyond =
        at.event_log > end.event_log || (subscription.inbox().is_some() && at.inbox > end.inbox) || is_beyond_receipts;
    if is_beyond {
        return Err(Cut::Nonsense("the cursor is beyond the end of the logs: it belongs to another mesh").into());
    }
    Ok(at)
}

/// One who follows, and how far it is.
struct Follower<'a, W> {
    mesh: &'a Mesh,
    subscription: &'a Subscription,
    /// What was read.
    at: Cursor,
    /// What was sent.
    sent: &'a mut Option<Cursor>,
    outlet: &'a mut Outlet<W>,
    all_receipts: AllReceipts,
}

/// What is known of the receipts of every inbox, beside their positions.
struct AllReceipts {
    counts: ReceiptCounts,
    /// Each look asks about every agent, so they are as far apart as what it costs makes them.
    pace: Pace,
}

impl<W: AsyncWrite + Unpin> Follower<'_, W> {
    /// Says a line that moves nothing.
    async fn say(&mut self, line: &EventLine) -> Result<(), Cut> {
        self.outlet.say(line).await?;
        *self.sent = Some(self.at.clone());
        Ok(())
    }

    /// When it has to look again, if nothing happens.
    fn due(&self) -> Option<Moment> {
        let follows_all = self.subscription.receipts() == Some(ReceiptsOf::All);
        self.all_receipts.pace.due().filter(|_| follows_all)
    }

    async fn tell_event_log(&mut self) -> Result<(), Followed> {
        if !self.subscription.is_of_event_log() {
            return Ok(());
        }
        loop {
            let from = self.at.event_log;
            let stretch = self.mesh.event_log_part(from, STRETCH).await?;
            for event in &stretch.events {
                let before = self.at.clone();
                self.at.event_log = event.next;
                let topics = self.subscription.wants(event);
                for (number, topic) in topics.iter().enumerate() {
                    // Only the last line of an event has moved the cursor: who is cut in between gets all of them again.
                    let after = if number + 1 == topics.len() { &self.at } else { &before };
                    // A line that was begun is always completed first, so it counts as sent.
                    *self.sent = Some(after.clone());
                    self.outlet.say(&line(self.mesh, self.subscription, *topic, event, after).await?).await?;
                }
                *self.sent = Some(self.at.clone());
            }
            let is_stuck = stretch.next == from;
            self.at.event_log = stretch.next;
            *self.sent = Some(self.at.clone());
            if stretch.at_end || is_stuck {
                return Ok(());
            }
        }
    }

    async fn tell_receipts(&mut self) -> Result<(), Followed> {
        match self.subscription.receipts() {
            None => Ok(()),
            Some(ReceiptsOf::One(agent)) => {
                self.tell_receipts_of(agent, self.at.receipts, |at, next| at.receipts = next).await
            }
            Some(ReceiptsOf::All) if self.all_receipts.pace.is_due(Moment::now()) => {
                let began = Moment::now();
                self.all_receipts.pace.begin();
                let grown = self.mesh.grown_receipts(&self.at.all_receipts, &mut self.all_receipts.counts).await?;
                self.all_receipts.pace.end(began, Moment::now());
                for agent in grown.gone {
                    Arc::make_mut(&mut self.at.all_receipts).remove(&agent);
                }
                for (agent, from) in grown.more {
                    let moved = |at: &mut Cursor, next| {
                        Arc::make_mut(&mut at.all_receipts).insert(agent.clone(), next);
                    };
                    self.tell_receipts_of(&agent, from, moved).await?;
                }
                Ok(())
            }
            Some(ReceiptsOf::All) => Ok(()),
        }
    }

    async fn tell_receipts_of(
        &mut self,
        agent: &AgentName,
        mut from: Position,
        moved: impl Fn(&mut Cursor, Position),
    ) -> Result<(), Followed> {
        loop {
            let received = self.mesh.received(agent, from, STRETCH).await?;
            for (receipt, next) in &received.receipts {
                moved(&mut self.at, *next);
                *self.sent = Some(self.at.clone());
                if let Some(line) = EventLine::receipt(receipt, agent, &self.at) {
                    self.outlet.say(&line).await?;
                }
            }
            let is_stuck = received.next == from;
            from = received.next;
            moved(&mut self.at, from);
            *self.sent = Some(self.at.clone());
            if received.at_end || is_stuck {
                return Ok(());
            }
        }
    }

    async fn tell_inbox(&mut self) -> Result<(), Followed> {
        let Some(agent) = self.subscription.inbox() else { return Ok(()) };
        loop {
            let from = self.at.inbox;
            let mailed = self.mesh.mailed(agent, from, STRETCH).await?;
            for (message, next) in &mailed.messages {
                self.at.inbox = *next;
                *self.sent = Some(self.at.clone());
                self.outlet.say(&EventLine::message(message, &self.at)).await?;
            }
            let is_stuck = mailed.next == from;
            self.at.inbox = mailed.next;
            *self.sent = Some(self.at.clone());
            if mailed.at_end || is_stuck {
                return Ok(());
            }
        }
    }
}

/// The line of an event. A message that is sent is told whole, unless it is deleted by now.
async fn line(
    mesh: &Mesh,
    subscription: &Subscription,
    topic: Topic,
    event: &Event,
    cursor: &Cursor,
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
