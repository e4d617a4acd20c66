//! What is noted beside a sending, for its sender's eyes and for the diary. On servers each such line would
//! cost as much as the message itself, so a process that lives on gathers them and writes many at once.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use serde::Serialize;
use store::{AppendError, Durability, Expect, Key, StoreError};
use tokio::sync::Notify;

use crate::Mesh;
use crate::storage::records;

/// How many bytes are written at once: well below what servers take as one message.
const AT_ONCE: usize = 256 * 1024;
/// How long is gathered after something was written. What is noted after a rest is written at once.
const GATHERED_FOR: Duration = Duration::from_millis(100);
/// How many lines of one log are kept while the servers are out of reach.
const MOST_KEPT: usize = 10_000;

/// Lines that wait to be written.
#[derive(Default)]
pub(crate) struct Minutes {
    /// A std mutex: nothing is awaited while it is held.
    gathered: Mutex<Gathered>,
    /// Rung when there is something to write.
    news: Notify,
}

#[derive(Default)]
struct Gathered {
    /// How many writers this process has. Without one, nothing is gathered.
    writers: usize,
    lines: BTreeMap<Key, Vec<Vec<u8>>>,
}

impl Mesh {
    /// Notes a line: at once, or with others where this process lives on.
    pub(crate) async fn jot<T: Serialize + Sync>(&self, log: &Key, line: &T) -> Result<(), StoreError> {
        {
            let mut gathered = self.minutes.gathered.lock().expect("no holder of this lock panics");
            if gathered.writers > 0 {
                let lines = gathered.lines.entry(log.clone()).or_default();
                if lines.len() < MOST_KEPT {
                    lines.push(records::json(line));
                }
                self.minutes.news.notify_one();
                return Ok(());
            }
        }
        records::append(self.shared.as_ref(), log, line, Durability::Process).await.map(|_| ())
    }

    /// The lines of a log that are not written yet.
    pub(crate) fn jotted(&self, log: &Key) -> Vec<Vec<u8>> {
        let gathered = self.minutes.gathered.lock().expect("no holder of this lock panics");
        gathered.lines.get(log).cloned().unwrap_or_default()
    }

    /// Writes what is gathered, again and again. From now on lines are gathered.
    pub(crate) async fn keep_minutes(&self) {
        let _writer = Writer::of(&self.minutes);
        loop {
            self.minutes.news.notified().await;
            if let Err(error) = self.write_minutes().await {
                tracing::debug!(%error, "what is noted waits");
                tokio::time::sleep(crate::delivery::serve::RETRY).await;
                self.minutes.news.notify_one();
            }
            tokio::time::sleep(GATHERED_FOR).await;
        }
    }

    /// Writes what is gathered now. What is noted meanwhile waits for the next time.
    pub async fn write_minutes(&self) -> Result<(), StoreError> {
        let now: Vec<(Key, usize)> = {
            let gathered = self.minutes.gathered.lock().expect("no holder of this lock panics");
            gathered.lines.iter().map(|(log, lines)| (log.clone(), lines.len())).collect()
        };
        for (log, mut count) in now {
            while count > 0 {
                let lines = self.next_of(&log, count);
                // Somebody else has written them.
                if lines.is_empty() {
                    break;
                }
                match self.shared.append(&log, &lines, Expect::Any, Durability::Process).await {
                    Ok(_) => {}
                    Err(AppendError::Store(error)) => return Err(error),
                    Err(AppendError::Moved) => unreachable!("nothing was expected of the log's end"),
                }
                count = count.saturating_sub(lines.len());
                let mut gathered = self.minutes.gathered.lock().expect("no holder of this lock panics");
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

    /// The lines of a log that are written next, as many as fit into one message.
    fn next_of(&self, log: &Key, count: usize) -> Vec<Vec<u8>> {
        let gathered = self.minutes.gathered.lock().expect("no holder of this lock panics");
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

/// Whoever writes, for as long as they do.
struct Writer<'a>(&'a Minutes);

impl Writer<'_> {
    fn of(minutes: &Minutes) -> Writer<'_> {
        minutes.gathered.lock().expect("no holder of this lock panics").writers += 1;
        Writer(minutes)
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.0.gathered.lock().expect("no holder of this lock panics").writers -= 1;
    }
}
