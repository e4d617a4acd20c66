//! Keeps the events of answers for a short time, so that a client whose stream broke off can go on with it.
//!
//! Each request of a session is answered on a stream of its own. Its events are kept here, in memory and within limits,
//! and a task of the stream takes them from the session whether or not anybody reads. The client goes on after the last
//! event that it has (`Last-Event-ID`). It then reads alone: the response that broke off ends.
//!
//! **An answer with mail comes again only if its first response was flushed whole.** Otherwise the mail was given back,
//! and the client reads that instead (docs/adr/0028).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::Stream;
use mesh::Mesh;
use rmcp::transport::common::server_side_http::{ServerSseMessage, SessionId};
use tokio::sync::watch;
use tokio::time::Instant;

use super::kept_stream::{KeptEvent, KeptStream, StreamState, is_answer, read, size_of};
use super::reply::Reply;
use crate::lease_tracker::{Fate, MailFate};
use crate::stdio::fresh_name;

/// How long the events of a stream that has ended are kept.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// The most events of one stream that are kept. A call that waits reports its progress every ten seconds, for five
/// minutes at most.
const MOST_EVENTS: usize = 64;
/// The most bytes of all events that are kept, of all sessions together.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// What an event costs beside its text.
const OVERHEAD: usize = 512;
/// How soon a client shall come back.
const RETRY: Duration = Duration::from_secs(1);

/// The streams of answers whose events are kept. Cheap to clone.
#[derive(Clone)]
pub(super) struct Replays {
    mesh: Arc<Mesh>,
    most_bytes: usize,
    kept: Arc<Mutex<Kept>>,
}

/// Behind a std mutex, as each stream's state is: nothing is awaited while it is held. It is locked before theirs.
#[derive(Default)]
struct Kept {
    /// Oldest first. A stream enters with its request and leaves with its session, for its age or for want of room.
    streams: VecDeque<Arc<KeptStream>>,
    /// The size of all their events. Written by everything that adds or drops one.
    bytes: usize,
    /// Whether a task drops what is too old. Written by the task and by the call that starts it.
    cleans_up: bool,
}

/// Why a stream is not gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ResumeError {
    #[error(
        "no stream of this session has an event with this id: an answer is kept for {} s after it has ended, and not \
         for other sessions. Send the request again",
        KEPT_FOR.as_secs()
    )]
    Unknown,
    #[error("the events that followed this one are not kept any more. Send the request again")]
    Dropped,
    #[error("nothing follows this event: its stream has ended")]
    Ended,
}

impl Replays {
    pub(super) fn new(mesh: Arc<Mesh>) -> Replays {
        Replays { mesh, most_bytes: MOST_BYTES, kept: Arc::default() }
    }

    /// Keeps what `answer` gives, and returns it for the first reader. `primed`: begins with an event without data, by
    /// whose id a client can resume that has read nothing else.
    pub(super) fn keep(
        &self,
        session: &SessionId,
        answer: impl Stream<Item = ServerSseMessage> + Send + 'static,
        reply: Option<Reply>,
        primed: bool,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
        let state = StreamState {
            events: VecDeque::new(),
            first: 0,
            given: 0,
            reader: 0,
            is_read: true,
            ended: None,
            is_kept: true,
        };
        let stream = Arc::new(KeptStream {
            session: SessionId::clone(session),
            name: fresh_name(&self.mesh),
            state: Mutex::new(state),
            changed: watch::Sender::new(()),
        });
        self.kept().streams.push_back(Arc::clone(&stream));
        if primed {
            self.note(&stream, ServerSseMessage::priming("", RETRY), None);
        }
        let (replays, kept) = (self.clone(), Arc::clone(&stream));
        // It ends with the answer, or with the session, which then has no more to give.
        tokio::spawn(async move {
            let mut answer = Box::pin(answer);
            while let Some(event) = answer.next().await {
                let mail = reply.as_ref().filter(|_| is_answer(&event)).and_then(Reply::mail);
                replays.note(&kept, event, mail);
            }
            kept.state().ended = Some(Instant::now());
            kept.changed.send_replace(());
            replays.sweep_later();
        });
        read(self.clone(), stream, 0, 0)
    }

    /// Whether [`Replays::resume`] would find something.
    pub(super) fn look(&self, session: &SessionId, last: &str) -> Result<(), ResumeError> {
        self.find(session, last).map(|_| ())
    }

    /// What follows an event, and from now on nobody else reads that stream.
    pub(super) fn resume(
        &self,
        session: &SessionId,
        last: &str,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + use<>, ResumeError> {
        let (stream, from) = self.find(session, last)?;
        let reader = {
            let mut state = stream.state();
            // The mail of a response that is still under way is given back: nobody reads it to its end.
            for mail in state.events.iter().filter_map(|kept| kept.mail.as_ref()) {
                mail.decide(Fate::Unclear);
            }
            state.reader += 1;
            (state.is_read, state.given) = (true, from);
            state.reader
        };
        stream.changed.send_replace(());
        Ok(read(self.clone(), stream, reader, from))
    }

    /// Drops everything of a session.
    pub(super) fn forget(&self, session: &SessionId) {
        let mut kept = self.kept();
        let streams = std::mem::take(&mut kept.streams);
        let (gone, stay): (VecDeque<_>, VecDeque<_>) =
            streams.into_iter().partition(|stream| stream.session == *session);
        kept.streams = stay;
        for stream in gone {
            kept.bytes -= stream.state().leave();
        }
    }

    fn find(&self, session: &SessionId, last: &str) -> Result<(Arc<KeptStream>, usize), ResumeError> {
        let (name, number) = last.split_once('.').ok_or(ResumeError::Unknown)?;
        let number: usize = number.parse().map_err(|_| ResumeError::Unknown)?;
        let kept = self.kept();
        let mut streams = kept.streams.iter();
        let stream = streams.find(|stream| stream.session == *session && stream.name == name);
        let stream = stream.ok_or(ResumeError::Unknown)?;
        let state = stream.state();
        let next = state.first + state.events.len();
        match number.checked_add(1).filter(|from| *from <= next) {
            None => Err(ResumeError::Unknown),
            Some(from) if from < state.first => Err(ResumeError::Dropped),
            Some(from) if from == next && state.ended.is_some() => Err(ResumeError::Ended),
            Some(from) => Ok((Arc::clone(stream), from)),
        }
    }

    fn note(&self, stream: &KeptStream, mut event: ServerSseMessage, mail: Option<MailFate>) {
        let bytes = OVERHEAD + event.message.as_deref().map_or(0, size_of);
        let mut kept = self.kept();
        {
            let mut state = stream.state();
            event.event_id = Some(format!("{}.{}", stream.name, state.first + state.events.len()));
            state.events.push_back(KeptEvent { event, bytes, mail });
            // A reader that is so far behind finds that its stream ends, and may ask why.
            let dropped = if state.events.len() > MOST_EVENTS { state.drop_first() } else { 0 };
            if state.is_kept {
                kept.bytes = kept.bytes + bytes - dropped;
            }
        }
        stream.changed.send_replace(());
        self.make_room(&mut kept);
    }

    /// A stream has lost its reader: what it was still to be given may be dropped.
    pub(super) fn read_less(&self) {
        self.make_room(&mut self.kept());
    }

    /// Drops the oldest events, but none that its reader is still to be given.
    fn make_room(&self, kept: &mut Kept) {
        let (mut at, mut bytes) = (0, kept.bytes);
        while bytes > self.most_bytes && at < kept.streams.len() {
            let mut state = kept.streams[at].state();
            while bytes > self.most_bytes && state.may_drop_first() {
                bytes -= state.drop_first();
            }
            let is_over = state.ended.is_some() && state.events.is_empty();
            drop(state);
            if is_over {
                kept.streams.remove(at);
            } else {
                at += 1;
            }
        }
        kept.bytes = bytes;
    }

    /// Starts the task that drops what is too old, unless it runs. It ends when nothing is kept.
    fn sweep_later(&self) {
        if std::mem::replace(&mut self.kept().cleans_up, true) {
            return;
        }
        let replays = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(KEPT_FOR / 4).await;
                if !replays.clean_up() {
                    return;
                }
            }
        });
    }

    /// Drops what is too old. Returns whether something is left.
    fn clean_up(&self) -> bool {
        let mut kept = self.kept();
        let (mut bytes, now) = (kept.bytes, Instant::now());
        kept.streams.retain(|stream| {
            let mut state = stream.state();
            let is_old = state.ended.is_some_and(|ended| now >= ended + KEPT_FOR);
            if is_old {
                bytes -= state.leave();
            }
            !is_old
        });
        kept.bytes = bytes;
        kept.cleans_up = !kept.streams.is_empty();
        kept.cleans_up
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use mesh::testing::{FakeHarnesses, FakeMachine};
    use mesh::{Limits, Parts};
    use rmcp::model::{EmptyResult, RequestId, ServerJsonRpcMessage, ServerResult};
    use store::memory::MemoryStore;

    use super::*;

    fn replays() -> Replays {
        let store = Arc::new(MemoryStore::new());
        let mesh = Mesh::new(Parts {
            shared: Arc::clone(&store) as Arc<dyn store::Store>,
            local: store,
            machine: Arc::new(FakeMachine::default()),
            harnesses: Arc::new(FakeHarnesses::default()),
            limits: Limits::default(),
        });
        Replays::new(Arc::new(mesh))
    }

    fn events(count: usize) -> impl Stream<Item = ServerSseMessage> + Send + 'static {
        let event = |id| {
            let answer =
                ServerJsonRpcMessage::response(ServerResult::EmptyResult(EmptyResult {}), RequestId::Number(id));
            ServerSseMessage::from_message(answer)
        };
        futures::stream::iter((0..count).map(move |id| event(i64::try_from(id).expect("few"))))
    }

    /// The id of the event without data with which an answer of so many events begins. Nobody reads on.
    async fn left(replays: &Replays, session: &SessionId, count: usize) -> String {
        let mut reading = Box::pin(replays.keep(session, events(count), None, true));
        let first = reading.next().await.expect("an event").event_id.expect("an id");
        drop(reading);
        first
    }

    /// Waits until the tasks of all streams have taken everything.
    async fn settled(replays: &Replays) {
        while replays.kept().streams.iter().any(|stream| stream.state().ended.is_none()) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_longer_than_a_minute() {
        let (replays, session) = (replays(), SessionId::from("a"));
        let mut last = String::new();
        for _ in 0..1_000 {
            last = left(&replays, &session, 1).await;
        }
        settled(&replays).await;
        assert_eq!(replays.look(&session, &last), Ok(()));
        tokio::time::sleep(KEPT_FOR + KEPT_FOR / 2).await;
        assert_eq!(replays.look(&session, &last), Err(ResumeError::Unknown));
        let kept = replays.kept();
        assert_eq!((kept.streams.len(), kept.bytes, kept.cleans_up), (0, 0, false), "and no task is left");
    }

    #[tokio::test]
    async fn the_oldest_go_first_and_a_client_is_told() {
        let (mut replays, session) = (replays(), SessionId::from("a"));
        replays.most_bytes = 20 * OVERHEAD;
        let oldest = left(&replays, &session, 3).await;
        settled(&replays).await;
        let mut newest = String::new();
        for _ in 0..10 {
            newest = left(&replays, &session, 3).await;
            settled(&replays).await;
        }
        assert_eq!(replays.look(&session, &oldest), Err(ResumeError::Unknown));
        assert_eq!(replays.look(&session, &newest), Ok(()));
        assert!(replays.kept().bytes <= replays.most_bytes);
        // One stream alone keeps the end of what it had.
        let long = left(&replays, &session, MOST_EVENTS + 10).await;
        settled(&replays).await;
        assert_eq!(replays.look(&session, &long), Err(ResumeError::Dropped));
        assert!(replays.kept().bytes <= replays.most_bytes);
    }

    #[tokio::test]
    async fn what_a_reader_is_still_to_be_given_is_not_dropped() {
        let (mut replays, session) = (replays(), SessionId::from("a"));
        replays.most_bytes = 0;
        let reading = replays.keep(&session, events(1), None, true);
        settled(&replays).await;
        let read: Vec<_> = reading.collect().await;
        assert_eq!(read.len(), 2);
        assert_eq!(replays.kept().bytes, 0, "and then it is");
    }

    #[tokio::test]
    async fn a_session_takes_its_events_with_it_and_shows_them_to_no_other() {
        let (replays, session, other) = (replays(), SessionId::from("a"), SessionId::from("b"));
        let (mine, theirs) = (left(&replays, &session, 1).await, left(&replays, &other, 1).await);
        settled(&replays).await;
        for unknown in [theirs.as_str(), "", "0", "1/2", ".", "x.1", &format!("{mine}9")] {
            assert_eq!(replays.look(&session, unknown), Err(ResumeError::Unknown), "{unknown}");
        }
        assert_eq!(replays.look(&session, &mine), Ok(()));
        replays.forget(&session);
        assert_eq!(replays.look(&session, &mine), Err(ResumeError::Unknown));
        assert_eq!(replays.look(&other, &theirs), Ok(()));
        replays.forget(&other);
        assert_eq!(replays.kept().bytes, 0);
    }
}
