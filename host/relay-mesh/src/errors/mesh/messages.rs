//! Errors about messages: sending, reading, acknowledging.

use mesh::messages::InvalidDraft;
use mesh::names::InvalidMessageId;
use mesh::{AckError, FetchError, IdError, SendError, StatusError, ThreadError};

use super::{WHO_IS_HERE, listed};
use crate::errors::Explain;
use crate::exit::Exit;

impl Explain for InvalidMessageId {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hint(&self) -> Option<String> {
        Some("`relay-mesh send` and `relay-mesh read` print the ids of messages".to_owned())
    }
}

impl Explain for IdError {
    fn exit(&self) -> Exit {
        match self {
            IdError::Invalid(_) | IdError::Ambiguous { .. } => Exit::Usage,
            IdError::Unknown(_) => Exit::NotFound,
            IdError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            IdError::Invalid(error) => error.hint(),
            IdError::Ambiguous { .. } => Some("write more of it".to_owned()),
            IdError::Unknown(_) => Some("`relay-mesh send`, `read` and `cmd list` print the ids".to_owned()),
            IdError::Store(error) => error.hint(),
        }
    }
}

impl Explain for ThreadError {
    fn exit(&self) -> Exit {
        match self {
            ThreadError::Unknown(_) => Exit::NotFound,
            ThreadError::Ambiguous(error) => error.exit(),
            ThreadError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ThreadError::Unknown(_) => {
                Some("`relay-mesh threads` lists the conversations, `relay-mesh search WORD` finds messages".to_owned())
            }
            ThreadError::Ambiguous(error) => error.hint(),
            ThreadError::Store(error) => error.hint(),
        }
    }
}

impl Explain for SendError {
    fn exit(&self) -> Exit {
        match self {
            SendError::Draft(_) | SendError::Nobody | SendError::Channel(_) => Exit::Usage,
            SendError::Address(error) => error.exit(),
            SendError::OtherUnderKey { stored, .. } if !stored.is_empty() => Exit::Failure,
            SendError::OtherUnderKey { .. } => Exit::Usage,
            SendError::NotRegistered => Exit::Refused,
            SendError::UnknownReply(_) | SendError::NobodyElse | SendError::EmptyChannel(_) => Exit::NotFound,
            SendError::Store { .. }
            | SendError::Unreadable(_)
            | SendError::NotQueued(_)
            | SendError::ChannelOutOfReach { .. } => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            SendError::Draft(InvalidDraft::Empty) => {
                Some("give the text as the second argument, or on standard input with `--stdin`".to_owned())
            }
            SendError::Draft(InvalidDraft::BodyTooLong { .. }) => {
                Some("put the text into a file that both can read, and send its path".to_owned())
            }
            SendError::Draft(InvalidDraft::EmptyKey) => {
                Some("leave `--idempotency-key` out, or give each message a key of its own".to_owned())
            }
            SendError::Draft(InvalidDraft::LabelTooLong { .. } | InvalidDraft::TooManyTags(_)) => {
                Some("put long text into the message itself".to_owned())
            }
            SendError::Address(error) => error.hint(),
            SendError::NotRegistered => Some("register first: `relay-mesh register NAME`".to_owned()),
            SendError::Nobody => Some("name the recipient, or send to everyone with `--broadcast`".to_owned()),
            SendError::NobodyElse => Some(WHO_IS_HERE.to_owned()),
            SendError::Channel(_) => Some("put it in quotes, as in `'#audit'`".to_owned()),
            SendError::EmptyChannel(channel) => {
                Some(format!("`relay-mesh channel join {} --agent NAME` has an agent join it", channel.as_str()))
            }
            SendError::ChannelOutOfReach { .. } => {
                Some("send to agents by name: that waits here until the servers can be reached".to_owned())
            }
            SendError::UnknownReply(_) => {
                Some("`relay-mesh read` prints the ids of the messages that you may answer".to_owned())
            }
            SendError::OtherUnderKey { older, stored, .. } => {
                let for_some = match stored.as_slice() {
                    [] => String::new(),
                    some => format!("it was stored for {}; ", listed(some)),
                };
                Some(format!(
                    "{for_some}use a new key for a new message; `relay-mesh message {older}` shows the one with this key"
                ))
            }
            SendError::Store { stored, source, .. } => match stored.as_slice() {
                [] => source.hint(),
                some => Some(format!(
                    "it was stored for {}; send to the others again, with `--idempotency-key` no recipient gets it twice",
                    listed(some)
                )),
            },
            SendError::Unreadable(error) | SendError::NotQueued(error) => error.hint(),
        }
    }
}

impl Explain for FetchError {
    fn exit(&self) -> Exit {
        match self {
            FetchError::Unknown { .. } => Exit::NotFound,
            FetchError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            FetchError::Unknown { agent, .. } => {
                Some(format!("`relay-mesh read --agent {agent}` lists what it was sent"))
            }
            FetchError::Store(error) => error.hint(),
        }
    }
}

impl Explain for AckError {
    fn exit(&self) -> Exit {
        match self {
            AckError::Unknown { .. } => Exit::NotFound,
            AckError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            AckError::Unknown { agent, .. } => {
                Some(format!("run `relay-mesh read --agent {agent}` to see its mail with the ids"))
            }
            AckError::Store(error) => error.hint(),
        }
    }
}

impl Explain for StatusError {
    fn exit(&self) -> Exit {
        match self {
            StatusError::Unknown(_) | StatusError::Nowhere(_) => Exit::NotFound,
            StatusError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            StatusError::Unknown(_) => {
                Some("an agent sees what it sent or was sent; `relay-mesh read` prints the ids".to_owned())
            }
            StatusError::Nowhere(_) => Some(
                "`relay-mesh send` and `relay-mesh read` print the ids; messages that were settled long ago are deleted"
                    .to_owned(),
            ),
            StatusError::Store(error) => error.hint(),
        }
    }
}
