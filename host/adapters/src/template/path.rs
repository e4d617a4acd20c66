//! Paths with variables, and paths that a guest names under a root.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::{FillError, InvalidTemplate, unfit};

/// What paths are filled from.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The person's home.
    pub home: Option<PathBuf>,
    /// The project that a command concerns.
    pub project: Option<PathBuf>,
    /// Variables of this process.
    pub environment: BTreeMap<String, String>,
}

/// Checks a path with variables, without filling it.
pub fn check_path(template: &str) -> Result<(), InvalidTemplate> {
    let everywhere = Surroundings {
        home: Some(PathBuf::from("/home")),
        project: Some(PathBuf::from("/project")),
        environment: BTreeMap::new(),
    };
    match fill_path(template, &everywhere) {
        Ok(_) | Err(FillError::Unset(_)) => Ok(()),
        Err(FillError::Relative(_)) => Err(InvalidTemplate::Relative(template.to_owned())),
        Err(FillError::Count { .. } | FillError::Unfit { .. }) => Err(InvalidTemplate::Unclosed(template.to_owned())),
    }
}

/// Fills `${NAME}`, `${NAME:-default}`, `${project}` and a leading `~`.
pub fn fill_path(template: &str, from: &Surroundings) -> Result<PathBuf, FillError> {
    let mut text = String::new();
    let mut rest = template;
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
            name => from.environment.get(name).filter(|value| !value.is_empty()).cloned(),
        };
        match (value, default) {
            (Some(value), _) => text.push_str(&value),
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
        Some(_) | None => PathBuf::from(&text),
    };
    if path.is_absolute() { Ok(path) } else { Err(FillError::Relative(text)) }
}

/// Checks a path that a guest names under a root: relative, of plain names, in no way leading out.
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
            project: None,
            environment: [("X_HOME".to_owned(), "/opt/x".to_owned()), ("EMPTY".to_owned(), String::new())].into(),
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
        check_fill("~root/a", "`~root/a` is not an absolute path");
        check_fill("a/b", "`a/b` is not an absolute path");
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
