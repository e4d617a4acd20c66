//! Errors of the store.

use std::io::ErrorKind;

use store::{ServerTrouble, StoreError};

use super::Explain;
use crate::exit::Exit;

/// Hint for a stream or subjects that are in use.
pub(crate) const SOMEBODY_ELSES: &str =
    "another mesh or program has that name or those subjects: set `prefix` in [nats] to a word of your own";
/// Hint for a stream that cannot have as many replicas as requested.
pub(crate) const REPLICAS: &str = "set `replicas` in [nats] to 1, or to 3 or 5 where the cluster has so many servers";
/// Hint for a folder that cannot be used.
pub(crate) const OTHER_FOLDER: &str =
    "check who owns the folder and whether its disk is full, or choose another by `--dir DIR`";

impl Explain for StoreError {
    fn exit(&self) -> Exit {
        Exit::Store
    }

    fn hint(&self) -> Option<String> {
        match self {
            StoreError::Io { source, .. } => Some(match source.kind() {
                ErrorKind::PermissionDenied => {
                    "the folder must be yours; choose another by `--dir DIR` or RELAY_DIR".to_owned()
                }
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    "make room on the disk and try again; what had been stored before is safe".to_owned()
                }
                ErrorKind::ReadOnlyFilesystem => {
                    "choose a folder that can be written, by `--dir DIR` or RELAY_DIR".to_owned()
                }
                ErrorKind::NotADirectory => {
                    "there is a file where the folder should be; choose another place by `--dir DIR` or RELAY_DIR".to_owned()
                }
                _ => OTHER_FOLDER.to_owned(),
            }),
            StoreError::Server { trouble, .. } => Some(match trouble {
                ServerTrouble::Denied => {
                    "the server refused this login, or does not allow it to do this: see `[nats]` in `relay-mesh config`; if the \
                     login has expired, ask whoever issued it for a new one"
                        .to_owned()
                }
                ServerTrouble::TimedOut => {
                    "the server is there and does not answer: does it run with JetStream, and has its cluster a leader?"
                        .to_owned()
                }
                ServerTrouble::Full => {
                    "the stream or the account is full: raise its limits; what had been stored before is safe".to_owned()
                }
                ServerTrouble::TlsFailed => {
                    "the TLS handshake failed: see `ca`, `certificate` and `key` of [nats]; `relay-mesh doctor --store` says more"
                        .to_owned()
                }
                ServerTrouble::Unsupported => {
                    "the server is too old, or JetStream does not answer there: `relay-mesh doctor --store` says which"
                        .to_owned()
                }
                ServerTrouble::TooLong => {
                    "raise max_payload of the server, or max_msg_size of the stream; `relay-mesh doctor --store` says which"
                        .to_owned()
                }
                ServerTrouble::NotOurs => SOMEBODY_ELSES.to_owned(),
                ServerTrouble::Unusable => {
                    "the stream would not keep messages: change or delete it (`nats stream edit`, `nats stream rm`), or set \
                     `prefix` in [nats] to a word of your own"
                        .to_owned()
                }
                ServerTrouble::TooFewServers => REPLICAS.to_owned(),
                ServerTrouble::OutOfReach
                | ServerTrouble::NothingListens
                | ServerTrouble::NoLeader
                | ServerTrouble::Other => "check that a nats-server with JetStream runs there, or leave `--store` out to work on this machine alone"
                    .to_owned(),
            }),
            StoreError::Damaged { .. } => {
                Some("inspect the file, which was not changed; move it away to continue without it".to_owned())
            }
            StoreError::Elsewhere { .. } => {
                Some("an agent's mail, reservations and record are for its own machine to change: do it there".to_owned())
            }
            StoreError::Unfit { .. } | StoreError::Injected(_) => None,
        }
    }
}
