//! Mail in an HTTP response: on its way until the response's last byte is flushed.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use tokio_util::sync::CancellationToken;

use super::flush::Conversation;
use crate::keeper::{Carried, Fate, Keeper};

/// The response to one request, as whoever puts mail into it sees it.
#[derive(Clone)]
pub(crate) struct Reply {
    /// A std mutex: nothing is awaited while it is held.
    hold: Arc<Mutex<Hold>>,
    /// Cancelled when the response has ended, or nobody reads it any more.
    pub(crate) over: CancellationToken,
}

/// What a response holds.
enum Hold {
    /// It may take mail, and has this.
    Open(Option<Carried>),
    /// It has ended, or nobody reads it any more.
    Over,
}

impl Reply {
    /// Puts mail into the response. Gives it back where nobody would read it.
    pub(crate) fn carry(&self, carried: Carried) -> Result<(), Carried> {
        match &mut *self.hold() {
            Hold::Open(empty @ None) => {
                *empty = Some(carried);
                Ok(())
            }
            Hold::Open(Some(_)) | Hold::Over => Err(carried),
        }
    }

    /// Takes mail out again that will not be in the response after all.
    pub(crate) fn withdraw(&self) -> Option<Carried> {
        match &mut *self.hold() {
            Hold::Open(carried) => carried.take(),
            Hold::Over => None,
        }
    }

    fn end(&self) -> Option<Carried> {
        self.over.cancel();
        match std::mem::replace(&mut *self.hold(), Hold::Over) {
            Hold::Open(carried) => carried,
            Hold::Over => None,
        }
    }

    fn hold(&self) -> std::sync::MutexGuard<'_, Hold> {
        self.hold.lock().expect("no holder of this lock panics")
    }
}

/// A response that is expected. Dropped before its last byte was taken over by the connection, its
/// mail is given back.
pub(super) struct Expected {
    reply: Reply,
    keeper: Keeper,
    /// The connection that flushes it; none where the server runs without one of ours.
    conversation: Option<Conversation>,
    /// Whether the connection took over its last byte.
    whole: bool,
}

impl Expected {
    /// Expects a response on a connection.
    pub(super) fn new(keeper: Keeper, conversation: Option<Conversation>) -> Expected {
        let hold = Arc::new(Mutex::new(Hold::Open(None)));
        let reply = Reply { hold, over: CancellationToken::new() };
        Expected { reply, keeper, conversation, whole: false }
    }

    /// The response, for whoever has mail for it.
    pub(super) fn reply(&self) -> Reply {
        self.reply.clone()
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let Some(carried) = self.reply.end() else { return };
        match (self.whole, &self.conversation) {
            (true, Some(conversation)) => conversation.after_flush(carried),
            (true, None) => self.keeper.settle_soon(carried, Fate::Sent),
            (false, _) => self.keeper.settle_soon(carried, Fate::Lost),
        }
    }
}

/// A response's body, watched to its end.
pub(super) struct Delivering<B> {
    inner: B,
    expected: Expected,
}

impl<B> Delivering<B> {
    /// The body of the response that is expected.
    pub(super) fn new(inner: B, expected: Expected) -> Delivering<B> {
        Delivering { inner, expected }
    }
}

impl<B: HttpBody<Data = Bytes, Error = Infallible> + Unpin> HttpBody for Delivering<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        if let Poll::Ready(frame) = &polled
            && (frame.is_none() || self.inner.is_end_stream())
        {
            // hyper drops a body once it has buffered what this gave, and flushes afterwards.
            self.expected.whole = true;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
