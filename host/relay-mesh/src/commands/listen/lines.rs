//! Lines of standard input, of bounded length, without an end where nobody writes any.

use std::io;

use tokio::io::{AsyncBufReadExt, BufReader, Stdin};

use super::Receipts;

/// The longest line. Evidence is the only part that may be long.
const LONGEST_LINE: usize = 256 * 1024;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Its text.
    Text(String),
    /// It was longer than is taken, and was passed over.
    TooLong,
    /// There are no more.
    End,
}

/// The lines of standard input.
pub(super) struct Lines {
    /// None where nothing is read.
    input: Option<BufReader<Stdin>>,
    /// What was read of the line that is not yet complete. Kept here, so that a read that is
    /// cancelled loses nothing.
    begun: Vec<u8>,
    /// Whether the line that is not yet complete is too long already.
    overlong: bool,
}

impl Lines {
    /// Reads standard input where receipts come from there.
    pub(super) fn of_standard_input(receipts: Receipts) -> Lines {
        let input = match receipts {
            Receipts::Lines => Some(BufReader::new(tokio::io::stdin())),
            Receipts::Printing => None,
        };
        Lines { input, begun: Vec::new(), overlong: false }
    }

    /// The next line that is not blank. Cancelling it loses nothing.
    pub(super) async fn next(&mut self) -> io::Result<Line> {
        let Some(input) = &mut self.input else { return std::future::pending().await };
        loop {
            let buffer = input.fill_buf().await?;
            if buffer.is_empty() {
                return Ok(Line::End);
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            if self.begun.len() + part.len() > LONGEST_LINE {
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
