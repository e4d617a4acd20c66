//! Writing one setting into a settings file: `reservations.mode`. Everything else in the file stays as it is.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use mesh::EditMode;
use serde::Deserialize;
use store::Durability;

use super::{ConfigError, PROJECT_FILE, USER_FILE, file};
use crate::atomic_write;
use crate::environment::Environment;

/// Whose settings are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The project's file, which a team shares.
    Project,
    /// The person's own.
    User,
}

/// Sets `reservations.mode` and gives the file in which it now stands. The project's file is the nearest one within
/// the working copy, else a new one at its top.
pub(crate) fn set_edit_mode(
    place: Place,
    mode: EditMode,
    environment: &Environment,
    workdir: &Path,
    top: &Path,
) -> Result<PathBuf, ConfigError> {
    let path = match place {
        Place::User => environment.xdg("XDG_CONFIG_HOME", ".config").ok_or(ConfigError::NoHome)?.join(USER_FILE),
        Place::Project => {
            let within = workdir.ancestors().take_while(|folder| folder.starts_with(top));
            let there = within.map(|folder| folder.join(PROJECT_FILE)).find(|path| path.exists());
            there.unwrap_or_else(|| top.join(PROJECT_FILE))
        }
    };
    // A file that says something else that is wrong is not ours to touch.
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

/// Another process may read the file meanwhile: it sees the old one or the new one. Where the path is a link, as
/// people have them who keep their settings elsewhere, what it leads to is written.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)?;
    let mode = std::fs::metadata(path).map_or(0o644, |old| old.permissions().mode() & 0o7777);
    atomic_write::replace(path, text.as_bytes(), mode, Durability::Synced)
}

/// The file's text with this mode in it.
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
    // Below its header, where the table has one.
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
