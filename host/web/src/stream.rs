//! The stream of an open page: everything that it does not know yet, as it comes.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Bytes;
use futures::Stream;
use futures::stream::unfold;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until};

use crate::Pages;
use crate::hub::Page;

/// The shortest time between two sends to a page: what comes in between goes with the next. The first news after a pause
/// goes at once.
const PACE: Duration = Duration::from_millis(30);
/// The same, for each page that is open: a hundred pages must not keep the server from delivering.
const PACE_FOR_EACH: Duration = Duration::from_millis(3);
/// The shortest time between two sends of what is sent whole, for so many pages: lists, and the open conversation.
const WHOLE: Duration = Duration::from_millis(250);
const WHOLE_FOR_EACH: Duration = Duration::from_millis(10);
/// A page that was opened so lately waits for nothing: the mesh may be read just for it.
const OPENS: Duration = Duration::from_secs(2);

/// An open page and when it may be sent something again.
struct Streamed {
    pages: Pages,
    page: Page,
    cookie: String,
    key: String,
    signed_out: Receiver<()>,
    opened: Instant,
    next: Instant,
    next_whole: Instant,
}

/// What a page gets until it goes away, its browser is signed out, or the server stops.
pub(crate) fn stream(
    pages: Pages,
    page: Page,
    (cookie, key): (String, String),
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let (signed_out, now) = (pages.sessions.signed_out(), Instant::now());
    let streamed = Streamed { pages, page, cookie, key, signed_out, opened: now, next: now, next_whole: now };
    unfold(streamed, |mut streamed| async move {
        let frames = streamed.next().await?;
        Some((Ok(frames), streamed))
    })
}

impl Streamed {
    /// The next events, as soon as they may be sent; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let stop = self.pages.stop.clone();
        loop {
            tokio::select! {
                () = sleep_until(self.next) => {}
                () = stop.cancelled() => return None,
            }
            let now = Instant::now();
            let wants_parts = now >= self.next_whole;
            let missing = self.page.missing(self.pages.machine.now(), wants_parts);
            if !missing.frames.is_empty() {
                let for_each = u32::try_from(missing.pages).unwrap_or(u32::MAX);
                self.next = now + PACE.max(PACE_FOR_EACH.saturating_mul(for_each));
                if wants_parts && now > self.opened + OPENS {
                    self.next_whole = now + WHOLE.max(WHOLE_FOR_EACH.saturating_mul(for_each));
                }
                return Some(missing.frames.into());
            }
            tokio::select! {
                () = sleep_until(self.next_whole), if missing.parts_left => {}
                changed = self.page.changes.changed() => changed.ok()?,
                changed = self.signed_out.changed() => {
                    changed.ok()?;
                    if !self.pages.sessions.knows(&self.cookie, &self.key) {
                        return None;
                    }
                }
                () = stop.cancelled() => return None,
            }
        }
    }
}
