//! Runs whose process was killed or gave up: what is left of them is ended, and files tell their result.

use std::fs::File;
use std::time::Duration;

use mesh::ports::machine::{Life, Machine, Process};
use mesh::ports::runner::{Ending, RunOutcome};
use mesh::runs::{Halt, RunId, RunRecord, RunStage};

use super::applying::HalfApplied;
use super::conclude::{self, Conclusion};
use super::reading::{EventLog, Reading};
use super::supervise::{Attempt, exit_of, halt_of, unread};
use super::{RunFolder, Runs, agent, applying, changes, runner_of};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
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

/// Who concludes a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settler {
    /// The run's own process, or a command of the user's.
    Command,
    /// The server's round. It may see less than the user's next command: it may be in a container, without the repository,
    /// or without the adapter. What it cannot tell for certain it leaves to that command.
    Server,
    /// The cleanup, for which the same holds, and which delivers nothing by itself.
    Cleanup,
}

/// Concludes every run whose process was killed, and takes back what was applied half-way. Errors are only logged: the
/// next command tries again.
pub(crate) async fn settle(context: &Context, open: &Open, runs: &Runs) {
    settle_applying(context, runs).await;
    settle_runs(context, open, runs, Settler::Command).await;
}

/// The same without touching the user's folder, of which only a command of the user's tells.
pub(crate) async fn settle_runs(context: &Context, open: &Open, runs: &Runs, by: Settler) {
    for folder in abandoned(open, runs, by) {
        if let Err(error) = settle_one(context, open, &folder, by).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, run = %folder.id, "what came of a run could not be told");
        }
    }
}

/// The runs whose process was killed.
pub(crate) fn abandoned(open: &Open, runs: &Runs, by: Settler) -> Vec<RunFolder> {
    let live = runs.live().into_iter();
    live.filter(|(folder, record)| is_abandoned(open, folder, record, by)).map(|(folder, _)| folder).collect()
}

fn is_abandoned(open: &Open, folder: &RunFolder, record: &RunRecord, by: Settler) -> bool {
    let machine = open.machine.as_ref();
    is_certain(machine, record.supervisor, by) && folder.stage(record, machine) == RunStage::Abandoned
}

/// Whether it can be told here what became of a process and of what it had started.
pub(crate) fn is_certain(machine: &dyn Machine, process: Process, by: Settler) -> bool {
    by == Settler::Command || machine.life(process) != Life::Unknown
}

/// Concludes a run whose process was killed, unless another process does.
pub(crate) async fn settle_one(
    context: &Context,
    open: &Open,
    folder: &RunFolder,
    by: Settler,
) -> Result<(), CommandError> {
    let Ok(lock) = File::open(&folder.root) else { return Ok(()) };
    if lock.try_lock().is_err() {
        // Another process concludes it.
        tokio::time::sleep(LOOK).await;
        return Ok(());
    }
    let mut record = folder.record()?;
    // Since it was looked at, another process may have taken it over, or concluded it.
    if !is_abandoned(open, folder, &record, by) {
        return Ok(());
    }
    let id = folder.id;
    // What does not end at once is waited for.
    let ended = tokio::task::spawn_blocking(move || conclude::end_what_is_left(id)).await;
    if let Err(error) = ended {
        tracing::warn!(%error, run = %id, "what a run has left is not ended");
    }
    let principal = match agent::join(open, &mut record, std::process::id()).await {
        Ok(principal) => principal,
        Err(error) => {
            agent::leave_half_joined(open, &record).await;
            return Err(error);
        }
    };
    let concluded = async {
        let attempt = attempt(open, folder, &record, by).await?;
        let became = if folder.was_given_up() { "could not bring it to its end" } else { "was killed" };
        let notes = vec![format!("the process that ran it {became}; this was put together from what it left")];
        let conclusion = Conclusion { attempt, notes, by };
        conclude::conclude(context, open, folder, record, &principal, conclusion).await
    };
    let concluded = concluded.await;
    if concluded.is_err() {
        // This process may live long, and does not work on it.
        agent::leave(open, &principal).await;
    }
    concluded.map(drop)
}

/// What this process cannot tell of a run.
pub(super) fn left_to_the_user(what: String) -> CommandError {
    let hint = "`relay-mesh runs list` concludes it as far as can be told where it is typed".to_owned();
    Failure { what, hint: Some(hint), exit: Exit::Failure, source: None }.into()
}

/// What the last start of the harness's program came to, from its files.
async fn attempt(open: &Open, folder: &RunFolder, record: &RunRecord, by: Settler) -> Result<Attempt, CommandError> {
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
            let output = folder.of_attempt("output", attempt);
            // Its process was killed before it could begin the last one.
            if attempt == record.attempts && !output.try_exists().ok()? {
                break;
            }
            let mut reading = Reading::open(runner, &record.task, &output).ok()?;
            log.write(&reading.rest().await.ok()?);
            last = Some(reading);
        }
        let Some(last) = last else { return Some(RunOutcome::of(Ending::BrokeOff)) };
        Some(last.conclude(&exit).await.unwrap_or_else(|error| unread(&error)))
    };
    let outcome = match replayed.await {
        Some(outcome) => outcome,
        None if by != Settler::Command => {
            let what = format!("what {} said in run {} cannot be read here now", record.harness, record.id);
            return Err(left_to_the_user(what));
        }
        None => RunOutcome::of(Ending::BrokeOff),
    };
    Ok(Attempt { outcome, exit, halt })
}
