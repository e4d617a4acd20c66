//! A store as one word with its kind: `files:DIR` names the same data folder as `dir`; `nats://HOST` stores shared data
//! on servers and the machine's own data in the data folder.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use super::ConfigError;

/// A store's kind and location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreAt {
    Files(PathBuf),
    /// NATS servers; reaching one is enough.
    Nats(Servers),
}

/// Addresses of NATS servers. `Display` and `Debug` hide passwords in them.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Servers(Vec<String>);

impl Servers {
    /// The addresses, including any secrets in them.
    pub(crate) fn addresses(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, address) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match address.split_once("://").map(|(scheme, rest)| (scheme, rest.rsplit_once('@'))) {
                Some((scheme, Some((_, host)))) => write!(f, "{comma}{scheme}://…@{host}")?,
                Some((_, None)) | None => write!(f, "{comma}{address}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Servers({self})")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a store: write `files:DIR`, as in `files:/srv/mesh`, or `nats://HOST:4222`")]
pub(crate) struct InvalidStore(pub(crate) String);

impl FromStr for StoreAt {
    type Err = InvalidStore;

    fn from_str(text: &str) -> Result<StoreAt, InvalidStore> {
        if let Some(folder) = text.strip_prefix("files:").filter(|folder| !folder.is_empty()) {
            return Ok(StoreAt::Files(PathBuf::from(folder)));
        }
        let is_server = |address: &str| {
            ["nats://", "tls://"]
                .iter()
                .find_map(|scheme| address.strip_prefix(scheme))
                .is_some_and(|host| !host.is_empty() && !host.contains(['/', ' ']) && has_a_port_or_none(host))
        };
        let servers: Vec<String> = text.split(',').map(|address| address.trim().to_owned()).collect();
        if servers.iter().all(|address| is_server(address)) {
            Ok(StoreAt::Nats(Servers(servers)))
        } else {
            Err(InvalidStore(text.to_owned()))
        }
    }
}

/// Whether the text after the last colon is a port, or there is none. Colons in a bracketed address do not count.
fn has_a_port_or_none(host: &str) -> bool {
    let (_, host) = host.rsplit_once('@').unwrap_or(("", host));
    match host.rsplit_once(':') {
        Some((_, rest)) if rest.ends_with(']') => true,
        Some((_, port)) => port.parse::<u16>().is_ok_and(|port| port > 0),
        None => true,
    }
}

impl StoreAt {
    /// Merges `--dir` and `--store`.
    pub(crate) fn with_dir(
        dir: Option<PathBuf>,
        store: Option<StoreAt>,
    ) -> Result<(Option<PathBuf>, Option<Shared>), ConfigError> {
        together(dir, store).map_err(|Differ| ConfigError::Flags)
    }
}

impl<'de> Deserialize<'de> for StoreAt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StoreAt, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Merges `dir` and `store` of one origin into the data folder and the place of shared data.
pub(super) fn together(
    dir: Option<PathBuf>,
    store: Option<StoreAt>,
) -> Result<(Option<PathBuf>, Option<Shared>), Differ> {
    match (dir, store) {
        (Some(dir), Some(StoreAt::Files(folder))) if dir != folder => Err(Differ),
        (_, Some(StoreAt::Files(folder))) => Ok((Some(folder), Some(Shared::InTheFolder))),
        (dir, Some(StoreAt::Nats(servers))) => Ok((dir, Some(Shared::Nats(servers)))),
        (dir, None) => Ok((dir, None)),
    }
}

/// Where the data shared by all machines of a mesh is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    /// In the data folder: the mesh has one machine.
    InTheFolder,
    Nats(Servers),
}

impl Shared {
    pub(crate) fn on(address: &str) -> Shared {
        Shared::Nats(Servers(vec![address.to_owned()]))
    }
}

/// `dir` and `store` of one origin name different folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Differ;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_a_folder_of_files_or_some_servers() {
        let refused = |text: &str| {
            format!("`{text}` is not a store: write `files:DIR`, as in `files:/srv/mesh`, or `nats://HOST:4222`")
        };
        for (text, expected) in [
            ("files:/srv/mesh", "/srv/mesh".to_owned()),
            ("files:data", "data".to_owned()),
            ("files:a:b", "a:b".to_owned()),
            ("nats://here:4222", "nats://here:4222".to_owned()),
            ("nats://one, tls://two:4443", "nats://one,tls://two:4443".to_owned()),
            ("nats://user:secret@here", "nats://…@here".to_owned()),
            ("files:", refused("files:")),
            ("/srv/mesh", refused("/srv/mesh")),
            ("redis://here", refused("redis://here")),
            ("nats://", refused("nats://")),
            ("nats://one,two", refused("nats://one,two")),
            ("nats://one/two", refused("nats://one/two")),
            ("nats://[::1]:4222", "nats://[::1]:4222".to_owned()),
            ("nats://[::1]", "nats://[::1]".to_owned()),
            ("nats://one:99999", refused("nats://one:99999")),
            ("nats://one:port", refused("nats://one:port")),
        ] {
            let outcome = match text.parse::<StoreAt>() {
                Ok(StoreAt::Files(folder)) => folder.display().to_string(),
                Ok(StoreAt::Nats(servers)) => servers.to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(outcome, expected);
        }
    }

    #[test]
    fn two_folders_from_one_place_are_none() {
        let dir = || Some(PathBuf::from("/d"));
        let files = |folder: &str| Some(StoreAt::Files(PathBuf::from(folder)));
        let servers = || "nats://here".parse::<StoreAt>().ok();
        assert_eq!(together(None, None), Ok((None, None)));
        assert_eq!(together(dir(), None), Ok((dir(), None)));
        assert_eq!(together(None, files("/d")), Ok((dir(), Some(Shared::InTheFolder))));
        assert_eq!(together(dir(), files("/d")), Ok((dir(), Some(Shared::InTheFolder))));
        assert_eq!(together(dir(), files("/s")), Err(Differ));
        let on_servers = together(dir(), servers());
        assert!(matches!(on_servers, Ok((Some(_), Some(Shared::Nats(_))))), "{on_servers:?}");
    }
}
