//! `relay-mesh config`.

use std::borrow::Cow;

use serde::Serialize;

use crate::config::Settings;
use crate::render::{Show, table};

/// One setting.
#[derive(Debug, Serialize)]
pub(crate) struct SettingShape {
    /// The key with its table, as in the settings files: `http.listen`.
    pub(crate) key: Cow<'static, str>,
    /// The value; empty if unset.
    pub(crate) value: String,
    /// `command line`, `environment`, the path of a file, or `default`.
    pub(crate) origin: String,
}

/// `relay-mesh config`.
#[derive(Debug, Serialize)]
pub(crate) struct ConfigShape {
    pub(crate) settings: Vec<SettingShape>,
}

impl From<&Settings> for ConfigShape {
    fn from(settings: &Settings) -> ConfigShape {
        let settings = settings
            .listed()
            .into_iter()
            .map(|(key, value, origin)| SettingShape { key, value, origin: origin.to_string() })
            .collect();
        ConfigShape { settings }
    }
}

impl Show for ConfigShape {
    fn text(&self) -> String {
        let row = |setting: &SettingShape| vec![setting.key.to_string(), setting.value.clone(), setting.origin.clone()];
        table(&["SETTING", "VALUE", "FROM"], &self.settings.iter().map(row).collect::<Vec<_>>())
    }
}
