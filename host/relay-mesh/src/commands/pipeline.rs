//! `relay-mesh pipeline`: one harness implements, others review, the first corrects.

use std::path::PathBuf;
use std::time::Duration;

use mesh::ports::machine::Machine as _;
use mesh::ports::runner::Reach;
use mesh::reviews::{PipelineRecord, Severity, StepKind};
use mesh::runs::Workplace;
use serde_json::Value;

use crate::command::CommandSpec;
use crate::commands::review::Talk;
use crate::context::Context;
use crate::duration::span;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::pipelines::work::Work;
use crate::pipelines::{PipelineFolder, Pipelines};
use crate::runs::begin::time_or_usual;
use crate::runs::permission::{self, Evidence};
use crate::runs::{Runs, begin, changes, settle};
use crate::shapes::counted;
use crate::shapes::reviews::PipelineShape;
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
    let (runs, git) = (Runs::of(&context.settings.dir.value), changes::git(context));
    settle::settle(context, &open, &runs).await;
    let evidence = permission::evidence(context, &open, &runs).await?;
    if wanted.prompt.trim().is_empty() {
        return Err(CommandError::usage("the pipeline has no task", "give it by `--prompt TASK`"));
    }
    let asked = wanted.cwd.map_or_else(|| context.workdir.clone(), |cwd| context.workdir.join(cwd));
    let asked = begin::existing(&asked)?;
    let implement = begin::harness(&open, &wanted.implement).await?;
    begin::permitted(context, &open, &runs, &evidence, (&implement, Reach::Edit))?;
    let typed = wanted.review.iter().chain(&wanted.verify);
    let mut review = reviewers(context, &open, &evidence, typed).await?;
    let verify = wanted.verify.and_then(|_| review.pop());
    let pipelines = Pipelines::of(&context.settings.dir.value);
    let id = open.mesh.new_run_id();
    let top = git.top(&asked).await?;
    let commit = git.head(&top).await?;
    let folder = pipelines.create(id)?;
    let placed = if wanted.here {
        Ok((Workplace::Here { top: Some(top) }, asked.clone(), Vec::new()))
    } else {
        changes::worktree(&git, &asked, &folder.worktree(), id).await
    };
    let (workplace, cwd, notes) = match placed {
        Ok(placed) => placed,
        Err(error) => {
            // Nothing of a pipeline that was refused is left.
            let _empty = std::fs::remove_dir(&folder.files.root);
            return Err(error);
        }
    };
    for note in notes {
        context.printer.say(&note);
    }
    let record = PipelineRecord {
        id,
        by: None,
        prompt: wanted.prompt,
        asked_folder: asked,
        folder: cwd,
        workplace,
        commit,
        implement: implement.about().harness.clone(),
        review,
        verify,
        rounds: wanted.rounds,
        least: wanted.fix,
        time: time_or_usual(wanted.timeout),
        supervisor: open.machine.this_process(),
        started: open.machine.now(),
        steps: Vec::new(),
        ended: None,
        applied: None,
    };
    folder.keep(&record)?;
    context.printer.say(&format!("pipeline {id}; if it is interrupted, `relay-mesh pipeline resume {id}` goes on"));
    go_on(context, &open, &evidence, (&folder, record), stop).await
}

/// The harnesses of these names, each of which may review.
async fn reviewers(
    context: &Context,
    open: &crate::compose::Open,
    evidence: &Evidence,
    typed: impl Iterator<Item = &String>,
) -> Result<Vec<String>, CommandError> {
    let runs = Runs::of(&context.settings.dir.value);
    let mut names = Vec::new();
    for typed in typed {
        let harness = begin::harness(open, typed).await?;
        begin::permitted(context, open, &runs, evidence, (&harness, Reach::Look))?;
        names.push(harness.about().harness.clone());
    }
    Ok(names)
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
        return told(context, folder.result()?);
    }
    if !review.is_empty() {
        record.review = reviewers(context, &open, &evidence, review.iter()).await?;
    }
    // The worktree of a pipeline that had changed nothing went with its end.
    let is_gone = matches!(&record.workplace, Workplace::Worktree { folder, .. } if !folder.is_dir());
    if is_gone && record.steps.iter().all(|step| step.kind == StepKind::Implement) {
        let git = changes::git(context);
        let placed = changes::worktree(&git, &record.asked_folder, &folder.worktree(), record.id).await?;
        let notes;
        (record.workplace, record.folder, notes) = placed;
        record.commit = git.head(&record.folder).await?;
        notes.iter().for_each(|note| context.printer.say(note));
    }
    go_on(context, &open, &evidence, (&folder, record), stop).await
}

async fn go_on(
    context: &Context,
    open: &crate::compose::Open,
    evidence: &Evidence,
    (folder, record): (&PipelineFolder, PipelineRecord),
    mut stop: Stop,
) -> Result<Exit, CommandError> {
    let _alone = folder.alone()?;
    let mut audience = Talk(context.printer);
    let mut work = Work { context, open, evidence, folder, stop: &mut stop, audience: &mut audience };
    let result = work.go_on(record).await?;
    told(context, result)
}

fn told(context: &Context, result: Value) -> Result<Exit, CommandError> {
    let exit = if result["ok"] == true { Exit::Success } else { Exit::Failure };
    let id = result["pipeline"].as_str().unwrap_or_default().to_owned();
    context.printer.show(&PipelineShape(result))?;
    if exit == Exit::Failure {
        context.printer.say(&format!(
            "`relay-mesh pipeline resume {id}` does the failed step again; with `--review HARNESS` another reviews"
        ));
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
    context.printer.show(&PipelineShape(folder.result()?))?;
    Ok(Exit::Success)
}

async fn apply(id: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    crate::commands::runs::apply_pipeline(context, &open, id).await
}
