//! A stream, opened at its first use, and again after the connection broke: the servers may have come back without it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream::stream::Stream;
use store::StoreError;
use tokio::time::Instant;

/// How long a stream that could not be opened again is used as it was: other servers may still answer for it.
const USED_MEANWHILE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct StreamCell {
    /// A std mutex: nothing is awaited while it is held.
    opened: Mutex<Option<OpenedStream>>,
    /// Held while it is opened, so that callers at once open it once.
    opening: tokio::sync::Mutex<()>,
}

struct OpenedStream {
    stream: Arc<Stream>,
    /// How often the connection had broken when it was opened.
    breaks: u64,
    /// Until when it is used although the connection has broken since.
    meanwhile: Option<Instant>,
}

impl StreamCell {
    /// The stream, opened by `open` unless it was since the connection broke last.
    pub(crate) async fn opened(
        &self,
        breaks: u64,
        open: impl AsyncFnOnce() -> Result<Stream, StoreError>,
    ) -> Result<Arc<Stream>, StoreError> {
        if let Some(stream) = self.usable(breaks) {
            return Ok(stream);
        }
        let _turn = self.opening.lock().await;
        if let Some(stream) = self.usable(breaks) {
            return Ok(stream);
        }
        match open().await {
            Ok(stream) => {
                let stream = Arc::new(stream);
                self.set(OpenedStream { stream: Arc::clone(&stream), breaks, meanwhile: None });
                Ok(stream)
            }
            Err(error) if error.is_out_of_reach() => {
                let last = self.last().ok_or(error)?;
                let meanwhile = Some(Instant::now() + USED_MEANWHILE);
                self.set(OpenedStream { stream: Arc::clone(&last), breaks: breaks.wrapping_sub(1), meanwhile });
                Ok(last)
            }
            Err(error) => Err(error),
        }
    }

    /// The stream as it was last opened.
    pub(crate) fn last(&self) -> Option<Arc<Stream>> {
        let opened = self.opened.lock().expect("no holder of this lock panics");
        opened.as_ref().map(|opened| Arc::clone(&opened.stream))
    }

    fn usable(&self, breaks: u64) -> Option<Arc<Stream>> {
        let opened = self.opened.lock().expect("no holder of this lock panics");
        let usable = |opened: &&OpenedStream| {
            opened.breaks == breaks || opened.meanwhile.is_some_and(|until| Instant::now() < until)
        };
        opened.as_ref().filter(usable).map(|opened| Arc::clone(&opened.stream))
    }

    fn set(&self, opened: OpenedStream) {
        *self.opened.lock().expect("no holder of this lock panics") = Some(opened);
    }
}
