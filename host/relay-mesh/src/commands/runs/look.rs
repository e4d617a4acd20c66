//! Looking at runs: list, show, follow.

use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::time::Duration;

use mesh::ports::runner::RunEvent;
use mesh::runs::RunStage;

use crate::commands::run::exit_of;
use crate::context::Context;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::render::Format;
use crate::reviews::{self, Reviews};
use crate::runs::{RunFolder, Runs, for_clients, settle};
use crate::shapes::reviews::{ReviewBegun, ReviewShape};
use crate::shapes::runs::{ResultShape, RunLine, RunsShape, event_line};
use crate::signals::Stop;

/// How often to look for new events.
const LOOK: Duration = Duration::from_millis(50);

pub(super) async fn list(last: usize, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let runs = Runs::of(&context.settings.dir.value);
    settle::settle(context, &open, &runs).await;
    let newest = runs.newest(last).into_iter();
    let lines = newest.map(|(folder, record)| RunLine::of(&record, folder.stage(&record, open.machine.as_ref())));
    let shape = RunsShape { runs: lines.collect() };
    context.printer.show(&shape)?;
    if shape.runs.is_empty() {
        context.printer.say("no run is kept; `relay-mesh run HARNESS TASK` starts one");
    }
    Ok(Exit::Success)
}

pub(super) async fn show(id: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let runs = Runs::of(&context.settings.dir.value);
    settle::settle(context, &open, &runs).await;
    if id != "last"
        && let Some((folder, record)) = Reviews::of(&context.settings.dir.value).find(id)?
    {
        reviews::stop::settle(context, &open, &folder).await?;
        match &folder.record()?.ended {
            Some(_) => context.printer.show(&ReviewShape(folder.result()?))?,
            None => context.printer.show(&ReviewBegun::of(&record))?,
        }
        return Ok(Exit::Success);
    }
    let (folder, record) = runs.find(id)?;
    match folder.stage(&record, open.machine.as_ref()) {
        RunStage::Ended => context.printer.show(&result(&folder)?)?,
        stage @ (RunStage::Running | RunStage::Abandoned) => context.printer.show(&RunLine::of(&record, stage))?,
    }
    Ok(Exit::Success)
}

/// The result as it was kept.
fn result(folder: &RunFolder) -> Result<ResultShape, CommandError> {
    Ok(ResultShape(for_clients::whole(folder)?))
}

/// Prints what a run reports until it has ended, and ends as it does.
pub(super) async fn follow(id: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let runs = Runs::of(&context.settings.dir.value);
    let (folder, _) = runs.find(id)?;
    let mut stop = Stop::listen().map_err(StreamError::Input)?;
    let mut at = 0;
    loop {
        // Its end is looked up first, so that nothing that was reported before is missed.
        let record = folder.record()?;
        let stage = folder.stage(&record, open.machine.as_ref());
        at = print_new(context, &folder, at)?;
        match stage {
            RunStage::Running => {}
            RunStage::Abandoned => {
                settle::settle(context, &open, &runs).await;
            }
            RunStage::Ended => {
                let shape = result(&folder)?;
                match context.printer.format() {
                    Format::Json => context.printer.line(&shape)?,
                    Format::Text => context.printer.say(&shape.end()),
                }
                return Ok(record.ended.map_or(Exit::Failure, |end| exit_of(end.ending)));
            }
        }
        tokio::select! {
            () = stop.asked() => return Ok(Exit::Failure),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
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
