//! Errors of adapters.

use mesh::ports::harness::{HarnessError, Harnesses};

use super::{CommandError, Explain};
use crate::exit::Exit;

pub(crate) fn unknown(name: &str, known: &dyn Harnesses) -> CommandError {
    UnknownAdapter { name: name.to_owned(), known: known.names() }.into()
}

pub(crate) fn failed(adapter: &str, source: HarnessError) -> CommandError {
    AdapterFailed { adapter: adapter.to_owned(), source }.into()
}

#[derive(Debug, thiserror::Error)]
#[error("no adapter is named `{name}`")]
struct UnknownAdapter {
    name: String,
    known: Vec<String>,
}

impl Explain for UnknownAdapter {
    fn exit(&self) -> Exit {
        Exit::NotFound
    }

    fn hint(&self) -> Option<String> {
        Some(format!("these are known: {}; `generic` fits any other MCP client", self.known.join(", ")))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the adapter `{adapter}` could not do it")]
struct AdapterFailed {
    adapter: String,
    source: HarnessError,
}

impl Explain for AdapterFailed {
    fn exit(&self) -> Exit {
        match &self.source {
            HarnessError::NotFound(_) => Exit::NotFound,
            HarnessError::Denied(_) => Exit::Refused,
            HarnessError::Unsupported(_) | HarnessError::Busy(_) | HarnessError::Failed(_) => Exit::Failure,
        }
    }

    fn hint(&self) -> Option<String> {
        match &self.source {
            HarnessError::NotFound(_) | HarnessError::Unsupported(_) => None,
            HarnessError::Denied(why) => adapters::hint_of_link(why),
            HarnessError::Busy(milliseconds) => Some(format!("try again after {milliseconds} ms")),
            HarnessError::Failed(_) => {
                Some(format!("fix what it names and try again; `relay-mesh doctor {}` shows more", self.adapter))
            }
        }
    }
}
