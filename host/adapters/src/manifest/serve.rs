//! `[serves]` of a manifest: the server of a harness that its sessions need, and that nobody else starts. `relay-mesh up
//! --with` starts it. The words are the manifest's alone; the host chooses the port.
//!
//! ```toml
//! [serves]
//! run = "task"                                    # the program of that run, which gets the same variables
//! words = ["serve", "--port={port}"]              # the first says which of its programs a running process is
//! port = 4096                                     # where its users look for it; any free one if that is taken
//! password = "TOAD_PASSWORD"                      # the variable with the password that it asks for
//! attach = "toad attach {url}"                    # what a user types to work in it
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::{Quoted, Run};
use crate::template::{Filling, InvalidTemplate, Slot};

/// The server of a harness, and how it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serve {
    /// The program, and the variables that it gets; its words are not the run's.
    pub run: Run,
    /// Its arguments; one of them takes the port.
    pub words: Vec<Slot>,
    /// The port on loopback that its users expect.
    pub port: u16,
    /// The variable with its password. The host chooses one unless the user has set it.
    pub password: Option<String>,
    /// What a user types to work in it. `{url}` stands for its address.
    pub attach: Option<String>,
}

impl Serve {
    /// What the grant allows, in plain words.
    pub(crate) fn allows(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| Quoted(&word.to_string()).to_string()).collect();
        let mut told = format!(
            "name what `relay-mesh up --with` keeps running for its sessions: `{} {}`",
            self.run.program,
            words.join(" ")
        );
        if !self.run.environment.is_empty() {
            told.push_str(&format!("; that program gets your variables {}", self.run.environment.join(", ")));
        }
        told
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawServe {
    run: Spanned<String>,
    words: Spanned<Vec<String>>,
    port: u16,
    password: Option<String>,
    attach: Option<String>,
}

impl RawServe {
    pub(super) fn parse(self, runs: &BTreeMap<String, Run>) -> Result<Serve, (Range<usize>, InvalidTemplate)> {
        let RawServe { run, words, port, password, attach } = self;
        let Some(of_run) = runs.get(run.get_ref()) else {
            return Err((run.span(), InvalidTemplate::NoSuchRun(run.into_inner())));
        };
        let parsed: Result<Vec<Slot>, InvalidTemplate> = words.get_ref().iter().map(|word| word.parse()).collect();
        let parsed = parsed.map_err(|error| (words.span(), error))?;
        let takes_port = |word: &Slot| word.filling() == Filling::Value;
        let is_plain = |word: &Slot| word.filling() == Filling::Nothing;
        let fits = parsed.first().is_some_and(is_plain)
            && parsed.iter().filter(|word| takes_port(word)).count() == 1
            && parsed.iter().all(|word| takes_port(word) || is_plain(word));
        if !fits {
            return Err((words.span(), InvalidTemplate::NoPort));
        }
        let Run { program, environment, .. } = of_run.clone();
        let run = Run { program, environment, words: Vec::new(), options: BTreeMap::new(), sets: BTreeMap::new() };
        Ok(Serve { run, words: parsed, port, password, attach })
    }
}
