//! Where work that may block runs: always here and now. A server's threads carry many tasks, which
//! another thread takes over meanwhile, so that nobody waits for a thread to begin the work; a
//! short-lived command has one task, and nothing else waits.

use std::io;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Runs work that may block without holding up other tasks.
pub(super) async fn may_block<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    if blocks_only_itself() {
        return work();
    }
    block_in_place(work)
}

/// Whether blocking here and now holds up no task but this one's own.
pub(super) fn blocks_only_itself() -> bool {
    match Handle::try_current() {
        Ok(handle) => matches!(handle.runtime_flavor(), RuntimeFlavor::CurrentThread),
        Err(_) => true,
    }
}
