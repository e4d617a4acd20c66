//! Ending a run from outside, with everything that it started.

use std::time::Duration;

use mesh::runs::{RunRecord, RunStage};

use super::{RunFolder, Runs, settle};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;

/// How long to wait for a run's process to write its result after everything of it has ended.
const RESULT: Duration = Duration::from_secs(30);
/// How often to look.
const LOOK: Duration = Duration::from_millis(20);

/// Asks the guard of a run to end it, and returns once its result is there. One that had ended stays as it is.
pub(crate) async fn stop(
    context: &Context,
    open: &Open,
    runs: &Runs,
    folder: &RunFolder,
) -> Result<RunRecord, CommandError> {
    let mut record = folder.record()?;
    if folder.stage(&record, open.machine.as_ref()) == RunStage::Ended {
        return Ok(record);
    }
    let deadline = tokio::time::Instant::now() + RESULT;
    let mut asked = None;
    while record.ended.is_none() {
        if tokio::time::Instant::now() > deadline {
            return Err(Failure {
                what: format!("run {} has not ended within {} s", record.id, RESULT.as_secs()),
                hint: Some("try again; what cannot be killed waits for a disk or a device".to_owned()),
                exit: Exit::TimedOut,
                source: None,
            }
            .into());
        }
        // A run that is just being started has no guard yet, and a repair turn has another one.
        let guard = folder.running(record.attempts).map(|running| running.guard);
        if let Some(guard) = guard.filter(|guard| asked != Some(*guard)) {
            processes::ask_to_end(guard);
            asked = Some(guard);
        }
        settle::settle(context, open, runs).await;
        tokio::time::sleep(LOOK).await;
        record = folder.record()?;
    }
    Ok(record)
}
