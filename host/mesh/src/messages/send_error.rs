//! Why a message was not sent.

use store::StoreError;

use crate::AddressError;
use crate::messages::InvalidDraft;
use crate::messages::channel::{ChannelName, InvalidChannel};
use crate::names::{AgentName, MessageId};

/// Why nothing was sent. Nothing was stored, except for the recipients that `Store` or `OtherUnderKey` names.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The draft is not a valid message.
    #[error(transparent)]
    Draft(#[from] InvalidDraft),
    /// An address could not be resolved.
    #[error(transparent)]
    Address(#[from] crate::AddressError),
    /// The address begins like a channel and is none.
    #[error(transparent)]
    Channel(#[from] InvalidChannel),
    /// Nobody is in that channel.
    #[error("no agent has joined `{0}`")]
    EmptyChannel(ChannelName),
    /// The servers hold who is in that channel, and cannot be reached.
    #[error("nothing was sent: the servers hold the members of `{channel}`, and they cannot be reached")]
    ChannelOutOfReach {
        /// The channel.
        channel: ChannelName,
        /// The cause.
        #[source]
        source: store::StoreError,
    },
    /// The caller is not registered.
    #[error("you have not registered")]
    NotRegistered,
    /// The message names no recipient.
    #[error("the message names no recipient")]
    Nobody,
    /// A broadcast whose audience contains no agent but the sender.
    #[error("there is no other agent to send it to")]
    NobodyElse,
    /// The message that it answers does not exist, or the caller may not see it.
    #[error("no message `{0}` was sent to you or by you")]
    UnknownReply(MessageId),
    /// The sender has used the key for another message to the same recipient.
    #[error("the idempotency key `{key}` stands for another message to `{to}`, `{older}`")]
    OtherUnderKey {
        key: String,
        /// The recipient.
        to: AgentName,
        /// The message that was stored under that key.
        older: MessageId,
        /// The recipients of the new message that were served before that was noticed.
        stored: Vec<AgentName>,
    },
    /// The store failed to take the message.
    #[error("the store did not take the message for `{to}`")]
    Store {
        /// The recipient.
        to: AgentName,
        /// The recipients for whom it had been stored before the failure.
        stored: Vec<AgentName>,
        /// The cause.
        #[source]
        source: store::StoreError,
    },
    /// The store failed before anything was written.
    #[error("the store could not be read")]
    Unreadable(#[from] store::StoreError),
    /// The servers cannot be reached, and this machine's data folder did not take the message either.
    #[error("the servers cannot be reached, and the message could not be kept here until they can")]
    NotQueued(#[source] store::StoreError),
}

impl SendError {
    /// The cause, if it is that the servers could not be reached, so that a retry may succeed.
    pub(crate) fn out_of_reach(&self) -> Option<&StoreError> {
        match self {
            SendError::Address(AddressError::Store(error))
            | SendError::Store { source: error, .. }
            | SendError::Unreadable(error) => Some(error).filter(|error| error.is_out_of_reach()),
            SendError::Address(
                AddressError::Invalid(_) | AddressError::Unknown { .. } | AddressError::Ambiguous { .. },
            )
            | SendError::Draft(_)
            | SendError::NotRegistered
            | SendError::Nobody
            | SendError::NobodyElse
            | SendError::Channel(_)
            | SendError::EmptyChannel(_)
            | SendError::ChannelOutOfReach { .. }
            | SendError::UnknownReply(_)
            | SendError::OtherUnderKey { .. }
            | SendError::NotQueued(_) => None,
        }
    }
}
