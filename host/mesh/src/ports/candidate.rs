//! A harness that may be the caller's, and how far its word counts.

use std::sync::Arc;
use std::time::Duration;

use crate::ports::harness::{Harness, HarnessError};
use crate::sessions::{Caller, Certainty, Detection, Transport};

/// A harness that may be the caller's.
#[derive(Clone)]
pub struct Candidate {
    pub harness: Arc<dyn Harness>,
    /// Whether the client's name or the variable by which it was chosen is its own. If it belongs to another harness, or
    /// to none, its adapter can be certain of nothing.
    pub owns_match: bool,
    /// How long the caller waits for its answer. None for an adapter that is part of the program.
    pub deadline: Option<Duration>,
}

impl Candidate {
    /// A harness whose word counts.
    pub fn owner(harness: Arc<dyn Harness>) -> Candidate {
        Candidate { harness, owns_match: true, deadline: None }
    }

    /// The session that it takes the caller for, as certain as it may be. A command line shows only what its process
    /// inherited.
    pub async fn detect(&self, seen: &Caller) -> Result<Option<Detection>, HarnessError> {
        let asked = self.harness.detect(seen);
        let found = match self.deadline {
            None => asked.await,
            Some(longest) => tokio::time::timeout(longest, asked).await.unwrap_or_else(|_| {
                let name = &self.harness.about().harness;
                let within = longest.as_millis();
                Err(HarnessError::Failed(format!("the adapter `{name}` did not say within {within} ms who calls")))
            }),
        };
        let may_be_certain = self.owns_match && seen.transport != Transport::CommandLine;
        Ok(found?.map(|detection| match detection.certainty {
            Certainty::Certain if !may_be_certain => Detection { certainty: Certainty::Inherited, ..detection },
            Certainty::Certain | Certainty::Inherited => detection,
        }))
    }
}
