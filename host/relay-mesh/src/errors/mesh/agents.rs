//! Errors about agents: names, registration, presence.

use mesh::names::InvalidName;
use mesh::{AddressError, AdoptError, FindError, ForgetError, HeartbeatError, OfflineNoticeError, RegisterError};
use store::{ServerTrouble, StoreError};

use super::{WHO_ARE_YOU, WHO_IS_HERE, listed};
use crate::errors::Explain;
use crate::exit::Exit;

impl Explain for InvalidName {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hint(&self) -> Option<String> {
        Some("a name looks like `alice` or `alice@backend`".to_owned())
    }
}

impl Explain for RegisterError {
    fn exit(&self) -> Exit {
        match self {
            RegisterError::Name(_)
            | RegisterError::TwoTeams { .. }
            | RegisterError::TooLong { .. }
            | RegisterError::TooManySkills(_) => Exit::Usage,
            RegisterError::Crowded(_) | RegisterError::Contended(_) => Exit::Failure,
            RegisterError::Store(_) => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            RegisterError::Name(_) => Some("a name looks like `alice` or `alice@backend`".to_owned()),
            RegisterError::TwoTeams { name, team } => {
                Some(format!("leave `--team` out, or write `{}@{team}`", name.local()))
            }
            RegisterError::TooManySkills(_) => Some("name the most telling ones".to_owned()),
            RegisterError::TooLong { .. } => Some("say it shorter; details belong into a message".to_owned()),
            RegisterError::Crowded(_) => Some("choose another name".to_owned()),
            RegisterError::Contended(_) => Some("try again".to_owned()),
            RegisterError::Store(error) => error.hint(),
        }
    }
}

impl Explain for AddressError {
    fn exit(&self) -> Exit {
        match self {
            AddressError::Invalid(_) => Exit::Usage,
            AddressError::Unknown { .. } | AddressError::Ambiguous { .. } => Exit::NotFound,
            AddressError::Store(_) => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            AddressError::Invalid(InvalidName::Reserved(_)) => {
                Some("`shell` has no inbox: a message from it was sent on a command line without `--from`".to_owned())
            }
            AddressError::Invalid(_) => Some(WHO_IS_HERE.to_owned()),
            AddressError::Unknown { near, .. } => Some(match near.as_slice() {
                [] => WHO_IS_HERE.to_owned(),
                [one] => format!("did you mean `{one}`?"),
                several => format!("did you mean one of {}?", listed(several)),
            }),
            AddressError::Ambiguous { candidates, .. } => Some(format!("say which: {}", listed(candidates))),
            AddressError::Store(error) => error.hint(),
        }
    }
}

impl Explain for ForgetError {
    fn exit(&self) -> Exit {
        match self {
            ForgetError::Unknown(_) => Exit::NotFound,
            ForgetError::Elsewhere { .. }
            | ForgetError::Here { .. }
            | ForgetError::Mail { .. }
            | ForgetError::Holds(_)
            | ForgetError::Asked(_) => Exit::Refused,
            ForgetError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ForgetError::Unknown(_) => Some(WHO_IS_HERE.to_owned()),
            ForgetError::Elsewhere { machine, .. } => Some(format!("run it on `{machine}`")),
            ForgetError::Here { .. } => Some(
                "close its session first, or wait until nothing was heard of it for `away-after` (`relay-mesh config` \
                 shows how long that is)"
                    .to_owned(),
            ),
            ForgetError::Mail { agent, .. } => Some(format!(
                "`relay-mesh read --agent {agent} --unread` shows them; unread mail expires after a month"
            )),
            ForgetError::Holds(agent) => Some(format!("`relay-mesh reservations --agent {agent}` shows which")),
            ForgetError::Asked(_) => Some("`relay-mesh cmd list` shows which".to_owned()),
            ForgetError::Store(error) => error.hint(),
        }
    }
}

impl Explain for FindError {
    fn exit(&self) -> Exit {
        match self {
            FindError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            FindError::Store(error) => error.hint(),
        }
    }
}

impl Explain for HeartbeatError {
    fn exit(&self) -> Exit {
        match self {
            HeartbeatError::NotRegistered => Exit::Refused,
            HeartbeatError::TooLong(_) => Exit::Usage,
            HeartbeatError::Store(_) => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            HeartbeatError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
            HeartbeatError::TooLong(_) => Some("say it shorter; details belong into a message".to_owned()),
            HeartbeatError::Store(error) => error.hint(),
        }
    }
}

impl Explain for OfflineNoticeError {
    fn exit(&self) -> Exit {
        match self {
            OfflineNoticeError::NotRegistered => Exit::Refused,
            OfflineNoticeError::Store(_) => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            OfflineNoticeError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
            OfflineNoticeError::Store(error) => error.hint(),
        }
    }
}

impl Explain for AdoptError {
    fn exit(&self) -> Exit {
        match self {
            AdoptError::Unknown(_) => Exit::NotFound,
            AdoptError::Here(_) | AdoptError::Alive { .. } | AdoptError::Heard { .. } => Exit::Refused,
            AdoptError::Store(StoreError::Server { trouble: ServerTrouble::Denied, .. }) => Exit::Refused,
            AdoptError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            AdoptError::Unknown(_) => Some(WHO_IS_HERE.to_owned()),
            AdoptError::Here(name) => Some(format!("speak as it: `relay-mesh register {name}`")),
            AdoptError::Alive { .. } => {
                Some("close its session first; mail is delivered to it while it is open".to_owned())
            }
            AdoptError::Heard { .. } => Some(
                "end it there, or wait: it can be brought here once nothing was heard of it for `away-after`"
                    .to_owned(),
            ),
            AdoptError::Store(StoreError::Server { trouble: ServerTrouble::Denied, .. }) => Some(
                "only the operator may bring an agent to another machine: set RELAY_NATS_USER and RELAY_NATS_PASSWORD \
                 to the operator's for this one command"
                    .to_owned(),
            ),
            AdoptError::Store(error) => {
                let then = "; running it again goes on from where it broke off";
                error.hint().map(|hint| format!("{hint}{then}"))
            }
        }
    }
}
