//! Which programs may be started as agents that speak the Agent Client Protocol. They are in a file beside the user's
//! settings, so a project cannot bring its own, and each is a whole command line.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::ConfigError;
use super::user_file::{self, ENTRY, UserFile};
use crate::environment::Environment;
use crate::unix;

/// Relative to the configuration folder.
const FILE: &str = "relay-mesh/acp.toml";
const HEAD: &str = "# Which programs `relay-mesh spawn NAME --acp 'PROGRAM ARGUMENTS'` may start, by `relay-mesh spawn acp \
                    allow`. Each\n# entry is a whole command line, with the variables of yours that the program gets.\n";

/// A program that the user has allowed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcpProgram {
    /// The program, absolute, and its arguments.
    pub(crate) command: Vec<String>,
    /// Names of variables that it gets, beside those that every program gets.
    #[serde(default)]
    pub(crate) environment: Vec<String>,
}

/// The user's file; it need not exist.
#[derive(Clone, Debug)]
pub(crate) struct AcpPrograms(UserFile);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    #[serde(default)]
    allow: Vec<AcpProgram>,
}

impl AcpPrograms {
    pub(crate) fn of(environment: &Environment) -> Result<AcpPrograms, ConfigError> {
        Ok(AcpPrograms(UserFile::of(FILE, HEAD, environment)?))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn listed(&self) -> Result<Vec<AcpProgram>, ConfigError> {
        Ok(self.0.parse::<Entries>(&self.0.text()?)?.allow)
    }

    /// Allows a command line, in place of what was allowed of it before.
    pub(crate) fn allow(&self, program: &AcpProgram) -> Result<(), ConfigError> {
        let _alone = self.0.alone()?;
        let (kept, _) = self.without(&program.command)?;
        self.0.write_with(&kept, &written(program))
    }

    /// Takes it back. Returns whether it was allowed.
    pub(crate) fn disallow(&self, command: &[String]) -> Result<bool, ConfigError> {
        let _alone = self.0.alone()?;
        let (kept, was_there) = self.without(command)?;
        if was_there {
            self.0.write(&kept)?;
        }
        Ok(was_there)
    }

    fn without(&self, command: &[String]) -> Result<(String, bool), ConfigError> {
        let text = self.0.text()?;
        let goes: Vec<bool> =
            self.0.parse::<Entries>(&text)?.allow.iter().map(|program| program.command == command).collect();
        let kept = user_file::without(&text, ENTRY, &goes).ok_or_else(|| {
            self.0.invalid("its entries are not written one by one, so it cannot be changed here".to_owned())
        })?;
        Ok((kept, goes.contains(&true)))
    }
}

fn written(program: &AcpProgram) -> String {
    let list = |words: &[String]| {
        let quoted: Vec<String> = words.iter().map(|word| toml::Value::String(word.clone()).to_string()).collect();
        format!("[{}]", quoted.join(", "))
    };
    format!("{ENTRY}\ncommand = {}\nenvironment = {}\n", list(&program.command), list(&program.environment))
}

/// Why text is no command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidCommand {
    #[error("`{0}` is no command line: a quote is open, or it is empty")]
    Words(String),
    #[error("the program `{0}` is not in PATH")]
    NoProgram(String),
}

/// A command line as it is typed, with the program's absolute path in front. A shell sees none of it.
pub(crate) fn command_of(typed: &str, environment: &Environment, folder: &Path) -> Result<Vec<String>, InvalidCommand> {
    let words = shlex::split(typed).filter(|words| words.first().is_some_and(|first| !first.is_empty()));
    let mut words = words.ok_or_else(|| InvalidCommand::Words(typed.to_owned()))?;
    let is_program = |path: &PathBuf| path.is_absolute() && path.is_file() && unix::is_executable(path);
    let found = if words[0].contains('/') {
        Some(folder.join(&words[0])).filter(is_program)
    } else {
        let folders = environment.get("PATH").unwrap_or_default();
        std::env::split_paths(folders).map(|folder| folder.join(&words[0])).find(is_program)
    };
    let found = found.and_then(|path| path.to_str().map(str::to_owned));
    words[0] = found.ok_or_else(|| InvalidCommand::NoProgram(words[0].clone()))?;
    Ok(words)
}

/// A command line as a shell would take it.
pub(crate) fn as_typed(command: &[String]) -> String {
    shlex::try_join(command.iter().map(String::as_str)).unwrap_or_else(|_| command.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_allowed_whole_and_taken_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let all = AcpPrograms(UserFile::at(folder.path().join(FILE), HEAD));
        let of = |words: &[&str], environment: &[&str]| AcpProgram {
            command: words.iter().map(|word| (*word).to_owned()).collect(),
            environment: environment.iter().map(|name| (*name).to_owned()).collect(),
        };
        let (one, other) = (of(&["/bin/a", "acp"], &["A_KEY"]), of(&["/bin/a", "acp", "it's \"so\"\n"], &[]));
        all.allow(&one).expect("allowed");
        all.allow(&other).expect("allowed");
        all.allow(&of(&["/bin/a", "acp"], &["A_KEY", "B_KEY"])).expect("allowed");
        assert_eq!(all.listed().expect("listed"), [other.clone(), of(&["/bin/a", "acp"], &["A_KEY", "B_KEY"])]);
        assert!(all.disallow(&one.command).expect("taken back"));
        assert!(!all.disallow(&one.command).expect("nothing is left to take back"));
        assert_eq!(all.listed().expect("listed"), [other]);
    }

    #[test]
    fn a_command_line_is_words_and_no_shell_sees_it() {
        let check = |typed: &str, expected: &str| {
            let environment = Environment::from([("PATH", "/nowhere:/bin")]);
            let told = command_of(typed, &environment, Path::new("/"));
            let told = told.map_or_else(|error| error.to_string(), |words| words.join("|"));
            assert_eq!(told, expected, "{typed}");
        };
        check("sh acp", "/bin/sh|acp");
        check("/bin/sh '--name=a b' \"$HOME\" ;", "/bin/sh|--name=a b|$HOME|;");
        check("bin/sh", "/bin/sh");
        check("sh 'acp", "`sh 'acp` is no command line: a quote is open, or it is empty");
        check("  ", "`  ` is no command line: a quote is open, or it is empty");
        check("relay-mesh-has-no-such-program acp", "the program `relay-mesh-has-no-such-program` is not in PATH");
        assert_eq!(as_typed(&["/bin/sh".to_owned(), "a b".to_owned()]), "/bin/sh 'a b'");
    }
}
