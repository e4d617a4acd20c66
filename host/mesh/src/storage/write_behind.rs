//! Write-behind for lines that no caller waits for, such as those of the event log and of a sender's own list. On
//! servers each line would cost as much as the message itself, so a long-lived process buffers them and writes many at
//! once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use store::{AppendError, Durability, Expect, Key, Store, StoreError};
use tokio::sync::Notify;

use crate::delivery::serve::RETRY;
use crate::storage::records;

/// How many bytes to write at once: well below the servers' limit for one message.
const AT_ONCE: usize = 256 * 1024;
/// How long to buffer lines after a write. A line after a pause is written at once.
const GATHERED_FOR: Duration = Duration::from_millis(100);
/// How many lines of one log are buffered while the servers are unreachable.
const MOST_KEPT: usize = 10_000;

/// The buffer of unwritten lines.
pub(crate) struct WriteBehind {
    store: Arc<dyn Store>,
    /// A std mutex: nothing is awaited while it is held.
    gathered: Mutex<Gathered>,
    /// Notified when there is something to write.
    news: Notify,
}

#[derive(Default)]
struct Gathered {
    /// How many writers this process has. Without a writer, nothing is buffered.
    writers: usize,
    lines: BTreeMap<Key, Vec<Vec<u8>>>,
}

impl WriteBehind {
    pub(crate) fn new(store: Arc<dyn Store>) -> WriteBehind {
        WriteBehind { store, gathered: Mutex::default(), news: Notify::new() }
    }

    /// Adds a line to a log: at once, or buffered if this process has a writer.
    pub(crate) async fn log_line<T: Serialize + Sync>(&self, log: &Key, line: &T) -> Result<(), StoreError> {
        {
            let mut gathered = self.gathered.lock().expect("no holder of this lock panics");
            if gathered.writers > 0 {
                let lines = gathered.lines.entry(log.clone()).or_default();
                if lines.len() < MOST_KEPT {
                    lines.push(records::json(line));
                }
                self.news.notify_one();
                return Ok(());
            }
        }
        records::append(self.store.as_ref(), log, line, Durability::Process).await.map(|_| ())
    }

    pub(crate) fn unwritten(&self, log: &Key) -> Vec<Vec<u8>> {
        let gathered = self.gathered.lock().expect("no holder of this lock panics");
        gathered.lines.get(log).cloned().unwrap_or_default()
    }

    /// Writes buffered lines until dropped. While it runs, lines are buffered.
    pub(crate) async fn keep_writing(&self) {
        let _writer = Writer::of(self);
        loop {
            self.news.notified().await;
            if let Err(error) = self.write_all().await {
                tracing::debug!(%error, "buffered lines wait");
                tokio::time::sleep(RETRY).await;
                self.news.notify_one();
            }
            tokio::time::sleep(GATHERED_FOR).await;
        }
    }

    /// Writes the lines that are buffered now. Lines added meanwhile wait for the next call. Those that can never be
    /// written are dropped.
    pub(crate) async fn write_all(&self) -> Result<(), StoreError> {
        let now: Vec<(Key, usize)> = {
            let gathered = self.gathered.lock().expect("no holder of this lock panics");
            gathered.lines.iter().map(|(log, lines)| (log.clone(), lines.len())).collect()
        };
        for (log, mut count) in now {
            while count > 0 {
                let lines = self.next_of(&log, count);
                // Another writer has written them.
                if lines.is_empty() {
                    break;
                }
                match self.store.append(&log, &lines, Expect::Any, Durability::Process).await {
                    Ok(_) => {}
                    // A retry could not write them either, and the lines behind them and the other logs would wait.
                    Err(AppendError::Store(error)) if error.is_for_good() => {
                        tracing::warn!(%log, lines = lines.len(), %error, "lines can never be written and are dropped");
                    }
                    Err(AppendError::Store(error)) => return Err(error),
                    Err(AppendError::Moved) => unreachable!("nothing was expected of the log's end"),
                }
                count = count.saturating_sub(lines.len());
                let mut gathered = self.gathered.lock().expect("no holder of this lock panics");
                if let Some(all) = gathered.lines.get_mut(&log) {
                    all.drain(..lines.len().min(all.len()));
                    if all.is_empty() {
                        gathered.lines.remove(&log);
                    }
                }
            }
        }
        Ok(())
    }

    /// The next lines of a log to write, as many as fit into one message.
    fn next_of(&self, log: &Key, count: usize) -> Vec<Vec<u8>> {
        let gathered = self.gathered.lock().expect("no holder of this lock panics");
        let Some(lines) = gathered.lines.get(log) else { return Vec::new() };
        let mut bytes = 0;
        let fit = lines.iter().take(count).take_while(|line| {
            bytes += line.len();
            bytes <= AT_ONCE
        });
        let fit = fit.count().max(1).min(lines.len());
        lines[..fit].to_vec()
    }
}

/// Counts as a writer until dropped.
struct Writer<'a>(&'a WriteBehind);

impl Writer<'_> {
    fn of(behind: &WriteBehind) -> Writer<'_> {
        behind.gathered.lock().expect("no holder of this lock panics").writers += 1;
        Writer(behind)
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.0.gathered.lock().expect("no holder of this lock panics").writers -= 1;
    }
}
