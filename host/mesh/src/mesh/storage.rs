//! The verbs of storage.

use crate::cleanup::{Cleanup, DryRun, Scope};
use crate::ports::data_files::{DataFiles, NoDataFiles};
use crate::ports::machine::Instant;
use crate::storage::damage::{self, DamagedRecord};
use crate::storage::event_log::STEP;
use crate::{Mesh, Stretch, cleanup};
use store::{Position, StoreError, Watch};

impl Mesh {
    /// Deletes what is finished and old. `stale` is the silence after which an agent is deleted, in milliseconds; by
    /// default as long as settled mail is kept.
    pub async fn clean_up(&self, scope: Scope, dry_run: DryRun, stale: Option<u64>) -> Result<Cleanup, StoreError> {
        self.clean_up_in(scope, dry_run, stale, &NoDataFiles).await
    }

    /// The same in a data folder whose files are known: then segments are counted and measured, and the logs of agents
    /// without a record are cleaned up too.
    pub async fn clean_up_in(
        &self,
        scope: Scope,
        dry_run: DryRun,
        stale: Option<u64>,
        files: &dyn DataFiles,
    ) -> Result<Cleanup, StoreError> {
        cleanup::clean_up(&self.core, &self.inboxes, (scope, dry_run, stale), files).await
    }

    /// The records shared by the machines of this mesh that cannot be read as what they are.
    pub async fn damaged_records(&self) -> Result<Vec<DamagedRecord>, StoreError> {
        damage::damaged_records(&self.core).await
    }

    /// Takes a damaged record away, so that everything works without it.
    pub async fn remove_damaged(&self, record: &DamagedRecord) -> Result<(), StoreError> {
        damage::remove(&self.core, record).await
    }

    /// A stretch of events from a position in the event log on. Continuing at its end yields every event once.
    pub async fn event_log(&self, from: Position) -> Result<Stretch, StoreError> {
        self.core.event_log.read(from, STEP).await
    }

    /// The same with stretches of about `bytes`, for callers that hold many of them at once.
    pub async fn event_log_part(&self, from: Position, bytes: usize) -> Result<Stretch, StoreError> {
        self.core.event_log.read(from, bytes).await
    }

    /// A position in the event log before which no event is of this time or later.
    pub async fn event_log_since(&self, since: Instant) -> Result<Position, StoreError> {
        self.core.event_log.since(since).await
    }

    /// The current end position of the event log.
    pub async fn event_log_end(&self) -> Result<Position, StoreError> {
        self.core.event_log.end().await
    }

    /// Watches for growth of the event log.
    pub async fn watch_event_log(&self) -> Result<Box<dyn Watch>, StoreError> {
        self.core.event_log.watch().await
    }

    /// Writes the buffered lines of this process. Lines noted meanwhile wait for the next call.
    pub async fn write_minutes(&self) -> Result<(), StoreError> {
        self.core.event_log.write_behind.write_all().await
    }
}
