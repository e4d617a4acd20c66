//! `relay-mesh runs`: show runs, follow, stop and apply them, and say which agents may start some.

mod change;
mod kept;
mod look;

use mesh::allowances::Starts;
use mesh::runs::RunId;

use crate::command::CommandSpec;
use crate::commands::allowing::{self, AllowArgs, DisallowArgs};
use crate::context::Context;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::reviews::{self, Reviews};
use crate::runs::supervise::{Unwatched, supervise};
use crate::runs::{Runs, begin};
use crate::signals::Stop;

pub(crate) use self::change::apply_pipeline;

/// Show runs, follow, stop and apply them
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh runs list\n  \
    relay-mesh runs show last --json | jq .usage\n  \
    relay-mesh runs follow last\n  \
    relay-mesh runs diff last | less\n  \
    relay-mesh runs apply last\n  \
    relay-mesh runs allow alice codex --reach edit --budget 5/day\n\n\
    ID is the id of a run, a review or a pipeline, or `last` for the newest run.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Show the newest runs, reviews and pipelines
    #[command(after_help = "Example:\n  relay-mesh runs list --json")]
    List {
        /// How many at most
        #[arg(long, value_name = "N", default_value = "50")]
        last: usize,
    },
    /// Show what came of a run, a review or a pipeline
    #[command(after_help = "Example:\n  relay-mesh runs show last")]
    Show(One),
    /// Show what a run reports, or the runs of a review or a pipeline, until the end
    #[command(after_help = "Example:\n  relay-mesh runs follow last\n\nExits as the run itself does.")]
    Follow(One),
    /// Stop a run, a review or a pipeline, and everything that it started
    #[command(after_help = "Example:\n  relay-mesh runs stop last")]
    Stop(One),
    /// Print what a run changed, as a patch
    #[command(after_help = "Example:\n  relay-mesh runs diff last > changes.patch")]
    Diff(One),
    /// Apply what a run or a pipeline changed to the folder that it was started for: all of it, or nothing
    #[command(after_help = "Examples:\n  relay-mesh runs apply last\n  \
        relay-mesh runs apply REVIEW 2\n\n\
        With a finding of a review, it applies what that suggests, if its lines are still as they were reviewed.")]
    Apply {
        /// The run's id, or `last`; or a review's
        #[arg(value_name = "ID")]
        id: String,
        /// A finding of that review, by its number or its fingerprint
        #[arg(value_name = "FINDING")]
        finding: Option<String>,
    },
    /// Delete runs that ended a week ago, and worktrees that hold nothing
    #[command(after_help = "Example:\n  relay-mesh runs gc --dry-run")]
    Gc {
        /// Only show what would be deleted
        #[arg(long)]
        dry_run: bool,
    },
    /// Let an agent start runs of a harness
    #[command(after_help = "Example:\n  relay-mesh runs allow alice codex --reach edit --budget 5/day\n\n\
        It applies to this machine and this mesh, and is stored in your own settings. An agent cannot give it: it is \
        refused below a harness and below a run.")]
    Allow(AllowArgs),
    /// Take such a permission back
    #[command(after_help = "Example:\n  relay-mesh runs disallow alice")]
    Disallow(DisallowArgs),
    /// Show which agents may start runs, and the file that says so
    #[command(after_help = "Example:\n  relay-mesh runs allowed")]
    Allowed,
    /// Work on a run or a review that another process has begun
    #[command(hide = true)]
    Work {
        /// The run
        id: RunId,
    },
}

#[derive(clap::Args, Debug)]
struct One {
    /// The id, or `last` for the newest run
    #[arg(value_name = "ID")]
    id: String,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        match self.verb {
            Verb::List { last } => look::list(last, context).await,
            Verb::Show(one) => look::show(&one.id, context).await,
            Verb::Follow(one) => look::follow(&one.id, context).await,
            Verb::Stop(one) => change::stop(&one.id, context).await,
            Verb::Diff(one) => change::diff(&one.id, context).await,
            Verb::Apply { id, finding: None } => change::apply(&id, context).await,
            Verb::Apply { id, finding: Some(finding) } => change::apply_finding(&id, &finding, context),
            Verb::Gc { dry_run } => change::gc(dry_run, context).await,
            Verb::Allow(wanted) => allowing::allow(Starts::Runs, wanted, context).await,
            Verb::Disallow(wanted) => allowing::disallow(Starts::Runs, &wanted, context),
            Verb::Allowed => allowing::allowed(Starts::Runs, context),
            Verb::Work { id } => work(id, context).await,
        }
    }
}

async fn work(id: RunId, context: &Context) -> Result<Exit, CommandError> {
    let mut stop = Stop::listen().map_err(StreamError::Input)?;
    let open = context.open()?;
    let review = Reviews::of(&context.settings.dir.value).folder(id);
    if review.files.root.is_dir() {
        let review = reviews::work::work(context, &open, &review, &mut stop, &mut Unheard).await?;
        return Ok(if review.is_ok() { Exit::Success } else { Exit::Failure });
    }
    let begun = begin::take_over(&open, &Runs::of(&context.settings.dir.value), id).await?;
    let report = supervise(context, &open, begun, &mut stop, &mut Unwatched).await?;
    Ok(super::run::exit_of(report.verdict.ending))
}

/// Nobody hears how a review in the background goes: its files tell.
struct Unheard;

impl reviews::work::ReviewAudience for Unheard {
    fn says(&mut self, _: &str) {}
}
