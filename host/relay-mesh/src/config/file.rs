//! Settings files: TOML, with errors that name the line. A key that this version does not know warns and does nothing:
//! a teammate with a newer version may have written it, and what is known must hold all the same.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use mesh::EditMode;
use mesh::names::AgentName;
use mesh::reservations::Ttl;
use serde::{Deserialize, Deserializer};
use toml::de::{DeTable, DeValue};

use super::ConfigError;
use super::adapters::AdapterValues;
use super::nats::NatsValues;
use super::store::{self, Differ, StoreAt};
use super::threads::{CodexValues, RoleValues, ThreadValues};
use super::values::{AutoCleanup, AutoReserve, Durable, TokenUse, Values, team};
use super::wake::{Method, WakeValues};
use crate::duration;

/// Reads the file of that name in a folder or the nearest folder above. Costs one failed open for each folder without
/// one.
pub(super) fn nearest(
    folder: &Path,
    name: &str,
    home: Option<&Path>,
) -> Result<Option<(PathBuf, ParsedFile)>, ConfigError> {
    for folder in folder.ancestors() {
        let path = folder.join(name);
        if let Some(found) = read(&path, home)? {
            return Ok(Some((path, found)));
        }
    }
    Ok(None)
}

/// A settings file, as read.
pub(super) struct ParsedFile {
    pub(super) values: Values,
    /// A sentence for each key that is not known.
    pub(super) warnings: Vec<String>,
}

/// Reads a file; none if it does not exist.
pub(super) fn read(path: &Path, home: Option<&Path>) -> Result<Option<ParsedFile>, ConfigError> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text, path, home).map(Some),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(source) => Err(ConfigError::Unreadable { path: path.to_owned(), source }),
    }
}

/// Parses a file. Relative paths in it start at the file's folder, `~/` at the home folder.
fn parse(text: &str, path: &Path, home: Option<&Path>) -> Result<ParsedFile, ConfigError> {
    let mut unknown = Vec::new();
    let file = known_part(text, |key| unknown.push(key)).map_err(|error| invalid(path, text, &error))?;
    unknown.sort_by_key(|key| key.start);
    let warning = |key: Range<usize>| {
        format!(
            "`{}`, line {}: `{}` is no setting that this version knows; the others hold",
            path.display(),
            line_of(text, key.start),
            text.get(key).unwrap_or_default()
        )
    };
    let warnings = unknown.into_iter().map(warning).collect();
    let line = file.store.as_ref().map_or(0, |store| line_of(text, store.span().start));
    let (dir, shared) = store::together(file.dir, file.store.map(toml::Spanned::into_inner)).map_err(|Differ| {
        ConfigError::Invalid {
            path: path.to_owned(),
            line,
            what: "`store` and `dir` name two folders, and there is one".to_owned(),
        }
    })?;
    let http = file.http.unwrap_or_default();
    let loops = file.loops.unwrap_or_default();
    let reservations = file.reservations.unwrap_or_default();
    let retention = file.retention.unwrap_or_default();
    let values = Values {
        dir,
        shared,
        nats: file.nats.unwrap_or_default(),
        agent: file.agent,
        team: file.team.map(|team| team.0),
        durability: file.durability,
        listen: http.listen,
        token: http.token.map(|on| if on { TokenUse::Required } else { TokenUse::Off }),
        origins: http.origins.map(|pages| pages.into_iter().map(|page| page.0).collect()),
        plugins: file.plugins,
        adapters: file.adapters.unwrap_or_default(),
        away_after: file.away_after.map(|duration| duration.0),
        hold_after_stop: file.hold_after_stop.map(|duration| duration.0),
        ask_patience: file.ask_patience.map(|duration| duration.0),
        background: file.background,
        hops: loops.hops,
        per_pair: loops.per_pair,
        per_agent: loops.per_agent,
        window: loops.window.map(|duration| duration.0),
        rest: loops.rest.map(|duration| duration.0),
        edits: reservations.mode.map(Mode::edits),
        auto_reserve: reservations.auto_reserve.map(|on| if on { AutoReserve::On } else { AutoReserve::Off }),
        auto_reserve_ttl: reservations.auto_reserve_ttl.map(|lease| lease.0),
        keep: retention.keep.map(|duration| duration.0),
        expire_after: retention.expire_after.map(|duration| duration.0),
        auto_cleanup: retention.automatic.map(|on| if on { AutoCleanup::On } else { AutoCleanup::Off }),
        tools: file.tools.map(|tools| tools.0),
        wake: file.wake.unwrap_or_default().values(),
        threads: ThreadValues { codex: file.codex.unwrap_or_default(), roles: file.roles.unwrap_or_default() },
    };
    Ok(ParsedFile { values: values.with_home(home).beneath(path.parent().unwrap_or(path)), warnings })
}

/// Deserialises a file without the keys that are not known, and reports where each of those is.
fn known_part(text: &str, mut unknown: impl FnMut(Range<usize>)) -> Result<File, toml::de::Error> {
    let mut table = DeTable::parse(text)?;
    loop {
        let error = match File::deserialize(toml::Deserializer::from(table.clone())) {
            Ok(file) => return Ok(file),
            Err(error) => error,
        };
        // Serde has no other way to tell an unknown key from a wrong value.
        let key = error.span().filter(|_| error.message().starts_with("unknown field `"));
        match key {
            Some(key) if without(table.get_mut(), &key) => unknown(key),
            Some(_) | None => return Err(error),
        }
    }
}

/// Removes the key at a place of the text; false if there is none.
fn without(table: &mut DeTable<'_>, place: &Range<usize>) -> bool {
    let found = table.keys().find(|key| key.span() == *place).cloned();
    match found {
        Some(key) => table.remove(&key).is_some(),
        None => table.iter_mut().any(|(_, value)| match value.get_mut() {
            DeValue::Table(inner) => without(inner, place),
            _ => false,
        }),
    }
}

pub(super) fn invalid(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    ConfigError::Invalid {
        path: path.to_owned(),
        line: line_of(text, error.span().map_or(0, |span| span.start)),
        what: in_plain_words(error.message().lines().next().unwrap_or_default()),
    }
}

/// Replaces the names of Rust's number types, which mean nothing to the user.
fn in_plain_words(said: &str) -> String {
    ["usize", "u64", "u32"].iter().fold(said.to_owned(), |said, number| {
        said.replace(&format!("expected {number}"), "expected a whole number that is not negative")
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    dir: Option<PathBuf>,
    store: Option<toml::Spanned<StoreAt>>,
    nats: Option<NatsValues>,
    agent: Option<AgentName>,
    team: Option<Team>,
    durability: Option<Durable>,
    away_after: Option<Duration>,
    hold_after_stop: Option<Duration>,
    ask_patience: Option<Duration>,
    background: Option<bool>,
    plugins: Option<Vec<PathBuf>>,
    adapters: Option<AdapterValues>,
    http: Option<Http>,
    loops: Option<Loops>,
    reservations: Option<Reservations>,
    retention: Option<Retention>,
    tools: Option<Tools>,
    wake: Option<Wake>,
    codex: Option<CodexValues>,
    roles: Option<BTreeMap<String, RoleValues>>,
    /// The repository's name on every machine. `git_checkout` reads it separately, for the repository that a command is
    /// about.
    #[serde(rename = "repository")]
    _repository: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Http {
    listen: Option<SocketAddr>,
    token: Option<bool>,
    origins: Option<Vec<PageOrigin>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Loops {
    hops: Option<u32>,
    per_pair: Option<u32>,
    per_agent: Option<u32>,
    window: Option<Duration>,
    rest: Option<Duration>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Reservations {
    mode: Option<Mode>,
    #[serde(alias = "auto-claim")]
    auto_reserve: Option<bool>,
    #[serde(alias = "auto-claim-ttl")]
    auto_reserve_ttl: Option<ReservationTtl>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Retention {
    keep: Option<Duration>,
    expire_after: Option<Duration>,
    automatic: Option<bool>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Advise,
    Enforce,
}

impl Mode {
    fn edits(self) -> EditMode {
        match self {
            Mode::Advise => EditMode::Advise,
            Mode::Enforce => EditMode::Enforce,
        }
    }
}

struct ReservationTtl(Ttl);

impl<'de> Deserialize<'de> for ReservationTtl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReservationTtl, D::Error> {
        let Duration(milliseconds) = Duration::deserialize(deserializer)?;
        Ttl::new(milliseconds).map(ReservationTtl).map_err(serde::de::Error::custom)
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Wake {
    methods: Option<Vec<Method>>,
    gateway: Option<Words>,
    socket: Option<PathBuf>,
    file: Option<PathBuf>,
    timeout: Option<Duration>,
    run: Option<Words>,
}

impl Wake {
    fn values(self) -> WakeValues {
        WakeValues {
            methods: self.methods,
            gateway: self.gateway.map(|words| words.0),
            socket: self.socket,
            file: self.file,
            timeout: self.timeout.map(|duration| duration.0),
            run: self.run.map(|words| words.0),
        }
    }
}

struct Words(Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Words, D::Error> {
        let words = Vec::<String>::deserialize(deserializer)?;
        match words.first() {
            Some(program) if !program.is_empty() => Ok(Words(words)),
            Some(_) | None => {
                Err(serde::de::Error::custom("a program is a list of words, of which the first names it"))
            }
        }
    }
}

struct Tools(mcp::Profile);

impl<'de> Deserialize<'de> for Tools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tools, D::Error> {
        String::deserialize(deserializer)?.parse().map(Tools).map_err(serde::de::Error::custom)
    }
}

/// Where a web page comes from, spelled as browsers send it.
struct PageOrigin(String);

impl<'de> Deserialize<'de> for PageOrigin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PageOrigin, D::Error> {
        let text = String::deserialize(deserializer)?;
        let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let is_spelled_so = |host: &str| {
            !host.is_empty()
                && host
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase() && !b"/*?#@,".contains(&byte))
        };
        if host.is_some_and(is_spelled_so) {
            return Ok(PageOrigin(text));
        }
        let what = format!("`{text}` is not where a web page comes from: write it as in `http://localhost:6274`");
        Err(serde::de::Error::custom(what))
    }
}

struct Team(String);

impl<'de> Deserialize<'de> for Team {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Team, D::Error> {
        team(&String::deserialize(deserializer)?).map(Team).map_err(serde::de::Error::custom)
    }
}

/// In milliseconds; written as `10m` or `1h 30m`, or as a number of seconds.
pub(super) struct Duration(pub(super) u64);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a length of time: write it as in `10m` or `1h 30m`")]
enum Written {
    Seconds(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = match Written::deserialize(deserializer)? {
            Written::Seconds(seconds) => seconds.to_string(),
            Written::Text(text) => text,
        };
        let milliseconds = duration::typed(&text).and_then(|duration| u64::try_from(duration.as_millis()).ok());
        milliseconds.map(Duration).ok_or_else(|| {
            serde::de::Error::custom(format!("`{text}` is not a length of time: write it as in `10m` or `1h 30m`"))
        })
    }
}
