//! A file of entries beside the user's settings, such as permissions (`[[allow]]`), which a person may also write by hand. What is
//! around the entries, such as comments, survives a change.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::de::DeTable;

use super::{ConfigError, file, mode};
use crate::environment::Environment;

/// The line that a permission begins with.
pub(super) const ENTRY: &str = "[[allow]]";

/// One such file; it need not exist.
#[derive(Clone, Debug)]
pub(super) struct UserFile {
    path: PathBuf,
    /// What stands above the first entry of a new file.
    head: &'static str,
}

impl UserFile {
    /// A file of this name in the user's configuration folder.
    pub(super) fn of(name: &str, head: &'static str, environment: &Environment) -> Result<UserFile, ConfigError> {
        let folder = environment.xdg("XDG_CONFIG_HOME", ".config").ok_or(ConfigError::NoHome)?;
        Ok(UserFile::at(folder.join(name), head))
    }

    pub(super) fn at(path: PathBuf, head: &'static str) -> UserFile {
        UserFile { path, head }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn text(&self) -> Result<String, ConfigError> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => Ok(text),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(String::new())
            }
            Err(source) => Err(ConfigError::Unreadable { path: self.path.clone(), source }),
        }
    }

    pub(super) fn parse<T: DeserializeOwned>(&self, text: &str) -> Result<T, ConfigError> {
        toml::from_str(text).map_err(|error| file::invalid(&self.path, text, &error))
    }

    /// The error of an entry that is well-formed TOML and means nothing.
    pub(super) fn invalid(&self, what: String) -> ConfigError {
        ConfigError::Invalid { path: self.path.clone(), line: 1, what }
    }

    /// Locks out other writers until the result is dropped. Locks the folder, because a lock file among the user's
    /// settings would puzzle them.
    pub(super) fn alone(&self) -> Result<File, ConfigError> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let held = || {
            std::fs::create_dir_all(folder)?;
            let folder = File::open(folder)?;
            folder.lock()?;
            Ok(folder)
        };
        held().map_err(|source| self.unwritable(source))
    }

    pub(super) fn write(&self, text: &str) -> Result<(), ConfigError> {
        mode::write(&self.path, text).map_err(|source| self.unwritable(source))
    }

    /// Writes this text with a further entry at its end. Refuses if the text has its entries in an inline array, to
    /// which none can be added so.
    pub(super) fn write_with(&self, text: &str, entry: &str) -> Result<(), ConfigError> {
        self.write(&self.with(text, entry)?)
    }

    /// The same for a file that no other user shall read.
    pub(super) fn write_with_private(&self, text: &str, entry: &str) -> Result<(), ConfigError> {
        let changed = self.with(text, entry)?;
        // It is made private before anything is in it.
        mode::make_private(&self.path).map_err(|source| self.unwritable(source))?;
        self.write(&changed)
    }

    fn with(&self, text: &str, entry: &str) -> Result<String, ConfigError> {
        let text = if text.is_empty() { self.head } else { text };
        // The blank line keeps a comment at the end from becoming the entry's.
        let gap = match text {
            text if text.ends_with("\n\n") => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        let changed = format!("{text}{gap}{entry}");
        if DeTable::parse(&changed).is_err() {
            let what = "its entries are not written one by one, so it cannot be changed here";
            return Err(self.invalid(what.to_owned()));
        }
        Ok(changed)
    }

    fn unwritable(&self, source: io::Error) -> ConfigError {
        ConfigError::Unwritable { path: self.path.clone(), source }
    }
}

/// The text without the entries that go, of which there are `goes.len()` in order. The comment directly above an entry
/// is a part of it. None if the entries do not each begin with their own line, as we write them.
pub(super) fn without(text: &str, begin: &str, goes: &[bool]) -> Option<String> {
    let mut blocks: Vec<String> = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.trim() == begin {
            let comment = blocks.last_mut().map(take_comment).unwrap_or_default();
            blocks.push(comment);
        }
        if let Some(block) = blocks.last_mut() {
            block.push_str(line);
        }
    }
    if blocks.len() != goes.len() + 1 {
        return None;
    }
    let head = blocks.remove(0);
    let kept = blocks.into_iter().zip(goes).filter(|(_, goes)| !**goes).map(|(block, _)| block);
    Some(std::iter::once(head).chain(kept).collect())
}

/// Takes the comment lines off the end of a text.
fn take_comment(text: &mut String) -> String {
    let lines = text.split_inclusive('\n').rev();
    let length: usize = lines.take_while(|line| line.trim_start().starts_with('#')).map(str::len).sum();
    text.split_off(text.len() - length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_goes_and_stays_with_the_entry_below_it() {
        let [first, second, third] = [
            "# About a,\n# in two lines.\n[[allow]]\nfrom = 'a'\n",
            "  # About b.\n[[allow]]\nfrom = 'b' # b\n\n# About nobody.\n\n",
            "[[allow]]\nfrom = 'c'\n",
        ];
        let text = format!("# Head.\n\n{first}{second}{third}");
        let check = |goes: [bool; 3], expected: String| {
            assert_eq!(without(&text, ENTRY, &goes), Some(expected), "{goes:?}");
        };
        check([false, false, false], text.clone());
        check([true, false, false], format!("# Head.\n\n{second}{third}"));
        check([false, true, false], format!("# Head.\n\n{first}{third}"));
        check([false, false, true], format!("# Head.\n\n{first}{second}"));
        check([true, true, true], "# Head.\n\n".to_owned());
    }

    #[test]
    fn a_new_entry_takes_no_comment_of_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = UserFile::at(folder.path().join("some.toml"), "");
        let entry = "[[allow]]\nfrom = 'a'\n";
        for text in ["depth = 1\n# theirs", "depth = 1\n# theirs\n", "depth = 1\n# theirs\n\n"] {
            file.write_with(text, entry).expect("written");
            let with_it = file.text().expect("readable");
            assert_eq!(without(&with_it, ENTRY, &[true]).as_deref(), Some("depth = 1\n# theirs\n\n"), "{text:?}");
        }
    }
}
