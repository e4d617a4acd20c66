//! Reads the mesh for views: all of it once, and then what has changed.
//!
//! It follows the same watches as `status --follow` and `events`. While nothing happens and no agent is here that could
//! fall silent, it waits without a timer.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use mesh::ports::machine::{Instant, Machine as _};
use mesh::{Event, MailReader, NewestThreads};
use store::Position;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant as Moment, sleep, sleep_until};
use view::live::{LogRow, News, RunRow};
use view::{AgentDetail, MessageView, PresenceView, ThreadSummaryView, ThreadView};

use super::overview::{overview, runs};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::pace::Pace;
use crate::shapes::events::{details, details_text, sent};

/// The poll interval while an agent is here: silence raises no event.
const LOOK: Duration = Duration::from_secs(5);
/// How long to wait before a mesh that could not be read is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// So much of the past is in the log at first, in milliseconds.
pub(super) const PAST: u64 = 6 * 3_600_000;
/// So many conversations are listed.
const THREADS: usize = 5_000;
/// So many messages of the open conversation are shown.
const MESSAGES: usize = 500;
/// Bytes of the event log that are read at a time.
pub(super) const STRETCH: usize = 256 * 1024;

/// Takes what was read, to show it.
pub(super) type Viewer<'a> = Box<dyn Fn(News) + Send + Sync + 'a>;

/// What a view wants of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// These conversations, and each again whenever it has changed; no others any more.
    Show(Vec<String>),
    /// Everything again now: its user has changed something.
    Again,
}

/// A conversation that is looked at, by the name that it was opened by.
struct Conversation {
    name: String,
    /// Whether it was not read yet, while its reader waits for it.
    is_new: bool,
}

/// What reads the mesh for views.
pub(super) struct Reader<'a> {
    context: &'a Context,
    open: &'a Open,
    view: Viewer<'a>,
    /// The next event; none before the log was read.
    next: Option<Position>,
    /// What is looked at: each is read, and again whenever it has changed.
    conversations: Vec<Conversation>,
    /// The list of conversations as it was read last: reading it again costs what is new.
    newest: NewestThreads,
    runs: Vec<RunRow>,
    /// Whether an agent is here that could fall silent.
    agents_are_here: bool,
    overview: Pace,
    threads: Pace,
    /// Of all conversations that are looked at: many cost no more of a core than one.
    looked_at: Pace,
    /// Whether a run has begun or ended since they were read.
    runs_changed: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn of(context: &'a Context, open: &'a Open, view: Viewer<'a>) -> Reader<'a> {
        let unread = Pace::unread(Moment::now());
        Reader {
            context,
            open,
            view,
            next: None,
            conversations: Vec::new(),
            newest: NewestThreads::of(THREADS),
            runs: Vec::new(),
            agents_are_here: false,
            overview: unread,
            threads: unread,
            looked_at: unread,
            runs_changed: true,
        }
    }

    /// Reads until it is dropped. If the mesh cannot be read, the view keeps what is known, and it is tried again.
    pub(super) async fn read(mut self, mut requests: UnboundedReceiver<Request>) -> Infallible {
        loop {
            let Err(error) = self.follow(&mut requests).await;
            // Who was here is kept on this machine, for while servers are out of reach.
            if let Ok(known) = overview(self.open, self.runs.clone()).await {
                self.tell(News::Overview(Box::new(known)));
            }
            self.tell(News::Lost(mesh::reasons(&error)));
            sleep(RETRY).await;
            self.hurry();
        }
    }

    fn hurry(&mut self) {
        let now = Moment::now();
        [&mut self.overview, &mut self.threads, &mut self.looked_at].into_iter().for_each(|pace| pace.hurry(now));
    }

    fn tell(&self, news: News) {
        // That a view is over is noticed by its effects.
        (self.view)(news);
    }

    async fn follow(&mut self, requests: &mut UnboundedReceiver<Request>) -> Result<Infallible, CommandError> {
        let mesh = &self.open.mesh;
        // Watch before reading, so that no change is missed in between.
        let mut state = mesh.watch_status().await?;
        let mut asks = mesh.watch_asks().await?;
        let mut log = mesh.watch_event_log().await?;
        loop {
            self.read_what_is_due().await?;
            let looked_at = Some(&self.looked_at).filter(|_| !self.conversations.is_empty());
            // Each message changes half a dozen files. What they would say is known until the mesh is read again.
            let knows_all = self.overview.is_stale() && looked_at.is_none_or(Pace::is_stale);
            let paces = [&self.overview, &self.threads].into_iter().chain(looked_at);
            let due = paces.filter_map(Pace::due).min();
            tokio::select! {
                changed = state.changed(), if !knows_all => {
                    changed?;
                    self.overview.mark();
                    self.looked_at.mark();
                }
                changed = asks.changed(), if !self.overview.is_stale() => {
                    changed?;
                    self.overview.mark();
                }
                changed = log.changed() => {
                    changed?;
                    self.read_log().await?;
                }
                request = requests.recv() => match request {
                    Some(Request::Show(names)) => self.show(names),
                    Some(Request::Again) => self.hurry(),
                    None => self.show(Vec::new()),
                },
                () = sleep_until(due.unwrap_or_else(Moment::now)), if due.is_some() => {}
                () = sleep(LOOK), if self.agents_are_here => self.overview.mark(),
            }
        }
    }

    /// Conversations that were not looked at before are read now.
    fn show(&mut self, names: Vec<String>) {
        let known: HashSet<String> = self.conversations.drain(..).map(|conversation| conversation.name).collect();
        let conversation = |name: String| Conversation { is_new: !known.contains(&name), name };
        self.conversations = names.into_iter().map(conversation).collect();
    }

    async fn read_what_is_due(&mut self) -> Result<(), CommandError> {
        if self.overview.is_due(Moment::now()) {
            let began = Moment::now();
            self.overview.begin();
            // The agents are on screen before their mail is counted, and before runs are read, each of which is a file.
            let is_first = self.next.is_none();
            if is_first {
                let agents = self.open.mesh.agents_without_mail().await?;
                self.tell(News::Agents(self.open.machine.now(), agents.iter().map(AgentDetail::from).collect()));
            }
            let wants_runs = self.runs_changed || self.runs.iter().any(|run| run.ended.is_none());
            if wants_runs && !is_first {
                self.runs_changed = false;
                self.runs = runs(self.context, self.open);
            }
            let overview = overview(self.open, self.runs.clone()).await?;
            self.agents_are_here = overview.agents.iter().any(|agent| is_here(agent.agent.presence));
            self.overview.end(began, Moment::now());
            self.tell(News::Overview(Box::new(overview)));
        }
        // What the user waits for comes before what is only nice to know.
        let (began, all) = (Moment::now(), self.looked_at.is_due(Moment::now()));
        if all {
            self.looked_at.begin();
        }
        for at in 0..self.conversations.len() {
            if all || std::mem::take(&mut self.conversations[at].is_new) {
                self.read_conversation(&self.conversations[at].name).await?;
            }
        }
        if all {
            self.looked_at.end(began, Moment::now());
        }
        if self.threads.is_due(Moment::now()) {
            let began = Moment::now();
            self.threads.begin();
            let found = self.open.mesh.newest_threads(&mut self.newest).await?;
            self.threads.end(began, Moment::now());
            self.tell(News::Threads(found.iter().map(ThreadSummaryView::from).collect()));
        }
        if self.next.is_none() {
            let since = Instant(self.open.machine.now().0.saturating_sub(PAST));
            self.next = Some(self.open.mesh.event_log_since(since).await?);
            self.read_past().await?;
            self.overview.hurry(Moment::now());
        }
        Ok(())
    }

    async fn read_conversation(&self, name: &str) -> Result<(), CommandError> {
        match self.open.mesh.mail_thread(&MailReader::User, name, MESSAGES).await {
            Ok(found) => self.tell(News::Thread(name.to_owned(), Box::new(ThreadView::from(&found)))),
            Err(error @ mesh::ThreadError::Store(_)) => return Err(error.into()),
            // It was deleted meanwhile.
            Err(error @ (mesh::ThreadError::Unknown(_) | mesh::ThreadError::Ambiguous(_))) => {
                self.tell(News::NoThread(name.to_owned(), mesh::reasons(&error)));
            }
        }
        Ok(())
    }

    /// The log until now. Its messages are in the conversations already.
    async fn read_past(&mut self) -> Result<(), CommandError> {
        while let Some(events) = self.further_events().await? {
            self.tell(News::Log(events.iter().map(log_row).collect()));
        }
        Ok(())
    }

    /// What has happened since. A message is shown at once; the list of conversations is read again when it is time.
    async fn read_log(&mut self) -> Result<(), CommandError> {
        if self.next.is_none() {
            return Ok(());
        }
        while let Some(events) = self.further_events().await? {
            // Told together, so that a view draws once.
            let mut news = Vec::new();
            for event in &events {
                match event.kind.as_str() {
                    "sent" => news.extend(self.read_message(event).await?),
                    "run-started" | "run-ended" => self.runs_changed = true,
                    _ => {}
                }
            }
            self.overview.mark();
            news.push(News::Log(events.iter().map(log_row).collect()));
            news.into_iter().for_each(|news| self.tell(news));
        }
        Ok(())
    }

    /// The next events of the log; none if there are none yet.
    async fn further_events(&mut self) -> Result<Option<Vec<Event>>, CommandError> {
        let from = self.next.unwrap_or(Position::START);
        let stretch = self.open.mesh.event_log_part(from, STRETCH).await?;
        self.next = Some(stretch.next);
        Ok((stretch.next != from).then_some(stretch.events))
    }

    /// The message of an event; none if it is deleted by now.
    async fn read_message(&mut self, event: &Event) -> Result<Option<News>, CommandError> {
        self.threads.mark();
        self.looked_at.mark();
        let (id, to) = sent(event);
        let (Some(id), Some(first)) = (id, to.first()) else { return Ok(None) };
        let message = self.open.mesh.message_in(first, id).await?;
        let recipients = to.iter().map(ToString::to_string).collect();
        Ok(message.map(|message| News::Sent(Box::new(MessageView::from(&message)), recipients)))
    }
}

/// Whether an agent could fall silent without an event.
fn is_here(presence: PresenceView) -> bool {
    match presence {
        PresenceView::Busy | PresenceView::NeedsInput | PresenceView::Idle => true,
        PresenceView::Away | PresenceView::Offline => false,
    }
}

fn log_row(event: &Event) -> LogRow {
    LogRow {
        key: event.next.0.to_string(),
        at: event.at,
        kind: event.kind.clone(),
        text: details_text(&details(event)),
    }
}
