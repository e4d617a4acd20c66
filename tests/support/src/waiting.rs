//! Waiting for the thing itself. A test names what it waits for and looks again and again until it
//! is there; only a deadline that no healthy run comes near ends it.

use std::time::{Duration, Instant, SystemTime};

/// How long a test waits for anything before it says that it did not come.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How long it rests between two looks: short beside what is waited for, and long beside a look.
const BETWEEN_LOOKS: Duration = Duration::from_millis(15);

/// The time by the clock that the mesh's receipts bear.
#[expect(clippy::disallowed_methods, reason = "what is seen from outside is compared with the times in receipts")]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// Looks until `look` finds something, and gives it back.
///
/// # Panics
/// Where nothing was found within [`PATIENCE`]; the message says what was waited for.
pub fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_or_show(what, look, String::new)
}

/// The same; where it was in vain, the message also holds what `shown` shows.
pub(crate) fn wait_or_show<T>(what: &str, mut look: impl FnMut() -> Option<T>, shown: impl FnOnce() -> String) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        if Instant::now() > deadline {
            panic!("waited {} s in vain until {what}\n{}", PATIENCE.as_secs(), shown());
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}
