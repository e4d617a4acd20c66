//! What every command is: its settings, its threads, and its work.

use crate::config::Values;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;

/// A command's arguments, with what the command does. What most commands have in common is the default here.
pub(crate) trait CommandSpec: clap::Args {
    /// How many threads the command needs.
    const THREADS: Threads = Threads::One;
    /// Whether `--store` may be given without a value.
    const ALLOWS_BARE_STORE: bool = false;

    /// Adds the settings that the command's own flags give to those of the flags that all commands have.
    fn settings(&self, common: Values) -> Values {
        common
    }

    /// Runs the command. The result is how the process ends.
    async fn run(self, context: &Context) -> Result<Exit, CommandError>;
}

/// How many threads a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// One: the command ends soon, and starting more would cost time.
    One,
    /// One for each processor: the command serves many clients.
    Many,
}
