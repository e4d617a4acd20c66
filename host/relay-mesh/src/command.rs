//! The trait that every command's arguments implement.

use crate::config::Values;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;

/// Implemented by each command's arguments. The defaults suit most commands.
pub(crate) trait CommandSpec: clap::Args {
    const THREADS: Threads = Threads::One;
    /// Whether `--store` may be given without a value.
    const ALLOWS_BARE_STORE: bool = false;

    /// Whether the daily cleanup may start after this command: it works on the mesh, and is not about the data folder
    /// itself.
    const STARTS_CLEANUP: bool = false;

    /// Whether driven agents whose process was killed are resumed after this command.
    const RESUMES_AGENTS: bool = Self::STARTS_CLEANUP;

    /// Adds the settings from the command's own flags to `common`, those from the global flags.
    fn settings(&self, common: Values) -> Values {
        common
    }

    /// Whether it uses the data folder. Those that do not go on also where a project names a folder that is not its
    /// user's.
    fn uses_folder(&self) -> bool {
        true
    }

    async fn run(self, context: &Context) -> Result<Exit, CommandError>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// For a short command: starting more threads would cost time.
    One,
    /// One per processor, for a command that serves many clients.
    Many,
}
