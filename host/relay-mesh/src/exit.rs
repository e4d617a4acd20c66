//! Exit codes: what a script may rely on.

use std::process::ExitCode;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked.
    Success,
    /// Something failed that has no code of its own, or a check found something broken.
    Failure,
    /// The command line, a name, an id or a setting is not well formed.
    Usage,
    /// The agent, message or harness is not there.
    NotFound,
    /// It is there, and this command line may not do that to it, or the person did not consent.
    Refused,
    /// The data folder or the server behind it is in trouble.
    Store,
    /// Somebody else holds what was asked for.
    Held,
    /// What was waited for did not come.
    TimedOut,
    /// What a harness's hook must end with, as its adapter says.
    Hook(u8),
}

impl Exit {
    /// Every code that has a meaning of its own, for the help text.
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

    /// The number.
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

    /// What it means, as a clause.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Exit::Success => "done",
            Exit::Failure => "something failed, or a check found something broken",
            Exit::Usage => "the command line, a name, an id or a setting is not well formed; nothing was done",
            Exit::NotFound => "the agent, message or harness is not there",
            Exit::Refused => "it is not yours to do, or nobody consented",
            Exit::Store => "the data folder is missing, unreadable, full or damaged",
            Exit::Held => "somebody else holds what was asked for; nothing was done",
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
