//! The answer to one request, as its events are kept, and the one reader that it has at a time.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::stream::{Stream, unfold};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::common::server_side_http::{ServerSseMessage, SessionId};
use tokio::sync::watch;
use tokio::time::Instant;

use super::replay::Replays;
use crate::lease_tracker::{Fate, MailFate};
use crate::watched_transport::without_mail;

/// The answer to one request.
pub(super) struct KeptStream {
    pub(super) session: SessionId,
    /// The first part of its events' ids. Random, so that it names no stream of another session.
    pub(super) name: String,
    pub(super) state: Mutex<StreamState>,
    /// Tells the reader that the state has changed.
    pub(super) changed: watch::Sender<()>,
}

pub(super) struct StreamState {
    pub(super) events: VecDeque<KeptEvent>,
    /// The number of the first event that is kept. Written when one is dropped.
    pub(super) first: usize,
    /// The number of the first event that no reader has been given. Written by the reader.
    pub(super) given: usize,
    /// How often the stream was resumed: the reader of the last time is the only one. Written by [`Replays::resume`].
    pub(super) reader: usize,
    /// Whether that reader is there. Written by it.
    pub(super) is_read: bool,
    /// When the answer was whole, or the call over. Written once, by the stream's task.
    pub(super) ended: Option<Instant>,
    /// Whether its events count. Cleared when the stream leaves [`Kept::streams`].
    pub(super) is_kept: bool,
}

pub(super) struct KeptEvent {
    pub(super) event: ServerSseMessage,
    pub(super) bytes: usize,
    /// What becomes of the mail in it.
    pub(super) mail: Option<MailFate>,
}

impl KeptStream {
    pub(super) fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

impl StreamState {
    /// Its events count no more. Returns their size.
    pub(super) fn leave(&mut self) -> usize {
        self.is_kept = false;
        self.events.iter().map(|kept| kept.bytes).sum()
    }

    /// Not if its reader is still to be given it.
    pub(super) fn may_drop_first(&self) -> bool {
        !self.events.is_empty() && (!self.is_read || self.first < self.given)
    }

    /// Drops the oldest event; returns its size.
    pub(super) fn drop_first(&mut self) -> usize {
        let dropped = self.events.pop_front();
        self.first += usize::from(dropped.is_some());
        dropped.map_or(0, |kept| kept.bytes)
    }
}

/// One reader of a stream. What it has not read may be dropped once it is gone.
struct Reader {
    replays: Replays,
    stream: Arc<KeptStream>,
    /// Its number: a reader that came later reads alone.
    number: usize,
    /// The event that it reads next.
    at: usize,
    /// It has read the answer, and nothing follows.
    is_done: bool,
}

pub(super) fn read(
    replays: Replays,
    stream: Arc<KeptStream>,
    number: usize,
    at: usize,
) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
    let changed = stream.changed.subscribe();
    let reader = Reader { replays, stream, number, at, is_done: false };
    unfold((reader, changed), |(mut reader, mut changed)| async move {
        loop {
            // What changes from here on is told.
            changed.borrow_and_update();
            match reader.next() {
                Next::Event(event) => return Some((event, (reader, changed))),
                Next::Nothing => return None,
                Next::Later => {
                    if changed.changed().await.is_err() {
                        return None;
                    }
                }
            }
        }
    })
}

enum Next {
    Event(ServerSseMessage),
    Later,
    Nothing,
}

impl Reader {
    fn next(&mut self) -> Next {
        let mut state = self.stream.state();
        if self.is_done || state.reader != self.number || self.at < state.first {
            return Next::Nothing;
        }
        let Some(kept) = state.events.get(self.at - state.first) else {
            return if state.ended.is_some() { Next::Nothing } else { Next::Later };
        };
        let mut event = kept.event.clone();
        if self.number > 0
            && let Some(mail) = &kept.mail
            && mail.decide(Fate::Unclear) != Fate::Sent
        {
            event.message = event.message.map(|message| Arc::new(without_mail(&message)));
        }
        // The response ends with the answer. Otherwise a client that leaves as soon as it has it would seem to have left
        // before the end.
        self.is_done = is_answer(&event);
        self.at += 1;
        state.given = self.at;
        Next::Event(event)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let is_last = {
            let mut state = self.stream.state();
            let is_last = state.reader == self.number;
            state.is_read &= !is_last;
            is_last
        };
        if is_last {
            self.replays.read_less();
        }
    }
}

pub(super) fn is_answer(event: &ServerSseMessage) -> bool {
    match event.message.as_deref() {
        Some(ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)) => true,
        Some(ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_)) | None => false,
    }
}

/// The length of a message as JSON.
pub(super) fn size_of(message: &ServerJsonRpcMessage) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // What cannot be written as JSON reaches no client either.
    let _written = serde_json::to_writer(&mut counter, message);
    counter.0
}
