//! The output to one follower: lines are written whole, in order, and given up if the follower does not read.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::cursor::Cursor;
use super::socket_lines::EventLine;

/// Why a follower was disconnected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cut {
    #[error("the follower went away")]
    Gone(#[from] io::Error),
    #[error("nothing was read for {0} s")]
    Slow(u64),
    #[error("{0}")]
    Nonsense(&'static str),
}

/// The output to one follower. Buffers one line, beside the system's own buffer.
pub(crate) struct Outlet<W> {
    writer: W,
    /// How long a write may make no progress.
    timeout: Duration,
    line: Vec<u8>,
    /// Bytes of `line` written so far.
    taken: usize,
}

impl<W: AsyncWrite + Unpin> Outlet<W> {
    pub(crate) fn new(writer: W, timeout: Duration) -> Outlet<W> {
        Outlet { writer, timeout, line: Vec::new(), taken: 0 }
    }

    /// Writes a line. Fails if the follower reads nothing of it for `timeout`.
    pub(crate) async fn say(&mut self, said: &EventLine) -> Result<(), Cut> {
        self.line = serde_json::to_vec(said).map_err(io::Error::from)?;
        self.line.push(b'\n');
        self.taken = 0;
        self.push().await
    }

    /// Writes the last line: why the follower is disconnected, and the cursor to continue from. A follower that reads
    /// again finds it there; the timeout is the same as before.
    pub(crate) async fn close(mut self, why: &Cut, cursor: Option<Cursor>) {
        let last = async {
            // Half a line would corrupt the next one.
            self.push().await?;
            self.say(&EventLine::cut(why, cursor)).await
        };
        match why {
            Cut::Gone(_) => {}
            Cut::Slow(_) | Cut::Nonsense(_) => {
                if let Err(error) = last.await {
                    tracing::debug!(%error, "a follower was cut without a word");
                }
            }
        }
    }

    /// Writes the rest of the line.
    async fn push(&mut self) -> Result<(), Cut> {
        while self.taken < self.line.len() {
            let written = timeout(self.timeout, self.writer.write(&self.line[self.taken..])).await;
            match written.map_err(|_| Cut::Slow(self.timeout.as_secs()))?? {
                0 => return Err(Cut::Gone(io::ErrorKind::WriteZero.into())),
                written => self.taken += written,
            }
        }
        timeout(self.timeout, self.writer.flush()).await.map_err(|_| Cut::Slow(self.timeout.as_secs()))??;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn line(length: usize) -> EventLine {
        EventLine::error("x".repeat(length))
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_for_too_long_is_cut_and_told_so() {
        let (writer, mut reader) = tokio::io::duplex(64);
        let mut outlet = Outlet::new(writer, PATIENCE);
        let began = tokio::time::Instant::now();
        let cut = outlet.say(&line(200)).await.expect_err("nobody reads");
        assert_eq!(began.elapsed(), PATIENCE);
        assert_eq!(cut.to_string(), "nothing was read for 10 s");
        let reading = tokio::spawn(async move {
            let mut text = String::new();
            reader.read_to_string(&mut text).await.map(|_| text)
        });
        let cursor = "17-4".parse().expect("a cursor");
        outlet.close(&cut, Some(cursor)).await;
        let text = reading.await.expect("it reads").expect("it is text");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect();
        assert_eq!(lines.len(), 2, "the line that was begun is ended: {text}");
        assert_eq!((&lines[1]["event"], &lines[1]["cursor"]), (&"cut".into(), &"17-4".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_slowly_and_steadily_is_not_cut() {
        let (writer, mut reader) = tokio::io::duplex(16);
        let reading = tokio::spawn(async move {
            let mut taken = 0;
            let mut byte = [0; 16];
            loop {
                tokio::time::sleep(PATIENCE / 2).await;
                match reader.read(&mut byte).await {
                    Ok(0) | Err(_) => return taken,
                    Ok(bytes) => taken += bytes,
                }
            }
        });
        let mut outlet = Outlet::new(writer, PATIENCE);
        outlet.say(&line(300)).await.expect("it is taken, in a while");
        drop(outlet);
        assert!(reading.await.expect("it reads") > 300);
    }
}
