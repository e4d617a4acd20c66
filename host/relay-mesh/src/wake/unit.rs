//! The user's systemd units that run a program whenever the trigger file is written, and the journal by which
//! uninstalling restores every byte.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mesh::ports::harness::{Edit, Plan};
use serde::{Deserialize, Serialize};
use store::Durability;

use crate::atomic_write;
use crate::context::Context;

/// The unit that watches the trigger file.
pub(crate) const PATH_UNIT: &str = "relay-mesh-wake.path";
/// The unit that runs the program.
const SERVICE_UNIT: &str = "relay-mesh-wake.service";
/// The plan's name for the folder of the units.
const ROOT: &str = "systemd";

/// What was installed; stored in the data folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Journal {
    /// Each file with its content.
    files: Vec<(String, String)>,
    /// The folders created for the units, innermost first.
    folders: Vec<PathBuf>,
}

pub(crate) struct Units {
    /// The folder of the user's units.
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
}

/// The unit that watches the trigger file, if `wake install` has written it.
pub(crate) fn watcher(context: &Context) -> Option<&'static str> {
    let configuration = context.environment.xdg("XDG_CONFIG_HOME", ".config")?;
    Units::of(&configuration, &context.settings.dir.value).are_written().then_some(PATH_UNIT)
}

impl Units {
    /// The units of the user with this configuration folder.
    pub(crate) fn of(configuration: &Path, data: &Path) -> Units {
        Units { folder: configuration.join("systemd/user"), journal: data.join("wake/units.json") }
    }

    pub(crate) fn are_written(&self) -> bool {
        self.folder.join(PATH_UNIT).is_file()
    }

    pub(crate) fn path_of(&self, edit: &Edit) -> PathBuf {
        self.folder.join(&edit.path)
    }

    /// The plan to install units that run `program` when the trigger file is written.
    pub(crate) fn install(&self, trigger: &Path, program: &[String]) -> Result<Plan, UnitError> {
        let journal = self.installed()?;
        let mut edits = Vec::new();
        for (name, after) in [(PATH_UNIT, path_unit(trigger)), (SERVICE_UNIT, service_unit(trigger, program))] {
            let before = self.read(name)?;
            let is_ours = before.is_none()
                || journal.files.iter().any(|(file, text)| file == name && before.as_ref() == Some(text));
            if before.as_ref() == Some(&after) {
                continue;
            }
            if !is_ours {
                return Err(UnitError::NotOurs(self.folder.join(name)));
            }
            edits.push(edit(name, before, Some(after)));
        }
        let next_steps =
            vec!["systemctl --user daemon-reload".to_owned(), format!("systemctl --user enable --now {PATH_UNIT}")];
        Ok(Plan { edits, next_steps })
    }

    /// The plan to remove the units. Fails if a unit was changed since: it belongs to whoever changed it.
    pub(crate) fn removal(&self) -> Result<Plan, UnitError> {
        let mut edits = Vec::new();
        for (name, text) in self.installed()?.files {
            match self.read(&name)? {
                None => {}
                Some(found) if found == text => edits.push(edit(&name, Some(found), None)),
                Some(_) => return Err(UnitError::NotOurs(self.folder.join(name))),
            }
        }
        Ok(Plan { edits, next_steps: vec!["systemctl --user daemon-reload".to_owned()] })
    }

    /// Writes the units. The journal is written first, so that they can be removed whatever happens.
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

    /// Removes the units, and the folders created for them if empty.
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

fn edit(name: &str, before: Option<String>, after: Option<String>) -> Edit {
    Edit { root: ROOT.to_owned(), path: name.to_owned(), before, after, executable: false }
}

fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> UnitError {
    move |source| UnitError::File { doing, path: path.to_owned(), source }
}

fn path_unit(trigger: &Path) -> String {
    let trigger = trigger.display().to_string().replace('%', "%%");
    format!(
        "[Unit]\nDescription=relay-mesh: somebody is to be woken\n\n[Path]\nPathChanged={trigger}\n\
         Unit={SERVICE_UNIT}\n\n[Install]\nWantedBy=default.target\n"
    )
}

fn service_unit(trigger: &Path, program: &[String]) -> String {
    let words: Vec<String> = program.iter().map(|word| quoted(&word.replace('$', "$$"))).collect();
    let variable = quoted(&format!("RELAY_WAKE_FILE={}", trigger.display()));
    format!(
        "[Unit]\nDescription=relay-mesh: wake whoever listens\n\n[Service]\nType=oneshot\nEnvironment={variable}\n\
         ExecStart={}\n",
        words.join(" ")
    )
}

/// Quotes a word for systemd.
fn quoted(word: &str) -> String {
    let mut quoted = String::from("\"");
    for character in word.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '%' => quoted.push_str("%%"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_stays_what_it_is_whatever_systemd_reads_into_signs() {
        let program = ["/opt/my agent/wake", "100%", "$HOME", "a\"b\\c", "two\nlines"].map(str::to_owned);
        let unit = service_unit(Path::new("/d/50%/trigger"), &program);
        assert!(
            unit.ends_with(
                "Environment=\"RELAY_WAKE_FILE=/d/50%%/trigger\"\n\
                 ExecStart=\"/opt/my agent/wake\" \"100%%\" \"$$HOME\" \"a\\\"b\\\\c\" \"two\\nlines\"\n"
            ),
            "{unit}"
        );
        assert!(path_unit(Path::new("/d/50%/trigger")).contains("PathChanged=/d/50%%/trigger\n"));
    }

    #[test]
    fn what_was_installed_is_taken_out_byte_for_byte_and_nothing_else_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = folder.path().join("config");
        fs::create_dir(&configuration).expect("a folder");
        let units = Units::of(&configuration, &folder.path().join("data"));
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
}
