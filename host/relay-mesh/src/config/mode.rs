//! Writes one setting, `reservations.mode`, into a settings file and leaves the rest of the file as it is.

use std::io;
use std::path::{Path, PathBuf};

use mesh::EditMode;
use serde::Deserialize;
use store::Durability;
use toml::de::DeTable;

use super::{ConfigError, PROJECT_FILE, USER_FILE, file};
use crate::atomic_write;
use crate::environment::Environment;
use crate::unix::{self, PermissionsExt as _};

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
    let changed = with_mode(&text, mode).map_err(|line| {
        let what = "no line can be added to `reservations` as it is written: write `mode` into it by hand".to_owned();
        ConfigError::Invalid { path: path.clone(), line, what }
    })?;
    write(&path, &changed).map_err(|source| ConfigError::Unwritable { path: path.clone(), source })?;
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
    let file = unix::append_to_private_file(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

/// The text with this mode, or the number of the line because of which it has no place.
fn with_mode(text: &str, mode: EditMode) -> Result<String, usize> {
    let line = format!("mode = \"{}\"\n", mode.as_str());
    let table = DeTable::parse(text).map_err(|_| 1_usize)?;
    let found = table.get_ref().get("reservations");
    let first_line = found.map_or(1, |value| text[..value.span().start].matches('\n').count() + 1);
    let new = match (mode_in(text), found) {
        (Some(old), _) => {
            let span = old.span();
            format!("{}\"{}\"{}", &text[..span.start], mode.as_str(), &text[span.end..])
        }
        (None, Some(value)) => {
            // What is written there is the header, the inline table, or the name in a dotted key or in another header.
            let span = value.span();
            let is_first = text[..span.start].rsplit('\n').next().is_some_and(|before| before.trim().is_empty());
            match text.as_bytes().get(span.start) {
                Some(b'[') => with_line_below(text, span.end, &line),
                Some(b'{') => return Err(first_line),
                _ if is_first => {
                    let keys = value.get_ref().as_table();
                    let first = keys.and_then(|keys| keys.iter().min_by_key(|(key, _)| key.span().start));
                    let end = first.map_or(span.end, |(_, value)| value.span().end);
                    with_line_below(text, end, &format!("reservations.{line}"))
                }
                _ => with_table(text, &line),
            }
        }
        (None, None) => with_table(text, &line),
    };
    let is_set = mode_in(&new).is_some_and(|written| written.get_ref() == mode.as_str());
    if is_set { Ok(new) } else { Err(first_line) }
}

/// The mode that a text sets, and where.
fn mode_in(text: &str) -> Option<toml::Spanned<String>> {
    #[derive(Deserialize)]
    struct File {
        reservations: Option<Table>,
    }
    #[derive(Deserialize)]
    struct Table {
        mode: Option<toml::Spanned<String>>,
    }
    toml::from_str::<File>(text).ok()?.reservations?.mode
}

/// The text with a further line below the one that holds this place.
fn with_line_below(text: &str, place: usize, line: &str) -> String {
    let end = text[place..].find('\n').map_or(text.len(), |length| place + length + 1);
    let break_before = if text[..end].ends_with('\n') { "" } else { "\n" };
    format!("{}{break_before}{line}{}", &text[..end], &text[end..])
}

/// The text with the table and this line of it at its end.
fn with_table(text: &str, line: &str) -> String {
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
        assert_eq!(with_mode(before, EditMode::Advise).as_deref(), Ok(after));
        assert_eq!(with_mode(after, EditMode::Advise).as_deref(), Ok(after), "twice is once");
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

    #[test]
    fn a_table_is_found_however_it_is_written() {
        check(
            "reservations.auto-reserve = true # ours\nteam = 'a'\n",
            "reservations.auto-reserve = true # ours\nreservations.mode = \"advise\"\nteam = 'a'\n",
        );
        check(
            "\"reservations\" . auto-reserve = true",
            "\"reservations\" . auto-reserve = true\nreservations.mode = \"advise\"\n",
        );
        check(
            "[ reservations ]  # [how]\nauto-reserve = true\n",
            "[ reservations ]  # [how]\nmode = \"advise\"\nauto-reserve = true\n",
        );
        check("reservations = { mode = 'enforce' }\n", "reservations = { mode = \"advise\" }\n");
    }

    #[test]
    fn an_inline_table_is_refused_and_the_file_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(PROJECT_FILE);
        let text = "team = 'a'\nreservations = { auto-reserve = true }\n";
        std::fs::write(&path, text).expect("written");
        let home = folder.path().display().to_string();
        let environment = Environment::from([("HOME", home.as_str())]);
        let (place, top) = (SettingsFile::Project, folder.path());
        let error = set_edit_mode(place, EditMode::Advise, &environment, top, top).expect_err("refused").to_string();
        assert!(error.contains("line 2: no line can be added") && error.contains("by hand"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), text);
    }
}
