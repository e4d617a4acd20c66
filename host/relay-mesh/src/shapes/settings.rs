//! `relay-mesh config`, and `relay-mesh store trust`.

use std::borrow::Cow;

use serde::Serialize;

use crate::config::Settings;
use crate::render::{Show, printable_line, table};

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

/// `relay-mesh store trust`.
#[derive(Debug, Serialize)]
pub(crate) struct TrustShape {
    pub(crate) dir: String,
    /// Whether it was not its user's before.
    pub(crate) is_new: bool,
}

impl Show for TrustShape {
    fn text(&self) -> String {
        let dir = printable_line(&self.dir);
        if self.is_new { format!("{dir} is yours from now on") } else { format!("{dir} was yours before") }
    }
}
