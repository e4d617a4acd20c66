//! The errors of commands, each with its exit code and a hint. The errors of other crates have one file per crate here.

pub(crate) mod adapters;
mod mesh;
pub(crate) mod store;
mod told;

use std::error::Error;
use std::fmt;
use std::io;

use crate::exit::Exit;

pub(crate) use self::mesh::{HARNESSES, WHO_IS_HERE};
pub(crate) use self::told::{ToldError, in_folder};

/// An error with an exit code and a hint. Its text is one clause without a full stop.
pub(crate) trait Explain: Error + Send + Sync + 'static {
    fn exit(&self) -> Exit;

    fn hint(&self) -> Option<String>;
}

/// Any error that implements [`Explain`]. A new error needs no change here.
#[derive(Debug)]
pub(crate) struct CommandError(Box<dyn Explain>);

impl<E: Explain> From<E> for CommandError {
    fn from(error: E) -> CommandError {
        CommandError(Box::new(error))
    }
}

impl From<io::Error> for CommandError {
    /// Commands use `?` on I/O errors of standard output only.
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
    /// Options that do not fit together.
    pub(crate) fn usage(what: &str, hint: &str) -> CommandError {
        Failure { what: what.to_owned(), hint: Some(hint.to_owned()), exit: Exit::Usage, source: None }.into()
    }

    pub(crate) fn caused_by(
        what: &str,
        hint: Option<String>,
        exit: Exit,
        source: impl Error + Send + Sync + 'static,
    ) -> CommandError {
        Failure { what: what.to_owned(), hint, exit, source: Some(Box::new(source)) }.into()
    }

    pub(crate) fn exit(&self) -> Exit {
        self.0.exit()
    }

    pub(crate) fn hint(&self) -> Option<String> {
        self.0.hint()
    }

    /// It, its causes and its hint, on one line.
    pub(crate) fn in_one_line(&self) -> String {
        let hint = self.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{}{hint}", ::mesh::reasons(self))
    }

    /// Whether the reader of our output went away, which is no error.
    pub(crate) fn is_reader_gone(&self) -> bool {
        let error: &(dyn Error + 'static) = &*self.0;
        matches!(error.downcast_ref(), Some(StreamError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// An error that is reported in one place only.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Failure {
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
    pub(crate) exit: Exit,
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

#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError {
    #[error("standard input could not be read")]
    Input(#[source] io::Error),
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

/// The command needs an agent, and neither flags, settings nor session name one.
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
