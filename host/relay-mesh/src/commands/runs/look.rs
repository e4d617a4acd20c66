//! Looking at runs: list, show, follow.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::time::Duration;

use mesh::ports::runner::RunEvent;
use mesh::runs::{RunId, RunStage};

use super::kept::{self, Kept, Listed};
use crate::commands::run::exit_of;
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::pipelines::Pipelines;
use crate::render::{Format, Show as _};
use crate::reviews::{self, Reviews};
use crate::runs::settle::{self, Settler};
use crate::runs::{RunFolder, Runs, for_clients};
use crate::shapes::reviews::{PipelineLine, PipelineShape, ReviewLine, ReviewShape};
use crate::shapes::runs::{ResultShape, RunLine, RunsShape, event_line};
use crate::signals::Stop;

/// How often to look for new events.
const LOOK: Duration = Duration::from_millis(50);

pub(super) async fn list(last: usize, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let data = &context.settings.dir.value;
    let (runs, reviews, pipelines) = (Runs::of(data), Reviews::of(data), Pipelines::of(data));
    settle::settle(context, &open, &runs).await;
    let (mut shape, mut shown) = (RunsShape::default(), 0);
    // What cannot be read is passed over.
    for listed in kept::newest(data) {
        if shown == last {
            break;
        }
        let is_shown = match listed {
            Listed::Run(id) => runs.load(id).map(|(folder, record)| {
                shape.runs.push(RunLine::of(&record, folder.stage(&record, open.machine.as_ref())));
            }),
            Listed::Review(id) => {
                let folder = reviews.folder(id);
                if let Err(error) = reviews::stop::settle(context, &open, &folder, Settler::Command).await {
                    tracing::debug!(%error, review = %id, "what came of a review could not be told");
                }
                folder.record().map(|record| shape.reviews.push(ReviewLine::of(&record)))
            }
            Listed::Pipeline(id) => {
                let folder = pipelines.folder(id);
                folder.record().map(|record| {
                    let is_worked_on = folder.is_worked_on(&record, open.machine.as_ref());
                    shape.pipelines.push(PipelineLine::of(&record, is_worked_on, context.named_folder()));
                })
            }
        };
        shown += usize::from(is_shown.is_ok());
    }
    context.printer.show(&shape)?;
    if shape.is_empty() {
        context.printer.say("no run is kept; `relay-mesh run HARNESS TASK` starts one");
    }
    Ok(Exit::Success)
}

pub(super) async fn show(id: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let data = &context.settings.dir.value;
    settle::settle(context, &open, &Runs::of(data)).await;
    match kept::find(data, id)? {
        Kept::Run(folder, record) => match folder.stage(&record, open.machine.as_ref()) {
            RunStage::Ended => context.printer.show(&result(&folder)?)?,
            stage @ (RunStage::Running | RunStage::Abandoned) => context.printer.show(&RunLine::of(&record, stage))?,
        },
        Kept::Review(folder, record) => {
            reviews::stop::settle(context, &open, &folder, Settler::Command).await?;
            match &folder.record()?.ended {
                Some(_) => context.printer.show(&ReviewShape(folder.result()?))?,
                None => context.printer.show(&ReviewLine::of(&record))?,
            }
        }
        Kept::Pipeline(folder, record) => match record.ended {
            Some(_) => context.printer.show(&PipelineShape::of(folder.result()?, context.named_folder()))?,
            None => {
                let is_worked_on = folder.is_worked_on(&record, open.machine.as_ref());
                context.printer.show(&PipelineLine::of(&record, is_worked_on, context.named_folder()))?;
            }
        },
    }
    Ok(Exit::Success)
}

/// The result as it was kept.
fn result(folder: &RunFolder) -> Result<ResultShape, CommandError> {
    Ok(ResultShape(for_clients::whole(folder)?))
}

/// Prints what a run reports until it has ended, and ends as it does. Of a review or a pipeline, what all of its runs
/// report.
pub(super) async fn follow(id: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let data = &context.settings.dir.value;
    let runs = Runs::of(data);
    let kept = kept::find(data, id)?;
    let mut stop = Stop::listen().map_err(StreamError::Input)?;
    let mut places: HashMap<RunId, u64> = HashMap::new();
    loop {
        // The end is looked up first, so that nothing that was reported before is missed.
        let (of_it, end) = match &kept {
            Kept::Run(folder, _) => (vec![folder.id], end_of_run(context, &open, folder).await?),
            Kept::Review(folder, _) => {
                reviews::stop::settle(context, &open, folder, Settler::Command).await?;
                let record = folder.record()?;
                (record.runs, record.ended.map(|end| if end.ok { Exit::Success } else { Exit::Failure }))
            }
            Kept::Pipeline(folder, _) => {
                let record = folder.record()?;
                let is_over = record.ended.is_some() || !folder.is_worked_on(&record, open.machine.as_ref());
                let exit =
                    if record.ended.is_some() && record.failure().is_none() { Exit::Success } else { Exit::Failure };
                (kept::runs_of(data, &record), is_over.then_some(exit))
            }
        };
        for id in of_it {
            let place = places.entry(id).or_default();
            *place = print_new(context, &runs.folder(id), *place)?;
        }
        if let Some(exit) = end {
            tell_end(context, &kept)?;
            return Ok(exit);
        }
        tokio::select! {
            () = stop.asked() => return Ok(Exit::Failure),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// How a run that has ended is told to the shell. One whose process was killed is concluded first.
async fn end_of_run(context: &Context, open: &Open, folder: &RunFolder) -> Result<Option<Exit>, CommandError> {
    let record = folder.record()?;
    match folder.stage(&record, open.machine.as_ref()) {
        RunStage::Running => {}
        RunStage::Abandoned => settle::settle(context, open, &Runs::of(&context.settings.dir.value)).await,
        RunStage::Ended => return Ok(Some(record.ended.map_or(Exit::Failure, |end| exit_of(end.ending)))),
    }
    Ok(None)
}

/// The last line of what is followed.
fn tell_end(context: &Context, kept: &Kept) -> Result<(), CommandError> {
    let format = context.printer.format();
    match (kept, format) {
        (Kept::Run(folder, _), Format::Json) => context.printer.line(&result(folder)?)?,
        (Kept::Run(folder, _), Format::Text) => context.printer.say(&result(folder)?.end()),
        (Kept::Review(folder, _), Format::Json) => context.printer.line(&ReviewShape(folder.result()?))?,
        (Kept::Review(folder, _), Format::Text) => context.printer.data(&ReviewShape(folder.result()?).text())?,
        (Kept::Pipeline(folder, _), Format::Json) if folder.record()?.ended.is_some() => {
            context.printer.line(&PipelineShape::of(folder.result()?, context.named_folder()))?;
        }
        (Kept::Pipeline(folder, _), Format::Text) if folder.record()?.ended.is_some() => {
            context.printer.data(&PipelineShape::of(folder.result()?, context.named_folder()).text())?;
        }
        (Kept::Pipeline(folder, _), Format::Json) => {
            context.printer.line(&PipelineLine::of(&folder.record()?, false, context.named_folder()))?;
        }
        (Kept::Pipeline(folder, _), Format::Text) => {
            context.printer.say(&PipelineLine::of(&folder.record()?, false, context.named_folder()).text());
        }
    }
    Ok(())
}

/// Prints the events after a place in the file. Returns the place after the last whole line.
fn print_new(context: &Context, folder: &RunFolder, from: u64) -> Result<u64, CommandError> {
    let Ok(mut file) = std::fs::File::open(folder.events()) else { return Ok(from) };
    let unreadable = |source| crate::runs::RunsError::Unreadable { id: folder.id, source };
    file.seek(SeekFrom::Start(from)).map_err(unreadable)?;
    let mut reader = BufReader::new(file);
    let (mut at, mut line) = (from, String::new());
    loop {
        line.clear();
        let read = reader.read_line(&mut line).map_err(unreadable)?;
        if read == 0 || !line.ends_with('\n') {
            return Ok(at);
        }
        at += read as u64;
        let Ok(event) = serde_json::from_str::<RunEvent>(&line) else { continue };
        match context.printer.format() {
            Format::Json => context.printer.line(&event)?,
            Format::Text => {
                if let Some(text) = event_line(&event) {
                    context.printer.data(&text)?;
                }
            }
        }
    }
}
