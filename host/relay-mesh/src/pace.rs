//! How often something is read again: at once after a pause, and in a busy mesh so seldom that it costs little.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest time between two reads.
const LEAST: Duration = Duration::from_secs(1);
/// The time between two reads is so many times what one takes: reading costs at most one part in so many of a core. A view
/// reads three things so, which together stay below 2 % of a core.
const SHARE: u32 = 180;
/// The longest time between two reads: beyond it a view would no longer be live.
const MOST: Duration = Duration::from_secs(10);

/// When something is read again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Whether something has changed since it was read.
    stale: bool,
    /// Not before then.
    next: Instant,
}

impl Pace {
    /// Of something that was not read yet.
    pub(crate) fn unread(now: Instant) -> Pace {
        Pace { stale: true, next: now }
    }

    /// Something has changed.
    pub(crate) fn mark(&mut self) {
        self.stale = true;
    }

    /// Whether something has changed that will be read: who watches for changes may look away until then.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    /// The user waits for it: it is read now.
    pub(crate) fn hurry(&mut self, now: Instant) {
        *self = Pace::unread(now);
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.stale && now >= self.next
    }

    /// When it has to be read, if nothing else happens.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.stale.then_some(self.next)
    }

    /// A read is about to begin: what changes from now on makes it stale again.
    pub(crate) fn begin(&mut self) {
        self.stale = false;
    }

    /// It was read.
    pub(crate) fn end(&mut self, began: Instant, now: Instant) {
        self.next = now + (now.duration_since(began) * SHARE).clamp(LEAST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_change_after_a_pause_is_read_at_once_and_a_flood_seldom() {
        let start = Instant::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let mut pace = Pace::unread(start);
        assert!(pace.is_due(start));
        pace.begin();
        pace.end(start, at(10));
        assert_eq!(pace.due(), None, "nothing has changed, and nothing wakes this process");
        pace.mark();
        assert_eq!(pace.due(), Some(at(1_810)), "ten milliseconds of work are followed by 1.8 seconds without");
        assert!(!pace.is_due(at(1_809)) && pace.is_due(at(1_810)));
        pace.begin();
        pace.end(at(1_810), at(1_811));
        pace.mark();
        assert_eq!(pace.due(), Some(at(2_811)));
        pace.begin();
        pace.end(at(2_900), at(3_900));
        pace.mark();
        assert_eq!(pace.due(), Some(at(13_900)), "a large mesh is never ten seconds behind");
        pace.hurry(at(4_000));
        assert!(pace.is_due(at(4_000)), "what somebody waits for is read now");
    }
}
