//! Folders that no adapter may have, whatever its manifest requests and the user grants: our own files, the system's, a
//! whole home, somebody else's, and another harness's settings unless the root is named after that harness.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::manifest::Manifest;
use crate::sources::BUILT_IN;
use crate::template::{Surroundings, fill_path};

/// Trees of the system's, which hold the secrets of every process or are no files at all.
const SYSTEM: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/boot", "/var/run"];
/// Folders in which everybody's settings are: a folder in them may be requested, the whole may not.
const SHARED: [&str; 11] =
    ["/", "/etc", "/home", "/Users", "/root", "/var", "/usr", "/opt", "/srv", "/tmp", "/var/lib"];
/// Where homes are.
const HOMES: [&str; 2] = ["/home", "/Users"];

/// Whose adapter asks for a folder.
#[derive(Clone, Debug)]
pub(crate) enum Asker {
    /// One that is part of the program, which was reviewed with its manifest.
    BuiltIn,
    /// Another one, of this name.
    Stranger(String),
}

/// Why an adapter may not have a folder, as the end of a sentence that begins with it.
pub(crate) fn objection(asker: &Asker, root: &str, place: &Path, surroundings: &Surroundings) -> Option<String> {
    // A folder that is not there yet is judged by the part that is.
    let place = real(place);
    if let Some(folder) = Private::of(surroundings).holder(&place) {
        return Some(format!("it is in `{}`, where relay-mesh keeps mail and keys", folder.display()));
    }
    let Asker::Stranger(name) = asker else { return None };
    if SYSTEM.iter().any(|tree| place.starts_with(tree)) {
        return Some("it is the system's".to_owned());
    }
    if SHARED.iter().any(|shared| place == Path::new(shared))
        && surroundings.home.as_deref().map(real) != Some(place.clone())
    {
        return Some("it holds the files of everybody".to_owned());
    }
    if place.starts_with("/etc") && !place.starts_with(Path::new("/etc").join(name)) {
        return Some(format!("it is the system's; only `/etc/{name}` may be requested there"));
    }
    if let Some(home) = surroundings.home.as_deref().map(real) {
        if home.starts_with(&place) {
            return Some("it is your whole home, or holds it".to_owned());
        }
        if !place.starts_with(&home) && is_foreign_home(&place, &home) {
            return Some("it is somebody else's home".to_owned());
        }
    }
    let theirs = others_settings(name, surroundings).find(|(_, settings)| place.starts_with(settings));
    match theirs {
        Some((owner, _)) if owner != root => Some(format!(
            "it holds the settings of `{owner}`; a root for these is named `{owner}`, so that the user sees whose they are"
        )),
        Some(_) | None => None,
    }
}

/// Our own folders. A run's worktree is in the data folder, and is a project like any other.
#[derive(Clone, Debug)]
pub(crate) struct Private {
    folders: Vec<PathBuf>,
    project: Option<PathBuf>,
}

impl Private {
    pub(crate) fn of(surroundings: &Surroundings) -> Private {
        let folders: Vec<PathBuf> = surroundings.private.iter().map(|path| real(path)).collect();
        let project = surroundings.project.as_deref().map(real);
        let project = project.filter(|project| folders.iter().any(|own| project.starts_with(own) && project != own));
        Private { folders, project }
    }

    /// Whether a file that was reached through a root is one of our own: a project may contain the data folder, and
    /// links may lead there.
    pub(crate) fn holds(&self, place: &Path) -> bool {
        !self.folders.is_empty() && self.holder(&real(place)).is_some()
    }

    fn holder(&self, place: &Path) -> Option<&PathBuf> {
        let is_project = self.project.as_ref().is_some_and(|project| place.starts_with(project));
        self.folders.iter().find(|own| place.starts_with(own)).filter(|_| !is_project)
    }
}

fn is_foreign_home(place: &Path, own: &Path) -> bool {
    let owner = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.uid());
    if place.starts_with("/root") {
        return !own.starts_with("/root");
    }
    let mut homes = HOMES.iter().filter_map(|homes| place.strip_prefix(homes).ok().map(|rest| (homes, rest)));
    homes.any(|(homes, rest)| {
        let Some(first) = rest.components().next() else { return true };
        let home = Path::new(homes).join(first);
        owner(&home) != owner(own) || owner(&home).is_none()
    })
}

/// The settings of the harnesses whose adapters are built in, each with the harness's name.
fn others_settings(own: &str, surroundings: &Surroundings) -> impl Iterator<Item = (&'static str, PathBuf)> {
    let others = roots_of_built_in().iter().filter(move |(name, _)| *name != own);
    others.filter_map(|(name, path)| Some((*name, real(&fill_path(path, surroundings).ok()?))))
}

/// The paths of their roots, but for projects. Parsed once in a process: each folder that is opened is compared.
fn roots_of_built_in() -> &'static [(&'static str, String)] {
    static ROOTS: OnceLock<Vec<(&'static str, String)>> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let roots = BUILT_IN.iter().flat_map(|one| {
            let roots = Manifest::parse(one.manifest).map(|manifest| manifest.asks.roots).unwrap_or_default();
            roots.into_values().map(|root| (one.name, root.path))
        });
        let of_project = |path: &str| path.contains("${project}") || path.contains("${main-worktree}");
        roots.filter(|(_, path)| !of_project(path)).collect()
    })
}

/// A path with links followed, as far as it exists.
fn real(path: &Path) -> PathBuf {
    for existing in path.ancestors() {
        if let Ok(found) = existing.canonicalize() {
            return match path.strip_prefix(existing) {
                Ok(rest) if !rest.as_os_str().is_empty() => found.join(rest),
                Ok(_) | Err(_) => found,
            };
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A home with settings and our own data folder in it. `~` in a path is that home.
    fn check(asker: &Asker, root: &str, path: &str, expected: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("home");
        for name in [".relay-mesh/inboxes", ".toad", ".claude", "project"] {
            std::fs::create_dir_all(home.join(name)).expect("a folder");
        }
        symlink(".relay-mesh", home.join("link")).expect("a link");
        symlink("/proc", home.join("system")).expect("a link");
        let surroundings = Surroundings {
            home: Some(home.clone()),
            project: Some(home.join("project")),
            private: vec![home.join(".relay-mesh")],
            ..Surroundings::default()
        };
        let place = fill_path(path, &surroundings).expect("a path");
        let told = objection(asker, root, &place, &surroundings).unwrap_or_default();
        assert!(told.contains(expected) && told.is_empty() == expected.is_empty(), "{asker:?} {root} {path}: {told}");
    }

    #[test]
    fn nobody_gets_our_own_files_the_systems_or_somebody_elses() {
        let toad = Asker::Stranger("toad".to_owned());
        for (path, expected) in [
            ("~/.toad", ""),
            ("${project}", ""),
            ("~/not-there-yet", ""),
            ("/etc/toad", ""),
            ("~/.relay-mesh", "where relay-mesh keeps mail and keys"),
            ("~/.relay-mesh/inboxes", "where relay-mesh keeps mail and keys"),
            ("~/.relay-mesh/not-there-yet", "where relay-mesh keeps mail and keys"),
            ("~/link", "where relay-mesh keeps mail and keys"),
            ("~", "your whole home"),
            ("${UNSET:-~}", "your whole home"),
            ("~/system/self", "the system's"),
            ("/proc/self", "the system's"),
            ("/sys", "the system's"),
            ("/dev/shm", "the system's"),
            ("/etc", "the files of everybody"),
            ("/etc/ssh", "only `/etc/toad`"),
            ("/home", "the files of everybody"),
            ("/home/nobody-of-this-name/.ssh", "somebody else's home"),
            ("~/.claude", "the settings of `claude-code`"),
            ("~/.claude/sessions", "the settings of `claude-code`"),
        ] {
            check(&toad, "config", path, expected);
        }
        // Named as what it is.
        check(&toad, "claude-code", "~/.claude", "");
        check(&Asker::Stranger("claude-code".to_owned()), "config", "~/.claude", "");
        // Ours are reviewed, and get no mail and no keys either.
        check(&Asker::BuiltIn, "managed", "/etc/claude-code", "");
        check(&Asker::BuiltIn, "config", "~/.relay-mesh", "where relay-mesh keeps mail and keys");
    }

    #[test]
    fn our_own_files_are_not_reached_through_a_project_and_a_runs_worktree_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let worktree = data.join("runs/1/worktree");
        std::fs::create_dir_all(&worktree).expect("a folder");
        symlink(&data, worktree.join("link")).expect("a link");
        let holds = |project: &Path, place: &Path| {
            let private = vec![data.clone()];
            let project = Some(project.to_owned());
            Private::of(&Surroundings { project, private, ..Surroundings::default() }).holds(place)
        };
        assert!(holds(folder.path(), &data.join("inboxes/alice")));
        assert!(!holds(folder.path(), &folder.path().join("src")));
        assert!(!holds(&worktree, &worktree.join("settings.json")));
        assert!(holds(&worktree, &worktree.join("link/inboxes")), "by a link");
        assert!(holds(&worktree, &data.join("runs/2/worktree")));
        assert!(holds(&data, &data.join("runs/1/worktree")), "the data folder is no project");
    }
}
