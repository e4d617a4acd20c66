//! Errors about commands that agents are asked to run.

use mesh::{FinishError, OrderError, TakeError};

use super::WHO_ARE_YOU;
use crate::errors::Explain;
use crate::exit::Exit;

impl Explain for OrderError {
    fn exit(&self) -> Exit {
        match self {
            OrderError::NotRegistered => Exit::Refused,
            OrderError::Address(error) => error.exit(),
            OrderError::TooLong(_) | OrderError::Ttl => Exit::Usage,
            OrderError::Store(_) => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            OrderError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
            OrderError::Address(error) => error.hint(),
            OrderError::TooLong(_) => {
                Some("put long text into a file that both can read, and name its path".to_owned())
            }
            OrderError::Ttl => Some("write it as `--ttl 90s`, `20m`, `2h` or `1d`".to_owned()),
            OrderError::Store(error) => error.hint(),
        }
    }
}

impl Explain for TakeError {
    fn exit(&self) -> Exit {
        match self {
            TakeError::NotRegistered => Exit::Refused,
            TakeError::Store(_) => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            TakeError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
            TakeError::Store(error) => error.hint(),
        }
    }
}

impl Explain for FinishError {
    fn exit(&self) -> Exit {
        match self {
            FinishError::NotRegistered
            | FinishError::NotTaken(_)
            | FinishError::Runs { .. }
            | FinishError::Ended(_) => Exit::Refused,
            FinishError::Unknown(_) => Exit::NotFound,
            FinishError::TooLong(_) => Exit::Usage,
            FinishError::Store(_) => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            FinishError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
            FinishError::Unknown(_) => {
                Some("run `relay-mesh cmd list --all` to see the commands with their ids".to_owned())
            }
            FinishError::Runs { .. } => Some("`relay-mesh cmd list --all` shows what becomes of it".to_owned()),
            FinishError::NotTaken(_) => Some("take it first: `relay-mesh cmd take AGENT`".to_owned()),
            FinishError::Ended(_) => Some("its result is final; to add something, send a message".to_owned()),
            FinishError::TooLong(_) => Some("put it into a file that both can read, and give its path".to_owned()),
            FinishError::Store(error) => error.hint(),
        }
    }
}
