//! Lines that somebody writes to us, of bounded length, without an end where nobody writes any.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Its text.
    Text(String),
    /// It was longer than is taken, and was passed over.
    TooLong,
    /// There are no more.
    End,
}

/// The lines of a stream.
pub(crate) struct Lines<R> {
    /// None where nothing is read.
    input: Option<BufReader<R>>,
    /// The longest line that is taken, in bytes.
    longest: usize,
    /// What was read of the line that is not yet complete. Kept here, so that a read that is
    /// cancelled loses nothing.
    begun: Vec<u8>,
    /// Whether the line that is not yet complete is too long already.
    overlong: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The lines of a stream; none ever, and no end, where there is no stream.
    pub(crate) fn of(input: Option<R>, longest: usize) -> Lines<R> {
        Lines { input: input.map(BufReader::new), longest, begun: Vec::new(), overlong: false }
    }

    /// The next line that is not blank. Cancelling it loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<Line> {
        let Some(input) = &mut self.input else { return std::future::pending().await };
        loop {
            let buffer = input.fill_buf().await?;
            if buffer.is_empty() {
                return Ok(Line::End);
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
                return Ok(Line::TooLong);
            }
            let text = String::from_utf8_lossy(&line);
            if !text.trim().is_empty() {
                return Ok(Line::Text(text.trim().to_owned()));
            }
        }
    }
}
