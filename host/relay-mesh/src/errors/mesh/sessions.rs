//! Errors about sessions: callers, running sessions, invitations, hooks, wakes.

use mesh::{HookError, IdentifyError, InviteError, RosterError, WakeError};

use super::{HARNESSES, WHO_ARE_YOU};
use crate::errors::Explain;
use crate::exit::Exit;

impl Explain for IdentifyError {
    fn exit(&self) -> Exit {
        match self {
            IdentifyError::Ticket(_)
            | IdentifyError::Key
            | IdentifyError::NotYours(_)
            | IdentifyError::Elsewhere { .. } => Exit::Refused,
            IdentifyError::Unknown(_) => Exit::NotFound,
            IdentifyError::Store(_) => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            IdentifyError::NotYours(name) => Some(format!(
                "leave it out to speak as `shell`, or register an agent of your own: `relay-mesh register NAME`; if the \
                 session of {name} has ended, `relay-mesh adopt {name}` takes its name and its mail"
            )),
            IdentifyError::Elsewhere { .. } => {
                Some("speak from there, or register an agent of this machine: `relay-mesh register NAME`".to_owned())
            }
            IdentifyError::Unknown(name) => Some(format!("register it first: `relay-mesh register {name}`")),
            IdentifyError::Ticket(_) | IdentifyError::Key => None,
            IdentifyError::Store(error) => error.hint(),
        }
    }
}

impl Explain for RosterError {
    fn exit(&self) -> Exit {
        match self {
            RosterError::UnknownHarness(_) => Exit::NotFound,
            RosterError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            RosterError::UnknownHarness(_) => Some(HARNESSES.to_owned()),
            RosterError::Store(error) => error.hint(),
        }
    }
}

impl Explain for InviteError {
    fn exit(&self) -> Exit {
        match self {
            InviteError::Unknown(_)
            | InviteError::Ambiguous { .. }
            | InviteError::Roster(RosterError::UnknownHarness(_)) => Exit::NotFound,
            InviteError::TooLong(_) => Exit::Usage,
            InviteError::Joined { .. }
            | InviteError::Another { .. }
            | InviteError::Held(_)
            | InviteError::NotRegistered => Exit::Refused,
            InviteError::AwaitsPerson(_)
            | InviteError::NoWay { .. }
            | InviteError::Ended(_)
            | InviteError::Refused { .. } => Exit::Failure,
            InviteError::Store(_) | InviteError::Roster(RosterError::Store(_)) => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            InviteError::Unknown(_) => Some("run `relay-mesh discover` to see which sessions live here".to_owned()),
            InviteError::Ambiguous { harnesses, .. } => Some(format!("say which by `--harness`: {}", harnesses.join(", "))),
            InviteError::Joined { agent, .. } => Some(format!("write to it: `relay-mesh send {agent} TEXT`")),
            InviteError::AwaitsPerson(_) => Some("try again when they have answered it".to_owned()),
            InviteError::NoWay { .. } => Some(
                "ask its agent yourself to call register_agent; a session that was begun before its harness was set up \
                 hears nothing, a new one may"
                    .to_owned(),
            ),
            InviteError::Another { .. } => Some("write to it once it has joined: `relay-mesh discover` says so".to_owned()),
            InviteError::Ended(_) => Some("run `relay-mesh discover` to see which sessions live here".to_owned()),
            InviteError::Held(_) => Some("wait some minutes, or speak to the session yourself".to_owned()),
            InviteError::Refused { .. } => Some("run `relay-mesh doctor` to see what is wrong with its harness".to_owned()),
            InviteError::TooLong(_) => Some("say it shorter; the rest fits into a message once it has joined".to_owned()),
            InviteError::NotRegistered => Some("register first: `relay-mesh register NAME`".to_owned()),
            InviteError::Roster(error) => error.hint(),
            InviteError::Store(error) => error.hint(),
        }
    }
}

impl Explain for HookError {
    fn exit(&self) -> Exit {
        match self {
            HookError::UnknownHarness(_) => Exit::NotFound,
            HookError::Harness(_) => Exit::Failure,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            HookError::UnknownHarness(_) => Some(HARNESSES.to_owned()),
            HookError::Harness(_) => Some("run `relay-mesh doctor` to see what is wrong with it".to_owned()),
        }
    }
}

impl Explain for WakeError {
    fn exit(&self) -> Exit {
        match self {
            WakeError::NotRegistered => Exit::Refused,
            WakeError::TooLong(_) => Exit::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            WakeError::NotRegistered => WHO_ARE_YOU.to_owned(),
            WakeError::TooLong(_) => "send the details as a message: `relay-mesh send`".to_owned(),
        })
    }
}
