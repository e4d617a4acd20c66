//! `relay-mesh plugin record`: makes fixtures of the calls that a harness really makes of its hooks, while it runs.

use std::path::PathBuf;

use mesh::ports::harness::Harness as _;
use serde::Serialize;

use crate::context::Context;
use crate::errors;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::recording::{Recorded, Recording};
use crate::render::{Show, printable_line};
use crate::signals::Stop;

/// Make fixtures of the calls that a harness makes of its hooks, until it is stopped
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh plugin record my-harness\n  \
    relay-mesh plugin record my-harness --into fixtures --harness-version 1.4.0\n\n\
    Work with the harness meanwhile, in another terminal: each call becomes a file in DIR/hooks, with the payload and \
    the variables that the adapter's manifest names. The path of your home becomes /home/u. Look through the files \
    before you give them to anybody: a payload holds what you typed. docs/fixtures.md says what to add to them.")]
pub(super) struct Args {
    /// Which adapter, as `relay-mesh plugin list` names it
    name: String,
    /// The folder of fixtures
    #[arg(long, value_name = "DIR", default_value = "fixtures")]
    into: PathBuf,
    /// The harness's version, which the files are named after [default: as the adapter finds it]
    #[arg(long, value_name = "VERSION")]
    harness_version: Option<String>,
}

pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let adapter = open.adapters.adapter(&args.name).await;
    let Some(adapter) = adapter.map_err(|error| errors::adapters::failed(&args.name, error))? else {
        return Err(errors::adapters::unknown(&args.name, open.adapters.as_ref()));
    };
    let name = adapter.about().harness.clone();
    let version = match args.harness_version {
        Some(version) => version,
        // An adapter that does not find its harness does not hinder a recording.
        None => adapter.present().await.ok().flatten().unwrap_or_else(|| "0".to_owned()),
    };
    let mut stop = Stop::listen()?;
    let into = context.workdir.join(&args.into);
    let recording =
        Recording::begin(&context.settings.dir.value, &name, &into, &version).map_err(|source| Failure {
            what: format!("the hooks of `{name}` cannot be recorded into `{}`", into.display()),
            hint: Some("name a folder that you can write to with `--into`".to_owned()),
            exit: Exit::Failure,
            source: Some(Box::new(source)),
        })?;
    context.printer.say(&format!("Recording the hooks of {name} into {}/hooks; Ctrl-C ends it.", into.display()));
    stop.asked().await;
    let files = recording.end();
    context.printer.show(&RecordedShape { adapter: name, folder: into.display().to_string(), files })?;
    Ok(Exit::Success)
}

#[derive(Debug, Serialize)]
struct RecordedShape {
    adapter: String,
    folder: String,
    /// The new files, relative to `folder`.
    files: Recorded,
}

impl Show for RecordedShape {
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.files.iter().map(|file| printable_line(file)).collect();
        lines.push(match self.files.len() {
            0 => format!("no hook of {} was called; is it set up? `relay-mesh doctor {0}` says", self.adapter),
            _ => "look through these files before you give them to anybody".to_owned(),
        });
        lines.join("\n")
    }
}
