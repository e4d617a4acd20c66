//! Settings, each with where it came from: flags, then the environment, then the project's
//! `.relay-mesh.toml`, then the person's own file, then defaults.

mod consents;
mod file;
mod mode;
mod nats;
mod store;
mod values;
mod wake;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use mesh::names::AgentName;
use mesh::reservation::Ttl;
use mesh::{EditMode, EditRules, Limits, LoopLimits};

use crate::environment::Environment;
use crate::errors::Explain;
use crate::exit::Exit;
pub(crate) use consents::AllowedCommands;
pub(crate) use mode::{Place, set_edit_mode};
pub(crate) use nats::{NatsOption, NatsValues};
pub(crate) use store::{Servers, Shared, StoreAt};
pub(crate) use values::{AutoReserve, Durable, TokenUse, Values, at_home, team};
pub(crate) use wake::{Method, WakeValues};

/// The project's file, in the working folder or the nearest one above it.
pub(crate) const PROJECT_FILE: &str = ".relay-mesh.toml";
/// The person's own file, below the folder for configuration.
const USER_FILE: &str = "relay-mesh/config.toml";
/// The data folder below the home.
const DEFAULT_DIR: &str = ".relay-mesh";
/// Where the server listens unless it is told otherwise.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7423);

/// A setting and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    /// What it is set to.
    pub(crate) value: T,
    /// By what.
    pub(crate) origin: Origin,
}

/// Where a setting came from, strongest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The command line.
    Flags,
    /// A variable of this process.
    Environment,
    /// The project's file.
    Project(PathBuf),
    /// The person's own file.
    User(PathBuf),
    /// Nobody said anything.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flags => f.write_str("command line"),
            Origin::Environment => f.write_str("environment"),
            Origin::Project(path) | Origin::User(path) => path.display().fmt(f),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// Everything that can be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The data folder.
    pub(crate) dir: Setting<PathBuf>,
    /// Where that is kept which all machines of a mesh share.
    pub(crate) shared: Setting<Shared>,
    /// Who we are to the servers, put together of what each place says.
    pub(crate) nats: NatsValues,
    /// What of it the command line says, for a process that is started to go by it too.
    pub(crate) nats_by_flags: NatsValues,
    /// How whoever listens outside of any harness is woken, put together of what each place says.
    pub(crate) wake: WakeValues,
    /// Both, word by word, with where each came from.
    words: Vec<(&'static str, Setting<String>)>,
    /// For whom this command line speaks.
    pub(crate) agent: Setting<Option<AgentName>>,
    /// The team that a registration joins.
    pub(crate) team: Setting<Option<String>>,
    /// When a message counts as stored.
    pub(crate) durability: Setting<Durable>,
    /// Where the server listens.
    pub(crate) listen: Setting<SocketAddr>,
    /// Whether the server asks for its token.
    pub(crate) token: Setting<TokenUse>,
    /// Folders with adapters beside the built-in ones.
    pub(crate) plugins: Setting<Vec<PathBuf>>,
    /// How long nothing may be heard of an agent before it counts as away, in milliseconds.
    pub(crate) away_after: Setting<u64>,
    /// Messages in one chain without a person, before waking stops.
    pub(crate) hops: Setting<u32>,
    /// Wakes of one agent by one other within the window.
    pub(crate) per_pair: Setting<u32>,
    /// Wakes of one agent within the window.
    pub(crate) per_agent: Setting<u32>,
    /// The window, in milliseconds.
    pub(crate) window: Setting<u64>,
    /// After how long without a new message a chain is over, in milliseconds.
    pub(crate) rest: Setting<u64>,
    /// What happens when a file is written that another agent holds.
    pub(crate) edits: Setting<EditMode>,
    /// Whether a file is reserved for whoever writes it.
    pub(crate) auto_reserve: Setting<AutoReserve>,
    /// For how long.
    pub(crate) auto_reserve_ttl: Setting<Ttl>,
    /// Which groups of tools an MCP client is shown.
    pub(crate) tools: Setting<mcp::Profile>,
}

/// Why the settings cannot be told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// A file is there and cannot be read.
    #[error("could not read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("could not write `{}`", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A file does not say what a settings file may say.
    #[error("`{}`, line {line}: {what}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: usize,
        /// What is wrong there.
        what: String,
    },
    /// A project's file sets what only the person may set.
    #[error("`{}` sets `{key}`, which a project may not set for the people who work in it", path.display())]
    NotTheProjects {
        /// The file.
        path: PathBuf,
        /// The setting.
        key: &'static str,
    },
    /// A variable does not hold what it should.
    #[error("${name} is `{value}`: {why}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// What it holds.
        value: String,
        /// What it should hold.
        why: String,
    },
    /// The command line speaks of a store and names none.
    #[error("`--store` names no store")]
    NoStore,
    /// The values of the servers on the command line do not fit together.
    #[error("`--nats-option`: {0}")]
    NatsOptions(String),
    /// The command line names two data folders.
    #[error("`--dir` and `--store` name two folders, and there is one")]
    Flags,
    /// There is no home folder to keep the data in.
    #[error("there is no home folder to keep the data in")]
    NoHome,
}

impl Explain for ConfigError {
    fn exit(&self) -> Exit {
        match self {
            ConfigError::Unreadable { .. } | ConfigError::Unwritable { .. } => Exit::Failure,
            ConfigError::Invalid { .. }
            | ConfigError::NotTheProjects { .. }
            | ConfigError::Variable { .. }
            | ConfigError::Flags
            | ConfigError::NoStore
            | ConfigError::NatsOptions(_)
            | ConfigError::NoHome => Exit::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            ConfigError::Unreadable { .. } => "make the file readable, or take it away".to_owned(),
            ConfigError::Unwritable { .. } => {
                "make the file and its folder writable, or write the setting by hand".to_owned()
            }
            ConfigError::Invalid { .. } => "`relay-mesh help config` lists every setting with an example".to_owned(),
            ConfigError::NotTheProjects { key, .. } => {
                format!("put `{key}` into your own settings: ~/.config/relay-mesh/config.toml")
            }
            ConfigError::Variable { name, .. } => format!("unset {name}, or set it as `relay-mesh help config` shows"),
            ConfigError::NoStore => {
                "write `--store files:DIR` or `--store nats://HOST:4222`; `relay-mesh doctor --store` alone \
                 looks at the one that is set"
                    .to_owned()
            }
            ConfigError::NatsOptions(_) => "`relay-mesh help config` lists what [nats] may say".to_owned(),
            ConfigError::Flags => "give one of them".to_owned(),
            ConfigError::NoHome => "say where by `--dir DIR`, or set RELAY_DIR or HOME".to_owned(),
        })
    }
}

impl Settings {
    /// Works every setting out for a command line that was given in a folder.
    pub(crate) fn load(flags: Values, environment: &Environment, workdir: &Path) -> Result<Settings, ConfigError> {
        let home = environment.home();
        let mut layers = vec![
            (Origin::Flags, flags.with_home(home.as_deref()).beneath(workdir)),
            (Origin::Environment, values::of_environment(environment)?.with_home(home.as_deref()).beneath(workdir)),
        ];
        if let Some((path, found)) = file::nearest(workdir, PROJECT_FILE, home.as_deref())? {
            found.refuse_what_is_the_persons(&path)?;
            layers.push((Origin::Project(path), found));
        }
        if let Some(path) = environment.xdg("XDG_CONFIG_HOME", ".config").map(|folder| folder.join(USER_FILE))
            && let Some(found) = file::read(&path, home.as_deref())?
        {
            layers.push((Origin::User(path), found));
        }
        let default_dir = home.map(|home| home.join(DEFAULT_DIR));
        Settings::from_layers(&layers, default_dir)
    }

    fn from_layers(layers: &[(Origin, Values)], default_dir: Option<PathBuf>) -> Result<Settings, ConfigError> {
        let limits = Limits::default();
        let nats =
            layers.iter().rev().fold(NatsValues::default(), |weaker, (_, values)| values.nats.clone().or(weaker));
        let wake =
            layers.iter().rev().fold(WakeValues::default(), |weaker, (_, values)| values.wake.clone().or(weaker));
        Ok(Settings {
            dir: match strongest(layers, |values| values.dir.clone()) {
                Some(found) => found,
                None => Setting { value: default_dir.ok_or(ConfigError::NoHome)?, origin: Origin::Default },
            },
            shared: pick(layers, |values| values.shared.clone(), Shared::InTheFolder),
            words: words(layers, &nats.listed(), |values| values.nats.listed())
                .chain(words(layers, &wake.listed(), |values| values.wake.listed()))
                .collect(),
            nats,
            nats_by_flags: layers
                .iter()
                .find(|(origin, _)| *origin == Origin::Flags)
                .map(|(_, flags)| flags.nats.clone())
                .unwrap_or_default(),
            wake,
            tools: pick(layers, |values| values.tools, mcp::Profile::default()),
            agent: pick(layers, |values| values.agent.clone().map(Some), None),
            team: pick(layers, |values| values.team.clone().map(Some), None),
            durability: pick(layers, |values| values.durability, Durable::Disk),
            listen: pick(layers, |values| values.listen, DEFAULT_LISTEN),
            token: pick(layers, |values| values.token, TokenUse::Required),
            plugins: pick(layers, |values| values.plugins.clone(), Vec::new()),
            away_after: pick(layers, |values| values.away_after, limits.away_after),
            hops: pick(layers, |values| values.hops, limits.loops.hops),
            per_pair: pick(layers, |values| values.per_pair, limits.loops.pair),
            per_agent: pick(layers, |values| values.per_agent, limits.loops.agent),
            window: pick(layers, |values| values.window, limits.loops.window),
            rest: pick(layers, |values| values.rest, limits.loops.rest),
            edits: pick(layers, |values| values.edits, EditMode::default()),
            auto_reserve: pick(layers, |values| values.auto_reserve, AutoReserve::Off),
            auto_reserve_ttl: pick(layers, |values| values.auto_reserve_ttl, values::auto_reserve_ttl()),
        })
    }

    /// The settings that the mesh goes by.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            loops: LoopLimits {
                hops: self.hops.value,
                pair: self.per_pair.value,
                agent: self.per_agent.value,
                window: self.window.value,
                rest: self.rest.value,
            },
            away_after: self.away_after.value,
            edits: EditRules {
                mode: self.edits.value,
                auto_reserve: match self.auto_reserve.value {
                    AutoReserve::On => Some(self.auto_reserve_ttl.value),
                    AutoReserve::Off => None,
                },
            },
            ..Limits::default()
        }
    }

    /// The store by its kind and place, without secrets.
    pub(crate) fn store_shown(&self) -> String {
        match &self.shared.value {
            Shared::InTheFolder => format!("files:{}", self.dir.value.display()),
            Shared::Nats(servers) => servers.to_string(),
        }
    }

    /// Every setting as `key`, value and origin, in the spelling of the settings files.
    pub(crate) fn listed(&self) -> Vec<(&'static str, String, &Origin)> {
        fn line<'a, T>(
            key: &'static str,
            setting: &'a Setting<T>,
            say: impl Fn(&T) -> String,
        ) -> (&'static str, String, &'a Origin) {
            (key, say(&setting.value), &setting.origin)
        }
        let duration = |milliseconds: &u64| {
            humantime::format_duration(std::time::Duration::from_millis(*milliseconds)).to_string()
        };
        let mut lines = vec![
            line("dir", &self.dir, |dir| dir.display().to_string()),
            line("store", &self.shared, |_| self.store_shown()),
            line("agent", &self.agent, |agent| agent.as_ref().map_or_else(String::new, AgentName::to_string)),
            line("team", &self.team, |team| team.clone().unwrap_or_default()),
            line("durability", &self.durability, |durability| durability.as_str().to_owned()),
            line("away-after", &self.away_after, duration),
            line("plugins", &self.plugins, |folders| {
                folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(":")
            }),
            line("http.listen", &self.listen, SocketAddr::to_string),
            line("http.token", &self.token, |token| token.as_str().to_owned()),
            line("loops.hops", &self.hops, u32::to_string),
            line("loops.per-pair", &self.per_pair, u32::to_string),
            line("loops.per-agent", &self.per_agent, u32::to_string),
            line("loops.window", &self.window, duration),
            line("loops.rest", &self.rest, duration),
            line("reservations.mode", &self.edits, |mode| mode.as_str().to_owned()),
            line("reservations.auto-reserve", &self.auto_reserve, |auto| auto.as_str().to_owned()),
            line("reservations.auto-reserve-ttl", &self.auto_reserve_ttl, |ttl| duration(&ttl.milliseconds())),
        ];
        lines.push(line("tools", &self.tools, mcp::Profile::to_string));
        lines.extend(self.words.iter().map(|(key, word)| line(key, word, String::clone)));
        lines
    }
}

/// Words that are set, each with the strongest place that says it.
fn words(
    layers: &[(Origin, Values)],
    set: &[(&'static str, String)],
    said_by: impl Fn(&Values) -> Vec<(&'static str, String)>,
) -> impl Iterator<Item = (&'static str, Setting<String>)> {
    let from = |(key, value): &(&'static str, String)| {
        let says = |values: &Values| said_by(values).iter().any(|said| said == &(*key, value.clone()));
        let origin =
            layers.iter().find(|(_, values)| says(values)).map_or(Origin::Default, |(origin, _)| origin.clone());
        (*key, Setting { value: value.clone(), origin })
    };
    set.iter().map(from).collect::<Vec<_>>().into_iter()
}

fn strongest<T>(layers: &[(Origin, Values)], get: impl Fn(&Values) -> Option<T>) -> Option<Setting<T>> {
    layers.iter().find_map(|(origin, values)| get(values).map(|value| Setting { value, origin: origin.clone() }))
}

fn pick<T>(layers: &[(Origin, Values)], get: impl Fn(&Values) -> Option<T>, default: T) -> Setting<T> {
    strongest(layers, get).unwrap_or(Setting { value: default, origin: Origin::Default })
}

#[cfg(test)]
mod tests;
