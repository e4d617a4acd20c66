//! Text frames over a socket on this machine: WebSocket messages or lines, over a Unix socket or
//! loopback TCP. A channel lives as long as the call that opened it.

use std::io::ErrorKind;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Message, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, error::ProtocolError};
use wasmtime::component::Resource;

use super::rates::Use;
use super::{HostResult, about, blocking, failed, within};
use crate::bindings::relay::adapter::channels::{Host, HostChannel};
use crate::bindings::relay::adapter::types::Error;
use crate::guest::{Guest, HostSide};
use crate::manifest::Framing;
use crate::places::{self, Requested};
use crate::template::FilledAddress;
use crate::unix::socket;

/// Limits of channels.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The longest frame in either direction, in bytes.
    pub longest: usize,
    /// The longest wait to connect, and to send a frame.
    pub timeout: Duration,
    /// The longest that a guest may wait for a frame.
    pub longest_wait: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { longest: 1024 * 1024, timeout: Duration::from_secs(5), longest_wait: Duration::from_secs(10) }
    }
}

/// A Unix or TCP stream.
trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for S {}

pub struct OpenChannel {
    framed: Framed,
    longest: usize,
}

enum Framed {
    WebSocket(Box<WebSocketStream<Box<dyn Stream>>>),
    Lines {
        stream: Box<dyn Stream>,
        /// Bytes read that are not yet a whole line. Kept here so that a timed-out wait loses nothing.
        buffer: Vec<u8>,
    },
}

impl Host for Guest {}

impl HostChannel for Guest {
    async fn open(
        &mut self,
        endpoint: String,
        values: Vec<String>,
    ) -> wasmtime::Result<HostResult<Resource<OpenChannel>>> {
        if let Err(error) = self.spend(Use::Channel) {
            return Ok(Err(error));
        }
        let host_side = &self.host_side;
        let settings = host_side.settings.channels;
        let filled = host_side
            .grants
            .endpoint(&endpoint)
            .map_err(Error::from)
            .and_then(|granted| Ok((granted.address.fill(&values, &host_side.surroundings)?, granted.framing)));
        let (address, framing) = match filled {
            Ok(filled) => filled,
            Err(error) => return Ok(Err(about(&format!("endpoints.{endpoint}"), error))),
        };
        if let Err(error) = allowed(host_side, &endpoint, &address).await {
            return Ok(Err(about(&format!("endpoints.{endpoint}"), error)));
        }
        let what = format!("connecting to `{endpoint}`");
        Ok(match within(settings.timeout, &what, OpenChannel::open(&address, framing, settings.longest)).await {
            Ok(channel) => Ok(self.table.push(channel)?),
            Err(error) => Err(error),
        })
    }

    async fn send(&mut self, channel: Resource<OpenChannel>, frame: String) -> wasmtime::Result<HostResult<()>> {
        if let Err(error) = self.spend(Use::Frame) {
            return Ok(Err(error));
        }
        let timeout = self.host_side.settings.channels.timeout;
        let channel = self.table.get_mut(&channel)?;
        Ok(within(timeout, "sending a frame", channel.send(frame)).await)
    }

    async fn receive(
        &mut self,
        channel: Resource<OpenChannel>,
        timeout_ms: u32,
    ) -> wasmtime::Result<HostResult<Option<String>>> {
        let wait = Duration::from_millis(timeout_ms.into()).min(self.host_side.settings.channels.longest_wait);
        let channel = self.table.get_mut(&channel)?;
        Ok(match tokio::time::timeout(wait, channel.receive()).await {
            Ok(received) => received.map(Some),
            Err(_) => Ok(None),
        })
    }

    async fn drop(&mut self, channel: Resource<OpenChannel>) -> wasmtime::Result<()> {
        self.table.delete(channel)?;
        Ok(())
    }
}

/// Refuses the sockets in folders that no adapter may have, whatever the user granted: our own, the system's, another
/// harness's.
async fn allowed(host_side: &HostSide, endpoint: &str, address: &FilledAddress) -> HostResult<()> {
    let FilledAddress::Unix(path) = address else { return Ok(()) };
    let (path, endpoint) = (path.clone(), endpoint.to_owned());
    let (surroundings, asker) = (host_side.surroundings.clone(), host_side.grants.asker());
    blocking(host_side.settings.channels.timeout, "looking at a socket", move || {
        match places::objection(&asker, Requested::Endpoint(&endpoint), &path, &surroundings) {
            Some(why) => Err(Error::Denied(format!("no adapter may have `{}`: {why}", path.display()))),
            None => Ok(()),
        }
    })
    .await
}

impl OpenChannel {
    async fn open(address: &FilledAddress, framing: Framing, longest: usize) -> HostResult<OpenChannel> {
        let stream: Box<dyn Stream> = match address {
            FilledAddress::Unix(path) => {
                Box::new(socket::connect(path).await.map_err(|error| refused(&error, address))?)
            }
            FilledAddress::Tcp(host, port) => {
                let host: std::net::IpAddr = host.parse().map_err(failed)?;
                let stream = TcpStream::connect((host, *port)).await;
                Box::new(stream.map_err(|error| refused(&error, address))?)
            }
        };
        let framed = match framing {
            Framing::Lines => Framed::Lines { stream, buffer: Vec::new() },
            Framing::Websocket => {
                let config = WebSocketConfig::default().max_message_size(Some(longest)).max_frame_size(Some(longest));
                let request = match address {
                    FilledAddress::Unix(_) => "ws://localhost/".to_owned(),
                    FilledAddress::Tcp(host, port) if host.contains(':') => format!("ws://[{host}]:{port}/"),
                    FilledAddress::Tcp(host, port) => format!("ws://{host}:{port}/"),
                };
                let (socket, _) = tokio_tungstenite::client_async_with_config(request, stream, Some(config))
                    .await
                    .map_err(|error| match has_gone(&error) {
                        true => Error::NotFound(format!("nothing listens on {} any more", text(address))),
                        false => failed(format!("the handshake failed: {error}")),
                    })?;
                Framed::WebSocket(Box::new(socket))
            }
        };
        Ok(OpenChannel { framed, longest })
    }

    async fn send(&mut self, frame: String) -> HostResult<()> {
        if frame.len() > self.longest {
            return Err(failed(format!("a frame of {} bytes is too long: {} fit", frame.len(), self.longest)));
        }
        match &mut self.framed {
            Framed::WebSocket(socket) => socket.send(Message::text(frame)).await.map_err(broken_socket),
            Framed::Lines { stream, .. } => {
                if frame.contains('\n') {
                    return Err(failed("a frame on a channel of lines holds no line break"));
                }
                stream.write_all(format!("{frame}\n").as_bytes()).await.map_err(broken)?;
                stream.flush().await.map_err(broken)
            }
        }
    }

    /// The next frame. Cancellation-safe: no frame is lost.
    async fn receive(&mut self) -> HostResult<String> {
        match &mut self.framed {
            Framed::WebSocket(socket) => loop {
                match socket.next().await {
                    Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
                    Some(Ok(Message::Binary(_))) => return Err(failed("a frame came that is not text")),
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                    Some(Ok(Message::Close(_))) | None => return Err(closed()),
                    Some(Err(error)) => return Err(broken_socket(error)),
                }
            },
            Framed::Lines { stream, buffer } => loop {
                if let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                    let mut line: Vec<u8> = buffer.drain(..=end).collect();
                    line.pop();
                    if line.last() == Some(&b'\r') {
                        line.pop();
                    }
                    return String::from_utf8(line).map_err(|_| failed("a frame came that is not text"));
                }
                if buffer.len() > self.longest {
                    return Err(failed(format!("a frame came that is longer than {} bytes", self.longest)));
                }
                if stream.read_buf(buffer).await.map_err(broken)? == 0 {
                    return Err(closed());
                }
            },
        }
    }
}

fn closed() -> Error {
    Error::NotFound("the other side closed the channel".to_owned())
}

fn text(address: &FilledAddress) -> String {
    match address {
        FilledAddress::Unix(path) => path.display().to_string(),
        FilledAddress::Tcp(host, port) => format!("{host} port {port}"),
    }
}

fn refused(error: &std::io::Error, address: &FilledAddress) -> Error {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            Error::NotFound(format!("nothing listens on {}", text(address)))
        }
        _ => failed(format!("could not connect to {}: {error}", text(address))),
    }
}

fn broken(error: std::io::Error) -> Error {
    broken_socket(error.into())
}

fn broken_socket(error: tungstenite::Error) -> Error {
    if has_gone(&error) { closed() } else { failed(format!("the channel broke off: {error}")) }
}

/// Whether the other side has ended. A listener that ends resets the connections that it has not accepted yet.
fn has_gone(error: &tungstenite::Error) -> bool {
    use ProtocolError::{HandshakeIncomplete, ResetWithoutClosingHandshake};
    match error {
        tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed => true,
        tungstenite::Error::Protocol(error) => matches!(error, HandshakeIncomplete | ResetWithoutClosingHandshake),
        tungstenite::Error::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, UnixListener};

    use super::*;

    #[tokio::test]
    async fn lines_over_a_unix_socket_arrive_one_by_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).expect("a socket");
        let address = FilledAddress::Unix(path);
        let opening = OpenChannel::open(&address, Framing::Lines, 10);
        let (channel, accepted) = tokio::join!(opening, listener.accept());
        let (mut channel, (mut other, _)) = (channel.expect("a channel"), accepted.expect("a peer"));
        other.write_all(b"one\r\ntwo\nthr").await.expect("written");
        assert_eq!(channel.receive().await.expect("a frame"), "one");
        assert_eq!(channel.receive().await.expect("a frame"), "two");
        tokio::time::timeout(Duration::from_millis(1), channel.receive()).await.expect_err("half a line");
        other.write_all(b"ee\n").await.expect("written");
        assert_eq!(channel.receive().await.expect("a frame"), "three");
        assert!(matches!(channel.send("a\nb".to_owned()).await, Err(Error::Failed(_))));
        assert!(matches!(channel.send("x".repeat(11)).await, Err(Error::Failed(_))));
        other.write_all(&[b'x'; 30]).await.expect("written");
        assert!(matches!(channel.receive().await, Err(Error::Failed(text)) if text.contains("longer than 10")));
        drop(other);
    }

    #[tokio::test]
    async fn websocket_messages_cross_over_tcp() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = FilledAddress::Tcp("127.0.0.1", listener.local_addr().expect("an address").port());
        let serving = async {
            let (stream, _) = listener.accept().await.expect("a peer");
            let mut socket = tokio_tungstenite::accept_async(stream).await.expect("a handshake");
            let heard = socket.next().await.expect("a message").expect("a message");
            socket.send(heard).await.expect("sent");
            socket
        };
        let talking = async {
            let mut channel = OpenChannel::open(&address, Framing::Websocket, 100).await.expect("a channel");
            channel.send("hello".to_owned()).await.expect("sent");
            assert_eq!(channel.receive().await.expect("a frame"), "hello");
            channel
        };
        let (socket, mut channel) = tokio::join!(serving, talking);
        drop(socket);
        assert!(channel.receive().await.is_err());
    }

    #[tokio::test]
    async fn nobody_there_is_not_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let address = FilledAddress::Unix(folder.path().join("none"));
        assert!(matches!(OpenChannel::open(&address, Framing::Lines, 10).await, Err(Error::NotFound(_))));
    }

    #[tokio::test]
    async fn a_listener_that_ends_before_it_accepts_is_not_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).expect("a socket");
        let address = FilledAddress::Unix(path);
        let opening = OpenChannel::open(&address, Framing::Websocket, 100);
        let ending = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            drop(listener);
        };
        let (opened, ()) = tokio::join!(opening, ending);
        let why = opened.err().expect("nobody has answered");
        assert!(matches!(&why, Error::NotFound(text) if text.ends_with("any more")), "{why:?}");
    }

    #[tokio::test]
    async fn an_app_that_hangs_up_is_not_found_by_those_who_send() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).expect("a socket");
        let address = FilledAddress::Unix(path);
        let (channel, accepted) = tokio::join!(OpenChannel::open(&address, Framing::Lines, 10), listener.accept());
        drop(accepted);
        let mut channel = channel.expect("a channel");
        assert!(matches!(channel.send("a".to_owned()).await, Err(Error::NotFound(_))));
    }
}
