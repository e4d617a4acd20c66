//! The other end of a route, by script: an HTTP server, a socket or a program, where the manifest says
//! that the harness's own is. It does as the fixture says, or misbehaves from some exchange on.

mod frames;
mod http;
mod program;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;

use super::fixtures::FarEnd;
use super::scratch::Stage;
use crate::manifest::Manifest;

/// How an end behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// As the fixture says.
    Good,
    /// As the fixture says, up to this exchange, counted from zero.
    From(usize, Fault),
}

/// What may be wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nobody is there.
    Deserted,
    /// It hangs up without an answer.
    HangsUp,
    /// It answers with something else.
    Nonsense,
    /// It refuses.
    Refuses,
    /// It never answers.
    Silent,
}

impl Fault {
    /// In words.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Fault::Deserted => "with nobody there",
            Fault::HangsUp => "with one that hangs up",
            Fault::Nonsense => "with one that talks nonsense",
            Fault::Refuses => "with one that refuses",
            Fault::Silent => "with one that never answers",
        }
    }
}

/// An end that is there for as long as this is kept.
#[derive(Debug)]
pub(super) struct Serving {
    /// Its port, where it has one.
    pub(super) port: Option<u16>,
    heard: Heard,
    task: Option<JoinHandle<()>>,
}

/// Where an end keeps what came to it.
#[derive(Clone, Debug)]
enum Heard {
    /// In memory. A std mutex: nothing is awaited while it is held.
    Here(Arc<Mutex<Vec<String>>>),
    /// In a file, one record after another.
    File(PathBuf),
}

impl Serving {
    /// Puts an end where the manifest says that it is.
    pub(super) async fn start(
        stage: &Stage<'_>,
        manifest: &Manifest,
        end: &FarEnd,
        manner: Manner,
    ) -> Result<Serving, String> {
        match end {
            FarEnd::Origin { name, values, answers } => {
                let origin = manifest.asks.origins.get(name).ok_or_else(|| unknown("origin", name))?;
                http::start(origin, values, answers, manner).await
            }
            FarEnd::Endpoint { name, values, answers } => {
                let endpoint = manifest.asks.endpoints.get(name).ok_or_else(|| unknown("endpoint", name))?;
                frames::start(stage, endpoint, values, answers, manner).await
            }
            FarEnd::Program { name, answers } => {
                let line = manifest.asks.programs.get(name).ok_or_else(|| unknown("program", name))?;
                program::place(stage, line, answers, manner)
            }
        }
    }

    /// What came to it so far, one text for each exchange.
    pub(super) fn heard(&self) -> Vec<String> {
        match &self.heard {
            Heard::Here(heard) => heard.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Heard::File(path) => program::heard(path),
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

fn unknown(kind: &str, name: &str) -> String {
    format!("the manifest has no {kind} `{name}`")
}

/// What is kept of the exchanges, shared with the task that makes them.
#[derive(Clone, Debug, Default)]
struct Ledger(Arc<Mutex<Vec<String>>>);

impl Ledger {
    /// Notes what came, and tells how this exchange goes.
    fn exchange(&self, came: String, manner: Manner) -> Option<Fault> {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push(came);
        match manner {
            Manner::From(first, fault) if heard.len() > first => Some(fault),
            Manner::Good | Manner::From(..) => None,
        }
    }

    fn heard(&self) -> Heard {
        Heard::Here(Arc::clone(&self.0))
    }
}
