//! Why a store did not do what it was asked.

use std::io;
use std::path::Path;

use crate::Revision;

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder, the disk or the server refused.
    #[error("{doing} {what}")]
    Io {
        /// What was being done, as a clause: `could not append to`.
        doing: &'static str,
        /// The file or key concerned.
        what: String,
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A server did not do what it was asked, or could not be reached.
    #[error("{doing} {what}")]
    Server {
        /// What was being done, as a clause: `could not append to`.
        doing: &'static str,
        /// The server, stream or key concerned.
        what: String,
        /// The server's reason.
        #[source]
        source: std::io::Error,
    },
    /// A value is there, and is not what this store writes.
    #[error("`{what}` is damaged: {why}")]
    Damaged {
        /// The file or key concerned.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// It is another machine's to write, and it alone may.
    #[error("`{what}` belongs to the machine `{host}`")]
    Elsewhere {
        /// The key concerned.
        what: String,
        /// The machine that was first to write there.
        host: String,
    },
    /// An entry or a value is not JSON text on one line, or is longer than the store takes.
    #[error("{bytes} bytes cannot be stored: {why}")]
    Unfit {
        /// Its length.
        bytes: usize,
        /// The rule that it breaks.
        why: &'static str,
    },
    /// A fault that a test asked for.
    #[error("injected fault: {0}")]
    Injected(&'static str),
}

impl StoreError {
    /// Whether a server could not be reached or gave no answer, so that the same may succeed later. What was
    /// asked for may have happened nevertheless: its answer may be what was lost.
    pub fn is_out_of_reach(&self) -> bool {
        match self {
            StoreError::Server { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::TimedOut
                    | io::ErrorKind::NotConnected
                    | io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable
                    | io::ErrorKind::NetworkDown
                    | io::ErrorKind::AddrNotAvailable
            ),
            StoreError::Io { .. }
            | StoreError::Damaged { .. }
            | StoreError::Elsewhere { .. }
            | StoreError::Unfit { .. }
            | StoreError::Injected(_) => false,
        }
    }

    /// Whether the same is refused whenever it is tried, because of what was asked for and not of who or when.
    pub fn is_for_good(&self) -> bool {
        match self {
            StoreError::Server { source, .. } => source.kind() == io::ErrorKind::FileTooLarge,
            StoreError::Damaged { .. } | StoreError::Elsewhere { .. } | StoreError::Unfit { .. } => true,
            StoreError::Io { .. } | StoreError::Injected(_) => false,
        }
    }

    /// Wraps the operating system's reason, naming the file concerned.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        move |source| StoreError::Io { doing, what: path.display().to_string(), source }
    }
}

/// Why an append did not happen.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The log had grown past the expected end. Read on from there and decide again.
    #[error("the log has grown since it was read")]
    Moved,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a swap did not happen.
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// The value is no longer, or not yet, at the expected revision.
    #[error("the value has changed since it was read")]
    Changed {
        /// What it is at now; `None` where the key is absent.
        current: Option<Revision>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
