//! Writes one setting, `reservations.mode`, into a settings file and leaves the rest of the file as it is.

use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use mesh::EditMode;
use serde::Deserialize;
use store::Durability;

use super::{ConfigError, PROJECT_FILE, USER_FILE, file};
use crate::atomic_write;
use crate::environment::Environment;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingsFile {
    /// The project's file, shared by the team.
    Project,
    /// The user's own file.
    User,
}

/// Sets `reservations.mode` and returns the changed file. For a project, that is the nearest settings file within the
/// working copy, else a new one at its top.
pub(crate) fn set_edit_mode(
    place: SettingsFile,
    mode: EditMode,
    environment: &Environment,
    workdir: &Path,
    top: &Path,
) -> Result<PathBuf, ConfigError> {
    let path = match place {
        SettingsFile::User => environment.xdg("XDG_CONFIG_HOME", ".config").ok_or(ConfigError::NoHome)?.join(USER_FILE),
        SettingsFile::Project => {
            let within = workdir.ancestors().take_while(|folder| folder.starts_with(top));
            let there = within.map(|folder| folder.join(PROJECT_FILE)).find(|path| path.exists());
            there.unwrap_or_else(|| top.join(PROJECT_FILE))
        }
    };
    // A file with an error elsewhere is refused.
    file::read(&path, environment.home().as_deref())?;
    let unreadable = |source| ConfigError::Unreadable { path: path.clone(), source };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unreadable(error)),
    };
    write(&path, &with_mode(&text, mode)).map_err(|source| ConfigError::Unwritable { path: path.clone(), source })?;
    Ok(path)
}

/// Replaces the file atomically. If the path is a symlink, as users have who keep their settings elsewhere, its target
/// is written.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)?;
    let mode = std::fs::metadata(path).map_or(0o644, |old| old.permissions().mode() & 0o7777);
    atomic_write::replace(path, text.as_bytes(), mode, Durability::Synced)
}

/// Makes sure that a file is there and that only its user may read it.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    let file = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

fn with_mode(text: &str, mode: EditMode) -> String {
    #[derive(Deserialize)]
    struct File {
        reservations: Option<toml::Spanned<Table>>,
    }
    #[derive(Deserialize)]
    struct Table {
        mode: Option<toml::Spanned<String>>,
    }
    let line = format!("mode = \"{}\"\n", mode.as_str());
    let found = toml::from_str::<File>(text).ok().and_then(|file| file.reservations);
    let written = found.as_ref().and_then(|table| table.get_ref().mode.as_ref());
    if let Some(span) = written.map(toml::Spanned::span) {
        return format!("{}\"{}\"{}", &text[..span.start], mode.as_str(), &text[span.end..]);
    }
    // Below the table's header, if it has one.
    let header = text.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some((*end, line))
    });
    let mut headers = header.filter(|(_, line)| line.split('#').next().unwrap_or_default().trim() == "[reservations]");
    if let (Some(_), Some((end, header))) = (&found, headers.next()) {
        let break_before = if header.ends_with('\n') { "" } else { "\n" };
        return format!("{}{break_before}{line}{}", &text[..end], &text[end..]);
    }
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{gap}[reservations]\n{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, after: &str) {
        assert_eq!(with_mode(before, EditMode::Advise), after);
        assert_eq!(with_mode(after, EditMode::Advise), after, "twice is once");
    }

    #[test]
    fn everything_else_in_the_file_stays_as_it_is() {
        check("", "[reservations]\nmode = \"advise\"\n");
        check("team = 'a' # ours\n", "team = 'a' # ours\n\n[reservations]\nmode = \"advise\"\n");
        check("team = 'a'", "team = 'a'\n\n[reservations]\nmode = \"advise\"\n");
        check(
            "[reservations] # how\nauto-reserve = true\n\n[loops]\nhops = 3\n",
            "[reservations] # how\nmode = \"advise\"\nauto-reserve = true\n\n[loops]\nhops = 3\n",
        );
        check(
            "[reservations]\n# why\nmode  = 'enforce' # firmly\n",
            "[reservations]\n# why\nmode  = \"advise\" # firmly\n",
        );
        check("reservations.mode = 'enforce'\n", "reservations.mode = \"advise\"\n");
        check("[reservations]", "[reservations]\nmode = \"advise\"\n");
    }
}
