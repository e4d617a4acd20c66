//! The errors of the store.

use std::io::ErrorKind;

use store::{ServerTrouble, StoreError};

use super::Explain;
use crate::exit::Exit;

/// What to do where a stream or its subjects are in use.
pub(crate) const SOMEBODY_ELSES: &str =
    "another mesh or program has that name or those subjects: set `prefix` in [nats] to a word of your own";
/// What to do where a stream cannot lie on as many servers as was asked for.
pub(crate) const REPLICAS: &str = "set `replicas` in [nats] to 1, or to 3 or 5 where the cluster has so many servers";
/// What to do about a folder that cannot be used.
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
                    "a file lies where the folder should be; choose another place by `--dir DIR` or RELAY_DIR".to_owned()
                }
                _ => OTHER_FOLDER.to_owned(),
            }),
            StoreError::Server { trouble, .. } => Some(match trouble {
                ServerTrouble::Denied => {
                    "the server knows you and does not allow this, or does not know you: see `[nats]` in `relay-mesh config`; a \
                     login that has ended is renewed by whoever gave it to you"
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
                    "TLS does not come about: see `ca`, `certificate` and `key` of [nats]; `relay-mesh doctor --store` says more"
                        .to_owned()
                }
                ServerTrouble::Unsupported => {
                    "the server is too old, or nobody answers for JetStream there: `relay-mesh doctor --store` says which"
                        .to_owned()
                }
                ServerTrouble::TooLong => {
                    "raise max_payload of the server, or max_msg_size of the stream; `relay-mesh doctor --store` says which"
                        .to_owned()
                }
                ServerTrouble::NotOurs => SOMEBODY_ELSES.to_owned(),
                ServerTrouble::Unusable => {
                    "nothing sent there would stay: change the stream or let it go (`nats stream edit`, `nats stream rm`), or set \
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
                Some("look at the file: it was left as it is; move it away to go on without it".to_owned())
            }
            StoreError::Elsewhere { .. } => {
                Some("an agent's mail, reservations and record are for its own machine to change: do it there".to_owned())
            }
            StoreError::Unfit { .. } | StoreError::Injected(_) => None,
        }
    }
}
