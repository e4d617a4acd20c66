//! Looking back at what was said: a thread with both its halves, the list of threads, a search, what an agent sent.
//!
//! Everything here only reads. It takes no lease, writes no receipt, and reads no more than retention has kept.

mod newest;
mod rank;
mod reader;
mod scan;
mod search;
mod sent;
mod thread;
mod threads;

pub use newest::NewestThreads;
pub use rank::folded;
pub use reader::MailReader;
pub use search::{Search, SearchHit, SearchHits};
pub use thread::{Thread, ThreadError};
pub use threads::{Pair, ThreadFilter, ThreadSummary, Threads};

pub(crate) use newest::newest_threads;
pub(crate) use search::search;
pub(crate) use sent::sent;
pub(crate) use thread::thread;
pub(crate) use threads::threads;
