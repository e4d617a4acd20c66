//! What can go wrong with a command, and what people are told: each error says beside itself how the process ends
//! and what to do about it. The errors of other crates have a file for each crate here.

pub(crate) mod adapters;
mod mesh;
pub(crate) mod store;

use std::error::Error;
use std::fmt;
use std::io;

use crate::exit::Exit;

pub(crate) use self::mesh::{HARNESSES, WHO_IS_HERE};

/// An error as people and scripts are told it. Its text is one clause without a full stop.
pub(crate) trait Explain: Error + Send + Sync + 'static {
    /// How the process ends.
    fn exit(&self) -> Exit;

    /// What to do about it.
    fn hint(&self) -> Option<String>;
}

/// Why a command did not do what it was asked: any error that can explain itself. A new error adds no line here.
#[derive(Debug)]
pub(crate) struct CommandError(Box<dyn Explain>);

impl<E: Explain> From<E> for CommandError {
    fn from(error: E) -> CommandError {
        CommandError(Box::new(error))
    }
}

impl From<io::Error> for CommandError {
    /// The one stream that commands write to with `?` is standard output.
    fn from(error: io::Error) -> CommandError {
        StreamError::Output(error).into()
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for CommandError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl CommandError {
    /// The command line asks for things that do not fit together.
    pub(crate) fn usage(what: &str, hint: &str) -> CommandError {
        Failure { what: what.to_owned(), hint: Some(hint.to_owned()), exit: Exit::Usage, source: None }.into()
    }

    /// A failure with its cause.
    pub(crate) fn caused_by(
        what: &str,
        hint: Option<String>,
        exit: Exit,
        source: impl Error + Send + Sync + 'static,
    ) -> CommandError {
        Failure { what: what.to_owned(), hint, exit, source: Some(Box::new(source)) }.into()
    }

    /// How the process ends.
    pub(crate) fn exit(&self) -> Exit {
        self.0.exit()
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        self.0.hint()
    }

    /// Whether the program that read our output went away, which is no error.
    pub(crate) fn is_reader_gone(&self) -> bool {
        let error: &(dyn Error + 'static) = &*self.0;
        matches!(error.downcast_ref(), Some(StreamError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// A failure that one place alone reports.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Failure {
    /// One clause without a full stop.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// How the process ends.
    pub(crate) exit: Exit,
    /// What caused it.
    #[source]
    pub(crate) source: Option<Box<dyn Error + Send + Sync>>,
}

impl Explain for Failure {
    fn exit(&self) -> Exit {
        self.exit
    }

    fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

/// A stream of this process failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError {
    /// Standard input could not be read.
    #[error("standard input could not be read")]
    Input(#[source] io::Error),
    /// Standard output could not be written.
    #[error("standard output could not be written")]
    Output(#[source] io::Error),
}

impl Explain for StreamError {
    fn exit(&self) -> Exit {
        Exit::Failure
    }

    fn hint(&self) -> Option<String> {
        None
    }
}

/// The command needs an agent and the command line names none.
#[derive(Debug, thiserror::Error)]
#[error("it is not clear for which agent you ask")]
pub(crate) struct NoAgent;

impl Explain for NoAgent {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hint(&self) -> Option<String> {
        Some(
            "say `--agent NAME`, or set RELAY_AGENT; `relay-mesh register NAME` makes an agent for this command line"
                .to_owned(),
        )
    }
}
