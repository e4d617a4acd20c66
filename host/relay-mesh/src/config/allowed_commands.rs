//! Which agents' commands may run in the user's sessions. The permissions are in a file beside the user's settings, so
//! a project cannot bring its own. Each entry holds for one named mesh only: a project may name another data folder,
//! whose contents anybody may have written.

use std::path::{Path, PathBuf};

use mesh::commands::CommandName;
use mesh::names::AgentName;
use mesh::ports::consent::{Consent, Consents};
use serde::{Deserialize, Serialize};

use super::user_file::{self, ENTRY, UserFile};
use super::{ConfigError, Settings, Shared};
use crate::environment::Environment;

/// Relative to the configuration folder.
const FILE: &str = "relay-mesh/commands.toml";
const HEAD: &str = "# Whose commands run in the sessions of your agents, by `relay-mesh cmd allow`. Each entry counts for the\n\
                    # mesh that it names. Without `command` it is every command, without `to` every agent of yours.\n";

/// The user's permissions for one mesh.
#[derive(Clone, Debug)]
pub(crate) struct AllowedCommands {
    file: UserFile,
    mesh: Meant,
}

/// The mesh for which the entries hold. Its text is made on demand: every command and hook creates one of these, and
/// few read the file.
#[derive(Clone, Debug)]
pub(super) enum Meant {
    Folder(PathBuf),
    Servers(String),
}

impl Meant {
    pub(super) fn of(settings: &Settings) -> Meant {
        match &settings.shared.value {
            Shared::InTheFolder => Meant::Folder(settings.dir.value.clone()),
            Shared::Nats(servers) => Meant::Servers(servers.to_string()),
        }
    }

    /// The text that identifies the mesh in the file.
    pub(super) fn words(&self) -> String {
        match self {
            Meant::Folder(dir) => {
                let real = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.clone());
                format!("files:{}", real.display())
            }
            Meant::Servers(servers) => servers.clone(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    allow: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    from: AgentName,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<CommandName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<AgentName>,
    mesh: String,
}

impl Entry {
    fn consent(&self) -> Consent {
        let Entry { from, command, to, .. } = self.clone();
        Consent { from, command, to }
    }
}

impl AllowedCommands {
    /// The user's file; it need not exist.
    pub(crate) fn of(settings: &Settings, environment: &Environment) -> Result<AllowedCommands, ConfigError> {
        Ok(AllowedCommands { file: UserFile::of(FILE, HEAD, environment)?, mesh: Meant::of(settings) })
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn listed(&self) -> Result<Vec<Consent>, ConfigError> {
        let entries = self.entries(&self.file.text()?)?.into_iter();
        let mesh = self.mesh.words();
        Ok(entries.filter(|entry| entry.mesh == mesh).map(|entry| entry.consent()).collect())
    }

    /// Adds a permission; false if it was already there.
    pub(crate) fn allow(&self, consent: &Consent) -> Result<bool, ConfigError> {
        let _alone = self.file.alone()?;
        let text = self.file.text()?;
        if self.listed()?.contains(consent) {
            return Ok(false);
        }
        let Consent { from, command, to } = consent.clone();
        let entry = Entry { from, command, to, mesh: self.mesh.words() };
        self.file.write_with(&text, &written(&entry))?;
        Ok(true)
    }

    /// Removes this permission and every narrower one; returns those removed.
    pub(crate) fn disallow(&self, what: &Consent) -> Result<Vec<Consent>, ConfigError> {
        let _alone = self.file.alone()?;
        let text = self.file.text()?;
        let entries = self.entries(&text)?;
        let mesh = self.mesh.words();
        let goes = |entry: &Entry| {
            entry.mesh == mesh
                && entry.from == what.from
                && what.command.as_ref().is_none_or(|command| entry.command.as_ref() == Some(command))
                && what.to.as_ref().is_none_or(|to| entry.to.as_ref() == Some(to))
        };
        let gone: Vec<Consent> = entries.iter().filter(|entry| goes(entry)).map(Entry::consent).collect();
        if !gone.is_empty() {
            self.file.write(&without(&text, &entries, goes))?;
        }
        Ok(gone)
    }

    fn entries(&self, text: &str) -> Result<Vec<Entry>, ConfigError> {
        Ok(self.file.parse::<File>(text)?.allow)
    }
}

impl Consents for AllowedCommands {
    fn given(&self) -> Result<Vec<Consent>, String> {
        self.listed().map_err(|error| error.to_string())
    }
}

fn written(entry: &Entry) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let Entry { from, command, to, mesh } = entry;
    let mut lines = format!("{ENTRY}\nfrom = {}\n", quoted(from.as_str()));
    for (key, value) in
        [("command", command.as_ref().map(CommandName::as_str)), ("to", to.as_ref().map(AgentName::as_str))]
    {
        if let Some(value) = value {
            lines.push_str(&format!("{key} = {}\n", quoted(value)));
        }
    }
    lines.push_str(&format!("mesh = {}\n", quoted(mesh)));
    lines
}

/// The text without some entries. If they are not written one by one, all others are written anew.
fn without(text: &str, entries: &[Entry], goes: impl Fn(&Entry) -> bool) -> String {
    let which: Vec<bool> = entries.iter().map(&goes).collect();
    user_file::without(text, ENTRY, &which).unwrap_or_else(|| {
        let kept = entries.iter().filter(|entry| !goes(entry)).map(written);
        std::iter::once(HEAD.to_owned()).chain(kept).collect::<Vec<_>>().join("\n")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(folder: &Path, mesh: &str) -> AllowedCommands {
        AllowedCommands { file: UserFile::at(folder.join(FILE), HEAD), mesh: Meant::Servers(mesh.to_owned()) }
    }

    fn consent(line: &str) -> Consent {
        let mut words = line.split(' ');
        let from = words.next().unwrap_or_default().parse().expect("a name");
        let mut any = || words.next().filter(|word| *word != "*").map(str::to_owned);
        let command = any().map(|name| name.parse().expect("a command"));
        let to = any().map(|name| name.parse().expect("a name"));
        Consent { from, command, to }
    }

    #[test]
    fn what_was_allowed_is_listed_for_its_mesh_alone_and_can_be_taken_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = allowed(folder.path(), "files:/home/u/.relay-mesh");
        let elsewhere = allowed(folder.path(), "files:/repository/brought \"it\"");
        assert_eq!(here.listed().expect("readable"), []);
        for line in ["alice", "bob /review", "bob /deploy carol"] {
            assert!(here.allow(&consent(line)).expect("written"), "{line}");
            assert!(!here.allow(&consent(line)).expect("read"), "{line} is allowed already");
        }
        assert!(elsewhere.allow(&consent("alice /review")).expect("written"));
        assert_eq!(here.listed().expect("readable"), ["alice", "bob /review", "bob /deploy carol"].map(consent));
        assert_eq!(elsewhere.listed().expect("readable"), [consent("alice /review")]);

        let text = std::fs::read_to_string(here.path()).expect("readable");
        std::fs::write(here.path(), text.replace("from = \"bob\"", "from = \"bob\" # my own")).expect("written");
        assert_eq!(here.disallow(&consent("bob /test")).expect("read"), []);
        assert_eq!(here.disallow(&consent("bob /review")).expect("written"), [consent("bob /review")]);
        assert_eq!(here.listed().expect("readable"), ["alice", "bob /deploy carol"].map(consent));
        let text = std::fs::read_to_string(here.path()).expect("readable");
        assert!(text.starts_with(HEAD) && text.contains("# my own"), "{text}");
        assert_eq!(here.disallow(&consent("alice")).expect("written"), [consent("alice")]);
        assert_eq!(elsewhere.listed().expect("readable"), [consent("alice /review")], "not this mesh's to take");
    }

    #[test]
    fn a_file_whose_entries_are_one_array_is_refused_and_stays_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = allowed(folder.path(), "m");
        std::fs::create_dir_all(here.path().parent().expect("a folder")).expect("made");
        let text = "allow = [{ from = 'alice', mesh = 'm' }]\n";
        std::fs::write(here.path(), text).expect("written");
        let error = here.allow(&consent("bob")).expect_err("refused").to_string();
        assert!(error.contains("its entries are not written one by one"), "{error}");
        assert_eq!(std::fs::read_to_string(here.path()).expect("readable"), text);
        assert_eq!(here.listed().expect("readable"), [consent("alice")]);
    }

    #[test]
    fn what_many_allow_at_once_is_all_allowed() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = allowed(folder.path(), "m");
        std::thread::scope(|scope| {
            for number in 0..16 {
                let here = &here;
                scope.spawn(move || here.allow(&consent(&format!("agent-{number}"))).expect("written"));
            }
        });
        assert_eq!(here.listed().expect("readable").len(), 16);
    }

    #[test]
    fn a_file_that_lies_elsewhere_is_changed_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = allowed(folder.path(), "m");
        let kept = folder.path().join("dotfiles.toml");
        std::fs::write(&kept, HEAD).expect("written");
        std::fs::create_dir_all(here.path().parent().expect("a folder")).expect("made");
        std::os::unix::fs::symlink(&kept, here.path()).expect("linked");
        assert!(here.allow(&consent("alice")).expect("written"));
        assert!(here.path().is_symlink() && std::fs::read_to_string(&kept).expect("readable").contains("alice"));
    }

    #[test]
    fn a_file_in_other_words_is_read_and_a_broken_one_allows_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = allowed(folder.path(), "m");
        std::fs::create_dir_all(here.path().parent().expect("a folder")).expect("made");
        std::fs::write(here.path(), "allow = [{ from = \"alice\", mesh = \"m\" }, { from = \"bob\", mesh = \"m\" }]")
            .expect("written");
        assert_eq!(here.disallow(&consent("alice")).expect("written"), [consent("alice")]);
        assert_eq!(here.listed().expect("readable"), [consent("bob")]);
        std::fs::write(here.path(), "[[allow]]\nfrom = \"alice\"\neverything = true\nmesh = \"m\"\n").expect("written");
        let why = here.given().expect_err("it is broken");
        assert!(why.contains("commands.toml`, line 3: unknown field `everything`"), "{why}");
    }
}
