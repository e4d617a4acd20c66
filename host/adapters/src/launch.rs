//! Puts together what a run starts: the manifest's words, the options that the adapter chose, the files that their
//! blanks name, and an environment that is narrowed to what the manifest names. Everything here is pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::manifest::Run;
use crate::template::{FillError, Filling, Slot, Surroundings};

/// What all programs of a run get of the user's environment, beside what the manifest names: where things are, which
/// language and terminal, how to reach the network. Keys, tokens, agents' sockets, and what tells a program inside
/// which session it was started, are not among them.
const PASSED_ON: [&str; 34] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "XDG_DATA_DIRS",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
];
/// The most that the files of one run hold together.
const MOST_IN_FILES: usize = 1024 * 1024;
/// The most options of one command line.
const MOST_CHOICES: usize = 256;

/// What an adapter chose.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// Options of the manifest's run, in order, each with the values of its blanks.
    pub(crate) options: Vec<(String, Vec<String>)>,
    /// Variables, each with the value of its blank.
    pub(crate) environment: Vec<(String, String)>,
    /// Files in the run's own folder, by name.
    pub(crate) files: Vec<(String, String)>,
}

/// The arguments and the environment of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Composed {
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
}

/// Why an adapter's choices make no command line. It is the adapter's mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error("it chose the option `{0}`, which its manifest does not name")]
    NoSuchOption(String),
    #[error("it set the variable `{0}`, which its manifest does not name")]
    NoSuchVariable(String),
    #[error("it filled the option `{option}` with {given} values, and it takes {blanks}")]
    Values { option: String, blanks: usize, given: usize },
    #[error("it gave a value to `{0}`, which takes none")]
    NoBlank(String),
    #[error("{0}")]
    Unfit(#[from] FillError),
    #[error("it named the file `{0}` and did not give it")]
    NoFile(String),
    #[error("it gave the file `{0}`, which no word of the command line names")]
    UnnamedFile(String),
    #[error("it gave more than {MOST_IN_FILES} bytes of files")]
    LargeFiles,
    #[error("it chose more than {MOST_CHOICES} options")]
    ManyChoices,
    #[error("the folder of the run has a name that is not UTF-8")]
    Folder,
}

/// Puts a run together. `folder` is the run's own, in which its files will be.
pub(crate) fn compose(
    run: &Run,
    chosen: &Chosen,
    folder: &Path,
    surroundings: &Surroundings,
) -> Result<Composed, LaunchError> {
    if chosen.options.len() > MOST_CHOICES {
        return Err(LaunchError::ManyChoices);
    }
    if chosen.files.iter().map(|(_, text)| text.len()).sum::<usize>() > MOST_IN_FILES {
        return Err(LaunchError::LargeFiles);
    }
    let mut files = Files { folder, given: &chosen.files, named: BTreeSet::new() };
    let mut arguments = run.words.clone();
    for (name, values) in &chosen.options {
        let words = run.options.get(name).ok_or_else(|| LaunchError::NoSuchOption(name.clone()))?;
        let blanks = words.iter().filter(|word| word.filling() == Filling::Value).count();
        if blanks != values.len() {
            return Err(LaunchError::Values { option: name.clone(), blanks, given: values.len() });
        }
        let mut values = values.iter();
        for word in words {
            arguments.push(match word.filling() {
                Filling::Nothing => word.word("")?,
                Filling::Value => word.word(values.next().map_or("", String::as_str))?,
                Filling::File(name) => word.word(&files.path(name)?)?,
            });
        }
    }
    let mut environment = passed_on(run, surroundings);
    for (name, value) in &chosen.environment {
        let slot = run.sets.get(name).ok_or_else(|| LaunchError::NoSuchVariable(name.clone()))?;
        let value = set(name, slot, value, &mut files)?;
        // Where the manifest passes the variable on too, the adapter's value is for those who have none.
        match run.environment.contains(name) {
            true => environment.entry(name.clone()).or_insert(value),
            false => environment.entry(name.clone()).insert_entry(value).into_mut(),
        };
    }
    let unnamed = chosen.files.iter().find(|(name, _)| !files.named.contains(name.as_str()));
    if let Some((name, _)) = unnamed {
        return Err(LaunchError::UnnamedFile(name.clone()));
    }
    Ok(Composed { arguments, environment: environment.into_iter().collect() })
}

fn set(name: &str, slot: &Slot, value: &str, files: &mut Files<'_>) -> Result<String, LaunchError> {
    match slot.filling() {
        Filling::Value => Ok(slot.value(value)?),
        Filling::Nothing | Filling::File(_) if !value.is_empty() => Err(LaunchError::NoBlank(name.to_owned())),
        Filling::Nothing => Ok(slot.value("")?),
        Filling::File(file) => Ok(slot.value(&files.path(file)?)?),
    }
}

/// What a run's program gets of the user's environment.
pub(crate) fn passed_on(run: &Run, surroundings: &Surroundings) -> BTreeMap<String, String> {
    let goes = |name: &str| PASSED_ON.contains(&name) || run.environment.iter().any(|named| named == name);
    let of_the_user = surroundings.environment.iter().filter(|(name, _)| goes(name));
    let mut all: BTreeMap<String, String> = of_the_user.map(|(name, value)| (name.clone(), value.clone())).collect();
    all.extend(surroundings.own.environment.iter().cloned());
    all
}

/// The files of a run, and which of them the command line names.
struct Files<'f> {
    folder: &'f Path,
    given: &'f [(String, String)],
    named: BTreeSet<String>,
}

impl Files<'_> {
    fn path(&mut self, name: &str) -> Result<String, LaunchError> {
        if !self.given.iter().any(|(given, _)| given == name) {
            return Err(LaunchError::NoFile(name.to_owned()));
        }
        self.named.insert(name.to_owned());
        let path: PathBuf = self.folder.join(name);
        path.to_str().map(str::to_owned).ok_or(LaunchError::Folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;
    use crate::template::OwnInstallation;

    const MANIFEST: &str = r#"
        name = "x"
        title = "X"
        version = "1"
        wit = "0.1"
        [runs.task]
        program = "x"
        words = ["run"]
        environment = ["X_KEY", "X_PATIENCE"]
        [runs.task.options]
        model = ["--model={name}"]
        resume = ["resume", "{thread}"]
        servers = ["--servers", "{file:servers.json}"]
        quiet = ["-q"]
        [runs.task.sets]
        X_RETRIES = "{number}"
        X_QUIET = "1"
        X_KEY = "{key}"
        X_PATIENCE = "{number}"
        X_SETTINGS = "{file:settings.json}"
    "#;

    fn surroundings() -> Surroundings {
        let pairs = [("PATH", "/bin"), ("X_KEY", "k"), ("OTHER_KEY", "o"), ("CLAUDECODE", "1"), ("https_proxy", "p")];
        let own = OwnInstallation {
            environment: vec![("RELAY_DIR".to_owned(), "/d".to_owned())],
            ..OwnInstallation::default()
        };
        let environment = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Surroundings { environment, own, ..Surroundings::default() }
    }

    /// `choices` are options (`name value …`), variables (`NAME=value`) and files (`name:text`).
    fn check(choices: &[&str], expected: &str) {
        let run = Manifest::parse(MANIFEST).expect("a manifest").requests.runs.remove("task").expect("a run");
        let mut chosen = Chosen::default();
        for choice in choices {
            let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
            if let Some(variable) = choice.split_once('=') {
                chosen.environment.push(pair(variable));
            } else if let Some(file) = choice.split_once(':') {
                chosen.files.push(pair(file));
            } else {
                let mut words = choice.split(' ').map(str::to_owned);
                chosen.options.push((words.next().unwrap_or_default(), words.collect()));
            }
        }
        let told = match compose(&run, &chosen, Path::new("/runs/1"), &surroundings()) {
            Ok(composed) => format!("{:?} {:?}", composed.arguments, composed.environment),
            Err(error) => error.to_string(),
        };
        assert!(told.contains(expected), "{choices:?}: {told}");
    }

    #[test]
    fn only_words_of_the_manifest_get_into_a_command_line() {
        check(&[], r#"["run"] "#);
        check(&["quiet", "model --yolo", "resume t1"], r#"["run", "-q", "--model=--yolo", "resume", "t1"]"#);
        check(&["resume --yolo"], "would be read as an option");
        check(&["yolo"], "it chose the option `yolo`, which its manifest does not name");
        check(&["quiet now"], "filled the option `quiet` with 1 values, and it takes 0");
        check(&["model"], "with 0 values, and it takes 1");
        check(&["resume a\0"], "zero byte");
    }

    #[test]
    fn files_are_in_the_runs_own_folder_and_all_are_named() {
        check(&["servers", "servers.json:{}"], r#"["run", "--servers", "/runs/1/servers.json"]"#);
        check(&["servers"], "it named the file `servers.json` and did not give it");
        check(&["servers.json:{}"], "it gave the file `servers.json`, which no word of the command line names");
        check(&["X_SETTINGS=", "settings.json:{}"], r#"("X_SETTINGS", "/runs/1/settings.json")"#);
        check(&["../../etc/passwd:x"], "which no word of the command line names");
        let large = format!("servers.json:{}", "x".repeat(MOST_IN_FILES + 1));
        check(&["servers", &large], "bytes of files");
    }

    #[test]
    fn the_environment_is_narrowed_to_what_is_named() {
        check(&[], r#"[("PATH", "/bin"), ("RELAY_DIR", "/d"), ("X_KEY", "k"), ("https_proxy", "p")]"#);
        check(&["X_RETRIES=-1"], r#"("X_RETRIES", "-1")"#);
        check(&["X_QUIET="], r#"("X_QUIET", "1")"#);
        check(&["X_QUIET=0"], "it gave a value to `X_QUIET`, which takes none");
        // What the user has set themselves counts before what an adapter would set.
        check(&["X_KEY=other"], r#"("X_KEY", "k")"#);
        check(&["X_PATIENCE=6"], r#"("X_PATIENCE", "6")"#);
        check(&["PATH=/evil"], "it set the variable `PATH`, which its manifest does not name");
    }
}
