//! Where blocking work runs: always on the current thread. In a server, another thread meanwhile takes over this
//! thread's other tasks, so the work starts without waiting for a thread; a short-lived command has one task, and
//! nothing else waits.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Runs work that may block without blocking other tasks.
pub(super) fn may_block<T>(work: impl FnOnce() -> T) -> T {
    if blocks_only_itself() { work() } else { block_in_place(work) }
}

/// Whether blocking this thread blocks only the current task.
pub(super) fn blocks_only_itself() -> bool {
    match Handle::try_current() {
        Ok(handle) => matches!(handle.runtime_flavor(), RuntimeFlavor::CurrentThread),
        Err(_) => true,
    }
}
