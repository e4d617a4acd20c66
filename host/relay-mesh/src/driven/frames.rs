//! The frames of a program that we talk with: lines of its standard input and output, or text messages of a WebSocket.
//! Reading never waits for the code that acts on a frame, and writing never waits for the program.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Message, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Error as SocketError};

use crate::unix::UnixStream;

/// The longest frame, in bytes.
const LONGEST: usize = 32 << 20;
/// Bytes that may wait to be acted on, or to be taken by the program.
const MOST_WAITING: usize = 64 << 20;
/// What a frame costs beside its text, in bytes: short ones must not fill the memory either.
const BESIDE: usize = 128;
/// The most frames that are acted on at once.
const BATCH: usize = 256;

/// Why no more frames come or go.
#[derive(Debug, thiserror::Error)]
pub(super) enum FramesError {
    #[error("it closed its connection")]
    Closed,
    #[error("its frames could not be read")]
    Read(#[source] io::Error),
    #[error("its connection broke")]
    Socket(#[source] Box<SocketError>),
    #[error("it sent a frame of more than {LONGEST} bytes")]
    TooLong,
    #[error("it sent {MOST_WAITING} bytes faster than they could be acted on")]
    TooFast,
    #[error("it does not read what it is sent")]
    Deaf,
}

/// The frames of a program, in both directions.
pub(super) fn over_lines(input: ChildStdin, output: ChildStdout) -> (Outgoing, Incoming) {
    let (sender, queue) = mpsc::unbounded_channel();
    let waiting = Waiting::default();
    tokio::spawn(read_lines(BufReader::new(output), sender, waiting.clone()));
    (Outgoing::by(|frames, written| write_lines(input, frames, written)), Incoming { queue, waiting, end: None })
}

/// The same over a socket at which it listens.
pub(super) async fn over_websocket(socket: UnixStream) -> Result<(Outgoing, Incoming), FramesError> {
    let config = WebSocketConfig::default().max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST));
    let greeted = tokio_tungstenite::client_async_with_config("ws://localhost/", socket, Some(config));
    let (socket, _) = greeted.await.map_err(|error| FramesError::Socket(Box::new(error)))?;
    let (input, output) = socket.split();
    let (sender, queue) = mpsc::unbounded_channel();
    let waiting = Waiting::default();
    tokio::spawn(read_messages(output, sender, waiting.clone()));
    Ok((Outgoing::by(|frames, written| write_messages(input, frames, written)), Incoming { queue, waiting, end: None }))
}

/// Bytes in a queue.
#[derive(Clone, Debug, Default)]
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    /// Counts bytes in; false if they are too many.
    fn add(&self, bytes: usize) -> bool {
        self.0.fetch_add(bytes, Ordering::Relaxed) + bytes <= MOST_WAITING
    }

    fn take(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What a program sends.
pub(super) struct Incoming {
    queue: mpsc::UnboundedReceiver<Result<String, FramesError>>,
    waiting: Waiting,
    /// What came behind the frames of the last batch.
    end: Option<FramesError>,
}

impl Incoming {
    /// The next frames, as many as there are. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Vec<String>, FramesError> {
        if let Some(end) = self.end.take() {
            return Err(end);
        }
        let mut frames = vec![self.queue.recv().await.unwrap_or(Err(FramesError::Closed))?];
        while frames.len() < BATCH {
            match self.queue.try_recv() {
                Ok(Ok(frame)) => frames.push(frame),
                Ok(Err(end)) => {
                    self.end = Some(end);
                    break;
                }
                Err(_) => break,
            }
        }
        self.waiting.take(frames.iter().map(|frame| cost_of(frame)).sum());
        Ok(frames)
    }
}

fn cost_of(frame: &str) -> usize {
    frame.len() + BESIDE
}

async fn read_lines(
    mut output: BufReader<ChildStdout>,
    sender: mpsc::UnboundedSender<Result<String, FramesError>>,
    waiting: Waiting,
) {
    let end = loop {
        let mut line = Vec::new();
        match (&mut output).take(LONGEST as u64 + 1).read_until(b'\n', &mut line).await {
            Ok(0) => break FramesError::Closed,
            Ok(_) if line.last() != Some(&b'\n') && line.len() > LONGEST => break FramesError::TooLong,
            Ok(_) => {}
            Err(error) => break FramesError::Read(error),
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\n', '\r']);
        if line.trim().is_empty() {
            continue;
        }
        if !waiting.add(cost_of(line)) {
            break FramesError::TooFast;
        }
        if sender.send(Ok(line.to_owned())).is_err() {
            return;
        }
    };
    // The link may be gone.
    let _unheard = sender.send(Err(end));
}

async fn read_messages(
    mut socket: SplitStream<WebSocketStream<UnixStream>>,
    sender: mpsc::UnboundedSender<Result<String, FramesError>>,
    waiting: Waiting,
) {
    let end = loop {
        let text = match socket.next().await {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(_))) | None => break FramesError::Closed,
            // A ping is answered by the library.
            Some(Ok(_)) => continue,
            Some(Err(SocketError::Capacity(_))) => break FramesError::TooLong,
            Some(Err(error)) if has_closed(&error) => break FramesError::Closed,
            Some(Err(error)) => break FramesError::Socket(Box::new(error)),
        };
        if !waiting.add(cost_of(&text)) {
            break FramesError::TooFast;
        }
        if sender.send(Ok(text.as_str().to_owned())).is_err() {
            return;
        }
    };
    // The link may be gone.
    let _unheard = sender.send(Err(end));
}

fn has_closed(error: &SocketError) -> bool {
    use tungstenite::error::ProtocolError;
    match error {
        SocketError::ConnectionClosed | SocketError::AlreadyClosed => true,
        SocketError::Protocol(error) => *error == ProtocolError::ResetWithoutClosingHandshake,
        SocketError::Io(error) => matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe),
        _ => false,
    }
}

async fn write_lines(mut input: ChildStdin, mut frames: mpsc::UnboundedReceiver<String>, written: Waiting) {
    while let Some(frame) = frames.recv().await {
        let mut line = frame.into_bytes();
        line.push(b'\n');
        // A program that has closed its input is about to end, which its guard tells.
        if input.write_all(&line).await.is_err() || input.flush().await.is_err() {
            return;
        }
        written.take(line.len());
    }
}

async fn write_messages(
    mut socket: SplitSink<WebSocketStream<UnixStream>, Message>,
    mut frames: mpsc::UnboundedReceiver<String>,
    written: Waiting,
) {
    while let Some(frame) = frames.recv().await {
        let length = frame.len() + 1;
        // The reader tells of a connection that broke.
        if socket.send(Message::text(frame)).await.is_err() {
            return;
        }
        written.take(length);
    }
}

/// What a program is sent.
pub(super) struct Outgoing {
    queue: mpsc::UnboundedSender<String>,
    waiting: Waiting,
}

impl Outgoing {
    /// Written by one task, in order.
    fn by<W: Future<Output = ()> + Send + 'static>(
        writing: impl FnOnce(mpsc::UnboundedReceiver<String>, Waiting) -> W,
    ) -> Outgoing {
        let (queue, frames) = mpsc::unbounded_channel::<String>();
        let waiting = Waiting::default();
        tokio::spawn(writing(frames, waiting.clone()));
        Outgoing { queue, waiting }
    }

    pub(super) fn send(&self, frames: Vec<String>) -> Result<(), FramesError> {
        for frame in frames {
            if !self.waiting.add(frame.len() + 1) {
                return Err(FramesError::Deaf);
            }
            // Its end is told by the guard.
            let _ended = self.queue.send(frame);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::process::{Child, Command};

    use super::*;

    fn shell(script: &str) -> (Child, Outgoing, Incoming) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("a shell");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let (outgoing, incoming) = over_lines(input, output);
        (child, outgoing, incoming)
    }

    #[tokio::test]
    async fn frames_come_in_order_and_the_end_behind_them() {
        let (_child, outgoing, mut incoming) = shell("printf 'a\\n\\nb\\r\\nc'; head -n 1");
        outgoing.send(vec!["from us".to_owned(), "unread".to_owned()]).expect("sent");
        let mut all = Vec::new();
        let end = loop {
            match incoming.next().await {
                Ok(frames) => all.extend(frames),
                Err(end) => break end,
            }
        };
        // The shell's own last line has no end of its own.
        assert_eq!(all, ["a", "b", "cfrom us"]);
        assert!(matches!(end, FramesError::Closed), "{end}");
    }

    #[tokio::test]
    async fn messages_come_in_order_and_the_end_behind_them() {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let peer = tokio::spawn(async move {
            let mut socket = tokio_tungstenite::accept_async(theirs).await.expect("greeted");
            let first = socket.next().await.expect("a message").expect("whole");
            for text in ["a\nb", "", first.to_text().expect("text")] {
                socket.send(Message::text(text)).await.expect("read");
            }
            socket.send(Message::Ping("x".into())).await.expect("read");
            // Gone without a word.
        });
        let (outgoing, mut incoming) = over_websocket(ours).await.expect("greeted");
        outgoing.send(vec!["from us".to_owned()]).expect("sent");
        let mut all = Vec::new();
        let end = loop {
            match incoming.next().await {
                Ok(frames) => all.extend(frames),
                Err(end) => break end,
            }
        };
        peer.await.expect("well");
        assert_eq!(all, ["a\nb", "", "from us"]);
        assert!(matches!(end, FramesError::Closed), "{end}");
    }

    #[tokio::test]
    async fn what_has_no_measure_ends_the_talk() {
        let (_child, _outgoing, mut incoming) = shell("head -c 40000000 /dev/zero | tr '\\0' x");
        assert!(matches!(incoming.next().await, Err(FramesError::TooLong)));
        let (_child, outgoing, _incoming) = shell("sleep 60");
        let frame = "x".repeat(LONGEST);
        let sent: Vec<_> = (0..3).map(|_| outgoing.send(vec![frame.clone()])).collect();
        assert!(sent[0].is_ok() && matches!(sent[2], Err(FramesError::Deaf)), "{sent:?}");
        // Short frames count with what they cost beside their text.
        let (_child, _outgoing, mut incoming) = shell("yes | head -c 4000000");
        while !incoming.queue.is_closed() {
            tokio::task::yield_now().await;
        }
        let mut frames = 0;
        let end = loop {
            match incoming.next().await {
                Ok(batch) => frames += batch.len(),
                Err(end) => break end,
            }
        };
        assert!(frames <= MOST_WAITING / BESIDE && matches!(end, FramesError::TooFast), "{frames} frames, {end}");
    }
}
