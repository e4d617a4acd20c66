//! Mail in an HTTP response, until the response's last byte is flushed.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use tokio_util::sync::CancellationToken;

use super::flush::{HttpConnection, OpenRequest};
use crate::lease_tracker::{Fate, LeaseTracker, MailFate, PendingLease};

/// The response to one request, as the code that attaches mail to it sees it.
#[derive(Clone)]
pub(crate) struct Reply {
    /// A std mutex: nothing is awaited while it is held.
    state: Arc<Mutex<ReplyState>>,
    /// Cancelled when the response has ended, or its reader is gone.
    pub(crate) over: CancellationToken,
    /// What becomes of the mail that was attached to it. Set with it.
    mail: Arc<OnceLock<MailFate>>,
}

enum ReplyState {
    /// It can take mail, or has this mail.
    Open(Option<PendingLease>),
    /// It has ended, or its reader is gone.
    Over,
}

impl Reply {
    /// Attaches mail to the response. Gives it back if the response is over or has mail already.
    pub(crate) fn attach(&self, lease: PendingLease) -> Result<(), PendingLease> {
        match &mut *self.state() {
            ReplyState::Open(empty @ None) => {
                self.mail.get_or_init(|| lease.fate());
                *empty = Some(lease);
                Ok(())
            }
            ReplyState::Open(Some(_)) | ReplyState::Over => Err(lease),
        }
    }

    /// Takes back mail that will not be in the response after all.
    pub(crate) fn detach(&self) -> Option<PendingLease> {
        match &mut *self.state() {
            ReplyState::Open(lease) => lease.take(),
            ReplyState::Over => None,
        }
    }

    /// What becomes of the mail that is, or was, in the response.
    pub(super) fn mail(&self) -> Option<MailFate> {
        self.mail.get().cloned()
    }

    fn has_mail(&self) -> bool {
        matches!(&*self.state(), ReplyState::Open(Some(_)))
    }

    fn end(&self) -> Option<PendingLease> {
        self.over.cancel();
        match std::mem::replace(&mut *self.state(), ReplyState::Over) {
            ReplyState::Open(lease) => lease,
            ReplyState::Over => None,
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ReplyState> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

/// A response that is being written. If it is dropped before the connection has its last byte, its mail
/// is given back.
pub(super) struct PendingResponse {
    reply: Reply,
    leases: LeaseTracker,
    /// The connection that flushes it; none if the server runs without a `FlushingListener`.
    connection: Option<HttpConnection>,
    /// Whether the connection has its last byte.
    whole: bool,
    /// Whether the connection may have some of its mail.
    begun: bool,
}

impl PendingResponse {
    pub(super) fn new(leases: LeaseTracker, connection: Option<HttpConnection>) -> PendingResponse {
        let state = Arc::new(Mutex::new(ReplyState::Open(None)));
        let reply = Reply { state, over: CancellationToken::new(), mail: Arc::default() };
        PendingResponse { reply, leases, connection, whole: false, begun: false }
    }

    /// The handle for attaching mail.
    pub(super) fn reply(&self) -> Reply {
        self.reply.clone()
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        let Some(lease) = self.reply.end() else { return };
        match (self.whole, &self.connection) {
            (true, Some(connection)) => connection.after_flush(lease),
            (true, None) => self.leases.settle_soon(lease, Fate::Sent),
            (false, _) if self.begun => self.leases.settle_soon(lease, Fate::Unclear),
            (false, _) => self.leases.settle_soon(lease, Fate::Lost),
        }
    }
}

/// A response's body, watched to its end.
pub(super) struct WatchedBody<B> {
    inner: B,
    response: PendingResponse,
}

impl<B> WatchedBody<B> {
    pub(super) fn new(inner: B, response: PendingResponse) -> WatchedBody<B> {
        WatchedBody { inner, response }
    }
}

impl<B: HttpBody<Data = Bytes, Error = Infallible> + Unpin> HttpBody for WatchedBody<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        if let Poll::Ready(frame) = &polled {
            self.response.begun |= frame.is_some() && self.response.reply.has_mail();
            // hyper drops a body once it has buffered all of it, and flushes afterwards.
            self.response.whole |= frame.is_none() || self.inner.is_end_stream();
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

/// A response's body that keeps its request open until hyper has all of it.
pub(super) struct CountedBody {
    inner: Body,
    _open: Option<OpenRequest>,
}

impl CountedBody {
    pub(super) fn new(inner: Body, open: Option<OpenRequest>) -> CountedBody {
        CountedBody { inner, _open: open }
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
