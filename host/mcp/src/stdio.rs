//! MCP over standard input and output: the server that a harness starts for itself.
//!
//! Standard output carries the protocol and nothing else. The server ends when its client closes standard
//! input, or when it is stopped.

use std::sync::Arc;

use mesh::sessions::ConnectionId;
use mesh::{Mesh, Served};
use rmcp::service::{QuitReason, ServerInitializeError, ServiceExt};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::lease_tracker::LeaseTracker;
use crate::profile::Profile;
use crate::server::{self, Server, Service};
use crate::watched_transport::WatchedTransport;

/// What is known about the process that started us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientProcess {
    /// Its environment variables, as we inherited them. The adapters crate narrows them to each manifest's list.
    pub environment: Vec<(String, String)>,
    /// The folder in which it started us. A root that the client names takes precedence.
    pub workdir: Option<String>,
    /// Its process id.
    pub pid: Option<u32>,
}

/// Why a connection ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The first answers failed, before the client had said which protocol version it uses.
    #[error("the client could not be answered")]
    Handshake(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The task that serves the connection broke off.
    #[error("the connection broke off")]
    Broken(#[from] tokio::task::JoinError),
}

/// Serves the process that started us, until it leaves or `stop` is cancelled.
pub async fn serve_stdio(
    service: impl Into<Service>,
    process: ClientProcess,
    profile: Profile,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let (read, write) = rmcp::transport::stdio_pipes();
    serve_on(service, process, profile, (read, write), stop).await
}

/// Serves one client over any pair of streams. Also delivers mail to the sessions that register here.
pub async fn serve_on<R, W>(
    service: impl Into<Service>,
    process: ClientProcess,
    profile: Profile,
    (read, write): (R, W),
    stop: CancellationToken,
) -> Result<(), StdioError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let service = service.into();
    let mesh = Arc::clone(&service.mesh);
    let leases = LeaseTracker::new(Arc::clone(&mesh));
    let connection = Connection::new(fresh_connection(&mesh), leases.clone());
    if let Some(client) = process.pid {
        mesh.connected(&connection.id, client);
    }
    let origin = server::origin_of_stdio(process.environment, process.workdir);
    let server = Server::new(service, leases.clone(), origin, profile).started_by(process.pid);
    let transport =
        WatchedTransport::new(AsyncRwTransport::new_server(read, write), connection.clone(), leases.clone());

    // Delivery ends with the connection, whichever way the connection ends.
    let delivery = stop.child_token();
    let _ends_delivery = delivery.clone().drop_guard();
    let delivering =
        tokio::spawn(Arc::clone(&mesh).deliver(Served::Connection(connection.id.clone()), delivery.clone()));
    let outcome = match server.serve_with_ct(transport, stop.clone()).await {
        Ok(running) => match running.waiting().await? {
            QuitReason::Cancelled | QuitReason::Closed => Ok(()),
            QuitReason::JoinError(error) => Err(error.into()),
            other => {
                tracing::debug!(?other, "the connection ended for a reason that this version does not know");
                Ok(())
            }
        },
        // A client that leaves without a word, and a user who stops us early, are not errors.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(StdioError::Handshake(Box::new(error))),
    };
    delivery.cancel();
    connection.closing.cancel();
    connection.ledger.close();
    leases.finish().await;
    delivering.await?;
    if let Err(error) = mesh.disconnect(&connection.id).await {
        let error: &dyn std::error::Error = &error;
        tracing::warn!(error, "the mesh could not be told that a connection has closed");
    }
    outcome
}

/// A unique name for a connection.
pub(crate) fn fresh_connection(mesh: &Mesh) -> ConnectionId {
    ConnectionId(fresh_name(mesh))
}

/// A name that nobody can guess.
pub(crate) fn fresh_name(mesh: &Mesh) -> String {
    hex::encode(mesh.machine().random())
}
