//! Ending a pipeline from outside.

use std::time::Duration;

use mesh::reviews::{PipelineRecord, StepKind};

use super::PipelineFolder;
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::reviews::{self, Reviews};
use crate::runs::{self, Runs};

/// How long to wait for the pipeline's process to write what came of it.
const RESULT: Duration = Duration::from_secs(30);
/// How often to look.
const LOOK: Duration = Duration::from_millis(20);

/// Ends the step that a pipeline is at, with its runs: the step has failed then, and the pipeline ends with it. Nothing
/// is done about one that has ended, or whose process was killed.
pub(crate) async fn stop(
    context: &Context,
    open: &Open,
    folder: &PipelineFolder,
) -> Result<PipelineRecord, CommandError> {
    let data = &context.settings.dir.value;
    let (all, reviews) = (Runs::of(data), Reviews::of(data));
    let deadline = tokio::time::Instant::now() + RESULT;
    loop {
        let record = folder.record()?;
        if record.ended.is_some() || !folder.is_worked_on(&record, open.machine.as_ref()) {
            return Ok(record);
        }
        if tokio::time::Instant::now() > deadline {
            return Err(Failure {
                what: format!("pipeline {} has not ended within {} s", record.id, RESULT.as_secs()),
                hint: Some("try again; what cannot be killed waits for a disk or a device".to_owned()),
                exit: Exit::TimedOut,
                source: None,
            }
            .into());
        }
        if let Some((kind, id)) = record.steps.last().and_then(|step| Some((step.kind, step.work?))) {
            match kind {
                StepKind::Implement | StepKind::Fix => {
                    runs::stop::stop(context, open, &all, &all.folder(id)).await?;
                }
                StepKind::Review => {
                    reviews::stop::stop(context, open, &reviews.folder(id)).await?;
                }
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}
