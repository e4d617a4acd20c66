//! Passes over sessions: all beside each other, at most one under way for each session, and when somebody shall
//! look again.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use store::StoreError;
use tokio::task::{Id, JoinSet};
use tokio::time::Sleep;

use crate::delivery::serve::RETRY;
use crate::sessions::SessionRef;

/// What a pass came to: after how many milliseconds it is worth another; none where only a change in the store is.
pub(crate) type Pass = Result<Option<u64>, StoreError>;

/// The passes under way. What is dropped with them ends half-way.
#[derive(Default)]
pub(crate) struct Passes {
    tasks: JoinSet<Pass>,
    /// The session of each.
    busy: BTreeMap<Id, SessionRef>,
    /// When somebody shall look again.
    due: Option<Pin<Box<Sleep>>>,
}

/// What happened to the passes.
pub(crate) enum Turn {
    /// It is time to look again.
    Due,
    /// This session's pass has ended.
    Ended(SessionRef, Pass),
}

impl Passes {
    /// Begins a pass over a session. Says whether it did: not where one is under way.
    pub(crate) fn begin(&mut self, session: SessionRef, pass: impl Future<Output = Pass> + Send + 'static) -> bool {
        if self.busy.values().any(|busy| *busy == session) {
            return false;
        }
        let task = self.tasks.spawn(pass);
        self.busy.insert(task.id(), session);
        true
    }

    /// Has somebody look again after so many milliseconds, where nobody wished it sooner.
    pub(crate) fn look_again_in(&mut self, wait: u64) {
        let timer = tokio::time::sleep(Duration::from_millis(wait.max(10)));
        if self.due.as_ref().is_none_or(|due| timer.deadline() < due.deadline()) {
            self.due = Some(Box::pin(timer));
        }
    }

    /// Waits until a pass has ended or it is time to look again. Cancelling it loses nothing.
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
                    // A panic in an adapter's call costs this pass; the next one looks again.
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
