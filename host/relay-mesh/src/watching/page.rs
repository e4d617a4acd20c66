//! The page of the server: reads the mesh for it while one is open, and does what its user asks for.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mesh::ports::machine::{Instant, Machine};
use mesh::{Event, MailReader, StatusError, ThreadError};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch::Receiver;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use view::live::{Effect, News};
use view::{ThreadMessageView, ThreadView};
use web::{Pages, Watched};

use super::effects;
use super::reading::{PAST, Reader, Request, STRETCH};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::shapes::events::sent;

/// The mesh is read for so long after the last page was closed: one that goes to another address comes back at once.
const LINGERS: Duration = Duration::from_secs(10);
/// So many of the newest messages are in the lanes.
const NEWEST: usize = 100;

/// Where the codes and sessions of pages are.
pub(crate) fn folder(dir: &Path) -> PathBuf {
    dir.join("page")
}

/// The pages of a server, and the task that reads the mesh for them whenever one is open. It ends with
/// `stop`.
pub(crate) fn begin(context: &Context, open: &Arc<Open>, stop: CancellationToken) -> (Pages, JoinHandle<()>) {
    let acted = Arc::new(Notify::new());
    let host = PageHost { context: context.on_a_page(), open: Arc::clone(open), acted: Arc::clone(&acted) };
    let machine = Arc::clone(&open.machine);
    let pages = Pages::new(folder(&context.settings.dir.value), machine, Arc::new(host), stop.clone());
    let following = follow(context.on_a_page(), Arc::clone(open), pages.clone(), acted, stop);
    (pages, tokio::spawn(following))
}

async fn follow(context: Context, open: Arc<Open>, pages: Pages, acted: Arc<Notify>, stop: CancellationToken) {
    let mut watched = pages.watched();
    let is_looked_at = |watched: &Watched| watched.pages > 0;
    loop {
        tokio::select! {
            opened = watched.wait_for(is_looked_at) => if opened.is_err() { return },
            () = stop.cancelled() => return,
        }
        let (ask, requests) = unbounded_channel();
        let reader = Reader::of(&context, &open, Box::new(|news| pages.tell(news)));
        tokio::select! {
            never = reader.read(requests) => match never {},
            () = stop.cancelled() => return,
            () = until_all_are_closed(&mut watched, &acted, &ask) => {}
        }
        pages.forget();
    }
}

/// Tells the reader what is looked at, until no page has been open for a while.
async fn until_all_are_closed(watched: &mut Receiver<Watched>, acted: &Notify, ask: &UnboundedSender<Request>) {
    loop {
        let now = watched.borrow_and_update().clone();
        // The reader lives as long as this.
        drop(ask.send(Request::Show(now.threads)));
        tokio::select! {
            changed = watched.changed() => if changed.is_err() { return },
            () = acted.notified() => drop(ask.send(Request::Again)),
            () = sleep(LINGERS), if now.pages == 0 => return,
        }
    }
}

/// Does what a page asks for, as the user.
struct PageHost {
    context: Context,
    open: Arc<Open>,
    /// Told when something was done: the user waits to see it.
    acted: Arc<Notify>,
}

#[async_trait]
impl web::Host for PageHost {
    async fn carry_out(&self, effect: Effect) -> News {
        let changes = !matches!(effect, Effect::Search(_));
        let news = effects::carry_out(&self.context, &self.open, effect).await;
        if changes {
            self.acted.notify_one();
        }
        news
    }

    async fn message(&self, id: &str) -> Result<Option<ThreadMessageView>, String> {
        let Ok(id) = id.parse() else { return Ok(None) };
        let caller = self.context.principal(&self.open, None).await.map_err(|error| mesh::reasons(&error))?;
        match self.open.mesh.message_status(&caller, id).await {
            Ok(status) => Ok(Some(ThreadMessageView::from(&status))),
            Err(StatusError::Nowhere(_) | StatusError::Unknown(_)) => Ok(None),
            Err(error) => Err(mesh::reasons(&error)),
        }
    }

    async fn conversation(&self, name: &str, most: usize) -> Result<Option<ThreadView>, String> {
        match self.open.mesh.mail_thread(&MailReader::User, name, most).await {
            Ok(found) => Ok(Some(ThreadView::from(&found))),
            Err(ThreadError::Unknown(_) | ThreadError::Ambiguous(_)) => Ok(None),
            Err(error @ ThreadError::Store(_)) => Err(mesh::reasons(&error)),
        }
    }

    async fn newest(&self) -> Result<Vec<ThreadMessageView>, String> {
        self.newest_messages().await.map_err(|error| error.in_one_line())
    }
}

impl PageHost {
    async fn newest_messages(&self) -> Result<Vec<ThreadMessageView>, CommandError> {
        let mesh = &self.open.mesh;
        let newest = self.newest_sent().await?;
        let (mut ids, mut threads) = (HashSet::new(), HashSet::new());
        for event in &newest {
            if let (Some(id), to) = sent(event)
                && let Some(first) = to.first()
                && let Some(message) = mesh.message_in(first, id).await?
            {
                ids.insert(message.id.to_string());
                threads.insert(message.thread);
            }
        }
        let mut messages = Vec::new();
        for thread in threads {
            let found = mesh.mail_thread(&MailReader::User, &thread, NEWEST).await?;
            messages.extend(found.messages.iter().map(ThreadMessageView::from));
        }
        messages.retain(|one| ids.contains(&one.message.id));
        messages.sort_by(|one, other| one.message.id.cmp(&other.message.id));
        Ok(messages)
    }

    /// The events of the newest messages.
    async fn newest_sent(&self) -> Result<Vec<Event>, CommandError> {
        let mesh = &self.open.mesh;
        let since = Instant(self.open.machine.now().0.saturating_sub(PAST));
        let mut sent = Vec::new();
        let mut from = mesh.event_log_since(since).await?;
        loop {
            let stretch = mesh.event_log_part(from, STRETCH).await?;
            sent.extend(stretch.events.into_iter().filter(|event| event.kind == "sent"));
            let more = sent.len().saturating_sub(NEWEST);
            sent.drain(..more);
            if stretch.next == from {
                return Ok(sent);
            }
            from = stretch.next;
        }
    }
}
