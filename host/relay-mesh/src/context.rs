//! What every command is given: settings, environment, printer; and the mesh, opened on demand.

use std::path::PathBuf;

use mesh::IdentifyError;
use mesh::names::AgentName;
use mesh::session::{Call, Caller, Principal};

use crate::compose::{self, Client, Open, OpenError};
use crate::config::Settings;
use crate::environment::Environment;
use crate::errors::CommandError;
use crate::render::Printer;

/// What every command is given.
#[derive(Debug)]
pub(crate) struct Context {
    /// The settings, each with where it came from.
    pub(crate) settings: Settings,
    /// The variables of this process.
    pub(crate) environment: Environment,
    /// Where to print.
    pub(crate) printer: Printer,
    /// The folder in which the command was given.
    pub(crate) workdir: PathBuf,
    /// Whether the command line speaks of the store by a flag.
    pub(crate) speaks_of_store: bool,
}

impl Context {
    /// Opens the store and the mesh for a command of this process's own. Loads no adapter.
    pub(crate) fn open(&self) -> Result<Open, OpenError> {
        compose::open(self, Client::ThisProcess)
    }

    /// The same for a hook, whose harness waits for it.
    pub(crate) fn open_for_hook(&self) -> Result<Open, OpenError> {
        compose::open(self, Client::Hook)
    }

    /// The same, as if the command had been given in another folder. The settings stay.
    pub(crate) fn at(&self, workdir: PathBuf) -> Context {
        let Context { settings, environment, printer, workdir: _, speaks_of_store } = self;
        Context {
            settings: settings.clone(),
            environment: environment.clone(),
            printer: *printer,
            workdir,
            speaks_of_store: *speaks_of_store,
        }
    }

    /// The same with another idea of how long a silence may be, in milliseconds.
    pub(crate) fn with_away_after(&self, silence: u64) -> Context {
        let mut other = self.at(self.workdir.clone());
        other.settings.away_after.value = silence;
        other
    }

    /// What a command line shows of itself.
    pub(crate) fn caller(&self) -> Caller {
        Caller::of_command_line(self.environment.pairs(), Some(self.workdir.display().to_string()))
    }

    /// This command line as a call, speaking for an agent where it names one.
    pub(crate) fn call(&self, claims_to_be: Option<AgentName>) -> Call {
        Call { caller: self.caller(), connection: None, ticket: None, key: None, claims_to_be }
    }

    /// Says that a look found nothing; and of an agent that it was narrowed to, that there is none of that name.
    pub(crate) async fn say_nothing_found(
        &self,
        open: &Open,
        what: &str,
        agent: Option<&AgentName>,
    ) -> Result<(), CommandError> {
        let unknown = match agent {
            Some(agent) if !agent.is_shell() && open.mesh.agent(agent).await?.is_none() => Some(agent),
            Some(_) | None => None,
        };
        self.printer.say(&match unknown {
            Some(agent) => {
                format!("{what}, and no agent named `{agent}` has joined: `relay-mesh agents` shows who has")
            }
            None => what.to_owned(),
        });
        Ok(())
    }

    /// Who speaks on this command line: the agent that a flag names, else the one of the settings, else the one of this
    /// shell's harness session, else nobody.
    pub(crate) async fn principal(&self, open: &Open, named: Option<AgentName>) -> Result<Principal, IdentifyError> {
        let claimed = named.or_else(|| self.settings.agent.value.clone());
        open.mesh.identify(&self.call(claimed)).await
    }
}
