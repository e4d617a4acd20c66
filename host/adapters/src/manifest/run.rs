//! `[runs.NAME]` of a manifest: how a harness is started for one task. The words are the manifest's alone; an adapter
//! chooses among the options and fills their blanks.
//!
//! ```toml
//! [runs.task]
//! program = "toad"                                # a name in PATH, an absolute path, or "{user}": a command line of
//!                                                 # the user's, for `[drives]` alone
//! words = ["run", "--json"]                       # always there
//! environment = ["TOAD_API_KEY"]                  # passed on from the user's own, beside what every program gets
//!
//! [runs.task.options]                             # added as the adapter chooses; one {blank} per word at most
//! model = ["--model={name}"]
//! schema = ["--schema", "{file:schema.json}"]     # a file in the run's own folder
//!
//! [runs.task.sets]                                # variables that the adapter may set, unless `environment` names
//!                                                 # them and the user has
//! TOAD_RETRIES = "{number}"
//! TOAD_SETTINGS = "{file:settings.json}"
//! ```

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use toml::Spanned;

use super::Quoted;
use super::raw::Wrong;
use crate::template::{InvalidTemplate, Slot};

/// Stands for a command line of the user's, who names and allows it, in place of a program of the manifest's. Without one,
/// nothing of this name can be started.
pub const USERS_COMMAND: &str = "{user}";

/// How a harness is started for one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The program: a name to look up in `PATH`, an absolute path, or [`USERS_COMMAND`].
    pub program: String,
    /// Its first arguments.
    pub words: Vec<String>,
    /// Further arguments, by the name under which an adapter chooses them.
    pub options: BTreeMap<String, Vec<Slot>>,
    /// Variables of the user's environment that are passed on to it.
    pub environment: Vec<String>,
    /// Variables that the adapter may set.
    pub sets: BTreeMap<String, Slot>,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.program.as_str() {
            USERS_COMMAND => f.write_str("a command line that you have allowed")?,
            program => f.write_str(program)?,
        }
        self.words.iter().try_for_each(|word| write!(f, " {}", Quoted(word)))
    }
}

impl Run {
    /// What a grant allows that starts it, in plain words.
    pub(crate) fn allows(&self, what: &str) -> String {
        let mut told = format!("{what}: `{self}`");
        let options: Vec<String> = self.options.values().map(|words| format!("`{}`", option(words))).collect();
        if !options.is_empty() {
            told.push_str(&format!(", with any of {}", options.join(", ")));
        }
        if !self.environment.is_empty() {
            told.push_str(&format!("; that program gets your variables {}", self.environment.join(", ")));
        }
        let sets: Vec<String> = self.sets.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !sets.is_empty() {
            told.push_str(&format!("; the adapter may set {}", sets.join(", ")));
        }
        told
    }
}

fn option(words: &[Slot]) -> String {
    words.iter().map(|word| Quoted(&word.to_string()).to_string()).collect::<Vec<_>>().join(" ")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRun {
    program: Spanned<String>,
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    options: BTreeMap<String, Spanned<Vec<String>>>,
    #[serde(default)]
    environment: Vec<Spanned<String>>,
    #[serde(default)]
    sets: BTreeMap<String, Spanned<String>>,
}

impl RawRun {
    pub(super) fn parse(self, name: &str) -> Result<Run, Wrong> {
        let program = self.program.get_ref();
        let is_users = program == USERS_COMMAND;
        if program.is_empty() || (program.contains(['{', '\0']) && !is_users) {
            return Err((self.program.span(), InvalidTemplate::NoProgram(name.to_owned())));
        }
        let mut environment = Vec::new();
        for variable in self.environment {
            is_variable(variable.get_ref()).map_err(|error| (variable.span(), error))?;
            environment.push(variable.into_inner());
        }
        let (options, sets) = (options(self.options)?, sets(self.sets)?);
        Ok(Run { program: self.program.into_inner(), words: self.words, options, environment, sets })
    }
}

pub(super) fn options(written: BTreeMap<String, Spanned<Vec<String>>>) -> Result<BTreeMap<String, Vec<Slot>>, Wrong> {
    let mut options = BTreeMap::new();
    for (option, words) in written {
        let parsed: Result<Vec<Slot>, InvalidTemplate> = words.get_ref().iter().map(|word| word.parse()).collect();
        options.insert(option, parsed.map_err(|error| (words.span(), error))?);
    }
    Ok(options)
}

pub(super) fn sets(written: BTreeMap<String, Spanned<String>>) -> Result<BTreeMap<String, Slot>, Wrong> {
    let mut sets = BTreeMap::new();
    for (variable, value) in written {
        is_settable(&variable).map_err(|error| (value.span(), error))?;
        sets.insert(variable, value.get_ref().parse().map_err(|error| (value.span(), error))?);
    }
    Ok(sets)
}

fn is_variable(name: &str) -> Result<(), InvalidTemplate> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = !name.is_empty() && name.bytes().all(is_part) && !name.as_bytes()[0].is_ascii_digit();
    if is_name { Ok(()) } else { Err(InvalidTemplate::NotAVariable(name.to_owned())) }
}

/// Variables by which a program loads other code than the user expects, or which are relay-mesh's own.
fn is_settable(name: &str) -> Result<(), InvalidTemplate> {
    is_variable(name)?;
    let is_exact =
        ["PATH", "HOME", "SHELL", "ENV", "BASH_ENV", "NODE_OPTIONS", "NODE_PATH", "PYTHONPATH"].contains(&name);
    if is_exact || ["LD_", "DYLD_", "RELAY_"].iter().any(|prefix| name.starts_with(prefix)) {
        return Err(InvalidTemplate::NotSettable(name.to_owned()));
    }
    Ok(())
}
