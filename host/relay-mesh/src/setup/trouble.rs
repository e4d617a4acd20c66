//! What goes wrong between the binary and an adapter, as people are told.

use mesh::harness::{HarnessError, Harnesses};

use crate::error::CommandError;
use crate::exit::Exit;

/// Nobody knows this harness.
pub(crate) fn unknown(harness: &str, known: &dyn Harnesses) -> CommandError {
    let names = known.names().join(", ");
    CommandError::Told {
        what: format!("no adapter is named `{harness}`"),
        hint: Some(format!("these are known: {names}; `generic` fits any other MCP client")),
        exit: Exit::NotFound,
        source: None,
    }
}

/// An adapter did not do what it was asked.
pub(crate) fn of_adapter(harness: &str, error: HarnessError) -> CommandError {
    let (exit, hint) = match &error {
        HarnessError::NotFound(_) => (Exit::NotFound, None),
        HarnessError::Denied(why) => (Exit::Refused, adapters::hint_of_link(why)),
        HarnessError::Unsupported(_) => (Exit::Failure, None),
        HarnessError::Busy(milliseconds) => (Exit::Failure, Some(format!("try again after {milliseconds} ms"))),
        HarnessError::Failed(_) => {
            (Exit::Failure, Some(format!("mend what it names and try again; `relay-mesh doctor {harness}` shows more")))
        }
    };
    CommandError::Told {
        what: format!("the adapter `{harness}` could not do it"),
        hint,
        exit,
        source: Some(Box::new(error)),
    }
}

/// The command line asks for what does not fit together.
pub(crate) fn usage(what: &str, hint: &str) -> CommandError {
    CommandError::Told { what: what.to_owned(), hint: Some(hint.to_owned()), exit: Exit::Usage, source: None }
}

/// A failure with its cause.
pub(crate) fn told(
    what: &str,
    hint: Option<String>,
    exit: Exit,
    source: impl std::error::Error + Send + Sync + 'static,
) -> CommandError {
    CommandError::Told { what: what.to_owned(), hint, exit, source: Some(Box::new(source)) }
}
