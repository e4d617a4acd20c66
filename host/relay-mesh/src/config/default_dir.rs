//! The data folder if nobody names one: `~/.relay-mesh` for those who have it, else where XDG says that data is kept.
//! Data and state are in one folder, because each refers to the other and one lock guards both.

use std::path::PathBuf;

use super::{Origin, Setting};
use crate::environment::Environment;

/// The data folder, relative to the home folder.
const IN_HOME: &str = ".relay-mesh";
/// The data folder, relative to a folder that XDG names.
const IN_XDG: &str = "relay-mesh";
/// The variables that say where a user keeps data, the strongest first.
const VARIABLES: [&str; 2] = ["XDG_DATA_HOME", "XDG_STATE_HOME"];

/// The default data folder; none if there is no home folder either.
pub(crate) fn default_dir(environment: &Environment) -> Option<Setting<PathBuf>> {
    let in_home = in_home(environment);
    let mut in_xdg = in_xdg(environment);
    // Among several, the one that is used already: a variable that is set later moves no mesh.
    let used = in_xdg.iter().position(|folder| folder.exists()).unwrap_or(0);
    match in_home {
        Some(folder) if folder.exists() || in_xdg.is_empty() => {
            Some(Setting { value: folder, origin: Origin::Default })
        }
        Some(_) | None if in_xdg.is_empty() => None,
        Some(_) | None => Some(Setting { value: in_xdg.swap_remove(used), origin: Origin::Environment }),
    }
}

/// The default data folders that are there and hold no mesh that is used, beside the one that is.
pub(crate) fn unused(environment: &Environment, used: &Setting<PathBuf>) -> Vec<PathBuf> {
    let all = in_home(environment).into_iter().chain(in_xdg(environment));
    let is_default = all.clone().any(|folder| folder == used.value);
    all.filter(|folder| is_default && *folder != used.value && folder.is_dir()).collect()
}

fn in_home(environment: &Environment) -> Option<PathBuf> {
    environment.home().map(|home| home.join(IN_HOME))
}

fn in_xdg(environment: &Environment) -> Vec<PathBuf> {
    let named = VARIABLES.iter().filter_map(|name| environment.get(name)).map(PathBuf::from);
    named.filter(|folder| folder.is_absolute()).map(|folder| folder.join(IN_XDG)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folder that is used if these variables are set and these folders are there, relative to the home folder, and
    /// those that are not used.
    fn check(set: [Option<&str>; 2], there: &[&str], expected: &str, beside: &[&str]) {
        let home = tempfile::tempdir().expect("a folder");
        for folder in there {
            std::fs::create_dir_all(home.path().join(folder)).expect("made");
        }
        let path = |text: &str| home.path().join(text).display().to_string();
        let values = set.map(|value| value.map_or_else(String::new, path));
        let environment = Environment::from([
            ("HOME", home.path().to_str().expect("text")),
            (VARIABLES[0], values[0].as_str()),
            (VARIABLES[1], values[1].as_str()),
        ]);
        let found = default_dir(&environment).expect("a folder");
        assert_eq!(found.value, home.path().join(expected), "{set:?} {there:?}");
        let unused = unused(&environment, &found);
        assert_eq!(
            unused,
            beside.iter().map(|folder| home.path().join(folder)).collect::<Vec<_>>(),
            "{set:?} {there:?}"
        );
    }

    #[test]
    fn the_data_folder_is_where_xdg_says_unless_the_user_has_one_in_their_home() {
        check([None, None], &[], ".relay-mesh", &[]);
        check([None, None], &[".relay-mesh"], ".relay-mesh", &[]);
        check([Some("data"), None], &[], "data/relay-mesh", &[]);
        check([None, Some("state")], &[], "state/relay-mesh", &[]);
        check([Some("data"), Some("state")], &[], "data/relay-mesh", &[]);
        check([Some("data"), Some("state")], &["state/relay-mesh"], "state/relay-mesh", &[]);
        check([Some("data"), None], &[".relay-mesh"], ".relay-mesh", &[]);
        check([Some("data"), None], &[".relay-mesh", "data/relay-mesh"], ".relay-mesh", &["data/relay-mesh"]);
        check([Some("data"), None], &["data/relay-mesh"], "data/relay-mesh", &[]);
    }

    #[test]
    fn a_folder_that_is_no_absolute_path_is_none_of_xdgs() {
        let environment = Environment::from([("HOME", "/home/u"), ("XDG_DATA_HOME", "data")]);
        assert_eq!(default_dir(&environment).expect("a folder").value, PathBuf::from("/home/u/.relay-mesh"));
    }
}
