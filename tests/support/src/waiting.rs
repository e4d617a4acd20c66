//! Waiting for conditions. A test names the condition and polls until it holds; only a deadline that no healthy run
//! comes near ends it.

use std::time::{Duration, Instant, SystemTime};

/// How long a test waits for anything before it fails.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The shortest time between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(15);
/// How much longer than a look the time to the next one is: a look that runs a program would else take the processor from
/// what it waits for.
const RESTS: u32 = 4;

/// The time by the clock of the mesh's receipts.
#[expect(clippy::disallowed_methods, reason = "what is seen from outside is compared with the times in receipts")]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// A time as the mesh writes it.
pub fn time_of(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(text).ok()
}

/// Polls `look` until it returns something, and returns that.
///
/// # Panics
/// If nothing was found within [`PATIENCE`]; the message names the condition.
pub fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_or_show(what, look, String::new)
}

/// The same; on failure the message also contains the result of `shown`.
pub fn wait_or_show<T>(what: &str, mut look: impl FnMut() -> Option<T>, shown: impl FnOnce() -> String) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let began = Instant::now();
        if let Some(found) = look() {
            return found;
        }
        if Instant::now() > deadline {
            panic!("waited {} s in vain until {what}\n{}", PATIENCE.as_secs(), shown());
        }
        std::thread::sleep(BETWEEN_LOOKS.max(began.elapsed() * RESTS));
    }
}
