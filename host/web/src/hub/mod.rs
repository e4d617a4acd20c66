//! What all open pages share: the model, what was made of it for pages, and who looks at what.
//!
//! News only mark what they change. It is put into words for pages when the next page asks, once for all of them; a page
//! that reads slowly gets the newest of each part and none of what was between.

mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mesh::ports::machine::Instant;
use tokio::sync::watch;
use view::live::{Detail, News};

use self::state::{PageProgress, State};
use crate::frames::event;

/// So many streams are open at a time.
const PAGES: usize = 512;

/// What pages look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// How many pages are open.
    pub pages: usize,
    /// The conversations that are open in them, by the names that they were opened by.
    pub threads: Vec<String>,
}

/// What all open pages share.
#[derive(Debug)]
pub(crate) struct Hub {
    state: Mutex<State>,
    changes: watch::Sender<()>,
    watched: watch::Sender<Watched>,
}

/// What a page does not have yet.
#[derive(Debug)]
pub(crate) struct Missing {
    /// The events for it; empty if there is nothing to send now.
    pub(crate) frames: Vec<u8>,
    /// Whether a part that was not asked for has changed.
    pub(crate) parts_left: bool,
    /// How many pages are open.
    pub(crate) pages: usize,
}

/// A page that is open. It counts as long as it lives.
pub(crate) struct Page {
    hub: Arc<Hub>,
    thread: Option<String>,
    place: PageProgress,
    pub(crate) changes: watch::Receiver<()>,
}

impl Hub {
    pub(crate) fn new() -> Hub {
        let (changes, _) = watch::channel(());
        let (watched, _) = watch::channel(Watched::default());
        Hub { state: Mutex::new(State::new()), changes, watched }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn watched(&self) -> watch::Receiver<Watched> {
        self.watched.subscribe()
    }

    pub(crate) fn tell(&self, news: News) {
        self.state().take(news);
        self.changes.send_replace(());
    }

    pub(crate) fn forget(&self) {
        self.state().forget();
    }

    /// What is said of an item of a list.
    pub(crate) fn detail(&self, tab: &str, key: &str) -> Option<Detail> {
        self.state().live.detail_of(tab, key)
    }

    /// A page is open from now on; none if too many are.
    pub(crate) fn open(self: &Arc<Hub>, thread: Option<String>, returned_with: Option<String>) -> Option<Page> {
        // Before anything is read, so that no change is missed.
        let changes = self.changes.subscribe();
        let mut state = self.state();
        if state.pages >= PAGES {
            return None;
        }
        state.pages += 1;
        if let Some(thread) = &thread {
            state.threads.entry(thread.clone()).or_default().pages += 1;
        }
        let place = PageProgress { parts: 0, messages: state.version, log: None, returned_with };
        self.tell_watched(&state);
        drop(state);
        Some(Page { hub: Arc::clone(self), thread, place, changes })
    }

    fn tell_watched(&self, state: &State) {
        let now = Watched { pages: state.pages, threads: state.threads.keys().cloned().collect() };
        self.watched.send_if_modified(|watched| {
            let has_changed = *watched != now;
            *watched = now;
            has_changed
        });
    }
}

impl Page {
    /// What the page does not have yet: messages and events of the log, and what is sent whole if `wants_parts`.
    pub(crate) fn missing(&mut self, now: Instant, wants_parts: bool) -> Missing {
        let mut state = self.hub.state();
        let mut frames = Vec::new();
        let parts_left = if wants_parts {
            state.make();
            state.parts_after(self.place.parts, now, &mut frames);
            if let Some(json) = state.thread_after(self.thread.as_ref(), self.place.parts) {
                event("thread", json, &mut frames);
            }
            self.place.parts = state.version;
            false
        } else {
            let thread = state.thread_after(self.thread.as_ref(), self.place.parts);
            thread.is_some() || state.has_parts_after(self.place.parts)
        };
        state.messages_after(self.place.messages, &mut frames);
        state.log_after(&mut self.place, &mut frames);
        self.place.messages = state.version;
        Missing { frames, parts_left, pages: state.pages }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        state.pages = state.pages.saturating_sub(1);
        if let Some(thread) = &self.thread
            && let Some(open) = state.threads.get_mut(thread)
        {
            open.pages = open.pages.saturating_sub(1);
            if open.pages == 0 {
                state.threads.remove(thread);
            }
        }
        self.hub.tell_watched(&state);
    }
}

#[cfg(test)]
mod tests;
