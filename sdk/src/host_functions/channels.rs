//! Text frames over the endpoints that the manifest names.

use crate::Error;
#[cfg(target_arch = "wasm32")]
use crate::bindings::relay::adapter::channels as host;

/// A connection to one of the manifest's `grants.endpoints`: WebSocket frames or lines, over a Unix
/// socket or loopback TCP. Dropping it closes the connection.
///
/// ```
/// use relay_mesh_sdk::channels::Channel;
/// # relay_mesh_sdk::testing::Fakes::default().endpoint("app-server", |frame| vec![format!("echo {frame}")]).start();
/// let channel = Channel::open("app-server", &[])?;
/// channel.send("hello")?;
/// assert_eq!(channel.receive(1_000)?.as_deref(), Some("echo hello"));
/// # Ok::<(), relay_mesh_sdk::Error>(())
/// ```
#[derive(Debug)]
pub struct Channel {
    #[cfg(target_arch = "wasm32")]
    line: host::Channel,
    #[cfg(not(target_arch = "wasm32"))]
    line: crate::testing::fakes::FakeChannel,
}

impl Channel {
    /// Connects to an endpoint by its manifest name; `values` fill its blanks in order.
    pub fn open(endpoint: &str, values: &[String]) -> Result<Channel, Error> {
        #[cfg(target_arch = "wasm32")]
        let line = host::Channel::open(endpoint, values)?;
        #[cfg(not(target_arch = "wasm32"))]
        let line = crate::testing::fakes::FakeChannel::open(endpoint, values)?;
        Ok(Channel { line })
    }

    /// Sends one frame.
    pub fn send(&self, frame: &str) -> Result<(), Error> {
        self.line.send(frame)
    }

    /// The next frame; none if no frame comes within `timeout_ms` milliseconds.
    pub fn receive(&self, timeout_ms: u32) -> Result<Option<String>, Error> {
        self.line.receive(timeout_ms)
    }
}
