//! The verbs of storage.

use crate::cleanup::{Cleanup, DryRun, Scope};
use crate::storage::event_log::STEP;
use crate::{Mesh, Stretch, cleanup};
use store::{Position, StoreError, Watch};

impl Mesh {
    /// Sweeps. `stale` is after how long a silence an agent goes, in milliseconds; as long as settled mail is
    /// kept, where nothing is said.
    pub async fn clean_up(&self, scope: Scope, dry_run: DryRun, stale: Option<u64>) -> Result<Cleanup, StoreError> {
        cleanup::clean_up(&self.core, &self.inboxes, scope, dry_run, stale).await
    }

    /// The events from a position in the event log on, a stretch of them. Reading on from where it ends gives every
    /// event once.
    pub async fn event_log(&self, from: Position) -> Result<Stretch, StoreError> {
        self.core.event_log.read(from, STEP).await
    }

    /// The same in stretches of about so many bytes, for callers that hold many of them at once.
    pub async fn event_log_part(&self, from: Position, bytes: usize) -> Result<Stretch, StoreError> {
        self.core.event_log.read(from, bytes).await
    }

    /// Where the event log ends now.
    pub async fn event_log_end(&self) -> Result<Position, StoreError> {
        self.core.event_log.end().await
    }

    /// Says when the event log may have grown.
    pub async fn watch_event_log(&self) -> Result<Box<dyn Watch>, StoreError> {
        self.core.event_log.watch().await
    }

    /// Writes the lines that this process has gathered. What is noted meanwhile waits for the next time.
    pub async fn write_minutes(&self) -> Result<(), StoreError> {
        self.core.event_log.write_behind.write_all().await
    }
}
