//! The settings of one origin, each optional.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use mesh::EditMode;
use mesh::names::AgentName;
use mesh::reservations::Ttl;
use serde::Deserialize;

use super::ConfigError;
use super::adapters::AdapterValues;
use super::nats::NatsValues;
use super::store::{self, Differ, Shared, StoreAt};
use super::threads::ThreadValues;
use super::wake::WakeValues;
use crate::environment::Environment;

/// When a message counts as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durable {
    /// When it is on disk: it survives a loss of power.
    Disk,
    /// When the operating system has it: it survives the process alone, and costs less.
    Process,
}

impl Durable {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Durable::Disk => "disk",
            Durable::Process => "process",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenUse {
    /// HTTP clients must show the server's token.
    Required,
    /// Any client that reaches the port is served.
    Off,
}

impl TokenUse {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            TokenUse::Required => "true",
            TokenUse::Off => "false",
        }
    }
}

/// Whether writing a file reserves it for the agent that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AutoReserve {
    On,
    /// Agents reserve explicitly.
    Off,
}

impl AutoReserve {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            AutoReserve::On => "true",
            AutoReserve::Off => "false",
        }
    }
}

/// Whether ordinary commands start a cleanup once a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AutoCleanup {
    On,
    /// Only `gc` and the server clean up.
    Off,
}

impl AutoCleanup {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            AutoCleanup::On => "true",
            AutoCleanup::Off => "false",
        }
    }
}

/// How long an automatic reservation lasts by default: ten minutes.
pub(super) fn auto_reserve_ttl() -> Ttl {
    Ttl::new(10 * 60_000).unwrap_or_default()
}

/// The settings of one origin. The fields are those of [`super::Settings`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) dir: Option<PathBuf>,
    pub(crate) shared: Option<Shared>,
    pub(crate) nats: NatsValues,
    pub(crate) agent: Option<AgentName>,
    pub(crate) team: Option<String>,
    pub(crate) durability: Option<Durable>,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) token: Option<TokenUse>,
    pub(crate) origins: Option<Vec<String>>,
    pub(crate) plugins: Option<Vec<PathBuf>>,
    pub(crate) adapters: AdapterValues,
    pub(crate) away_after: Option<u64>,
    pub(crate) hold_after_stop: Option<u64>,
    pub(crate) ask_patience: Option<u64>,
    pub(crate) background: Option<bool>,
    pub(crate) hops: Option<u32>,
    pub(crate) per_pair: Option<u32>,
    pub(crate) per_agent: Option<u32>,
    pub(crate) window: Option<u64>,
    pub(crate) rest: Option<u64>,
    pub(crate) edits: Option<EditMode>,
    pub(crate) auto_reserve: Option<AutoReserve>,
    pub(crate) auto_reserve_ttl: Option<Ttl>,
    pub(crate) keep: Option<u64>,
    pub(crate) expire_after: Option<u64>,
    pub(crate) auto_cleanup: Option<AutoCleanup>,
    pub(crate) tools: Option<mcp::Profile>,
    pub(crate) wake: WakeValues,
    pub(crate) threads: ThreadValues,
}

/// Expands a leading `~`: no shell does so in `files:~/mesh`.
pub(crate) fn at_home(path: PathBuf, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        (Ok(_), None) | (Err(_), _) => path,
    }
}

impl Values {
    /// The same with `~` expanded in every path.
    #[must_use]
    pub(super) fn with_home(self, home: Option<&Path>) -> Values {
        Values {
            dir: self.dir.map(|dir| at_home(dir, home)),
            nats: self.nats.with_paths(|path| at_home(path, home)),
            wake: self.wake.with_paths(|path| at_home(path, home)),
            threads: self.threads.with_paths(|path| at_home(path, home)),
            adapters: self.adapters.with_paths(|path| at_home(path, home)),
            plugins: self.plugins.map(|plugins| plugins.into_iter().map(|plugin| at_home(plugin, home)).collect()),
            ..self
        }
    }

    /// The same with relative paths resolved against a folder.
    #[must_use]
    pub(crate) fn beneath(self, folder: &Path) -> Values {
        Values {
            dir: self.dir.map(|dir| folder.join(dir)),
            nats: self.nats.with_paths(|path| folder.join(path)),
            wake: self.wake.with_paths(|path| folder.join(path)),
            threads: self.threads.with_paths(|path| folder.join(path)),
            adapters: self.adapters.with_paths(|path| folder.join(path)),
            plugins: self.plugins.map(|plugins| plugins.into_iter().map(|plugin| folder.join(plugin)).collect()),
            ..self
        }
    }

    /// Refuses what a project may not set, because a clone brings the project's file along unseen. It may say how
    /// agents of the project work together, but not open a port, drop the token, admit web pages, bring adapters, say when mail is
    /// deleted, or name the servers that carry everything or the programs that a wake runs.
    pub(super) fn refuse_what_is_the_persons(&self, path: &Path, environment: &Environment) -> Result<(), ConfigError> {
        let personal = [
            ("http.listen", self.listen.is_some()),
            ("http.token", self.token.is_some()),
            ("http.origins", self.origins.is_some()),
            ("plugins", self.plugins.is_some()),
            ("store", matches!(self.shared, Some(Shared::Nats(_)))),
            ("nats", self.nats != NatsValues::default()),
            ("wake", self.wake != WakeValues::default()),
            ("hold-after-stop", self.hold_after_stop.is_some()),
            ("ask-patience", self.ask_patience.is_some()),
            ("background", self.background.is_some()),
            ("retention", self.keep.is_some() || self.expire_after.is_some() || self.auto_cleanup.is_some()),
        ];
        let key = personal.into_iter().find(|(_, set)| *set).map(|(key, _)| key);
        match key.or_else(|| self.adapters.not_the_projects()).or_else(|| self.threads.not_the_projects(path)) {
            Some(key) => {
                let own_file = super::own_file(environment);
                Err(ConfigError::NotTheProjects { path: path.to_owned(), key, own_file })
            }
            None => Ok(()),
        }
    }
}

const STORE: &str = "RELAY_STORE";

pub(super) fn of_environment(environment: &Environment) -> Result<Values, ConfigError> {
    let named = parsed(environment, STORE, |text| text.parse::<StoreAt>().map_err(|error| error.to_string()))?;
    let (dir, shared) = store::together(environment.get("RELAY_DIR").map(PathBuf::from), named).map_err(|Differ| {
        let value = environment.get(STORE).unwrap_or_default().to_owned();
        ConfigError::Variable { name: STORE, value, why: "$RELAY_DIR names another folder".to_owned() }
    })?;
    Ok(Values {
        dir,
        shared,
        nats: NatsValues::of_environment(environment)?,
        agent: parsed(environment, "RELAY_AGENT", |text| text.parse::<AgentName>().map_err(|error| error.to_string()))?,
        team: parsed(environment, "RELAY_TEAM", team)?,
        durability: parsed(environment, "RELAY_DURABILITY", |text| match text {
            "disk" => Ok(Durable::Disk),
            "process" => Ok(Durable::Process),
            _ => Err("it must be `disk` or `process`".to_owned()),
        })?,
        listen: parsed(environment, "RELAY_HTTP", |text| {
            text.parse().map_err(|_| "it must be an address and a port, as in 127.0.0.1:7423".to_owned())
        })?,
        tools: parsed(environment, "RELAY_TOOLS", |text| {
            text.parse().map_err(|error: mcp::UnknownGroup| error.to_string())
        })?,
        threads: ThreadValues::of_environment(environment)?,
        plugins: environment.get("RELAY_PLUGINS").map(|text| std::env::split_paths(text).collect()),
        ..Values::default()
    })
}

fn parsed<T>(
    environment: &Environment,
    name: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, ConfigError> {
    let Some(value) = environment.get(name) else { return Ok(None) };
    parse(value).map(Some).map_err(|why| ConfigError::Variable { name, value: value.to_owned(), why })
}

/// Checks a team: it follows the rules for one part of a name.
pub(crate) fn team(text: &str) -> Result<String, String> {
    let name = format!("a@{text}").parse::<AgentName>();
    match name.as_ref().map(AgentName::team) {
        Ok(Some(team)) => Ok(team.to_owned()),
        Ok(None) | Err(_) => Err("a team is 1 to 63 of a-z, 0-9 and -, starting with a letter or digit".to_owned()),
    }
}
