//! Writes a span of mail through a store, as the product would have: day by day, so that memory holds one day.

use std::sync::Arc;

use bench::Failure;
use futures::future::try_join_all;
use mesh::agents::{Agent, Origin, Profile};
use mesh::messages::Message;
use mesh::ports::machine::Instant;
use mesh::sessions::SessionRef;
use serde_json::to_vec;
use store::{Durability, Expect, Key, Position, Store, SwapError};

use crate::records::{self, AGENTS, HARNESS, agent, of_agent, of_session, session_id};
use crate::samples::Samples;
use crate::traffic::{Span, Traffic};

/// How many bytes are appended at once: below what servers take as one message.
const AT_ONCE: usize = 256 * 1024;
/// How many messages are held before they are written.
const HELD: u64 = 20_000;
/// The agent that the MCP rows speak for, and the one whose mail the user asks about.
pub(crate) const SPEAKER: usize = 1;
pub(crate) const ASKED_ABOUT: usize = 7;

/// Where mail goes: what machines share, and what is this machine's own. The same store if that is a folder.
pub(crate) struct Stores {
    /// Agents and their logs.
    pub(crate) shared: Arc<dyn Store>,
    /// Sessions and wake files.
    pub(crate) local: Arc<dyn Store>,
    /// This machine's name.
    pub(crate) machine: String,
    /// The folder that sessions work in.
    pub(crate) project: String,
    /// Whether each message is a message of the server's too, as in the product.
    pub(crate) one_by_one: bool,
    /// Begins a new segment of a log with each append, where logs have segments of our own.
    pub(crate) sealing: Option<Arc<dyn Store>>,
}

/// Lines of one log that are not written yet.
struct Pending {
    log: Key,
    lines: Vec<Vec<u8>>,
    at_once: usize,
    begins_segment: bool,
    end: Position,
}

impl Pending {
    fn of(log: Key, at_once: usize) -> Pending {
        Pending { log, lines: Vec::new(), at_once, begins_segment: false, end: Position::START }
    }

    fn push(&mut self, line: impl Into<Vec<u8>>) {
        self.lines.push(line.into());
    }

    async fn write(&mut self, stores: &Stores) -> Result<(), Failure> {
        let mut lines = self.lines.as_slice();
        while !lines.is_empty() {
            let mut bytes = 0;
            let fit = lines.iter().take_while(|line| {
                bytes += line.len();
                bytes <= self.at_once
            });
            let (now, later) = lines.split_at(fit.count().clamp(1, lines.len()));
            let store = match &stores.sealing {
                Some(sealing) if self.begins_segment => sealing,
                Some(_) | None => &stores.shared,
            };
            self.begins_segment = false;
            self.end = store.append(&self.log, now, Expect::Any, Durability::Process).await?;
            lines = later;
        }
        self.lines.clear();
        Ok(())
    }
}

/// A session that is open while mail is written.
struct OpenSession {
    index: u64,
    began: u64,
    wakes: Vec<Vec<u8>>,
}

/// All logs of a folder that grow at once.
struct Writer<'a> {
    stores: &'a Stores,
    span: Span,
    inboxes: Vec<Pending>,
    receipts: Vec<Pending>,
    sent: Vec<Pending>,
    global: Pending,
    sessions: Vec<OpenSession>,
    /// What the store wrote into the lock file of the first wake file.
    first_lock: Option<Vec<u8>>,
    samples: Samples,
}

/// Writes all mail of a span, and what agents and sessions leave beside it. Returns the ids to ask about.
pub(crate) async fn fill(stores: &Stores, span: Span) -> Result<Samples, Failure> {
    let mut writer = Writer::begin(stores, span)?;
    let mut traffic = Traffic::of(span)?;
    let mut last_work = vec![None; AGENTS];
    let mut cursors = None;
    while let Some(delivery) = traffic.next()? {
        let Message { id, at, trace, .. } = delivery.message;
        if span.messages - writer.samples.messages == span.of_a_day {
            writer.begin_segments().await?;
        }
        if delivery.waits && cursors.is_none() {
            writer.write().await?;
            cursors = Some(writer.ends());
        }
        writer.session_of(delivery.to, at.0).await?;
        writer.take(&delivery.message, delivery.from, delivery.to)?;
        for receipt in &delivery.receipts {
            writer.receipts[delivery.to].push(to_vec(receipt)?);
        }
        if let Some(receipt) = &delivery.answered {
            writer.receipts[delivery.from].push(to_vec(receipt)?);
        }
        if delivery.is_only_read && span.is_new(at.0) {
            match delivery.to {
                0 => writer.samples.read_by_shell.push(id.to_string()),
                SPEAKER => writer.samples.read_by_session.push(id.to_string()),
                _ => {}
            }
        }
        if !delivery.waits {
            last_work[delivery.to] = Some((trace, at.0));
        }
        if writer.samples.messages.is_multiple_of(HELD) {
            writer.write().await?;
        }
    }
    writer.write().await?;
    for (number, (inbox, receipts)) in cursors.unwrap_or_default().into_iter().enumerate() {
        put(&*stores.shared, &of_agent(number, "cursor")?, records::cursor(inbox.0, receipts.0).as_bytes()).await?;
        if let Some((trace, at)) = last_work[number] {
            let work = records::work(trace.root, trace.hops, at);
            put(&*stores.local, &records::key(&["work", &agent(number)])?, work.as_bytes()).await?;
        }
    }
    writer.end().await
}

impl Writer<'_> {
    fn begin(stores: &Stores, span: Span) -> Result<Writer<'_>, Failure> {
        let logs = |leaf: &str, at_once: usize| {
            (0..AGENTS).map(|number| Ok(Pending::of(of_agent(number, leaf)?, at_once))).collect::<Result<_, Failure>>()
        };
        let each = if stores.one_by_one { 1 } else { AT_ONCE };
        let begin = |_| OpenSession { index: 0, began: span.start, wakes: first_wakes(span.start) };
        Ok(Writer {
            stores,
            span,
            inboxes: logs("inbox", each)?,
            receipts: logs("receipts", each)?,
            sent: logs("sent", AT_ONCE)?,
            global: Pending::of(records::key(&["global"])?, AT_ONCE),
            sessions: (0..AGENTS).map(begin).collect(),
            first_lock: None,
            samples: Samples { filled: span.end(), ..Samples::default() },
        })
    }

    fn take(&mut self, message: &Message, from: usize, to: usize) -> Result<(), Failure> {
        let noted = message.at.0 + 4;
        self.inboxes[to].push(to_vec(message)?);
        self.sent[from].push(records::sent(message));
        self.global.push(records::sent_event(message, noted));
        self.sessions[to].wakes.push(records::wake(message, noted - 1).into_bytes());
        self.samples.messages += 1;
        let is_new = self.span.is_new(message.at.0);
        match from {
            SPEAKER => self.samples.note_sent_by_session(&message.id.to_string(), is_new),
            ASKED_ABOUT => self.samples.note_any(&message.id.to_string(), is_new),
            _ => {}
        }
        Ok(())
    }

    /// Ends an agent's sessions before this time, and begins the next one.
    async fn session_of(&mut self, number: usize, at: u64) -> Result<(), Failure> {
        let index = self.span.session_at(at);
        if index > self.sessions[number].index {
            self.write_session(number, at, true).await?;
            self.sessions[number] = OpenSession { index, began: at, wakes: first_wakes(at) };
            self.global.push(records::registered_event(&agent(number), at));
        }
        Ok(())
    }

    async fn write_session(&mut self, number: usize, heard: u64, is_over: bool) -> Result<(), Failure> {
        let session = &mut self.sessions[number];
        let id = session_id(number, session.index);
        let session_times = (session.began, heard);
        let wakes = std::mem::take(&mut session.wakes);
        let local = &*self.stores.local;
        self.write_wakes(&of_session("wakes", &id)?, &wakes).await?;
        let record = records::session(&id, number, &self.stores.project, session_times, is_over);
        // Whatever lists the sessions puts those that ended aside.
        let kind = if is_over && !self.span.is_last_day(heard) { "ended" } else { "sessions" };
        put(local, &of_session(kind, &id)?, record.as_bytes()).await?;
        // A process that delivers to a session leaves the file of its lock.
        drop(local.hold(&of_session("deliveries", &id)?).await?);
        self.samples.sessions += 1;
        Ok(())
    }

    /// Writes a wake file. The store lists the folder for each log that it creates, which takes too long for
    /// hundreds of thousands, so all but the first one are laid there as that one is.
    async fn write_wakes(&mut self, log: &Key, wakes: &[Vec<u8>]) -> Result<(), Failure> {
        let local = &*self.stores.local;
        let file = local.file_of(log).ok_or("the local store has no files")?;
        let name = file.file_stem().ok_or("a file without a name")?.to_string_lossy();
        let lock = file.with_file_name(format!(".{name}.lock"));
        match &self.first_lock {
            Some(first) => {
                let mut lines = wakes.join(&b'\n');
                lines.push(b'\n');
                std::fs::write(file, lines)?;
                std::fs::write(lock, first)?;
            }
            None => {
                local.append(log, wakes, Expect::Any, Durability::Process).await?;
                self.first_lock = Some(std::fs::read(lock)?);
            }
        }
        Ok(())
    }

    /// Where inboxes and receipts end now.
    fn ends(&self) -> Vec<(Position, Position)> {
        self.inboxes.iter().zip(&self.receipts).map(|(inbox, receipts)| (inbox.end, receipts.end)).collect()
    }

    async fn write(&mut self) -> Result<(), Failure> {
        let stores = self.stores;
        // At once, because servers take a round trip for each append.
        try_join_all(self.logs().map(|log| log.write(stores))).await.map(drop)
    }

    /// Makes the open segments of all ages as long as those of a day. Otherwise each would be somewhere between nothing
    /// and a megabyte, and a lookup, which reads it from its beginning, would measure that and not the age.
    async fn begin_segments(&mut self) -> Result<(), Failure> {
        self.write().await?;
        self.logs().for_each(|log| log.begins_segment = true);
        Ok(())
    }

    fn logs(&mut self) -> impl Iterator<Item = &mut Pending> {
        self.inboxes.iter_mut().chain(&mut self.receipts).chain(&mut self.sent).chain([&mut self.global])
    }

    /// Leaves every agent as it is at the end of the last day: alive, in its latest session.
    async fn end(mut self) -> Result<Samples, Failure> {
        let end = self.span.end();
        for number in 0..AGENTS {
            self.session_of(number, end).await?;
            self.write_session(number, end, false).await?;
            let is_shell = number == 0;
            let session = SessionRef { harness: HARNESS.to_owned(), id: live_session(&self.span, number) };
            let of_session = Profile {
                harness: Some(HARNESS.to_owned()),
                program: Some("claude-code 1.0.0".to_owned()),
                ..Profile::default()
            };
            let profile = if is_shell { Profile::default() } else { of_session };
            let meta = Agent {
                name: agent(number).parse()?,
                profile: Profile { project: Some(self.stores.project.clone()), ..profile },
                origin: if is_shell { Origin::CommandLine } else { Origin::Session },
                session: (!is_shell).then_some(session),
                machine: self.stores.machine.clone(),
                registered: Instant(self.span.start),
                bound: Instant(end),
                moved_from: None,
                key_digest: None,
            };
            put(&*self.stores.shared, &of_agent(number, "meta")?, &to_vec(&meta)?).await?;
        }
        put(&*self.stores.shared, &of_agent(0, "heartbeat")?, records::heartbeat(end).as_bytes()).await?;
        self.write().await?;
        // As the daily cleanups of that time have done.
        let logs = self.inboxes.iter().chain(&self.receipts).chain(&self.sent).chain([&self.global]);
        try_join_all(logs.map(|log| self.stores.shared.index(&log.log))).await?;
        Ok(self.samples)
    }
}

/// The session that an agent has at the end.
pub(crate) fn live_session(span: &Span, number: usize) -> String {
    session_id(number, span.session_at(span.end()))
}

fn first_wakes(at: u64) -> Vec<Vec<u8>> {
    vec![records::first_wake(at).into_bytes()]
}

async fn put(store: &dyn Store, key: &Key, value: &[u8]) -> Result<(), Failure> {
    match store.swap(key, None, Some(value), Durability::Process).await {
        Ok(_) => Ok(()),
        Err(SwapError::Changed { .. }) => Err(format!("`{key}` is there already").into()),
        Err(SwapError::Store(error)) => Err(error.into()),
    }
}
