//! Running the harness's own slash commands in a session that lives.

pub use crate::bindings::further::exports::relay::adapter::commands::{Command, Means, Progress, Stage};
use crate::{Activity, Error, Session};

/// What an adapter does for commands. It is exported by [`export!`](crate::export) with `commands`; an adapter
/// whose harness has no way in leaves it out, and the host says so to whoever asks.
///
/// The host asks only for what the person has allowed. `plan` is the place to refuse: what it refuses waits
/// for somebody else to take it, and what it accepts is run once and never again.
pub trait Commands {
    /// By what a command would be run in a session. Nothing may happen yet.
    fn plan(to: &Session, command: &Command) -> Result<Means, Error>;

    /// Begins it. An error says that nothing has begun.
    fn run(to: &Session, command: &Command) -> Result<Progress, Error>;

    /// Looks whether it has ended. By default it never learns more than `run` said.
    fn watch(to: &Session, command: &Command, begun: Progress) -> Result<Progress, Error> {
        let _ = (to, begun);
        Err(Error::Unsupported(format!("nothing tells what becomes of /{}", command.name)))
    }
}

impl Means {
    /// A way for an adapter that has asked its harness just now whether the session is idle, and else answers
    /// `busy`: what the host knows may be long over where nothing speaks from inside the harness.
    pub fn looked_at(name: &str) -> Means {
        Means { name: name.into(), when: vec![Activity::Idle, Activity::Busy] }
    }
}

impl Progress {
    /// The harness was asked for it.
    pub fn begun(evidence: impl Into<Option<String>>) -> Progress {
        Progress { stage: Stage::Begun, said: None, evidence: evidence.into() }
    }

    /// It ended well.
    pub fn succeeded(self, said: impl Into<String>) -> Progress {
        Progress { stage: Stage::Succeeded, said: Some(said.into()), ..self }
    }

    /// It ended badly, for this reason.
    pub fn failed(self, said: impl Into<String>) -> Progress {
        Progress { stage: Stage::Failed, said: Some(said.into()), ..self }
    }
}
