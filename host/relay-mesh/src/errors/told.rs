//! An error as one process of relay-mesh tells it to another, and command lines that name the data folder.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::CommandError;
use crate::exit::Exit;

/// The error of another process: what is wrong with its causes, its hint and its exit code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToldError {
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
    pub(crate) exit: u8,
}

impl ToldError {
    pub(crate) fn of(error: &CommandError) -> ToldError {
        ToldError { what: ::mesh::reasons(error), hint: error.hint(), exit: error.exit().code() }
    }

    pub(crate) fn exit(&self) -> Exit {
        let documented = Exit::DOCUMENTED.into_iter().filter(|exit| *exit != Exit::Success);
        documented.into_iter().find(|exit| exit.code() == self.exit).unwrap_or(Exit::Failure)
    }
}

/// What each command line of ours in a text begins with.
const COMMAND: &str = "`relay-mesh ";

/// A text in which each command line of ours names a data folder, if it goes by one.
pub(crate) fn in_folder(text: &str, dir: &Path) -> String {
    let mut pieces = text.split(COMMAND);
    let mut told = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        told.push_str(COMMAND);
        let line = piece.split('`').next().unwrap_or_default();
        let goes_by_none = ["help", "version", "--"].iter().any(|word| line.starts_with(word));
        if !goes_by_none && !line.contains("--dir") {
            told.push_str(&format!("--dir {} ", quoted(&dir.display().to_string())));
        }
        told.push_str(piece);
    }
    told
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,=".contains(&byte) || !byte.is_ascii();
    match word.bytes().all(is_plain) && !word.is_empty() {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_name_the_folder_that_the_user_named() {
        for (dir, hint, expected) in [
            (
                "/d",
                "stop it by `relay-mesh down`, or use `--dir DIR`",
                "stop it by `relay-mesh --dir /d down`, or use `--dir DIR`",
            ),
            (
                "/d",
                "`relay-mesh up --dir /e` or `relay-mesh down`",
                "`relay-mesh up --dir /e` or `relay-mesh --dir /d down`",
            ),
            ("/a b", "`relay-mesh up`", "`relay-mesh --dir '/a b' up`"),
            ("/it's", "`relay-mesh up`", "`relay-mesh --dir '/it'\\''s' up`"),
            ("/d", "see `relay-mesh help config`", "see `relay-mesh help config`"),
            ("/d", "free some space", "free some space"),
        ] {
            assert_eq!(in_folder(hint, Path::new(dir)), expected);
            assert_eq!(in_folder(expected, Path::new(dir)), expected, "it names it already");
        }
    }

    #[test]
    fn an_error_that_was_told_keeps_its_code() {
        let error = CommandError::usage("it is wrong", "mend it");
        let told: ToldError =
            serde_json::from_str(&serde_json::to_string(&ToldError::of(&error)).expect("JSON")).expect("JSON");
        assert_eq!(
            (told.what.as_str(), told.hint.as_deref(), told.exit()),
            ("it is wrong", Some("mend it"), Exit::Usage)
        );
        // Success is no error, and a code that nobody knows is a failure.
        for code in [0, 77] {
            assert_eq!(ToldError { exit: code, ..told.clone() }.exit(), Exit::Failure);
        }
    }
}
