//! Where work that may block runs. A server's threads carry many tasks, so it goes to a thread of
//! its own; a short-lived command has one task, for which starting a thread would be most of the
//! cost, so it runs in place.

use std::io;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::spawn_blocking;

/// Runs work that may block without holding up other tasks.
pub(super) async fn may_block<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    if blocks_only_itself() {
        return work();
    }
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => Err(io::Error::other(failed)),
    }
}

/// Whether blocking here and now holds up no task but this one's own.
pub(super) fn blocks_only_itself() -> bool {
    match Handle::try_current() {
        Ok(handle) => matches!(handle.runtime_flavor(), RuntimeFlavor::CurrentThread),
        Err(_) => true,
    }
}
