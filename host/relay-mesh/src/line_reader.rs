//! Reads lines of bounded length from a stream that may be absent.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NextLine {
    Text(String),
    /// It exceeded the limit and was skipped.
    TooLong,
    /// End of the stream.
    End,
}

pub(crate) struct Lines<R> {
    /// None: `next` never returns.
    input: Option<BufReader<R>>,
    /// The longest accepted line, in bytes.
    longest: usize,
    /// The incomplete line. Stored here so that a cancelled read loses nothing.
    begun: Vec<u8>,
    /// Whether the incomplete line is already too long.
    overlong: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Without a stream, `next` waits forever.
    pub(crate) fn of(input: Option<R>, longest: usize) -> Lines<R> {
        Lines { input: input.map(BufReader::new), longest, begun: Vec::new(), overlong: false }
    }

    /// The next line that is not blank. Cancelling it loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<NextLine> {
        let Some(input) = &mut self.input else { return std::future::pending().await };
        loop {
            let buffer = input.fill_buf().await?;
            if buffer.is_empty() {
                return Ok(NextLine::End);
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            if self.begun.len() + part.len() > self.longest {
                self.overlong = true;
                self.begun.clear();
            } else if !self.overlong {
                self.begun.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            input.consume(used);
            if end.is_none() {
                continue;
            }
            let line = std::mem::take(&mut self.begun);
            if std::mem::take(&mut self.overlong) {
                return Ok(NextLine::TooLong);
            }
            let text = String::from_utf8_lossy(&line);
            if !text.trim().is_empty() {
                return Ok(NextLine::Text(text.trim().to_owned()));
            }
        }
    }
}
