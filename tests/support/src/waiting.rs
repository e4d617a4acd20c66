//! Waiting for the thing itself. A test names what it waits for and looks again and again until it
//! is there; only a deadline that no healthy run comes near ends it.

use std::time::{Duration, Instant};

/// How long a test waits for anything before it says that it did not come.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Looks until `look` finds something, and gives it back.
///
/// # Panics
/// Where nothing was found within [`PATIENCE`]; the message says what was waited for.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {} s in vain until {what}", PATIENCE.as_secs());
        std::thread::sleep(Duration::from_millis(15));
    }
}
