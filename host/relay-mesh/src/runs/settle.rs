//! Runs whose process was killed or gave up: what is left of them is ended, and files tell their result.

use std::fs::File;
use std::time::Duration;

use mesh::ports::runner::{Ending, RunOutcome};
use mesh::runs::{Halt, RunId, RunRecord, RunStage};

use super::applying::HalfApplied;
use super::conclude::{self, Conclusion};
use super::reading::{EventLog, Reading};
use super::supervise::{Attempt, exit_of, halt_of, unread};
use super::{RunFolder, Runs, agent, applying, changes, runner_of};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::pipelines::Pipelines;

/// How long to leave a run to the process that concludes it.
const LOOK: Duration = Duration::from_millis(20);

/// Takes back what a killed command had applied half-way.
pub(crate) async fn settle_applying(context: &Context, runs: &Runs) {
    let data = &context.settings.dir.value;
    let is_applied = |id: RunId| match runs.load(id) {
        Ok((_, record)) => record.applied.is_some(),
        Err(_) => Pipelines::of(data).folder(id).record().is_ok_and(|record| record.applied.is_some()),
    };
    for HalfApplied { id, top, changed_since } in applying::settle(&changes::git(context), data, is_applied).await {
        let became = match changed_since {
            None => "that was taken back".to_owned(),
            Some(file) => format!("`{file}` was changed since, so it stays: `git diff` shows what is there"),
        };
        context.printer.say(&format!("{id} had been applied to `{}` half-way; {became}", top.display()));
    }
}

/// Concludes every run whose process was killed, and takes back what was applied half-way. Errors are only logged: the
/// next command tries again.
pub(crate) async fn settle(context: &Context, open: &Open, runs: &Runs) {
    settle_applying(context, runs).await;
    settle_runs(context, open, runs).await;
}

/// The same without touching the user's folder, of which only a command of the user's tells.
pub(crate) async fn settle_runs(context: &Context, open: &Open, runs: &Runs) {
    for (folder, record) in runs.live() {
        if folder.stage(&record, open.machine.as_ref()) != RunStage::Abandoned {
            continue;
        }
        if let Err(error) = settle_one(context, open, &folder).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, run = %folder.id, "what came of a run could not be told");
        }
    }
}

async fn settle_one(context: &Context, open: &Open, folder: &RunFolder) -> Result<(), CommandError> {
    let Ok(lock) = File::open(&folder.root) else { return Ok(()) };
    if lock.try_lock().is_err() {
        // Another process concludes it.
        tokio::time::sleep(LOOK).await;
        return Ok(());
    }
    let mut record = folder.record()?;
    if record.ended.is_some() {
        return Ok(());
    }
    conclude::end_what_is_left(folder.id);
    let attempt = attempt(open, folder, &record).await;
    let principal = agent::join(open, &mut record, std::process::id()).await?;
    let became = if folder.was_given_up() { "could not bring it to its end" } else { "was killed" };
    let notes = vec![format!("the process that ran it {became}; this was put together from what it left")];
    let conclusion = Conclusion { attempt, notes };
    let concluded = conclude::conclude(context, open, folder, record, &principal, conclusion).await;
    if concluded.is_err() {
        // This process may live long, and does not work on it.
        agent::leave(open, &principal).await;
    }
    concluded.map(drop)
}

/// What the last start of the harness's program came to, from its files.
async fn attempt(open: &Open, folder: &RunFolder, record: &RunRecord) -> Attempt {
    let of = |what| folder.of_attempt(what, record.attempts);
    let ended = processes::ended_as_written(&of("ended"), &of("errors"));
    let exit = exit_of(&ended);
    let by_its_files = || match halt_of(ended.cause, record) {
        // Nobody was there to see more than that it was over.
        Halt::Unguarded if record.attempts == 0 => Halt::Abandoned,
        halt => halt,
    };
    let halt = record.halt.unwrap_or_else(by_its_files);
    let replayed = async {
        let harness = open.mesh.harnesses().get(&record.harness).await.ok().flatten()?;
        let runner = runner_of(harness.as_ref()).ok()?;
        // The last events may not have been written down, or only half of one.
        let _begun_anew = std::fs::remove_file(folder.events());
        let mut log = EventLog::open(&folder.events());
        let mut last = None;
        for attempt in 1..=record.attempts {
            let mut reading = Reading::open(runner, &record.task, &folder.of_attempt("output", attempt)).ok()?;
            log.write(&reading.rest().await.ok()?);
            last = Some(reading);
        }
        Some(last?.conclude(&exit).await.unwrap_or_else(|error| unread(&error)))
    };
    let outcome = replayed.await.unwrap_or_else(|| RunOutcome::of(Ending::BrokeOff));
    Attempt { outcome, exit, halt }
}
