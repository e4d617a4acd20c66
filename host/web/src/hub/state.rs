//! What is known of the mesh for pages: the model, and what was made of it in words.

use std::collections::{BTreeMap, VecDeque};

use axum::body::Bytes;
use mesh::ports::machine::Instant;
use serde_json::json;
use view::live::{Live, LogRow, News, PageLog, PageMessage, PageThread, SHOWN, Tab};
use view::{RecipientView, visible_line};

use crate::frames::{data, event, event_with_id};

/// So many events of the log are kept for pages.
pub(super) const LOGGED: usize = 1_000;
/// So many messages wait for a page that reads slowly; the lists have all of them.
pub(super) const MESSAGES: usize = 256;

/// A part of what a page knows. Each is sent whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PagePart {
    State,
    Agents,
    List(Tab),
}

#[derive(Debug)]
struct Made {
    part: PagePart,
    /// Whether the model has changed since it was made.
    is_stale: bool,
    /// When it last changed; 0 if it was never made.
    version: u64,
    json: Bytes,
}

#[derive(Debug, Default)]
pub(super) struct OpenThread {
    pub(super) pages: usize,
    version: u64,
    json: Option<Bytes>,
}

#[derive(Debug)]
struct Logged {
    version: u64,
    row: LogRow,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) live: Live,
    /// Counts what has changed.
    pub(super) version: u64,
    made: Vec<Made>,
    messages: VecDeque<(u64, Bytes)>,
    log: VecDeque<Logged>,
    pub(super) threads: BTreeMap<String, OpenThread>,
    pub(super) pages: usize,
}

/// How far a page has got.
#[derive(Debug)]
pub(super) struct PageProgress {
    pub(super) parts: u64,
    pub(super) messages: u64,
    /// The last event of the log that it has; none if it has none of this hub.
    pub(super) log: Option<u64>,
    /// What it says that it has.
    pub(super) returned_with: Option<String>,
}

impl State {
    pub(super) fn new() -> State {
        let parts = [PagePart::State, PagePart::Agents].into_iter().chain(Tab::ALL.map(PagePart::List));
        let made = parts.map(|part| Made { part, is_stale: true, version: 0, json: Bytes::new() });
        State {
            live: Live::default(),
            version: 0,
            made: made.collect(),
            messages: VecDeque::new(),
            log: VecDeque::new(),
            threads: BTreeMap::new(),
            pages: 0,
        }
    }

    pub(super) fn take(&mut self, news: News) {
        match &news {
            News::Thread(typed, thread) => return self.take_thread(typed, &PageThread::of(thread)),
            News::NoThread(typed, why) => return self.take_thread(typed, &json!({"thread": typed, "gone": why})),
            News::Sent(message, recipients) => {
                let stored: Vec<RecipientView> =
                    recipients.iter().map(|to| RecipientView::just_stored(to.clone(), message)).collect();
                let json = data(&PageMessage::of(message, &stored, SHOWN));
                self.version += 1;
                self.messages.push_back((self.version, json));
                let more = self.messages.len().saturating_sub(MESSAGES);
                self.messages.drain(..more);
            }
            News::Log(rows) => {
                self.version += 1;
                self.log.extend(rows.iter().map(|row| Logged { version: self.version, row: row.clone() }));
                let more = self.log.len().saturating_sub(LOGGED);
                self.log.drain(..more);
            }
            News::Agents(..)
            | News::Overview(_)
            | News::Threads(_)
            | News::Found(..)
            | News::Lost(_)
            | News::Done(_)
            | News::Failed(_) => {}
        }
        let changes = |part: PagePart| match (&news, part) {
            (News::Agents(..), part) => matches!(part, PagePart::Agents | PagePart::State),
            (News::Overview(_), PagePart::List(Tab::Threads | Tab::Log)) => false,
            (News::Overview(_), _) | (News::Lost(_), PagePart::State) => true,
            (News::Threads(_) | News::Sent(..), part) => part == PagePart::List(Tab::Threads),
            (News::Log(_), part) => part == PagePart::List(Tab::Log),
            (_, _) => false,
        };
        self.made.iter_mut().filter(|made| changes(made.part)).for_each(|made| made.is_stale = true);
        self.live.take(news);
    }

    fn take_thread(&mut self, typed: &str, thread: &impl serde::Serialize) {
        let Some(open) = self.threads.get_mut(typed) else { return };
        let json = data(thread);
        if open.json.as_ref() != Some(&json) {
            self.version += 1;
            (open.version, open.json) = (self.version, Some(json));
        }
    }

    pub(super) fn forget(&mut self) {
        self.live = Live::default();
        self.messages.clear();
        self.log.clear();
        self.made.iter_mut().for_each(|made| (made.is_stale, made.version, made.json) = (true, 0, Bytes::new()));
        self.threads.values_mut().for_each(|open| (open.version, open.json) = (0, None));
    }

    /// Puts into words what has changed and is known at all.
    pub(super) fn make(&mut self) {
        let State { live, version, made, .. } = self;
        for one in made.iter_mut().filter(|one| one.is_stale && is_known(live, one.part)) {
            one.is_stale = false;
            let json = match one.part {
                PagePart::State => state_of(live),
                PagePart::Agents => data(&live.page_agents()),
                PagePart::List(tab) => data(&live.page_list(tab)),
            };
            if json != one.json {
                *version += 1;
                (one.json, one.version) = (json, *version);
            }
        }
    }

    pub(super) fn has_parts_after(&self, seen: u64) -> bool {
        self.made.iter().any(|made| (made.is_stale && is_known(&self.live, made.part)) || made.version > seen)
    }

    pub(super) fn parts_after(&self, seen: u64, now: Instant, frames: &mut Vec<u8>) {
        for made in self.made.iter().filter(|made| made.version > seen) {
            match made.part {
                // The rest of it is the same for all pages and all times.
                PagePart::State => {
                    let now = format!("{{\"now\":{},", now.0);
                    event("state", &[now.as_bytes(), made.json.get(1..).unwrap_or_default()].concat(), frames);
                }
                PagePart::Agents => event("agents", &made.json, frames),
                PagePart::List(_) => event("list", &made.json, frames),
            }
        }
    }

    /// A conversation, if it has changed since.
    pub(super) fn thread_after(&self, thread: Option<&String>, seen: u64) -> Option<&Bytes> {
        let open = self.threads.get(thread?)?;
        open.json.as_ref().filter(|_| open.version > seen)
    }

    pub(super) fn messages_after(&self, seen: u64, frames: &mut Vec<u8>) {
        self.messages
            .iter()
            .filter(|(version, _)| *version > seen)
            .for_each(|(_, json)| event("message", json, frames));
    }

    /// Events of the log after those that the page has. One that comes back with an event that is not known here any more
    /// gets all of them anew.
    pub(super) fn log_after(&self, place: &mut PageProgress, frames: &mut Vec<u8>) {
        let Some(newest) = self.log.back() else { return };
        let from = match (place.log, place.returned_with.take()) {
            (Some(seen), _) => self.log.iter().position(|logged| logged.version > seen).unwrap_or(self.log.len()),
            (None, last) => {
                let known = last.and_then(|last| self.log.iter().rposition(|logged| logged.row.key == last));
                if known.is_none() {
                    event("reset", b"{}", frames);
                }
                known.map_or(0, |known| known + 1)
            }
        };
        place.log = Some(newest.version);
        if from < self.log.len() {
            let json = data(&PageLog::of(self.log.iter().skip(from).map(|logged| &logged.row)));
            event_with_id("log", &newest.row.key, &json, frames);
        }
    }
}

/// Whether anything is known of a part. Nothing is said of what was not read: an empty list would be a lie.
fn is_known(live: &Live, part: PagePart) -> bool {
    match part {
        PagePart::State | PagePart::List(Tab::Log) => true,
        PagePart::Agents => live.is_read() || live.agent_count() > 0,
        PagePart::List(Tab::Threads) => live.are_threads_read(),
        PagePart::List(Tab::Asks | Tab::Reservations | Tab::Commands | Tab::Runs | Tab::Stuck) => live.is_read(),
    }
}

fn state_of(live: &Live) -> Bytes {
    let damaged: Vec<String> = live.damaged().iter().map(|line| visible_line(line).into_owned()).collect();
    data(&json!({
        "machine": live.machine(),
        "version": env!("CARGO_PKG_VERSION"),
        "lost": live.lost(),
        "damaged": damaged,
    }))
}
