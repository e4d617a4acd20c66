//! Paths with variables, and paths that a guest names under a root.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::{FillError, InvalidTemplate, unfit};

/// Home, project and variables, which fill paths.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The project of the command.
    pub project: Option<PathBuf>,
    /// Finds the main worktree of a folder's repository, for `${main-worktree}`. Without it, and without a repository,
    /// that is the project.
    pub main_worktree: Option<fn(&Path) -> Option<PathBuf>>,
    /// Variables of this process.
    pub environment: BTreeMap<String, String>,
    /// A folder that replaces `/` in absolute paths of manifests. Only the conformance kit sets it, so that its results
    /// do not depend on the machine.
    pub in_place_of_root: Option<PathBuf>,
    /// Folders of our own, in which no adapter reads or changes a file: the data folder, the cache, the settings.
    pub private: Vec<PathBuf>,
    /// How this relay-mesh is started by what it starts itself.
    pub own: OwnInstallation,
}

impl Surroundings {
    /// The top folder of the main worktree of the project's repository.
    fn main_worktree(&self) -> Option<PathBuf> {
        let project = self.project.as_ref()?;
        Some(self.main_worktree.and_then(|find| find(project)).unwrap_or_else(|| project.clone()))
    }
}

/// How this very relay-mesh is started, by a harness that it has started for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnInstallation {
    /// The program and its first arguments.
    pub program: Vec<String>,
    /// Variables that it needs, such as the data folder.
    pub environment: Vec<(String, String)>,
}

impl Default for OwnInstallation {
    /// The program of this name in `PATH`.
    fn default() -> OwnInstallation {
        OwnInstallation { program: vec!["relay-mesh".to_owned()], environment: Vec::new() }
    }
}

/// Checks a path with variables, without filling it.
pub fn check_path(template: &str) -> Result<(), InvalidTemplate> {
    let everywhere = Surroundings {
        home: Some(PathBuf::from("/home")),
        project: Some(PathBuf::from("/project")),
        ..Surroundings::default()
    };
    // `..` is refused beside and within variables, whatever they contain and whether or not they are set.
    let text = template.replace(['{', '}', '-'], "/");
    if Path::new(&text).components().any(|part| part == Component::ParentDir) {
        return Err(InvalidTemplate::Advances(template.to_owned()));
    }
    match fill_path(template, &everywhere) {
        Ok(path) if path == Path::new("/") => Err(InvalidTemplate::Everything(template.to_owned())),
        Ok(_) | Err(FillError::Unset(_)) => Ok(()),
        Err(FillError::Relative(_)) => Err(InvalidTemplate::Relative(template.to_owned())),
        Err(FillError::Count { .. } | FillError::Unfit { .. }) => Err(InvalidTemplate::Unclosed(template.to_owned())),
    }
}

/// Fills `${NAME}`, `${NAME:-default}`, `${project}`, `${main-worktree}` and a leading `~`. A path that begins with `/` is under
/// `in_place_of_root`, if that is set.
pub fn fill_path(template: &str, from: &Surroundings) -> Result<PathBuf, FillError> {
    let mut text = String::new();
    let mut rest = template;
    // Whether the beginning of the path is the manifest's own text, and not from a variable.
    let mut own = true;
    while let Some((before, after)) = rest.split_once("${") {
        text.push_str(before);
        let Some((variable, remainder)) = after.split_once('}') else {
            return Err(unfit(template, template, "it opens a variable and does not close it"));
        };
        let (name, default) = match variable.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (variable, None),
        };
        let value = match name {
            "project" => from.project.as_ref().map(|path| path.to_string_lossy().into_owned()),
            "main-worktree" => from.main_worktree().map(|path| path.to_string_lossy().into_owned()),
            name => from.environment.get(name).filter(|value| !value.is_empty()).cloned(),
        };
        match (value, default) {
            (Some(value), _) => {
                own &= !text.is_empty();
                text.push_str(&value);
            }
            (None, Some(default)) => text.push_str(default),
            (None, None) => return Err(FillError::Unset(name.to_owned())),
        }
        rest = remainder;
    }
    text.push_str(rest);
    let path = match text.strip_prefix('~') {
        Some(under) if under.is_empty() || under.starts_with('/') => {
            let home = from.home.as_ref().ok_or_else(|| FillError::Unset("HOME".to_owned()))?;
            home.join(under.trim_start_matches('/'))
        }
        Some(_) | None => match &from.in_place_of_root {
            Some(folder) if own && text.starts_with('/') => folder.join(text.trim_start_matches('/')),
            Some(_) | None => PathBuf::from(&text),
        },
    };
    if path.is_absolute() { Ok(path) } else { Err(FillError::Relative(text)) }
}

/// Checks a path that a guest names under a root: relative, of plain names, never leading out.
pub fn is_inside(path: &str) -> bool {
    !path.contains('\0')
        && !path.contains('\\')
        && Path::new(path).components().all(|part| match part {
            Component::Normal(_) | Component::CurDir => true,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings() -> Surroundings {
        Surroundings {
            home: Some("/home/ann".into()),
            environment: [("X_HOME".to_owned(), "/opt/x".to_owned()), ("EMPTY".to_owned(), String::new())].into(),
            ..Surroundings::default()
        }
    }

    fn check_fill(template: &str, expected: &str) {
        let outcome = match fill_path(template, &surroundings()) {
            Ok(path) => path.display().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(outcome, expected, "{template}");
    }

    #[test]
    fn paths_are_filled_from_home_and_environment() {
        check_fill("~/.claude", "/home/ann/.claude");
        check_fill("${X_HOME:-~/.x}/app.sock", "/opt/x/app.sock");
        check_fill("${NOPE:-~/.x}/app.sock", "/home/ann/.x/app.sock");
        check_fill("${EMPTY:-~/.x}", "/home/ann/.x");
        check_fill("${NOPE}/a", "`NOPE` has no value here");
        check_fill("${project}", "`project` has no value here");
        check_fill("${main-worktree}", "`main-worktree` has no value here");
        check_fill("~root/a", "`~root/a` is not an absolute path");
        check_fill("a/b", "`a/b` is not an absolute path");
    }

    #[test]
    fn the_main_worktree_is_the_project_where_there_is_no_repository() {
        let fill = |find: Option<fn(&Path) -> Option<PathBuf>>| {
            let within = Surroundings { project: Some("/w/linked".into()), main_worktree: find, ..surroundings() };
            fill_path("${main-worktree}/.x", &within).expect("it is filled").display().to_string()
        };
        assert_eq!(fill(None), "/w/linked/.x");
        assert_eq!(fill(Some(|_| None)), "/w/linked/.x");
        assert_eq!(fill(Some(|_| Some("/w/main".into()))), "/w/main/.x");
    }

    #[test]
    fn another_folder_may_stand_in_for_the_root() {
        let within = Surroundings { in_place_of_root: Some("/scratch".into()), ..surroundings() };
        let fill = |template: &str| fill_path(template, &within).expect("it is filled").display().to_string();
        assert_eq!(fill("/etc/x"), "/scratch/etc/x");
        assert_eq!(fill("${NOPE:-/etc/x}"), "/scratch/etc/x");
        assert_eq!(fill("${X_HOME}/a"), "/opt/x/a", "what a variable names is meant as it stands");
    }

    #[test]
    fn a_manifests_path_says_what_it_means() {
        for (template, expected) in [
            ("~/.x", "fits"),
            ("/etc/x", "fits"),
            ("${project}", "fits"),
            ("${X_HOME}/../../etc", "`${X_HOME}/../../etc` advances by `..`"),
            ("${X_HOME:-~/.x}/../../etc", "`${X_HOME:-~/.x}/../../etc` advances by `..`"),
            ("${X_HOME:-~/../ben}", "`${X_HOME:-~/../ben}` advances by `..`"),
            ("~/..", "`~/..` advances by `..`"),
            ("/", "`/` is the whole file system"),
            ("${X_HOME:-/}", "`${X_HOME:-/}` is the whole file system"),
            ("//", "`//` is the whole file system"),
            ("~ben/.x", "`~ben/.x` is not an absolute path"),
            (".x", "`.x` is not an absolute path"),
            ("${X_HOME", "`${X_HOME` opens a variable or a blank and does not close it"),
        ] {
            let outcome = check_path(template).map_or_else(|error| error.to_string(), |()| "fits".to_owned());
            assert_eq!(outcome, expected, "{template}");
        }
    }

    #[test]
    fn a_guests_path_stays_inside() {
        for path in ["a", "a/b.json", "", ".", "./a"] {
            assert!(is_inside(path), "{path}");
        }
        for path in ["..", "a/../../b", "/etc/passwd", "a\\..\\b", "a\0"] {
            assert!(!is_inside(path), "{path}");
        }
    }
}
