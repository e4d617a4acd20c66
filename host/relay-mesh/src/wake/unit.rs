//! The files by which systemd, or launchd on macOS, runs a program of the user whenever the trigger file is written, and
//! the journal by which uninstalling restores every byte.

mod launchd;
mod systemd;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mesh::ports::harness::{Edit, Plan};
use serde::{Deserialize, Serialize};
use store::Durability;

use self::systemd::{PATH_UNIT, SERVICE_UNIT};
use crate::atomic_write;
use crate::context::Context;
use crate::environment::Environment;
use crate::install_channel::shell_word;
use crate::unix;

/// What runs the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Manager {
    /// systemd, with the folder of the user's units.
    Systemd(PathBuf),
    /// launchd, with `~/Library` and the user's number.
    Launchd { library: PathBuf, user: u32 },
}

/// What was installed; stored in the data folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Journal {
    /// Each file with its content.
    files: Vec<(String, String)>,
    /// The folders created for them, innermost first.
    folders: Vec<PathBuf>,
}

pub(crate) struct Units {
    manager: Manager,
    /// The folder of the files.
    folder: PathBuf,
    /// The file that stores a [`Journal`].
    journal: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum UnitError {
    #[error("could not {doing} `{}`", path.display())]
    File {
        /// A verb: `read`, `write`, …
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("`{}` has changed since it was looked at", .0.display())]
    Changed(PathBuf),
    #[error("`{}` is not as `wake install` left it", .0.display())]
    NotOurs(PathBuf),
    #[error("launchd's files cannot hold the character {0:?}")]
    Unwritable(char),
}

/// What watches the trigger file, if `wake install` has set it up.
pub(crate) fn watcher(context: &Context) -> Option<&'static str> {
    let manager = Manager::of_this_system(&context.environment)?;
    Units::of(manager, &context.settings.dir.value).watcher()
}

impl Manager {
    /// What this system has. `None` without a home folder.
    pub(crate) fn of_this_system(environment: &Environment) -> Option<Manager> {
        if cfg!(target_os = "macos") {
            let library = environment.home()?.join("Library");
            Some(Manager::Launchd { library, user: unix::starter() })
        } else {
            let configuration = environment.xdg("XDG_CONFIG_HOME", ".config")?;
            Some(Manager::Systemd(configuration.join("systemd/user")))
        }
    }

    /// Its name, and the command that steers it.
    pub(crate) fn names(&self) -> (&'static str, &'static str) {
        match self {
            Manager::Systemd(_) => ("systemd", "systemctl"),
            Manager::Launchd { .. } => ("launchd", "launchctl"),
        }
    }

    /// What it calls the thing that watches the trigger file.
    fn watcher(&self) -> &'static str {
        match self {
            Manager::Systemd(_) => PATH_UNIT,
            Manager::Launchd { .. } => launchd::LABEL,
        }
    }

    fn folder(&self) -> PathBuf {
        match self {
            Manager::Systemd(folder) => folder.clone(),
            Manager::Launchd { library, .. } => library.join("LaunchAgents"),
        }
    }

    /// The file that makes it watch.
    fn watching_file(&self) -> &'static str {
        match self {
            Manager::Systemd(_) => PATH_UNIT,
            Manager::Launchd { .. } => launchd::FILE,
        }
    }

    /// The files that have it run `program` when the trigger file is written.
    fn files(&self, trigger: &Path, program: &[String]) -> Result<Vec<(&'static str, String)>, UnitError> {
        match self {
            Manager::Systemd(_) => Ok(vec![
                (PATH_UNIT, systemd::path_unit(trigger)),
                (SERVICE_UNIT, systemd::service_unit(trigger, program)),
            ]),
            Manager::Launchd { library, .. } => {
                let text = launchd::agent(trigger, program, &launchd_log(library)).map_err(UnitError::Unwritable)?;
                Ok(vec![(launchd::FILE, text)])
            }
        }
    }

    /// The commands by which it takes up what was written, over what it has already if there was something.
    fn take_up(&self, had_one: bool) -> Vec<String> {
        match self {
            Manager::Systemd(_) => {
                vec!["systemctl --user daemon-reload".to_owned(), format!("systemctl --user enable --now {PATH_UNIT}")]
            }
            Manager::Launchd { user, .. } => {
                let path = shell_word(&self.folder().join(launchd::FILE));
                let load = format!("launchctl bootstrap gui/{user} {path}");
                had_one.then(|| unload(*user)).into_iter().chain([load]).collect()
            }
        }
    }

    /// The command to run before the files are removed.
    pub(crate) fn stop(&self) -> String {
        match self {
            Manager::Systemd(_) => format!("systemctl --user disable --now {PATH_UNIT}"),
            Manager::Launchd { user, .. } => unload(*user),
        }
    }

    /// The commands to run after the files were removed.
    fn clean_up(&self) -> Vec<String> {
        match self {
            Manager::Systemd(_) => vec!["systemctl --user daemon-reload".to_owned()],
            Manager::Launchd { library, .. } => vec![format!("rm -f {}", shell_word(&launchd_log(library)))],
        }
    }
}

fn launchd_log(library: &Path) -> PathBuf {
    library.join("Logs").join(launchd::LOG)
}

/// It needs no file: launchd knows what it has loaded by its label.
fn unload(user: u32) -> String {
    format!("launchctl bootout gui/{user}/{}", launchd::LABEL)
}

impl Units {
    /// The files of this user, with the journal in this data folder.
    pub(crate) fn of(manager: Manager, data: &Path) -> Units {
        Units { folder: manager.folder(), manager, journal: data.join("wake/units.json") }
    }

    fn watcher(&self) -> Option<&'static str> {
        self.folder.join(self.manager.watching_file()).is_file().then(|| self.manager.watcher())
    }

    pub(crate) fn manager(&self) -> &Manager {
        &self.manager
    }

    pub(crate) fn path_of(&self, edit: &Edit) -> PathBuf {
        self.folder.join(&edit.path)
    }

    /// The plan to have `program` run when the trigger file is written.
    pub(crate) fn install(&self, trigger: &Path, program: &[String]) -> Result<Plan, UnitError> {
        let journal = self.installed()?;
        let mut edits = Vec::new();
        for (name, after) in self.manager.files(trigger, program)? {
            let before = self.read(name)?;
            let is_ours = before.is_none()
                || journal.files.iter().any(|(file, text)| file == name && before.as_ref() == Some(text));
            if before.as_ref() == Some(&after) {
                continue;
            }
            if !is_ours {
                return Err(UnitError::NotOurs(self.folder.join(name)));
            }
            edits.push(self.edit(name, before, Some(after)));
        }
        let had_one = edits.iter().any(|edit| edit.before.is_some());
        Ok(Plan { edits, next_steps: self.manager.take_up(had_one) })
    }

    /// The plan to remove the files. Fails if one was changed since: it belongs to whoever changed it.
    pub(crate) fn removal(&self) -> Result<Plan, UnitError> {
        let mut edits = Vec::new();
        for (name, text) in self.installed()?.files {
            match self.read(&name)? {
                None => {}
                Some(found) if found == text => edits.push(self.edit(&name, Some(found), None)),
                Some(_) => return Err(UnitError::NotOurs(self.folder.join(name))),
            }
        }
        let next_steps = if edits.is_empty() { Vec::new() } else { self.manager.clean_up() };
        Ok(Plan { edits, next_steps })
    }

    /// Writes the files. The journal is written first, so that they can be removed whatever happens.
    pub(crate) fn write(&self, plan: &Plan) -> Result<(), UnitError> {
        self.unchanged(plan)?;
        let old = self.installed()?;
        let mut journal = old.clone();
        for edit in &plan.edits {
            journal.files.retain(|(name, _)| *name != edit.path);
            journal.files.extend(edit.after.clone().map(|text| (edit.path.clone(), text)));
        }
        let missing = self.folder.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned);
        journal.folders.extend(missing);
        self.note(&journal)?;
        fs::create_dir_all(&self.folder).map_err(file("make", &self.folder))?;
        for edit in &plan.edits {
            let path = self.path_of(edit);
            let text = edit.after.as_deref().unwrap_or_default();
            atomic_write::replace(&path, text.as_bytes(), 0o644, Durability::Synced).map_err(file("write", &path))?;
        }
        Ok(())
    }

    /// Removes the files, and the folders created for them if empty.
    pub(crate) fn remove(&self, plan: &Plan) -> Result<(), UnitError> {
        self.unchanged(plan)?;
        for edit in &plan.edits {
            let path = self.path_of(edit);
            fs::remove_file(&path).map_err(file("remove", &path))?;
        }
        for folder in self.installed()?.folders {
            match fs::remove_dir(&folder) {
                Ok(()) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) => {}
                Err(source) => return Err(UnitError::File { doing: "remove", path: folder, source }),
            }
        }
        match fs::remove_file(&self.journal) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(UnitError::File { doing: "remove", path: self.journal.clone(), source }),
        }
    }

    fn edit(&self, name: &str, before: Option<String>, after: Option<String>) -> Edit {
        let (root, _) = self.manager.names();
        Edit { root: root.to_owned(), path: name.to_owned(), before, after, executable: false }
    }

    /// Checks that every file still has the content that the user was shown.
    fn unchanged(&self, plan: &Plan) -> Result<(), UnitError> {
        for edit in &plan.edits {
            if self.read(&edit.path)? != edit.before {
                return Err(UnitError::Changed(self.path_of(edit)));
            }
        }
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<String>, UnitError> {
        let path = self.folder.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(source) => Err(UnitError::File { doing: "read", path, source }),
        }
    }

    fn installed(&self) -> Result<Journal, UnitError> {
        match fs::read(&self.journal) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(io::Error::from).map_err(file("understand", &self.journal))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Journal::default()),
            Err(source) => Err(UnitError::File { doing: "read", path: self.journal.clone(), source }),
        }
    }

    fn note(&self, journal: &Journal) -> Result<(), UnitError> {
        let bytes = serde_json::to_vec(journal).map_err(io::Error::from).map_err(file("write", &self.journal))?;
        let folder = self.journal.parent().unwrap_or(&self.journal);
        fs::create_dir_all(folder).map_err(file("make", folder))?;
        atomic_write::replace(&self.journal, &bytes, 0o600, Durability::Synced).map_err(file("write", &self.journal))
    }
}

fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> UnitError {
    move |source| UnitError::File { doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_installed_is_taken_out_byte_for_byte_and_nothing_else_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = folder.path().join("config");
        fs::create_dir(&configuration).expect("a folder");
        let units = Units::of(Manager::Systemd(configuration.join("systemd/user")), &folder.path().join("data"));
        let install =
            |word: &str| units.install(Path::new("/t"), &[word.to_owned()]).map_err(|error| error.to_string());
        units.write(&install("/bin/true").expect("a plan")).expect("written");
        assert_eq!(install("/bin/true").expect("a plan").edits, [], "done twice, it changes nothing the second time");
        let other = install("/bin/false").expect("a plan");
        assert_eq!(other.edits.len(), 1, "another program is another service");
        units.write(&other).expect("written");
        let outdated = units.removal().expect("a plan");
        let service = units.folder.join(SERVICE_UNIT);
        fs::write(&service, "mine").expect("a file");
        assert!(matches!(units.remove(&outdated), Err(UnitError::Changed(_))));
        assert!(install("/bin/true").is_err_and(|error| error.contains("is not as `wake install` left it")));
        assert!(matches!(units.removal(), Err(UnitError::NotOurs(_))));
        fs::write(&service, other.edits[0].after.clone().expect("a text")).expect("a file");
        units.remove(&units.removal().expect("a plan")).expect("removed");
        assert!(!configuration.join("systemd").exists() && configuration.exists(), "folders that were made go too");
        assert_eq!(units.removal().expect("a plan").edits, []);
    }

    /// macOS as far as it can be had here: the files are written, and launchd is not there to read them.
    #[test]
    fn a_launch_agent_comes_and_goes_with_the_commands_that_load_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let library = folder.path().join("R&D <home>/Library");
        fs::create_dir_all(&library).expect("a folder");
        let manager = Manager::Launchd { library: library.clone(), user: 501 };
        let units = Units::of(manager, &folder.path().join("data"));
        let install = |word: &str| units.install(Path::new("/t"), &[word.to_owned()]);
        let file = library.join("LaunchAgents/relay-mesh.wake.plist");
        let load = format!("launchctl bootstrap gui/501 '{}'", file.display());
        let first = install("/opt/R&D <1>").expect("a plan");
        assert_eq!(first.next_steps, [load.as_str()]);
        assert_eq!(units.watcher(), None);
        units.write(&first).expect("written");
        assert_eq!(units.watcher(), Some("relay-mesh.wake"));
        assert!(fs::read_to_string(&file).expect("a file").contains("<string>/opt/R&amp;D &lt;1&gt;</string>"));
        assert_eq!(install("/opt/R&D <1>").expect("a plan").edits, []);
        let unload = "launchctl bootout gui/501/relay-mesh.wake";
        let other = install("/bin/false").expect("a plan");
        assert_eq!(other.next_steps, [unload, &load], "launchd keeps what it has loaded until it is told");
        units.write(&other).expect("written");
        assert_eq!(units.manager().stop(), unload);
        let removal = units.removal().expect("a plan");
        assert_eq!(removal.next_steps, [format!("rm -f '{}/Logs/relay-mesh.wake.log'", library.display())]);
        units.remove(&removal).expect("removed");
        assert!(!library.join("LaunchAgents").exists() && library.exists());
        let refused = install("/bin/\u{1b}").map_err(|error| error.to_string());
        assert_eq!(
            refused.map(|plan| plan.edits),
            Err("launchd's files cannot hold the character '\\u{1b}'".to_owned())
        );
    }
}
