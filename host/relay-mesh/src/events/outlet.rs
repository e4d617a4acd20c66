//! Where the lines for one follower go: written whole, one after the other, and given up on where nobody
//! takes them.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::words::{Cursor, Said};

/// Why a follower is told nothing more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cut {
    /// It went away.
    #[error("the follower went away")]
    Gone(#[from] io::Error),
    /// It took nothing for too long.
    #[error("nothing was read for {0} s")]
    Slow(u64),
    /// It does not say what it wants.
    #[error("{0}")]
    Nonsense(&'static str),
}

/// Where lines go. What it holds back for a follower is one line, beside what the system's own buffer takes.
pub(crate) struct Outlet<W> {
    writer: W,
    /// How long nothing may be taken.
    timeout: Duration,
    /// The line that is being written.
    line: Vec<u8>,
    /// How much of it was taken.
    taken: usize,
}

impl<W: AsyncWrite + Unpin> Outlet<W> {
    /// An outlet that waits so long for somebody to read.
    pub(crate) fn new(writer: W, timeout: Duration) -> Outlet<W> {
        Outlet { writer, timeout, line: Vec::new(), taken: 0 }
    }

    /// Writes a line. Fails where nothing of it was taken for as long as timeout lasts.
    pub(crate) async fn say(&mut self, said: &Said) -> Result<(), Cut> {
        self.line = serde_json::to_vec(said).map_err(io::Error::from)?;
        self.line.push(b'\n');
        self.taken = 0;
        self.push().await
    }

    /// Says, as the last line, why nothing more is told and from where one can go on. A follower that begins
    /// to read again finds it there; nobody is waited for any longer than before.
    pub(crate) async fn close(mut self, why: &Cut, cursor: Option<Cursor>) {
        let last = async {
            // Half a line would make the next one unreadable.
            self.push().await?;
            self.say(&Said::cut(why, cursor)).await
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

    /// Writes what is left of the line.
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

    fn line(length: usize) -> Said {
        Said::error("x".repeat(length))
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
