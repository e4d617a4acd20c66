//! The end of a server: its threads end with it, each with a summary. What it cannot wait for is done all the same, by
//! the process that drives the agents.

use std::sync::Arc;
use std::time::Duration;

use mesh::driven::{DrivenId, DrivenRecord, RequestKind};
use mesh::ports::machine::Machine as _;

use super::Shared;
use crate::driven::{begin, host};
use crate::errors::CommandError;

/// How long the end of all threads may take: a running turn is stopped, and each sums up within 10 s.
const ENDS: Duration = Duration::from_secs(15);
/// How often a server says that it lives, for processes that cannot see it.
const BEATS: Duration = Duration::from_secs(60);

impl Shared {
    /// Says now and then that this server lives, in the records of its threads.
    pub(super) async fn keep_saying_that_it_lives(self: Arc<Self>) {
        let beats = async {
            loop {
                tokio::time::sleep(BEATS).await;
                if let Err(error) = self.beat().await {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "the threads of this server do not hear that it lives");
                }
            }
        };
        self.stop.run_until_cancelled(beats).await;
    }

    async fn beat(&self) -> Result<(), CommandError> {
        let now = self.open.machine.now();
        for id in self.own().await? {
            let beat = |record: &mut DrivenRecord| record.tool.iter_mut().for_each(|tool| tool.beat = now);
            self.open.mesh.change_driven(id, beat).await?;
        }
        Ok(())
    }

    /// The live threads of this server.
    async fn own(&self) -> Result<Vec<DrivenId>, CommandError> {
        let server = self.open.machine.this_process();
        let is_own = |record: &DrivenRecord| record.tool.as_ref().is_some_and(|tool| tool.server.is(&server));
        Ok(self.open.mesh.driven_agents().await?.into_iter().filter(is_own).map(|record| record.id).collect())
    }

    pub(super) async fn end_all(&self) -> Result<(), CommandError> {
        let own = self.own().await?;
        if own.is_empty() {
            return Ok(());
        }
        for id in &own {
            // One may have ended meanwhile, which is what is wanted.
            let asked = self.open.mesh.ask_driven(&id.to_string(), RequestKind::Dismiss { summary: true }, None).await;
            if let Err(error) = asked {
                tracing::debug!(%id, error = %store::reasons(&error), "a thread is not asked to end");
            }
        }
        host::sweep(&self.open).await?;
        let ended = async {
            // Watch before reading, so that no change is missed in between.
            let mut changes = self.open.mesh.watch_driven().await?;
            while !self.own().await?.is_empty() {
                changes.changed().await?;
            }
            Ok(())
        };
        match tokio::time::timeout(ENDS, begin::while_driven(&self.context, &self.open, ended)).await {
            Ok(ended) => ended,
            Err(_) => {
                tracing::warn!("threads are still ending");
                Ok(())
            }
        }
    }
}
