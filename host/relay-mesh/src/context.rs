//! The context of every command: settings, environment, printer, and the mesh, opened on demand.

use std::path::{Path, PathBuf};

use mesh::IdentifyError;
use mesh::names::AgentName;
use mesh::sessions::{Call, Caller, Principal};

use crate::compose::{self, Client, Open, OpenError};
use crate::config::{ConfigError, Origin, Settings, Shared, default_dir};
use crate::environment::Environment;
use crate::errors::CommandError;
use crate::render::Printer;

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) settings: Settings,
    pub(crate) environment: Environment,
    pub(crate) printer: Printer,
    /// The current folder of the command.
    pub(crate) workdir: PathBuf,
    /// Whether a flag names the store.
    pub(crate) speaks_of_store: bool,
    pub(crate) seat: Seat,
}

/// Where the caller sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seat {
    /// In front of this process: who it is follows from the processes above it and from its environment.
    ThisProcess,
    /// In front of a page that the user has signed in. What is above the server says nothing of them.
    Page,
}

impl Context {
    /// Opens the store and the mesh. Loads no adapter.
    pub(crate) fn open(&self) -> Result<Open, OpenError> {
        compose::open(self, Client::ThisProcess)
    }

    /// The same for a hook, with short timeouts because the harness waits for it.
    pub(crate) fn open_for_hook(&self) -> Result<Open, OpenError> {
        compose::open(self, Client::Hook)
    }

    /// The same context in another folder. The settings stay.
    pub(crate) fn at(&self, workdir: PathBuf) -> Context {
        let Context { settings, environment, printer, workdir: _, speaks_of_store, seat } = self;
        Context {
            settings: settings.clone(),
            environment: environment.clone(),
            printer: printer.clone(),
            workdir,
            speaks_of_store: *speaks_of_store,
            seat: *seat,
        }
    }

    /// The same context with another `away-after`, in milliseconds.
    pub(crate) fn with_away_after(&self, silence: u64) -> Context {
        let mut other = self.at(self.workdir.clone());
        other.settings.away_after.value = silence;
        other
    }

    /// The same context with the data folder that the user has if nobody names one.
    pub(crate) fn in_own_folder(&self) -> Result<Context, CommandError> {
        let mut other = self.as_the_user();
        other.settings.dir = default_dir::default_dir(&self.environment).ok_or(ConfigError::NoHome)?;
        other.settings.shared.value = Shared::InTheFolder;
        Ok(other)
    }

    /// The same context, which speaks for no agent that the settings name.
    pub(crate) fn as_the_user(&self) -> Context {
        let mut other = self.at(self.workdir.clone());
        other.settings.agent.value = None;
        other
    }

    /// The same context for what the user asks for on a page.
    pub(crate) fn on_a_page(&self) -> Context {
        Context { seat: Seat::Page, ..self.as_the_user() }
    }

    /// The data folder, if a flag names it: a command line that the user is to type has to name it too.
    pub(crate) fn named_folder(&self) -> Option<&Path> {
        let dir = &self.settings.dir;
        (dir.origin == Origin::Flags).then_some(dir.value.as_path())
    }

    /// The evidence of who calls: this process's folder and environment.
    pub(crate) fn caller(&self) -> Caller {
        let environment = match self.seat {
            Seat::ThisProcess => self.environment.pairs(),
            Seat::Page => Vec::new(),
        };
        Caller::of_command_line(environment, Some(self.workdir.display().to_string()))
    }

    /// This command line as a call, on behalf of the agent it names, if any.
    pub(crate) fn call(&self, claims_to_be: Option<AgentName>) -> Call {
        Call { caller: self.caller(), connection: None, ticket: None, key: None, claims_to_be }
    }

    /// Reports that a listing is empty, and whether the agent it was narrowed to does not exist.
    pub(crate) async fn say_nothing_found(
        &self,
        open: &Open,
        what: &str,
        agent: Option<&AgentName>,
    ) -> Result<(), CommandError> {
        self.printer.say(&match unknown(open, agent).await? {
            Some(agent) => {
                format!("{what}, and {}: `relay-mesh agents` shows who has", mesh::names::no_such_agent(agent))
            }
            None => what.to_owned(),
        });
        Ok(())
    }

    /// The error for an empty listing that was narrowed to an agent which does not exist.
    pub(crate) async fn refuse_unknown(&self, open: &Open, agent: Option<&AgentName>) -> Result<(), CommandError> {
        if let Some(agent) = unknown(open, agent).await? {
            open.mesh.resolve(agent.as_str(), None).await?;
        }
        Ok(())
    }

    /// Warns of mail that could not be read. Everything else is complete.
    pub(crate) fn warn_of_damage(&self, damaged: usize) {
        if damaged > 0 {
            let (lines, were) = if damaged == 1 { ("line", "was") } else { ("lines", "were") };
            self.printer.warn(&format!(
                "{damaged} damaged {lines} of mail {were} passed over; `relay-mesh doctor --store --all` says where"
            ));
        }
    }

    /// The agent that this command line acts as: the one named by a flag, else by the settings, else the one of this
    /// shell's harness session, else none.
    pub(crate) async fn principal(&self, open: &Open, named: Option<AgentName>) -> Result<Principal, IdentifyError> {
        let claimed = named.or_else(|| self.settings.agent.value.clone());
        open.mesh.identify(&self.call(claimed)).await
    }
}

/// The agent to which a listing was narrowed, if it does not exist.
async fn unknown<'a>(open: &Open, agent: Option<&'a AgentName>) -> Result<Option<&'a AgentName>, CommandError> {
    match agent {
        Some(agent) if !agent.is_shell() && open.mesh.agent(agent).await?.is_none() => Ok(Some(agent)),
        Some(_) | None => Ok(None),
    }
}
