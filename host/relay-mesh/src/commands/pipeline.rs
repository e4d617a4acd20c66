//! `relay-mesh pipeline`: one harness implements, others review, the first corrects.

use std::path::PathBuf;
use std::time::Duration;

use mesh::reviews::Severity;
use serde_json::Value;

use crate::command::CommandSpec;
use crate::commands::review::Talk;
use crate::compose::Open;
use crate::context::Context;
use crate::duration::span;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::pipelines::begin::{self, Begun, PipelinePlace, PipelineRequest};
use crate::pipelines::work::Work;
use crate::pipelines::{PipelineFolder, Pipelines};
use crate::runs::begin::{existing, time_or_usual};
use crate::runs::permission::{self, Evidence};
use crate::runs::{Runs, settle};
use crate::shapes::counted;
use crate::shapes::reviews::{PipelineShape, next_of};
use crate::signals::Stop;
use crate::whole_numbers::one_to;

/// Let one harness implement, others review, and the first correct
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh pipeline review --prompt 'cache the parser' --json | jq .issues\n  \
    relay-mesh pipeline review --prompt 'cache the parser' --implement claude-code --review codex --rounds 2\n  \
    relay-mesh pipeline resume last\n  \
    relay-mesh pipeline apply last")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Implement a task, and have it reviewed
    Review(ReviewArgs),
    /// Go on with a pipeline whose process was killed, or in which a step failed
    #[command(after_help = "Examples:\n  relay-mesh pipeline resume last\n  \
        relay-mesh pipeline resume last --review claude-code")]
    Resume(ResumeArgs),
    /// Show what came of a pipeline
    #[command(after_help = "Example:\n  relay-mesh pipeline show last --json | jq .issues")]
    Show(One),
    /// Apply what a pipeline changed to the folder that it was started for: all of it, or nothing
    #[command(after_help = "Example:\n  relay-mesh pipeline apply last")]
    Apply(One),
}

#[derive(clap::Args, Debug)]
struct One {
    /// The pipeline's id, or `last`
    #[arg(value_name = "ID")]
    id: String,
}

#[derive(clap::Args, Debug)]
struct ResumeArgs {
    #[command(flatten)]
    one: One,
    /// Who reviews from here on, separated by commas [default: as before]
    #[arg(long, value_name = "HARNESS", value_delimiter = ',')]
    review: Vec<String>,
}

/// Implement a task, and have it reviewed
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  \
    relay-mesh pipeline review --prompt 'cache the parser' --implement claude-code --review codex --rounds 2\n\n\
    The work is done in a worktree of its own, on the branch relay/ID; `relay-mesh pipeline apply ID` brings it into \
    your folder. With `--rounds 2` the implementing harness corrects what the first review found, and there is a second \
    one.\n\n\
    Exits with 0 if every step did its work, whatever the last review found, else with 1.")]
struct ReviewArgs {
    /// What to do
    #[arg(long, value_name = "TASK")]
    prompt: String,
    /// The folder of the repository [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Who implements and corrects
    #[arg(long, value_name = "HARNESS", default_value = "claude-code")]
    implement: String,
    /// Who reviews, separated by commas
    #[arg(long, value_name = "HARNESS", value_delimiter = ',', default_value = "codex")]
    review: Vec<String>,
    /// Who tries to refute what the reviewers found
    #[arg(long, value_name = "HARNESS")]
    verify: Option<String>,
    /// How many reviews at most
    #[arg(long, value_name = "N", default_value = "1", value_parser = rounds)]
    rounds: u32,
    /// Correct what is at least so bad: low, medium, high or critical
    #[arg(long, value_name = "SEVERITY", default_value = "low")]
    fix: Severity,
    /// Work in the folder itself
    #[arg(long)]
    here: bool,
    /// The most time of each run, in seconds or as in `5m` [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = span)]
    timeout: Option<Duration>,
}

fn rounds(text: &str) -> Result<u32, String> {
    one_to(text, 10)
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        match self.verb {
            Verb::Review(wanted) => start(wanted, context).await,
            Verb::Resume(wanted) => resume(wanted, context).await,
            Verb::Show(one) => show(&one.id, context),
            Verb::Apply(one) => apply(&one.id, context).await,
        }
    }
}

async fn start(wanted: ReviewArgs, context: &Context) -> Result<Exit, CommandError> {
    let stop = Stop::listen().map_err(StreamError::Input)?;
    let open = context.open()?;
    let runs = Runs::of(&context.settings.dir.value);
    settle::settle(context, &open, &runs).await;
    let evidence = permission::evidence(context, &open, &runs).await?;
    if wanted.prompt.trim().is_empty() {
        return Err(CommandError::usage("the pipeline has no task", "give it by `--prompt TASK`"));
    }
    let asked = wanted.cwd.map_or_else(|| context.workdir.clone(), |cwd| context.workdir.join(cwd));
    let request = PipelineRequest {
        prompt: wanted.prompt,
        folder: existing(&asked)?,
        place: if wanted.here { PipelinePlace::Here } else { PipelinePlace::Worktree },
        implement: wanted.implement,
        review: wanted.review,
        verify: wanted.verify,
        rounds: wanted.rounds,
        least: wanted.fix,
        time: time_or_usual(wanted.timeout),
    };
    let begun = begin::begin(context, &open, &evidence, request).await?;
    begun.notes.iter().for_each(|note| context.printer.say(note));
    if let Some(next) = next_of(&begun.record, context.named_folder()) {
        context.printer.say(&format!("pipeline {}; if it is interrupted, {next}", begun.record.id));
    }
    go_on(context, &open, &evidence, begun, stop).await
}

async fn resume(ResumeArgs { one, review }: ResumeArgs, context: &Context) -> Result<Exit, CommandError> {
    let stop = Stop::listen().map_err(StreamError::Input)?;
    let open = context.open()?;
    let runs = Runs::of(&context.settings.dir.value);
    settle::settle(context, &open, &runs).await;
    let evidence = permission::evidence(context, &open, &runs).await?;
    let (folder, mut record) = Pipelines::of(&context.settings.dir.value).find(&one.id)?;
    if record.ended.is_some() && !record.try_again() {
        context.printer.say("it had ended");
        return told(context, &folder, folder.result()?);
    }
    if !review.is_empty() {
        record.review = begin::reviewers(context, &open, &evidence, review.iter()).await?;
    }
    let begun = begin::resume(context, &open, folder, record).await?;
    begun.notes.iter().for_each(|note| context.printer.say(note));
    go_on(context, &open, &evidence, begun, stop).await
}

async fn go_on(
    context: &Context,
    open: &Open,
    evidence: &Evidence,
    begun: Begun,
    mut stop: Stop,
) -> Result<Exit, CommandError> {
    let Begun { folder, record, alone: _alone, .. } = begun;
    let mut audience = Talk(context.printer.clone());
    let mut work = Work { context, open, evidence, folder: &folder, stop: &mut stop, audience: &mut audience };
    let result = work.go_on(record).await?;
    told(context, &folder, result)
}

fn told(context: &Context, folder: &PipelineFolder, result: Value) -> Result<Exit, CommandError> {
    let exit = if result["ok"] == true { Exit::Success } else { Exit::Failure };
    context.printer.show(&PipelineShape::of(result, context.named_folder()))?;
    if let Some(next) = next_of(&folder.record()?, context.named_folder()) {
        context.printer.say(&next);
    }
    Ok(exit)
}

fn show(id: &str, context: &Context) -> Result<Exit, CommandError> {
    let (folder, record) = Pipelines::of(&context.settings.dir.value).find(id)?;
    if record.ended.is_none() {
        let is_worked_on = folder.is_worked_on(&record, context.open()?.machine.as_ref());
        let (id, does) = (record.id, if is_worked_on { "has not ended" } else { "was interrupted" });
        return Err(crate::errors::Failure {
            what: format!("pipeline {id} {does}, after {}", counted(record.steps.len(), "step")),
            hint: Some(match is_worked_on {
                true => format!("wait for it, or `relay-mesh runs stop {id}`"),
                false => format!("`relay-mesh pipeline resume {id}` goes on with it"),
            }),
            exit: Exit::Held,
            source: None,
        }
        .into());
    }
    context.printer.show(&PipelineShape::of(folder.result()?, context.named_folder()))?;
    Ok(Exit::Success)
}

async fn apply(id: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    crate::commands::runs::apply_pipeline(context, &open, id).await
}
