//! A fake peer for a route: an HTTP server, a socket or a program at the place where the manifest expects the
//! harness's own. It follows the fixture, or misbehaves from a given exchange on.

mod frames;
mod http;
mod program;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;

use crate::fixtures::PeerScript;
use crate::scratch::Stage;
use adapters::manifest::Manifest;

/// When a peer misbehaves, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultPlan {
    /// It follows the fixture.
    None,
    /// It follows the fixture up to this exchange, counted from zero.
    From(usize, Fault),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is no peer.
    Deserted,
    HangsUp,
    /// It answers with bytes that are no answer.
    Nonsense,
    Refuses,
    Silent,
}

impl Fault {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Fault::Deserted => "without a peer",
            Fault::HangsUp => "with one that hangs up",
            Fault::Nonsense => "with one that talks nonsense",
            Fault::Refuses => "with one that refuses",
            Fault::Silent => "with one that never answers",
        }
    }
}

/// A running peer. It stops when this is dropped.
#[derive(Debug)]
pub(crate) struct FakePeer {
    /// Its port, if it listens on TCP.
    pub(crate) port: Option<u16>,
    heard: Received,
    task: Option<JoinHandle<()>>,
}

/// The requests that a peer has received.
#[derive(Clone, Debug)]
enum Received {
    /// In memory. A std mutex: nothing is awaited while it is held.
    Here(Arc<Mutex<Vec<String>>>),
    /// In a file that the scripted program appends to.
    File(PathBuf),
}

impl FakePeer {
    /// Starts a peer where the manifest expects it.
    pub(crate) async fn start(
        stage: &Stage<'_>,
        manifest: &Manifest,
        end: &PeerScript,
        faults: FaultPlan,
    ) -> Result<FakePeer, String> {
        match end {
            PeerScript::Origin { name, values, answers } => {
                let origin = manifest.requests.origins.get(name).ok_or_else(|| unknown("origin", name))?;
                http::start(origin, values, answers, faults).await
            }
            PeerScript::Endpoint { name, values, answers } => {
                let endpoint = manifest.requests.endpoints.get(name).ok_or_else(|| unknown("endpoint", name))?;
                frames::start(stage, endpoint, values, answers, faults).await
            }
            PeerScript::Program { name, answers } => {
                let line = manifest.requests.programs.get(name).ok_or_else(|| unknown("program", name))?;
                program::place(stage, line, answers, faults)
            }
        }
    }

    /// The requests so far, one text for each exchange.
    pub(crate) fn heard(&self) -> Vec<String> {
        match &self.heard {
            Received::Here(heard) => heard.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Received::File(path) => program::heard(path),
        }
    }
}

impl Drop for FakePeer {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

fn unknown(kind: &str, name: &str) -> String {
    format!("the manifest has no {kind} `{name}`")
}

/// The requests of a peer, shared with its task.
#[derive(Clone, Debug, Default)]
struct Transcript(Arc<Mutex<Vec<String>>>);

impl Transcript {
    /// Notes a request. Gives the fault of this exchange, if the plan has one.
    fn exchange(&self, came: String, faults: FaultPlan) -> Option<Fault> {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push(came);
        match faults {
            FaultPlan::From(first, fault) if heard.len() > first => Some(fault),
            FaultPlan::None | FaultPlan::From(..) => None,
        }
    }

    fn heard(&self) -> Received {
        Received::Here(Arc::clone(&self.0))
    }
}
