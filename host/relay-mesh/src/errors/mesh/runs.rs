//! Errors about runs.

use mesh::runs::RunAgentError;

use crate::errors::Explain;
use crate::exit::Exit;

impl Explain for RunAgentError {
    fn exit(&self) -> Exit {
        match self {
            RunAgentError::Register(error) => error.exit(),
            RunAgentError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            RunAgentError::Register(error) => error.hint(),
            RunAgentError::Store(error) => error.hint(),
        }
    }
}
