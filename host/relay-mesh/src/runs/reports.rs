//! Reports of runs and reviews. Each recipient gets one, and all of them do, however often a process is killed that
//! concludes what is reported.

use std::time::Duration;

use mesh::names::MessageId;
use mesh::runs::RunId;
use mesh::sessions::Principal;
use mesh::{SendError, Sent};
use tokio::time::Instant;

use super::settle::Settler;
use crate::compose::Open;

/// How long to try to wake those who get the reports of one end.
const WAKE: Duration = Duration::from_secs(5);

/// Takes note of what became of a report to one recipient. One that was sent before counts, also if its words differ: the
/// process that sent it may have known more.
pub(crate) fn note(outcome: Result<Sent, SendError>, (of, to): (RunId, &str), sent: &mut Vec<MessageId>) {
    match outcome {
        Ok(Sent { id, .. }) | Err(SendError::OtherUnderKey { older: id, .. }) => sent.push(id),
        Err(error) => {
            tracing::warn!(error = %store::reasons(&error), %of, to, "what came of it could not be sent");
        }
    }
}

/// Wakes those who have got these reports. The server delivers them anyway.
pub(crate) async fn wake(open: &Open, sender: &Principal, reports: &[MessageId], by: Settler) {
    if by == Settler::Server {
        return;
    }
    let until = Instant::now() + WAKE;
    for report in reports {
        let left = until.saturating_duration_since(Instant::now());
        if let Err(error) = crate::wake::bring(open, sender, *report, left).await {
            tracing::warn!(error = %store::reasons(&error), %report, "the one who has got this report is not woken");
        }
    }
}
