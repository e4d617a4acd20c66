//! Looking at agents that were started: list and show.

use std::time::Duration;

use mesh::ports::machine::Machine as _;

use crate::context::Context;
use crate::driven::transcript::TranscriptReader;
use crate::driven::{DrivenFolder, host};
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::render::Format;
use crate::shapes::driven::{DrivenLine, DrivenShape, transcript_text};
use crate::signals::Stop;

/// How often to look for more.
const LOOK: Duration = Duration::from_millis(100);

pub(super) async fn list(all: bool, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    host::look_after(context, &open).await;
    let mut records = if all { open.mesh.ended_driven_agents().await? } else { Vec::new() };
    records.extend(open.mesh.driven_agents().await?);
    records.sort_by_key(|record| record.id);
    let agents =
        records.iter().map(|record| DrivenLine::of(record, record.stage(|driver| open.machine.runs(driver)))).collect();
    context.printer.show(&DrivenShape { agents })?;
    Ok(Exit::Success)
}

pub(super) async fn show(name: &str, follow: bool, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let mut stop = Stop::listen().map_err(StreamError::Input)?;
    let record = open.mesh.driven_named(name).await?;
    let mut transcript = TranscriptReader::of(DrivenFolder::of(&context.settings.dir.value, record.id).transcript());
    loop {
        // Looked at first: what it says last is written before its end is noted.
        let is_over = open.mesh.driven(record.id).await?.is_none_or(|record| record.ended.is_some());
        for line in transcript.more() {
            match context.printer.format() {
                Format::Json => context.printer.line(&line)?,
                Format::Text => context.printer.data(&transcript_text(&line))?,
            }
        }
        if !follow || is_over {
            return Ok(Exit::Success);
        }
        tokio::select! {
            () = stop.asked() => return Ok(Exit::Success),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}
