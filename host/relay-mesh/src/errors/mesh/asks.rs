//! Errors about questions to the user.

use mesh::{AnswerError, AskError, FindAskError};

use crate::errors::Explain;
use crate::exit::Exit;

/// Hint for a question that is not there.
const WHICH: &str = "run `relay-mesh asks --all` to see the questions with their ids";

impl Explain for AskError {
    fn exit(&self) -> Exit {
        match self {
            AskError::Empty
            | AskError::TooLong { .. }
            | AskError::Control { .. }
            | AskError::Choices(_)
            | AskError::Choice(_)
            | AskError::Patience => Exit::Usage,
            AskError::TooMany(_) => Exit::Refused,
            AskError::Store(_) => Exit::Store,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            AskError::Empty => "give the question as an argument",
            AskError::TooLong { .. } => "put long text into a file, and name its path",
            AskError::Control { .. } => "write plain text; line breaks and tabs are fine",
            AskError::Choices(_) => "ask with fewer choices, or let the answer be text",
            AskError::Choice(_) => "write them as `--choices yes,no`",
            AskError::Patience => "write it as `--timeout 90s`, `20m` or `2h`",
            AskError::TooMany(_) => "let the user answer first: `relay-mesh asks` shows what waits",
            AskError::Store(error) => return error.hint(),
        };
        Some(hint.to_owned())
    }
}

impl Explain for FindAskError {
    fn exit(&self) -> Exit {
        match self {
            FindAskError::Invalid(_) | FindAskError::Ambiguous { .. } => Exit::Usage,
            FindAskError::Unknown(_) => Exit::NotFound,
            FindAskError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            FindAskError::Invalid(_) | FindAskError::Unknown(_) => Some(WHICH.to_owned()),
            FindAskError::Ambiguous { .. } => Some("write more of it".to_owned()),
            FindAskError::Store(error) => error.hint(),
        }
    }
}

impl Explain for AnswerError {
    fn exit(&self) -> Exit {
        match self {
            AnswerError::Unknown(_) | AnswerError::Gone { .. } => Exit::NotFound,
            AnswerError::AlreadyAnswered { .. } => Exit::Held,
            AnswerError::NotOffered { .. } => Exit::Usage,
            AnswerError::Text(error) => error.exit(),
            AnswerError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            AnswerError::Unknown(_) | AnswerError::Gone { .. } => Some(WHICH.to_owned()),
            AnswerError::AlreadyAnswered { .. } => {
                Some("the first answer counts; tell the agent if you think otherwise".to_owned())
            }
            AnswerError::NotOffered { offers, .. } => Some(format!("answer with one of: {}", offers.join(", "))),
            AnswerError::Text(error) => error.hint(),
            AnswerError::Store(error) => error.hint(),
        }
    }
}
