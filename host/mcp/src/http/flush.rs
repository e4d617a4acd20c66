//! Connections that report when written data has been flushed to the operating system, and that end if their client
//! begins a request and does not go on.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep};

use crate::lease_tracker::{Fate, LeaseTracker, PendingLease};

/// How many times longer a connection may rest between two requests than a head may take.
const RESTS: u32 = 20;

/// One HTTP connection, as the responses on it see it.
#[derive(Clone)]
pub(super) struct HttpConnection {
    leases: LeaseTracker,
    /// Mail whose last byte was handed to the connection and is not flushed yet. A std mutex: nothing
    /// is awaited while it is held.
    unflushed: Arc<Mutex<Vec<PendingLease>>>,
    requests: Arc<Requests>,
    /// The address at which its client reached us.
    at: Option<SocketAddr>,
}

/// The requests of one connection. Counted by the router, read by the stream.
#[derive(Default)]
struct Requests {
    /// Those whose head has come.
    begun: AtomicUsize,
    /// Those whose response has been handed over.
    ended: AtomicUsize,
}

/// A request whose response is not handed over yet.
pub(super) struct OpenRequest(Arc<Requests>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

impl HttpConnection {
    fn new(leases: LeaseTracker, at: Option<SocketAddr>) -> HttpConnection {
        HttpConnection { leases, unflushed: Arc::default(), requests: Arc::default(), at }
    }

    /// The address at which its client reached us.
    pub(super) fn reached_at(&self) -> Option<SocketAddr> {
        self.at
    }

    /// Notes that the head of a request has come.
    pub(super) fn begin(&self) -> OpenRequest {
        self.requests.begun.fetch_add(1, Ordering::Relaxed);
        OpenRequest(Arc::clone(&self.requests))
    }

    /// Confirms mail once everything that was written so far has been flushed.
    pub(super) fn after_flush(&self, lease: PendingLease) {
        self.unflushed.lock().expect("no holder of this lock panics").push(lease);
    }

    fn settle(&self, fate: Fate) {
        let mail = std::mem::take(&mut *self.unflushed.lock().expect("no holder of this lock panics"));
        for lease in mail {
            self.leases.settle_soon(lease, fate);
        }
    }
}

impl Connected<IncomingStream<'_, FlushingListener>> for HttpConnection {
    fn connect_info(stream: IncomingStream<'_, FlushingListener>) -> HttpConnection {
        stream.io().connection.clone()
    }
}

/// A TCP listener whose connections report when they have flushed.
pub(super) struct FlushingListener {
    inner: TcpListener,
    leases: LeaseTracker,
    /// How long the head of a request may take.
    timeout: Duration,
}

impl FlushingListener {
    pub(super) fn new(inner: TcpListener, leases: LeaseTracker, timeout: Duration) -> FlushingListener {
        FlushingListener { inner, leases, timeout }
    }
}

impl Listener for FlushingListener {
    type Io = FlushingStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (FlushingStream, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.inner).await;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection goes on with delayed writes");
        }
        let timer = Box::pin(tokio::time::sleep(self.timeout));
        let head = PendingHead { timer, awaited: Awaited::Head, after: 0 };
        let connection = HttpConnection::new(self.leases.clone(), stream.local_addr().ok());
        (FlushingStream { inner: stream, connection, head, timeout: self.timeout }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// A connection that settles mail when it is flushed. hyper asks for a flush only when it has written
/// everything that it had buffered.
pub(super) struct FlushingStream {
    inner: TcpStream,
    connection: HttpConnection,
    head: PendingHead,
    timeout: Duration,
}

/// What a connection without an open request waits for, and until when.
struct PendingHead {
    timer: Pin<Box<Sleep>>,
    awaited: Awaited,
    /// How many requests had begun before it.
    after: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// The rest of a head: the connection is new, or some of its bytes have come.
    Head,
    /// The next request. Half a head may have come together with the one before it.
    Request,
}

impl FlushingStream {
    /// The number of requests, if none is open.
    fn between_requests(&self) -> Option<usize> {
        let requests = &self.connection.requests;
        let begun = requests.begun.load(Ordering::Relaxed);
        (begun == requests.ended.load(Ordering::Relaxed)).then_some(begun)
    }

    fn wait_for(&mut self, awaited: Awaited, after: usize) {
        if (self.head.awaited, self.head.after) == (awaited, after) {
            return;
        }
        let time = match awaited {
            Awaited::Head => self.timeout,
            Awaited::Request => self.timeout * RESTS,
        };
        (self.head.awaited, self.head.after) = (awaited, after);
        self.head.timer.as_mut().reset(Instant::now() + time);
    }

    /// Whether what is awaited did not come in time.
    fn has_stalled(&mut self, context: &mut Context<'_>) -> bool {
        let Some(begun) = self.between_requests() else { return false };
        if self.head.after != begun {
            self.wait_for(Awaited::Request, begun);
        }
        self.head.timer.as_mut().poll(context).is_ready()
    }
}

impl AsyncRead for FlushingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.inner).poll_read(context, buffer) {
            Poll::Ready(read) => {
                if buffer.filled().len() > before
                    && let Some(begun) = self.between_requests()
                {
                    self.wait_for(Awaited::Head, begun);
                }
                Poll::Ready(read)
            }
            Poll::Pending if self.has_stalled(context) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncWrite for FlushingStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(context);
        match &polled {
            Poll::Ready(Ok(())) => self.connection.settle(Fate::Sent),
            Poll::Ready(Err(_)) => self.connection.settle(Fate::Unclear),
            Poll::Pending => {}
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl Drop for FlushingStream {
    fn drop(&mut self) {
        self.connection.settle(Fate::Unclear);
    }
}
