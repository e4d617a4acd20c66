//! The errors of stores.

use std::error::Error;
use std::io;
use std::path::Path;

use crate::Revision;
use crate::unix::{self, MetadataExt as _};

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused a file operation.
    #[error("{doing} {what}")]
    Io {
        /// The failed operation, as a clause: `could not append to`.
        doing: &'static str,
        /// The file or key concerned.
        what: String,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// A server refused a request, or could not be reached.
    #[error("{doing} {what}")]
    Server {
        /// The failed operation, as a clause: `could not append to`.
        doing: &'static str,
        /// The server, stream or key concerned.
        what: String,
        /// The kind of failure, for callers to act on.
        trouble: ServerTrouble,
        /// The server's own reason.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A value exists, but this store did not write it so.
    #[error("`{what}` is damaged: {why}")]
    Damaged {
        /// The file or key concerned.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// It belongs to another machine, and only that machine may write it.
    #[error("`{what}` belongs to the machine `{machine}`")]
    Elsewhere {
        /// The key concerned.
        what: String,
        /// The machine that was first to write there.
        machine: String,
    },
    /// An entry or a value is not JSON text on one line, or is longer than the store takes.
    #[error("{bytes} bytes cannot be stored: {why}")]
    Unfit {
        /// Its length.
        bytes: usize,
        /// The rule that it breaks.
        why: &'static str,
    },
    /// A fault that a test injected.
    #[error("injected fault: {0}")]
    Injected(&'static str),
}

/// What is wrong with a server: the cases that callers and hints distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTrouble {
    /// No connection: the name is unknown, the network is down, or an open connection broke.
    OutOfReach,
    /// The machine answers, but nothing listens at the port.
    NothingListens,
    /// The server gave no answer in time.
    TimedOut,
    /// Nothing answers for the stream: its cluster has no leader, a leaf node has lost its hub, or the account has no
    /// JetStream.
    NoLeader,
    /// TLS fails: a certificate is not trusted, or only one side speaks TLS.
    TlsFailed,
    /// The server is too old, or JetStream is not enabled.
    Unsupported,
    /// The server does not accept the login, or the login may not do this.
    Denied,
    /// The stream or the account is full.
    Full,
    /// The cluster has fewer servers than the stream needs replicas.
    TooFewServers,
    /// The stream, or one of its subjects, belongs to another mesh or program.
    NotOurs,
    /// The stream would not keep what it acknowledges: it is sealed, a mirror, or of another retention.
    Unusable,
    /// The message is longer than the server or the stream takes.
    TooLong,
    /// Anything else; the source says what.
    Other,
}

impl ServerTrouble {
    /// Whether the server could not be reached or gave no answer.
    pub fn is_out_of_reach(self) -> bool {
        match self {
            ServerTrouble::OutOfReach
            | ServerTrouble::NothingListens
            | ServerTrouble::TimedOut
            | ServerTrouble::NoLeader => true,
            ServerTrouble::TlsFailed
            | ServerTrouble::Unsupported
            | ServerTrouble::Denied
            | ServerTrouble::Full
            | ServerTrouble::TooFewServers
            | ServerTrouble::NotOurs
            | ServerTrouble::Unusable
            | ServerTrouble::TooLong
            | ServerTrouble::Other => false,
        }
    }
}

impl StoreError {
    /// Whether the servers are there and nothing answers for the data, as in a cluster that has lost its leader and has
    /// to elect another.
    pub fn awaits_election(&self) -> bool {
        match self {
            StoreError::Server { trouble: ServerTrouble::NoLeader | ServerTrouble::TimedOut, .. } => true,
            StoreError::Server { .. }
            | StoreError::Io { .. }
            | StoreError::Damaged { .. }
            | StoreError::Elsewhere { .. }
            | StoreError::Unfit { .. }
            | StoreError::Injected(_) => false,
        }
    }

    /// Whether there is no room for what was to be written.
    pub fn is_full(&self) -> bool {
        match self {
            StoreError::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            StoreError::Server { trouble, .. } => *trouble == ServerTrouble::Full,
            StoreError::Damaged { .. }
            | StoreError::Elsewhere { .. }
            | StoreError::Unfit { .. }
            | StoreError::Injected(_) => false,
        }
    }

    /// Whether a server could not be reached or gave no answer, so that a retry may succeed. The request may still have
    /// taken effect: perhaps only the answer was lost.
    pub fn is_out_of_reach(&self) -> bool {
        match self {
            StoreError::Server { trouble, .. } => trouble.is_out_of_reach(),
            StoreError::Io { .. }
            | StoreError::Damaged { .. }
            | StoreError::Elsewhere { .. }
            | StoreError::Unfit { .. }
            | StoreError::Injected(_) => false,
        }
    }

    /// Whether retrying is pointless: the request itself is invalid.
    pub fn is_for_good(&self) -> bool {
        match self {
            StoreError::Server { trouble, .. } => *trouble == ServerTrouble::TooLong,
            StoreError::Damaged { .. } | StoreError::Elsewhere { .. } | StoreError::Unfit { .. } => true,
            StoreError::Io { .. } | StoreError::Injected(_) => false,
        }
    }

    /// A server's refusal, in a sentence of our own or in the server's words.
    pub fn server(
        doing: &'static str,
        what: impl ToString,
        trouble: ServerTrouble,
        reason: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> StoreError {
        StoreError::Server { doing, what: what.to_string(), trouble, source: reason.into() }
    }

    /// Wraps the operating system's reason, naming the file concerned. A file that this user may not read, such as one that
    /// root has written, counts as damaged: it hides itself and nothing else.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        move |source| match (source.kind(), owner_of(path)) {
            (io::ErrorKind::PermissionDenied, Some(owner)) if owner != unix::user() || READS.contains(&doing) => {
                let why = format!("it belongs to user {owner}, and this user may not read it");
                StoreError::Damaged { what: path.display().to_string(), why }
            }
            _ => StoreError::Io { doing, what: path.display().to_string(), source },
        }
    }
}

/// The clauses for operations that change nothing.
const READS: [&str; 3] = ["could not read", "could not list", "could not look at"];

/// The owner of a file, or of the folder that hides it.
fn owner_of(path: &Path) -> Option<u32> {
    path.ancestors().find_map(|path| std::fs::symlink_metadata(path).ok()).map(|found| found.uid())
}

/// Why an append did not happen.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The log has grown past the expected end. Read on from there and decide again.
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
        /// The current revision; `None` if the key is absent.
        current: Option<Revision>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
