//! Settings, each with its origin. In order of precedence: flags, environment, the project's `.relay-mesh.toml`, the
//! user's own file, defaults.

mod acp_programs;
mod adapters;
mod allowed_commands;
mod allowed_starts;
pub(crate) mod default_dir;
mod event_hooks;
mod file;
mod mode;
mod nats;
mod project_folders;
mod store;
mod threads;
mod user_file;
mod values;
mod wake;

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use mesh::names::AgentName;
use mesh::reservations::Ttl;
use mesh::{EditMode, EditRules, Limits, LoopLimits};

use crate::environment::Environment;
use crate::errors::Explain;
use crate::exit::Exit;
pub(crate) use acp_programs::{AcpProgram, AcpPrograms, InvalidCommand, as_typed, command_of};
pub(crate) use adapters::IndexAt;
pub(crate) use allowed_commands::AllowedCommands;
pub(crate) use allowed_starts::Allowed;
pub(crate) use event_hooks::{EventHooks, USUAL_TIMEOUT};
pub(crate) use mode::{SettingsFile, set_edit_mode};
pub(crate) use nats::{NatsOption, NatsValues};
pub(crate) use project_folders::ProjectFolder;
pub(crate) use store::{Servers, Shared, StoreAt};
pub(crate) use threads::{CodexValues, ThreadSettings, ThreadValues};
pub(crate) use values::{AutoCleanup, AutoReserve, Durable, TokenUse, Values, at_home, team};
pub(crate) use wake::{Method, WakeValues};

/// The project's file, in the working folder or the nearest one above it.
pub(crate) const PROJECT_FILE: &str = ".relay-mesh.toml";
/// The user's own file, relative to the configuration folder.
const USER_FILE: &str = "relay-mesh/config.toml";
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7423);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// Where a setting came from, strongest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flags,
    Environment,
    Project(PathBuf),
    User(PathBuf),
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) dir: Setting<PathBuf>,
    /// Where the data shared by all machines of a mesh is stored.
    pub(crate) shared: Setting<Shared>,
    /// Login and stream options for the servers, merged from all origins.
    pub(crate) nats: NatsValues,
    /// The part of `nats` from the command line, to be passed on to a started process.
    pub(crate) nats_by_flags: NatsValues,
    /// How `wake` reaches listeners outside any harness, merged from all origins.
    pub(crate) wake: WakeValues,
    /// Each key of `nats` and `wake` as text, with its origin.
    words: Vec<(&'static str, Setting<String>)>,
    /// The agent that this command line acts as.
    pub(crate) agent: Setting<Option<AgentName>>,
    pub(crate) team: Setting<Option<String>>,
    pub(crate) durability: Setting<Durable>,
    pub(crate) listen: Setting<SocketAddr>,
    /// Whether HTTP clients must show the server's token.
    pub(crate) token: Setting<TokenUse>,
    /// The origins of the web pages that may call the server.
    pub(crate) origins: Setting<Vec<String>>,
    /// Folders with further adapters.
    pub(crate) plugins: Setting<Vec<PathBuf>>,
    /// Where the list of adapters is that `plugin search` reads.
    pub(crate) index: Setting<Option<IndexAt>>,
    /// Keys of publishers whose adapters are not used.
    pub(crate) refused_keys: Setting<Vec<::adapters::PublisherKey>>,
    /// Silence after which an agent counts as away, in milliseconds.
    pub(crate) away_after: Setting<u64>,
    /// How long mail waits at most for the next prompt of a user who stopped a turn, in milliseconds.
    pub(crate) hold_after_stop: Setting<u64>,
    /// How long a question to the user waits before it counts as refused, in milliseconds.
    pub(crate) ask_patience: Setting<u64>,
    /// Whether mail may start a turn in a session that no terminal shows.
    pub(crate) background: Setting<bool>,
    /// Messages in one chain without the user, before waking stops.
    pub(crate) hops: Setting<u32>,
    /// The most wakes of one agent by one other within `window`.
    pub(crate) per_pair: Setting<u32>,
    /// The most wakes of one agent within `window`.
    pub(crate) per_agent: Setting<u32>,
    /// In milliseconds.
    pub(crate) window: Setting<u64>,
    /// Time without a new message after which a chain is over, in milliseconds.
    pub(crate) rest: Setting<u64>,
    /// What happens when a file is written that another agent holds.
    pub(crate) edits: Setting<EditMode>,
    /// Whether writing a file reserves it for the agent that writes.
    pub(crate) auto_reserve: Setting<AutoReserve>,
    /// How long such a reservation lasts.
    pub(crate) auto_reserve_ttl: Setting<Ttl>,
    /// How long settled mail, events, ended sessions and silent agents are kept, in milliseconds.
    pub(crate) keep: Setting<u64>,
    /// After how long unread mail expires, in milliseconds.
    pub(crate) expire_after: Setting<u64>,
    /// Whether ordinary commands start a cleanup once a day.
    pub(crate) auto_cleanup: Setting<AutoCleanup>,
    /// The settings of threads of tools.
    pub(crate) threads: ThreadSettings,
    /// The groups of tools that an MCP client sees.
    pub(crate) tools: Setting<mcp::Profile>,
    /// What the files say that this version does not know, as sentences.
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("could not read `{}`", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("could not write `{}`", path.display())]
    Unwritable { path: PathBuf, source: std::io::Error },
    #[error("`{}`, line {line}: {what}", path.display())]
    Invalid {
        path: PathBuf,
        /// Counted from one.
        line: usize,
        what: String,
    },
    #[error("`{}` sets `{key}`, which a project may not set for the people who work in it", path.display())]
    NotTheProjects {
        path: PathBuf,
        key: &'static str,
        /// The user's own file, for display.
        own_file: String,
    },
    /// It would count as the user's own, and anybody may have filled it.
    #[error("the data folder `{}`, which `{}` names, was not made here", dir.display(), named_by.display())]
    NotMadeHere { dir: PathBuf, named_by: PathBuf },
    #[error("the data folder `{}`, which `{}` names, is in a repository", dir.display(), named_by.display())]
    InARepository { dir: PathBuf, named_by: PathBuf },
    #[error("${name} is `{value}`: {why}")]
    Variable {
        name: &'static str,
        value: String,
        /// What the variable should hold.
        why: String,
    },
    #[error("`--store` names no store")]
    NoStore,
    #[error("`--nats-option`: {0}")]
    NatsOptions(String),
    #[error("`--dir` and `--store` name two folders, and there is one")]
    Flags,
    #[error("there is no home folder to keep the data in")]
    NoHome,
}

impl Explain for ConfigError {
    fn exit(&self) -> Exit {
        match self {
            ConfigError::Unreadable { .. } | ConfigError::Unwritable { .. } => Exit::Failure,
            ConfigError::NotMadeHere { .. } | ConfigError::InARepository { .. } => Exit::Refused,
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
            ConfigError::NotTheProjects { key, own_file, .. } => {
                format!("put `{key}` into your own settings: {own_file}")
            }
            ConfigError::NotMadeHere { .. } => {
                "what is in a data folder counts as yours, and this may have come with the project: if it is yours, run \
                 `relay-mesh store trust`; if not, set RELAY_DIR, or take `dir` out of that file"
                    .to_owned()
            }
            ConfigError::InARepository { .. } => {
                "what is in a data folder counts as yours, and a clone or a pull may bring something into this one: let \
                 `dir` name a folder elsewhere, such as `~/.relay-mesh-NAME`, or set RELAY_DIR yourself"
                    .to_owned()
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

/// The user's own file for display, with `~` for the home folder. It need not exist.
pub(crate) fn own_file(environment: &Environment) -> String {
    let folder = environment.xdg("XDG_CONFIG_HOME", ".config").unwrap_or_else(|| PathBuf::from("~/.config"));
    let (path, home) = (folder.join(USER_FILE), environment.home());
    let below = home.as_deref().and_then(|home| path.strip_prefix(home).ok());
    below.map_or_else(|| path.display().to_string(), |rest| format!("~/{}", rest.display()))
}

/// What this version does not know in a file of settings.
#[cfg(test)]
pub(crate) fn unknown_in(path: &Path) -> Result<Vec<String>, ConfigError> {
    Ok(file::read(path, None)?.map(|found| found.warnings).unwrap_or_default())
}

impl Settings {
    /// Determines every setting for a command line run in `workdir`.
    pub(crate) fn load(flags: Values, environment: &Environment, workdir: &Path) -> Result<Settings, ConfigError> {
        let home = environment.home();
        let mut warnings = Vec::new();
        let mut layers = vec![
            (Origin::Flags, flags.with_home(home.as_deref()).beneath(workdir)),
            (Origin::Environment, values::of_environment(environment)?.with_home(home.as_deref()).beneath(workdir)),
        ];
        if let Some((path, found)) = file::nearest(workdir, PROJECT_FILE, home.as_deref())? {
            found.values.refuse_what_is_the_persons(&path, environment)?;
            warnings.extend(found.warnings);
            layers.push((Origin::Project(path), found.values));
        }
        if let Some(path) = environment.xdg("XDG_CONFIG_HOME", ".config").map(|folder| folder.join(USER_FILE))
            && let Some(found) = file::read(&path, home.as_deref())?
        {
            warnings.extend(found.warnings);
            layers.push((Origin::User(path), found.values));
        }
        let mut settings = Settings::from_layers(&layers, default_dir::default_dir(environment))?;
        settings.threads.name_own_file(own_file(environment));
        Ok(Settings { warnings, ..settings })
    }

    fn from_layers(
        layers: &[(Origin, Values)],
        default_dir: Option<Setting<PathBuf>>,
    ) -> Result<Settings, ConfigError> {
        let limits = Limits::default();
        let nats =
            layers.iter().rev().fold(NatsValues::default(), |weaker, (_, values)| values.nats.clone().or(weaker));
        let wake =
            layers.iter().rev().fold(WakeValues::default(), |weaker, (_, values)| values.wake.clone().or(weaker));
        Ok(Settings {
            warnings: Vec::new(),
            dir: match strongest(layers, |values| values.dir.clone()) {
                Some(found) => found,
                None => default_dir.ok_or(ConfigError::NoHome)?,
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
            threads: ThreadSettings::of(layers.iter().map(|(origin, values)| (origin.clone(), values.threads.clone()))),
            tools: pick(layers, |values| values.tools, mcp::Profile::default()),
            agent: pick(layers, |values| values.agent.clone().map(Some), None),
            team: pick(layers, |values| values.team.clone().map(Some), None),
            durability: pick(layers, |values| values.durability, Durable::Disk),
            listen: pick(layers, |values| values.listen, DEFAULT_LISTEN),
            token: pick(layers, |values| values.token, TokenUse::Required),
            origins: pick(layers, |values| values.origins.clone(), Vec::new()),
            plugins: pick(layers, |values| values.plugins.clone(), Vec::new()),
            index: pick(layers, |values| values.adapters.index.clone().map(Some), None),
            refused_keys: pick(layers, |values| values.adapters.refused_keys.clone(), Vec::new()),
            away_after: pick(layers, |values| values.away_after, limits.away_after),
            hold_after_stop: pick(layers, |values| values.hold_after_stop, limits.after_stop),
            ask_patience: pick(layers, |values| values.ask_patience, limits.ask_patience),
            background: pick(layers, |values| values.background, limits.background),
            hops: pick(layers, |values| values.hops, limits.loops.hops),
            per_pair: pick(layers, |values| values.per_pair, limits.loops.pair),
            per_agent: pick(layers, |values| values.per_agent, limits.loops.agent),
            window: pick(layers, |values| values.window, limits.loops.window),
            rest: pick(layers, |values| values.rest, limits.loops.rest),
            edits: pick(layers, |values| values.edits, EditMode::default()),
            auto_reserve: pick(layers, |values| values.auto_reserve, AutoReserve::Off),
            auto_reserve_ttl: pick(layers, |values| values.auto_reserve_ttl, values::auto_reserve_ttl()),
            keep: pick(layers, |values| values.keep, limits.keep),
            expire_after: pick(layers, |values| values.expire_after, limits.expire_after),
            auto_cleanup: pick(layers, |values| values.auto_cleanup, AutoCleanup::On),
        })
    }

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
            after_stop: self.hold_after_stop.value,
            ask_patience: self.ask_patience.value,
            background: self.background.value,
            keep: self.keep.value,
            expire_after: self.expire_after.value,
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

    /// The store as `files:DIR` or `nats://HOST`, without secrets.
    pub(crate) fn store_shown(&self) -> String {
        match &self.shared.value {
            Shared::InTheFolder => format!("files:{}", self.dir.value.display()),
            Shared::Nats(servers) => servers.to_string(),
        }
    }

    /// Every setting as key, value and origin, spelled as in the settings files.
    pub(crate) fn listed(&self) -> Vec<(Cow<'static, str>, String, Origin)> {
        fn line<T>(
            key: &'static str,
            setting: &Setting<T>,
            say: impl Fn(&T) -> String,
        ) -> (Cow<'static, str>, String, Origin) {
            (key.into(), say(&setting.value), setting.origin.clone())
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
            line("hold-after-stop", &self.hold_after_stop, duration),
            line("ask-patience", &self.ask_patience, duration),
            line("background", &self.background, bool::to_string),
            line("plugins", &self.plugins, |folders| {
                folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(":")
            }),
            line("adapters.index", &self.index, |index| index.as_ref().map_or_else(String::new, IndexAt::to_string)),
            line("adapters.refused-keys", &self.refused_keys, |keys| {
                keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            }),
            line("http.listen", &self.listen, SocketAddr::to_string),
            line("http.token", &self.token, |token| token.as_str().to_owned()),
            line("http.origins", &self.origins, |origins| origins.join(" ")),
            line("loops.hops", &self.hops, u32::to_string),
            line("loops.per-pair", &self.per_pair, u32::to_string),
            line("loops.per-agent", &self.per_agent, u32::to_string),
            line("loops.window", &self.window, duration),
            line("loops.rest", &self.rest, duration),
            line("reservations.mode", &self.edits, |mode| mode.as_str().to_owned()),
            line("reservations.auto-reserve", &self.auto_reserve, |auto| auto.as_str().to_owned()),
            line("reservations.auto-reserve-ttl", &self.auto_reserve_ttl, |ttl| duration(&ttl.milliseconds())),
        ];
        lines.push(line("retention.keep", &self.keep, duration));
        lines.push(line("retention.expire-after", &self.expire_after, duration));
        lines.push(line("retention.automatic", &self.auto_cleanup, |auto| auto.as_str().to_owned()));
        lines.push(line("tools", &self.tools, mcp::Profile::to_string));
        lines.extend(self.threads.listed());
        lines.extend(self.words.iter().map(|(key, word)| line(key, word, String::clone)));
        lines
    }
}

/// Values that are set, each with its strongest origin.
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
