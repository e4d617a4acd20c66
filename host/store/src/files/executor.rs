//! Where work that may block runs: always here and now. A server's threads carry many tasks, which
//! another thread takes over meanwhile, so that nobody waits for a thread to begin the work; a
//! short-lived command has one task, and nothing else waits.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Runs work that may block without holding up other tasks.
pub(super) fn may_block<T>(work: impl FnOnce() -> T) -> T {
    if blocks_only_itself() { work() } else { block_in_place(work) }
}

/// Whether blocking here and now holds up no task but this one's own.
pub(super) fn blocks_only_itself() -> bool {
    match Handle::try_current() {
        Ok(handle) => matches!(handle.runtime_flavor(), RuntimeFlavor::CurrentThread),
        Err(_) => true,
    }
}
