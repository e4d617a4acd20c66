//! What all open pages share: the model, what was made of it for pages, and who looks at what.
//!
//! News only mark what they change. It is put into words for pages when the next page asks, once for all of them; a page
//! that reads slowly gets the newest of each part and none of what was between.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use mesh::ports::machine::Instant;
use serde_json::json;
use tokio::sync::watch;
use view::live::{Detail, Live, LogRow, News, PageLog, PageMessage, PageThread, Tab};
use view::{RecipientView, ThreadView, visible_line};

use crate::frames::{data, event};

/// So many events of the log are kept for pages.
const LOGGED: usize = 1_000;
/// So many messages wait for a page that reads slowly; the lists have all of them.
const MESSAGES: usize = 256;
/// So much of a new message is sent at once, in bytes.
const SHOWN: usize = 16 * 1024;
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

/// A part of what a page knows. Each is sent whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    State,
    Agents,
    List(Tab),
}

#[derive(Debug)]
struct Made {
    part: Part,
    /// Whether the model has changed since it was made.
    is_stale: bool,
    /// When it last changed; 0 if it was never made.
    version: u64,
    json: Bytes,
}

#[derive(Debug, Default)]
struct OpenThread {
    pages: usize,
    version: u64,
    json: Option<Bytes>,
}

#[derive(Debug)]
struct Logged {
    version: u64,
    row: LogRow,
}

#[derive(Debug)]
struct State {
    live: Live,
    /// Counts what has changed.
    version: u64,
    made: Vec<Made>,
    messages: VecDeque<(u64, Bytes)>,
    log: VecDeque<Logged>,
    threads: BTreeMap<String, OpenThread>,
    pages: usize,
}

/// What all open pages share.
#[derive(Debug)]
pub(crate) struct Hub {
    state: Mutex<State>,
    changes: watch::Sender<()>,
    watched: watch::Sender<Watched>,
}

/// How far a page has got.
#[derive(Debug)]
pub(crate) struct Place {
    parts: u64,
    messages: u64,
    /// The last event of the log that it has; none if it has none of this hub.
    log: Option<u64>,
    /// What it says that it has.
    returned_with: Option<String>,
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
    place: Place,
    pub(crate) changes: watch::Receiver<()>,
}

impl Hub {
    pub(crate) fn new() -> Hub {
        let parts = [Part::State, Part::Agents].into_iter().chain(Tab::ALL.map(Part::List));
        let made = parts.map(|part| Made { part, is_stale: true, version: 0, json: Bytes::new() });
        let state = State {
            live: Live::default(),
            version: 0,
            made: made.collect(),
            messages: VecDeque::new(),
            log: VecDeque::new(),
            threads: BTreeMap::new(),
            pages: 0,
        };
        let (changes, _) = watch::channel(());
        let (watched, _) = watch::channel(Watched::default());
        Hub { state: Mutex::new(state), changes, watched }
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
        let place = Place { parts: 0, messages: state.version, log: None, returned_with };
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
        let open = |state: &State| state.threads.get(self.thread.as_ref()?).map(|open| open.version);
        let parts_left = if wants_parts {
            state.make();
            state.parts_after(self.place.parts, now, &mut frames);
            if let Some(open) = self.thread.as_ref().and_then(|thread| state.threads.get(thread))
                && let Some(json) = open.json.as_ref().filter(|_| open.version > self.place.parts)
            {
                event("thread", json, &mut frames);
            }
            self.place.parts = state.version;
            false
        } else {
            state.has_parts_after(self.place.parts) || open(&state) > Some(self.place.parts)
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

impl State {
    fn take(&mut self, news: News) {
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
        let changes = |part: Part| match (&news, part) {
            (News::Agents(..), part) => matches!(part, Part::Agents | Part::State),
            (News::Overview(_), Part::List(Tab::Threads | Tab::Log)) => false,
            (News::Overview(_), _) | (News::Lost(_), Part::State) => true,
            (News::Threads(_) | News::Sent(..), part) => part == Part::List(Tab::Threads),
            (News::Log(_), part) => part == Part::List(Tab::Log),
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

    fn forget(&mut self) {
        self.live = Live::default();
        self.messages.clear();
        self.log.clear();
        self.made.iter_mut().for_each(|made| (made.is_stale, made.version, made.json) = (true, 0, Bytes::new()));
        self.threads.values_mut().for_each(|open| (open.version, open.json) = (0, None));
    }

    /// Puts into words what has changed and is known at all.
    fn make(&mut self) {
        let State { live, version, made, .. } = self;
        for one in made.iter_mut().filter(|one| one.is_stale && is_known(live, one.part)) {
            one.is_stale = false;
            let json = match one.part {
                Part::State => state_of(live),
                Part::Agents => data(&live.page_agents()),
                Part::List(tab) => data(&live.page_list(tab)),
            };
            if json != one.json {
                *version += 1;
                (one.json, one.version) = (json, *version);
            }
        }
    }

    fn has_parts_after(&self, seen: u64) -> bool {
        self.made.iter().any(|made| (made.is_stale && is_known(&self.live, made.part)) || made.version > seen)
    }

    fn parts_after(&self, seen: u64, now: Instant, frames: &mut Vec<u8>) {
        for made in self.made.iter().filter(|made| made.version > seen) {
            match made.part {
                // The rest of it is the same for all pages and all times.
                Part::State => {
                    let now = format!("{{\"now\":{},", now.0);
                    event("state", &[now.as_bytes(), made.json.get(1..).unwrap_or_default()].concat(), frames);
                }
                Part::Agents => event("agents", &made.json, frames),
                Part::List(_) => event("list", &made.json, frames),
            }
        }
    }

    fn messages_after(&self, seen: u64, frames: &mut Vec<u8>) {
        self.messages
            .iter()
            .filter(|(version, _)| *version > seen)
            .for_each(|(_, json)| event("message", json, frames));
    }

    /// Events of the log after those that the page has. One that comes back with an event that is not known here any more
    /// gets all of them anew.
    fn log_after(&self, place: &mut Place, frames: &mut Vec<u8>) {
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
            crate::frames::event_with_id("log", &newest.row.key, &json, frames);
        }
    }
}

/// Whether anything is known of a part. Nothing is said of what was not read: an empty list would be a lie.
fn is_known(live: &Live, part: Part) -> bool {
    match part {
        Part::State | Part::List(Tab::Log) => true,
        Part::Agents => live.is_read() || live.agent_count() > 0,
        Part::List(Tab::Threads) => live.are_threads_read(),
        Part::List(Tab::Asks | Tab::Reservations | Tab::Commands | Tab::Runs | Tab::Stuck) => live.is_read(),
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

/// A conversation in words, for what asks for it once.
pub(crate) fn whole_message(thread: &ThreadView, id: &str) -> Option<Bytes> {
    let one = thread.messages.iter().find(|one| one.message.id == id)?;
    Some(data(&PageMessage::of(&one.message, &one.recipients, usize::MAX)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;
    use view::live::Overview;
    use view::live::testing::{NOW, ask, message, overview, read, summary, thread};

    use super::*;

    /// The events of a stream: kind, id and data.
    fn events(frames: &[u8]) -> Vec<(String, Option<String>, Value)> {
        let text = std::str::from_utf8(frames).expect("text");
        let event = |block: &str| {
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            let data = serde_json::from_str(&field("data: ").expect("data")).expect("JSON");
            (field("event: ").expect("a kind"), field("id: "), data)
        };
        text.split_terminator("\n\n").map(event).collect()
    }

    /// What a page gets, in one word each.
    fn kinds(page: &mut Page) -> String {
        let told = events(&page.missing(NOW, true).frames);
        let word = |(kind, _, data): &(String, Option<String>, Value)| match kind.as_str() {
            "list" => data["tab"].as_str().expect("a tab").to_owned(),
            other => other.to_owned(),
        };
        told.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    fn open(hub: &Arc<Hub>, thread: Option<&str>, last: Option<&str>) -> Page {
        hub.open(thread.map(str::to_owned), last.map(str::to_owned)).expect("a page")
    }

    fn logged(numbers: std::ops::Range<u64>) -> News {
        let row =
            |number: u64| LogRow { key: number.to_string(), at: NOW, kind: "woke".to_owned(), text: String::new() };
        News::Log(numbers.map(row).collect())
    }

    #[test]
    fn a_page_gets_what_is_known_once_and_then_what_has_changed() {
        let hub = Arc::new(Hub::new());
        let mut page = open(&hub, None, None);
        assert_eq!(kinds(&mut page), "state log", "nothing is said of what was not read");
        hub.tell(News::Agents(NOW, overview().agents));
        assert_eq!(kinds(&mut page), "agents");
        hub.tell(News::Overview(Box::new(overview())));
        assert_eq!(kinds(&mut page), "state agents asks reservations commands runs held");
        hub.tell(News::Threads(vec![summary("01A", "a port", &["alice"], 5)]));
        assert_eq!(kinds(&mut page), "threads");
        assert_eq!(kinds(&mut page), "");
        hub.tell(News::Overview(Box::new(Overview {
            now: mesh::ports::machine::Instant(NOW.0 + 9_000),
            ..overview()
        })));
        assert_eq!(kinds(&mut page), "", "that time passes changes nothing");
        let fewer = Overview { asks: Vec::new(), ..overview() };
        hub.tell(News::Overview(Box::new(fewer)));
        assert_eq!(kinds(&mut page), "agents asks", "who asked needs nobody any more");
        assert_eq!(kinds(&mut open(&hub, None, None)), "state agents threads asks reservations commands runs held log");
        hub.tell(News::Lost("the disk is gone".to_owned()));
        let told = events(&page.missing(NOW, true).frames);
        assert_eq!((told[0].0.as_str(), &told[0].2["lost"]), ("state", &Value::from("the disk is gone")));
        assert_eq!(told[0].2["now"], NOW.0);
    }

    #[test]
    fn a_new_message_is_there_at_once_and_its_conversation_follows() {
        let hub = Arc::new(Hub::new());
        let (mut reads, mut other) = (open(&hub, Some("01A"), None), open(&hub, None, None));
        assert_eq!(hub.watched().borrow().threads, ["01A"]);
        hub.tell(News::Overview(Box::new(overview())));
        hub.tell(News::Threads(Vec::new()));
        hub.tell(read(thread()));
        assert!(kinds(&mut reads).ends_with("log thread"));
        assert!(!kinds(&mut other).contains("thread "));
        let sent = News::Sent(Box::new(message("01Z", "bob", "alice", "01A", "Thanks", 0)), vec!["alice".to_owned()]);
        hub.tell(sent);
        let told = events(&reads.missing(NOW, true).frames);
        assert_eq!((told[0].2["tab"].as_str(), told[1].0.as_str()), (Some("threads"), "message"));
        let recipient = &told[1].2["recipients"][0];
        assert_eq!((recipient["to"].as_str(), recipient["dot"]["word"].as_str()), (Some("alice"), Some("stored")));
        hub.tell(read(thread()));
        assert_eq!(kinds(&mut reads), "", "it is the same as before");
        hub.tell(News::NoThread("01A".to_owned(), "it was deleted".to_owned()));
        assert_eq!(events(&reads.missing(NOW, true).frames)[0].2["gone"], "it was deleted");
        drop(reads);
        assert_eq!(*hub.watched().borrow(), Watched { pages: 1, threads: Vec::new() });
    }

    #[test]
    fn what_is_sent_whole_waits_and_messages_do_not() {
        let hub = Arc::new(Hub::new());
        let mut page = open(&hub, Some("01A"), None);
        hub.tell(News::Threads(Vec::new()));
        assert!(page.missing(NOW, false).frames.is_empty() && page.missing(NOW, false).parts_left);
        assert_eq!(kinds(&mut page), "state threads log");
        assert!(!page.missing(NOW, false).parts_left, "it has everything");
        hub.tell(News::Sent(Box::new(message("01Z", "bob", "alice", "01A", "x", 0)), vec!["alice".to_owned()]));
        let missing = page.missing(NOW, false);
        assert_eq!(events(&missing.frames).len(), 1, "the message alone");
        assert!(missing.parts_left && page.missing(NOW, false).frames.is_empty());
        assert_eq!(kinds(&mut page), "threads");
        hub.tell(read(thread()));
        assert!(page.missing(NOW, false).parts_left, "its conversation was read");
        assert_eq!(kinds(&mut page), "thread");
    }

    #[test]
    fn a_page_that_comes_back_misses_no_event_and_gets_none_twice() {
        let hub = Arc::new(Hub::new());
        hub.tell(logged(1..4));
        let rows = |page: &mut Page| {
            let told = events(&page.missing(NOW, true).frames);
            let keys = |data: &Value| {
                let rows = data["rows"].as_array().expect("rows").iter();
                rows.map(|row| row["key"].as_str().expect("a key").to_owned()).collect::<Vec<_>>().join(" ")
            };
            let mut said: Vec<String> = Vec::new();
            for (kind, id, data) in told {
                match kind.as_str() {
                    "log" => said.push(format!("{} to {}", keys(&data), id.expect("an id"))),
                    "reset" => said.push(kind),
                    _ => {}
                }
            }
            said.join(", ")
        };
        let mut page = open(&hub, None, None);
        assert_eq!(rows(&mut page), "reset, 1 2 3 to 3");
        hub.tell(logged(4..6));
        assert_eq!(rows(&mut page), "4 5 to 5");
        drop(page);
        hub.tell(logged(6..8));
        assert_eq!(rows(&mut open(&hub, None, Some("5"))), "6 7 to 7");
        assert_eq!(rows(&mut open(&hub, None, Some("7"))), "");
        for unknown in ["99", "x", ""] {
            assert_eq!(rows(&mut open(&hub, None, Some(unknown))), "reset, 1 2 3 4 5 6 7 to 7", "{unknown}");
        }
        // The server was started anew: it knows nothing yet, and then the log again.
        let anew = Arc::new(Hub::new());
        let mut back = open(&anew, None, Some("5"));
        assert_eq!(rows(&mut back), "");
        anew.tell(logged(1..9));
        assert_eq!(rows(&mut back), "6 7 8 to 8");
    }

    #[test]
    fn pages_are_counted_and_too_many_are_refused() {
        let hub = Arc::new(Hub::new());
        let pages: Vec<Page> = (0..PAGES).map(|_| open(&hub, Some("a"), None)).collect();
        assert!(hub.open(None, None).is_none());
        assert_eq!(*hub.watched().borrow(), Watched { pages: PAGES, threads: vec!["a".to_owned()] });
        drop(pages);
        assert_eq!(*hub.watched().borrow(), Watched::default());
    }

    #[test]
    fn nothing_is_kept_without_a_bound() {
        let hub = Arc::new(Hub::new());
        let mut slow = open(&hub, None, None);
        for number in 0..2_000 {
            hub.tell(News::Sent(Box::new(message(&number.to_string(), "a", "b", "t", "x", 0)), vec!["b".to_owned()]));
            hub.tell(logged(number..number + 1));
        }
        let told = events(&slow.missing(NOW, true).frames);
        assert_eq!(told.iter().filter(|(kind, ..)| kind == "message").count(), MESSAGES);
        let log = told.iter().find(|(kind, ..)| kind == "log").expect("the log");
        assert_eq!(log.2["rows"].as_array().expect("rows").len(), LOGGED);
    }

    #[test]
    fn what_agents_write_is_harmless_text() {
        const EVIL: &str = "\u{1b}[2J\u{202e}<script>\u{7}\n\nevent: forged";
        let hub = Arc::new(Hub::new());
        let mut page = open(&hub, Some("01A"), None);
        let mut bad = overview();
        bad.agents[0].agent.task = Some(EVIL.to_owned());
        bad.asks = vec![ask("1", "alice", "question", EVIL, &["TEXT"])];
        bad.stuck[0].why = EVIL.to_owned();
        bad.damaged = vec![EVIL.to_owned()];
        hub.tell(News::Overview(Box::new(bad)));
        hub.tell(News::Threads(vec![summary(EVIL, EVIL, &[EVIL], 5)]));
        let mut evil = thread();
        evil.messages[0].message.body = format!("{EVIL}{}", "x".repeat(300_000));
        evil.messages[0].message.subject = EVIL.to_owned();
        hub.tell(read(evil));
        let frames = page.missing(NOW, true).frames;
        let told = events(&frames);
        assert!(told.iter().all(|(kind, ..)| kind != "forged"), "no text ends an event");
        let text = String::from_utf8(frames).expect("text");
        let body = told.iter().find(|(kind, ..)| kind == "thread").expect("the thread").2["messages"][0].clone();
        assert_eq!(
            (body["cut"].as_bool(), body["body"].as_str().expect("a text").len() <= SHOWN + 64),
            (Some(true), true)
        );
        // Names of agents and threads are addresses; everything else is shown as it is made harmless.
        for text in [&body["body"], &body["subject"]] {
            assert!(!text.as_str().expect("a text").contains(['\u{1b}', '\u{202e}', '\u{7}']));
        }
        assert!(!text.contains("\\u001b[2J\u{202e}<script>\\u0007\\n\\nevent: forged\",\"tone"));
    }

    fn any_news() -> impl Strategy<Value = News> {
        prop_oneof![
            Just(News::Agents(NOW, overview().agents)),
            (0_usize..3).prop_map(|asks| {
                let mut overview = overview();
                overview.asks.truncate(asks);
                News::Overview(Box::new(overview))
            }),
            (0_usize..4).prop_map(|count| {
                News::Threads((0..count).map(|at| summary(&format!("t{at}"), "x", &["alice"], 5)).collect())
            }),
            (0_usize..9).prop_map(|id| {
                let message = message(&format!("m{id}"), "alice", "bob", "01A", "text", 0);
                News::Sent(Box::new(message), vec!["bob".to_owned()])
            }),
            Just(read(thread())),
            Just(News::Lost("gone".to_owned())),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Whatever comes, and whenever a page asks: what it has then is what a page has that opens now.
        #[test]
        fn a_page_that_was_there_knows_what_one_learns_that_opens_now(
            steps in proptest::collection::vec((any_news(), any::<bool>()), 0..20)
        ) {
            let hub = Arc::new(Hub::new());
            let mut page = open(&hub, Some("01A"), None);
            let mut known = BTreeMap::new();
            let learn = |known: &mut BTreeMap<String, Value>, page: &mut Page| {
                for (kind, _, mut data) in events(&page.missing(NOW, true).frames) {
                    if ["message", "log", "reset"].contains(&kind.as_str()) {
                        continue;
                    }
                    data["now"].take();
                    known.insert(format!("{kind} {}", data["tab"]), data);
                }
            };
            for (news, asks) in steps {
                hub.tell(news);
                if asks {
                    learn(&mut known, &mut page);
                }
            }
            learn(&mut known, &mut page);
            let mut anew = BTreeMap::new();
            learn(&mut anew, &mut open(&hub, Some("01A"), None));
            prop_assert_eq!(known, anew);
        }
    }
}
