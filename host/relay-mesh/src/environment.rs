//! The environment variables of this process, read once and only here.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Variables whose name or value is not UTF-8 are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment(BTreeMap<String, String>);

impl Environment {
    pub(crate) fn of_this_process() -> Environment {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Environment(std::env::vars_os().filter_map(text).collect())
    }

    /// An empty variable counts as unset.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All variables. An adapter sees only those that its manifest requests.
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The variables about the user and the machine, and none of the session in which this process happened to be
    /// started.
    pub(crate) fn of_the_person(&self) -> BTreeMap<String, String> {
        let personal = |name: &str| PERSONAL.contains(&name) || name.starts_with("LC_") || name.starts_with("XDG_");
        self.0.iter().filter(|(name, _)| personal(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from).or_else(std::env::home_dir)
    }

    /// A folder by the XDG convention: the variable if it holds an absolute path, else a folder below the home folder.
    pub(crate) fn xdg(&self, variable: &str, beneath_home: &str) -> Option<PathBuf> {
        let named = self.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        named.or_else(|| self.home().map(|home| home.join(beneath_home)))
    }
}

/// Variables that are the same in every shell of a user.
const PERSONAL: [&str; 10] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
];

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Environment {
        Environment(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}
