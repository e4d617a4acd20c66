//! Runs passes over sessions concurrently, at most one per session, and keeps the time of the next check.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use store::StoreError;
use tokio::task::{Id, JoinSet};
use tokio::time::Sleep;

use crate::delivery::serve::RETRY;
use crate::sessions::SessionRef;

/// The result of a pass: after how many milliseconds to try again; `None` if only a change in the store makes that
/// worthwhile.
pub(crate) type Pass = Result<Option<u64>, StoreError>;

/// The running passes. Dropping this aborts them.
#[derive(Default)]
pub(crate) struct Passes {
    tasks: JoinSet<Pass>,
    /// The session of each running pass.
    busy: BTreeMap<Id, SessionRef>,
    /// The timer of the next check.
    due: Option<Pin<Box<Sleep>>>,
}

/// Why [`Passes::next`] returned.
pub(crate) enum Turn {
    /// The next check is due.
    Due,
    /// A session's pass ended.
    Ended(SessionRef, Pass),
}

impl Passes {
    /// Starts a pass over a session. Returns false, and starts none, if one is running already.
    pub(crate) fn begin(&mut self, session: SessionRef, pass: impl Future<Output = Pass> + Send + 'static) -> bool {
        if self.busy.values().any(|busy| *busy == session) {
            return false;
        }
        let task = self.tasks.spawn(pass);
        self.busy.insert(task.id(), session);
        true
    }

    /// Schedules the next check after this many milliseconds, unless an earlier one is scheduled.
    pub(crate) fn look_again_in(&mut self, wait: u64) {
        let timer = tokio::time::sleep(Duration::from_millis(wait.max(10)));
        if self.due.as_ref().is_none_or(|due| timer.deadline() < due.deadline()) {
            self.due = Some(Box::pin(timer));
        }
    }

    /// Waits until a pass ends or the next check is due. Cancel safe.
    pub(crate) async fn next(&mut self) -> Turn {
        let due = self.due.as_mut();
        let timer = async {
            match due {
                Some(due) => due.as_mut().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = timer => {
                self.due = None;
                Turn::Due
            }
            Some(ended) = self.tasks.join_next_with_id() => {
                let (id, pass) = match ended {
                    Ok((id, pass)) => (id, pass),
                    // A panic in an adapter's call costs only this pass; it is retried.
                    Err(error) => {
                        tracing::error!(%error, "a pass over a session ended badly");
                        (error.id(), Ok(Some(RETRY.as_millis() as u64)))
                    }
                };
                Turn::Ended(self.busy.remove(&id).expect("each task has its session"), pass)
            }
        }
    }
}
