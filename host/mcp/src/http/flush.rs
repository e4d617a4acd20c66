//! Connections that report when written data has been flushed to the operating system.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use crate::lease_tracker::{Fate, LeaseTracker, PendingLease};

/// One HTTP connection, as the responses on it see it.
#[derive(Clone)]
pub(super) struct HttpConnection {
    leases: LeaseTracker,
    /// Mail whose last byte was handed to the connection and is not flushed yet. A std mutex: nothing
    /// is awaited while it is held.
    unflushed: Arc<Mutex<Vec<PendingLease>>>,
}

impl HttpConnection {
    fn new(leases: LeaseTracker) -> HttpConnection {
        HttpConnection { leases, unflushed: Arc::default() }
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
}

impl FlushingListener {
    pub(super) fn new(inner: TcpListener, leases: LeaseTracker) -> FlushingListener {
        FlushingListener { inner, leases }
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
        (FlushingStream { inner: stream, connection: HttpConnection::new(self.leases.clone()) }, address)
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
}

impl AsyncRead for FlushingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
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
            Poll::Ready(Err(_)) => self.connection.settle(Fate::Lost),
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
        self.connection.settle(Fate::Lost);
    }
}
