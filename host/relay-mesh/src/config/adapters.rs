//! The settings of adapters that come from elsewhere: `[adapters]`. They are the user's alone.

use std::path::PathBuf;
use std::str::FromStr;

use adapters::PublisherKey;
use serde::{Deserialize, Deserializer};

/// What one origin says of adapters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct AdapterValues {
    pub(crate) index: Option<IndexAt>,
    pub(crate) refused_keys: Option<Vec<PublisherKey>>,
}

/// Where a list of adapters is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexAt {
    /// `https`, or `http` on this machine.
    Url(url::Url),
    File(PathBuf),
}

impl FromStr for IndexAt {
    type Err = String;

    fn from_str(text: &str) -> Result<IndexAt, String> {
        if text.contains("://") {
            let url = url::Url::parse(text).map_err(|error| format!("`{text}` is no URL: {error}"))?;
            let is_safe = url.scheme() == "https" || (url.scheme() == "http" && fetch::is_loopback(&url));
            return if is_safe { Ok(IndexAt::Url(url)) } else { Err(format!("`{text}` is not https")) };
        }
        if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(IndexAt::File(PathBuf::from(text))) }
    }
}

impl<'de> Deserialize<'de> for IndexAt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<IndexAt, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl std::fmt::Display for IndexAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IndexAt::Url(url) => url.fmt(f),
            IndexAt::File(path) => path.display().fmt(f),
        }
    }
}

impl AdapterValues {
    /// The same with another path of each file.
    #[must_use]
    pub(super) fn with_paths(self, change: impl Fn(PathBuf) -> PathBuf) -> AdapterValues {
        let index = self.index.map(|index| match index {
            IndexAt::File(path) => IndexAt::File(change(path)),
            url @ IndexAt::Url(_) => url,
        });
        AdapterValues { index, ..self }
    }

    /// What a project may not set.
    pub(super) fn not_the_projects(&self) -> Option<&'static str> {
        (*self != AdapterValues::default()).then_some("adapters")
    }
}
