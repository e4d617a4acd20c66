//! Exit codes: scripts rely on them.

use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    /// A failure without its own code, or a check that found something broken.
    Failure,
    /// A command line, name, id or setting is malformed.
    Usage,
    /// The agent, message or harness does not exist.
    NotFound,
    /// It exists, but this caller may not do that, or the user did not consent.
    Refused,
    /// The data folder or the servers failed.
    Store,
    /// Another agent holds the reservation or lease.
    Held,
    TimedOut,
    /// The exit code that the adapter wants for its harness's hook.
    Hook(u8),
}

impl Exit {
    /// The codes in the help text.
    pub(crate) const DOCUMENTED: [Exit; 8] = [
        Exit::Success,
        Exit::Failure,
        Exit::Usage,
        Exit::NotFound,
        Exit::Refused,
        Exit::Store,
        Exit::Held,
        Exit::TimedOut,
    ];

    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::NotFound => 3,
            Exit::Refused => 4,
            Exit::Store => 5,
            Exit::Held => 6,
            Exit::TimedOut => 7,
            Exit::Hook(code) => code,
        }
    }

    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Exit::Success => "done",
            Exit::Failure => "something failed, or a check found something broken",
            Exit::Usage => "the command line, a name, an id or a setting is not well formed; nothing was done",
            Exit::NotFound => "the agent, message or harness is not there",
            Exit::Refused => "it is not yours to do, or no consent was given",
            Exit::Store => "the data folder is missing, unreadable, full or damaged",
            Exit::Held => "another agent holds what was asked for; nothing was done",
            Exit::TimedOut => "what was waited for did not come in time",
            Exit::Hook(_) => "what the harness expects of this hook",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}
