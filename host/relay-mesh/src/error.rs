//! Everything that can go wrong with a command: one case per verb, whose own enum says the rest.

use std::error::Error;
use std::io;

use crate::commands::listen::ListenError;
use crate::compose::OpenError;
use crate::config::ConfigError;
use crate::exit::Exit;
use crate::host::HostError;

/// Why a command did not do what it was asked. What to do about it stands in [`crate::hints`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// The settings cannot be told.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The mesh cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An agent's name or a team's is not one.
    #[error(transparent)]
    Name(#[from] mesh::names::InvalidName),
    /// A message's id is not one.
    #[error(transparent)]
    Id(#[from] mesh::names::InvalidMessageId),
    /// Nobody knows who speaks.
    #[error(transparent)]
    Identify(#[from] mesh::IdentifyError),
    /// No agent is meant, and the command needs one.
    #[error("it is not clear for which agent you ask")]
    NoAgent,
    /// Nobody was registered.
    #[error(transparent)]
    Register(#[from] mesh::RegisterError),
    /// An address leads to nobody.
    #[error(transparent)]
    Address(#[from] mesh::AddressError),
    /// Nothing was sent.
    #[error(transparent)]
    Send(#[from] mesh::SendError),
    /// No mail could be taken.
    #[error(transparent)]
    Fetch(#[from] mesh::FetchError),
    /// Nothing was acknowledged.
    #[error(transparent)]
    Ack(#[from] mesh::AckError),
    /// Nobody could be looked for.
    #[error(transparent)]
    Find(#[from] mesh::FindError),
    /// The sessions cannot be listed.
    #[error(transparent)]
    Roster(#[from] mesh::RosterError),
    /// Nobody was invited.
    #[error(transparent)]
    Invite(#[from] mesh::InviteError),
    /// A path or a pattern means nothing in the repository.
    #[error(transparent)]
    Place(#[from] mesh::repository::PlaceError),
    /// Nothing was reserved.
    #[error(transparent)]
    Reserve(#[from] mesh::ReserveError),
    /// Nothing was released.
    #[error(transparent)]
    Release(#[from] mesh::ReleaseError),
    /// No sign of life was noted.
    #[error(transparent)]
    Heartbeat(#[from] mesh::HeartbeatError),
    /// Nobody is told who falls silent.
    #[error(transparent)]
    Wish(#[from] mesh::WishError),
    /// Nobody was asked to run a command.
    #[error(transparent)]
    Order(#[from] mesh::OrderError),
    /// Nothing was allowed or taken back.
    #[error(transparent)]
    Consent(#[from] crate::commands::cmd::ConsentError),
    /// No command was taken.
    #[error(transparent)]
    Take(#[from] mesh::TakeError),
    /// No command was ended.
    #[error(transparent)]
    Finish(#[from] mesh::FinishError),
    /// A message's status cannot be told.
    #[error(transparent)]
    Status(#[from] mesh::StatusError),
    /// A hook has no answer.
    #[error(transparent)]
    Hook(#[from] mesh::HookError),
    /// A connector could not listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Nothing that can be followed was asked for.
    #[error(transparent)]
    Unwanted(crate::events::Unwanted),
    /// Nobody was woken.
    #[error(transparent)]
    Wake(#[from] mesh::WakeError),
    /// The host could not be started, found or stopped.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// Standard input could not be read.
    #[error("standard input could not be read")]
    Input(#[source] io::Error),
    /// Standard output could not be written.
    #[error("standard output could not be written")]
    Output(#[source] io::Error),
    /// Anything that belongs to one command alone.
    #[error("{what}")]
    Told {
        /// One clause, no final stop.
        what: String,
        /// What to do about it.
        hint: Option<String>,
        /// How the process ends.
        exit: Exit,
        /// What caused it.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
}

impl From<io::Error> for CommandError {
    /// The one stream that commands write to with `?` is standard output.
    fn from(error: io::Error) -> CommandError {
        CommandError::Output(error)
    }
}

impl CommandError {
    /// Whether whoever read our output went away, which is no error.
    pub(crate) fn is_reader_gone(&self) -> bool {
        matches!(self, CommandError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
