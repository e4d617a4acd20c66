//! How much the streams hold, as the server says.

use store::StoreError;

use crate::connection::Connection;
use crate::errors::server_error;

/// One stream of the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSize {
    /// Its name on the server.
    pub name: String,
    /// Entries and values, old values that the stream still keeps included.
    pub messages: u64,
    /// Their bytes on the server, once per replica.
    pub bytes: u64,
}

/// The sizes of the log stream and the value stream.
pub(crate) async fn sizes(connection: &Connection) -> Result<[StreamSize; 2], StoreError> {
    Ok([size(&*connection.logs().await?).await?, size(&*connection.map().await?).await?])
}

async fn size(stream: &async_nats::jetstream::stream::Stream) -> Result<StreamSize, StoreError> {
    let name = stream.cached_info().config.name.clone();
    let info = stream.get_info().await.map_err(|error| server_error("could not ask about", &name)(error.into()))?;
    Ok(StreamSize { name, messages: info.state.messages, bytes: info.state.bytes })
}
