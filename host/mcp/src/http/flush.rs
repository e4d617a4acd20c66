//! Connections that say when what was written has been flushed to the operating system.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use crate::keeper::{Carried, Fate, Keeper};

/// One HTTP connection, as the responses on it see it.
#[derive(Clone)]
pub(super) struct Conversation {
    keeper: Keeper,
    /// Mail whose last byte the connection has taken over and not flushed yet. A std mutex: nothing
    /// is awaited while it is held.
    unflushed: Arc<Mutex<Vec<Carried>>>,
}

impl Conversation {
    fn new(keeper: Keeper) -> Conversation {
        Conversation { keeper, unflushed: Arc::default() }
    }

    /// Confirms mail once everything that was written so far has been flushed.
    pub(super) fn after_flush(&self, carried: Carried) {
        self.unflushed.lock().expect("no holder of this lock panics").push(carried);
    }

    fn settle(&self, fate: Fate) {
        let mail = std::mem::take(&mut *self.unflushed.lock().expect("no holder of this lock panics"));
        for carried in mail {
            self.keeper.settle_soon(carried, fate);
        }
    }
}

impl Connected<IncomingStream<'_, FlushingListener>> for Conversation {
    fn connect_info(stream: IncomingStream<'_, FlushingListener>) -> Conversation {
        stream.io().conversation.clone()
    }
}

/// A TCP listener whose connections say when they have flushed.
pub(super) struct FlushingListener {
    inner: TcpListener,
    keeper: Keeper,
}

impl FlushingListener {
    /// Listens on behalf of a keeper.
    pub(super) fn new(inner: TcpListener, keeper: Keeper) -> FlushingListener {
        FlushingListener { inner, keeper }
    }
}

impl Listener for FlushingListener {
    type Io = Flushing;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Flushing, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.inner).await;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection goes on with delayed writes");
        }
        (Flushing { inner: stream, conversation: Conversation::new(self.keeper.clone()) }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// A connection that settles mail when it is flushed. hyper asks for a flush only when it has written
/// everything that it had buffered.
pub(super) struct Flushing {
    inner: TcpStream,
    conversation: Conversation,
}

impl AsyncRead for Flushing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for Flushing {
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
            Poll::Ready(Ok(())) => self.conversation.settle(Fate::Sent),
            Poll::Ready(Err(_)) => self.conversation.settle(Fate::Lost),
            Poll::Pending => {}
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl Drop for Flushing {
    fn drop(&mut self) {
        self.conversation.settle(Fate::Lost);
    }
}
