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
//! ```

use std::collections::BTreeMap;

use mesh::ports::driver::DriverFraming;
use serde::Deserialize;
use toml::Spanned;

use super::raw::Wrong;
use super::run::{Run, options, sets};
use crate::template::InvalidTemplate;

/// How a harness is started whose agent is driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drive {
    /// Its command line.
    pub run: Run,
    /// How frames are delimited.
    pub framing: DriverFraming,
}

impl Drive {
    /// What the grant allows, in plain words.
    pub(crate) fn allows(&self) -> String {
        self.run.allows("give an agent of its harness turns and answer what that asks")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDrive {
    run: Spanned<String>,
    #[serde(default)]
    words: Vec<String>,
    framing: RawFraming,
    #[serde(default)]
    options: BTreeMap<String, Spanned<Vec<String>>>,
    #[serde(default)]
    sets: BTreeMap<String, Spanned<String>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawFraming {
    Lines,
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
        let framing = match self.framing {
            RawFraming::Lines => DriverFraming::Lines,
        };
        Ok(Drive { run, framing })
    }
}
