//! Folders that no adapter may have, whatever its manifest requests and the user grants: our own files, the system's, a
//! whole home, somebody else's, and another harness's settings unless the root is named after that harness.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::foreign_settings::{ForeignSettings, SettingsFolder};
use crate::template::{FillError, Surroundings, fill_path};
use crate::unix::MetadataExt;

/// Trees of the system's, which hold the secrets of every process or are no files at all.
const SYSTEM: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/boot", "/var/run"];
/// Folders in which everybody's settings are: a folder in them may be requested, the whole may not.
const SHARED: [&str; 11] =
    ["/", "/etc", "/home", "/Users", "/root", "/var", "/usr", "/opt", "/srv", "/tmp", "/var/lib"];
/// The same in a home.
const SHARED_IN_A_HOME: [&str; 8] = [
    "~/.config",
    "~/.local",
    "~/.local/share",
    "~/.local/state",
    "~/.cache",
    "~/Library",
    "~/Library/Application Support",
    "~/Library/Preferences",
];
/// The variables that say where those are.
const SHARED_BY_VARIABLE: [&str; 5] =
    ["${XDG_CONFIG_HOME}", "${XDG_DATA_HOME}", "${XDG_STATE_HOME}", "${XDG_CACHE_HOME}", "${XDG_RUNTIME_DIR}"];
/// Where homes are.
const HOMES: [&str; 2] = ["/home", "/Users"];

/// Whose adapter asks for a folder or a socket.
#[derive(Clone, Debug)]
pub(crate) enum Asker {
    /// One that is part of the program, which was reviewed with its manifest.
    BuiltIn,
    /// Another one.
    Stranger {
        name: String,
        /// The settings of the adapters that were installed before it.
        earlier: Arc<[SettingsFolder]>,
    },
}

/// The grant by which a place is asked for, with its name in the manifest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Requested<'a> {
    Root(&'a str),
    Endpoint(&'a str),
}

impl Requested<'_> {
    fn name(&self) -> &str {
        match self {
            Requested::Root(name) | Requested::Endpoint(name) => name,
        }
    }

    fn noun(&self) -> &'static str {
        match self {
            Requested::Root(_) => "a root",
            Requested::Endpoint(_) => "an endpoint",
        }
    }
}

/// Why an adapter may not have a folder or a socket, as the end of a sentence that begins with it.
pub(crate) fn objection(
    asker: &Asker,
    requested: Requested<'_>,
    place: &Path,
    surroundings: &Surroundings,
) -> Option<String> {
    // What is not there yet is judged by the part that is.
    let place = real(place);
    if let Some(folder) = Private::of(surroundings).holder(&place) {
        return Some(format!("it is in `{}`, where relay-mesh keeps mail and keys", folder.display()));
    }
    let Asker::Stranger { name, .. } = asker else { return None };
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
    let mut shared = SHARED_IN_A_HOME.iter().chain(&SHARED_BY_VARIABLE);
    if shared.any(|shared| fill_path(shared, surroundings).is_ok_and(|shared| real(&shared) == place)) {
        return Some("it holds the settings of every program".to_owned());
    }
    objection_of_settings(&ForeignSettings::of(asker, surroundings), requested, &place)
}

/// The same for a place in a project, whichever project that will be: whose settings it is among.
pub(crate) fn objection_in_projects(
    asker: &Asker,
    requested: Requested<'_>,
    place: impl Fn(&Surroundings) -> Result<PathBuf, FillError>,
    surroundings: &Surroundings,
) -> Option<String> {
    let project = Some(PathBuf::from("/a-project-of-the-user"));
    let surroundings = Surroundings { project, main_worktree: None, ..surroundings.clone() };
    let place = real(&place(&surroundings).ok()?);
    objection_of_settings(&ForeignSettings::of(asker, &surroundings), requested, &place)
}

/// Why a place is refused because of the settings that it is among, or that are below it.
pub(crate) fn objection_of_settings(
    foreign: &ForeignSettings,
    requested: Requested<'_>,
    place: &Path,
) -> Option<String> {
    let (name, noun) = (requested.name(), requested.noun());
    let owner = foreign.owner(name, place).or_else(|| foreign.owner_below(name, place))?;
    Some(format!(
        "it holds the settings of `{owner}`; {noun} for these is named `{owner}`, so that the user sees whose they are"
    ))
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

/// A path with links followed, as far as it exists.
pub(crate) fn real(path: &Path) -> PathBuf {
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
        for name in
            [".relay-mesh/inboxes", ".toad", ".claude/projects", ".config/opencode", ".neighbour", "project/sub"]
        {
            std::fs::create_dir_all(home.join(name)).expect("a folder");
        }
        symlink(".relay-mesh", home.join("link")).expect("a link");
        symlink("/proc", home.join("system")).expect("a link");
        symlink(".claude/projects", home.join("links")).expect("a link");
        let surroundings = Surroundings {
            home: Some(home.clone()),
            project: Some(home.join("project")),
            private: vec![home.join(".relay-mesh")],
            ..Surroundings::default()
        };
        let place = fill_path(path, &surroundings).expect("a path");
        let told = objection(asker, Requested::Root(root), &place, &surroundings).unwrap_or_default();
        assert!(told.contains(expected) && told.is_empty() == expected.is_empty(), "{asker:?} {root} {path}: {told}");
    }

    /// An adapter beside an installed one, which has settings in the home and in projects.
    fn stranger(name: &str) -> Asker {
        let neighbour = "name = \"neighbour\"\ntitle = \"N\"\nversion = \"1\"\nwit = \"0.1\"\n\
            [grants.roots.config]\npath = \"~/.neighbour\"\n[grants.roots.project]\npath = \"${project}\"\n\
            [grants.roots.own]\npath = \"${project}/.neighbour\"\n";
        let neighbour = crate::manifest::Manifest::parse(neighbour).expect("a manifest");
        let earlier = SettingsFolder::of_manifest(&neighbour, &[]);
        Asker::Stranger { name: name.to_owned(), earlier: earlier.into() }
    }

    #[test]
    fn a_folder_that_holds_foreign_settings_is_refused_as_they_are() {
        let surroundings = Surroundings {
            home: Some(PathBuf::from("/h")),
            environment: [("CLAUDE_CONFIG_DIR".to_owned(), "/h/all/deep/claude".to_owned())].into(),
            ..Surroundings::default()
        };
        let told = |path: &str| objection(&stranger("toad"), Requested::Root("config"), Path::new(path), &surroundings);
        for path in ["/h/all", "/h/all/deep", "/h/all/deep/claude", "/h/all/deep/claude/projects"] {
            assert!(told(path).is_some_and(|why| why.contains("the settings of `claude-code`")), "{path}");
        }
        assert_eq!(told("/h/all/deep/toad"), None);
    }

    #[test]
    fn nobody_gets_our_own_files_the_systems_or_somebody_elses() {
        let toad = stranger("toad");
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
            ("~/links", "the settings of `claude-code`"),
            ("~/.config", "the settings of every program"),
            ("~/.config/toad", ""),
            ("~/.local/share", "the settings of every program"),
            ("~/.config/opencode", "the settings of `opencode`"),
            ("~/.local/share/opencode/log", "the settings of `opencode`"),
            ("~/.neighbour", "the settings of `neighbour`"),
            ("~/.neighbour/sessions", "the settings of `neighbour`"),
            ("${project}/.toad", ""),
            ("${project}/.claude", "the settings of `claude-code`"),
            ("${project}/sub/.Codex/x", "the settings of `codex`"),
            ("${main-worktree}/.gemini", "the settings of `gemini-cli`"),
            ("~/work/.cursor", "the settings of `cursor`"),
            ("${project}/.neighbour", "the settings of `neighbour`"),
        ] {
            check(&toad, "config", path, expected);
        }
        // Named as what it is.
        check(&toad, "claude-code", "~/.claude", "");
        check(&stranger("claude-code"), "config", "~/.claude", "");
        check(&toad, "claude-code", "${project}/.claude", "");
        check(&toad, "claude-code", "${project}/.codex", "the settings of `codex`");
        check(&toad, "neighbour", "~/.neighbour", "");
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
