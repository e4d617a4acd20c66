//! `[drives.NAME]` of a manifest: how a harness is started whose agent is driven. Its first words are its own; program,
//! variables and options are those of the run that it names, beside options that it adds.
//!
//! ```toml
//! [drives.acp]
//! run = "task"                                    # whose program, environment, options and sets it has
//! words = ["--acp"]                               # always there
//! framing = "lines"                               # one frame per line of standard input and output
//!
//! [drives.acp.options]                            # as in a run
//! model = ["--model={name}"]
//!
//! [drives.shared]
//! run = "task"
//! words = ["serve", "--at={socket}"]              # the host's own path of a Unix socket
//! framing = "websocket"                           # one frame per text message, over that socket
//! join = ["--remote={socket}", "open", "{session}"] # how users open a session in the harness's own terminal
//! ```

use std::collections::BTreeMap;

use mesh::ports::driver::{DriverFraming, SESSION, SOCKET};
use serde::Deserialize;
use toml::Spanned;

use super::Quoted;
use super::raw::Wrong;
use super::run::{Run, options, sets};
use crate::template::InvalidTemplate;

/// How a harness is started whose agent is driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drive {
    /// Its command line.
    pub run: Run,
    /// How frames reach it.
    pub framing: DriverFraming,
    /// The arguments with which users join a session in the harness's own terminal.
    pub join: Option<Vec<String>>,
}

impl Drive {
    /// What the grant allows, in plain words.
    pub(crate) fn allows(&self) -> String {
        let mut told = self.run.allows("give an agent of its harness turns and answer what that asks");
        if let Some(join) = &self.join {
            let words: Vec<String> = join.iter().map(|word| Quoted(word).to_string()).collect();
            told.push_str(&format!("; you join one by `{} {}`", self.run.program, words.join(" ")));
        }
        told
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDrive {
    run: Spanned<String>,
    #[serde(default)]
    words: Vec<String>,
    framing: Spanned<RawFraming>,
    join: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    options: BTreeMap<String, Spanned<Vec<String>>>,
    #[serde(default)]
    sets: BTreeMap<String, Spanned<String>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawFraming {
    Lines,
    Websocket,
}

impl RawDrive {
    pub(super) fn parse(self, runs: &BTreeMap<String, Run>) -> Result<Drive, Wrong> {
        let named = runs.get(self.run.get_ref());
        let named = named.ok_or_else(|| (self.run.span(), InvalidTemplate::NoSuchRun(self.run.get_ref().clone())))?;
        let run = Run {
            program: named.program.clone(),
            words: self.words,
            options: named.options.clone().into_iter().chain(options(self.options)?).collect(),
            environment: named.environment.clone(),
            sets: named.sets.clone().into_iter().chain(sets(self.sets)?).collect(),
        };
        let framing = match self.framing.get_ref() {
            RawFraming::Lines => DriverFraming::Lines,
            RawFraming::Websocket => DriverFraming::WebSocket,
        };
        let sockets = run.words.iter().filter(|word| word.contains(SOCKET)).count();
        if sockets != usize::from(framing == DriverFraming::WebSocket) {
            return Err((self.framing.span(), InvalidTemplate::NoSocket));
        }
        let join = match self.join {
            Some(join) if framing == DriverFraming::WebSocket && names_session(join.get_ref()) => {
                Some(join.into_inner())
            }
            Some(join) => return Err((join.span(), InvalidTemplate::NoSession)),
            None => None,
        };
        Ok(Drive { run, framing, join })
    }
}

/// Whether one word is the session's id, behind a first one that is not.
fn names_session(words: &[String]) -> bool {
    words.iter().skip(1).filter(|word| *word == SESSION).count() == 1
}
