//! `relay-mesh review`: have harnesses review a change, and print what they found.

use std::path::PathBuf;
use std::time::Duration;

use mesh::reviews::{Review, Severity, Subject, counts_against};
use view::ReviewView;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::duration::span;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::render::{Format, Printer, Show as _};
use crate::reviews::work::{ReviewAudience, work};
use crate::reviews::{ReviewRequest, begin as reviews};
use crate::runs::{Runs, begin, permission, settle};
use crate::shapes::reviews::ReviewShape;
use crate::shapes::sarif;
use crate::signals::Stop;

/// Have harnesses review a change
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh review\n  \
    relay-mesh review --base origin/main --by codex,claude-code --verify gemini --fail-on high\n  \
    relay-mesh review --commit HEAD --format sarif > review.sarif\n  \
    relay-mesh review --run last --json | jq '.findings[] | select(.stands)'\n  \
    relay-mesh runs apply REVIEW 2\n\n\
    The reviewers may look and change nothing. Each finding is held against the change: what lies outside of it is \
    marked, and does not count for --fail-on; neither does what --verify refutes. `relay-mesh runs show REVIEW` shows a \
    review again.\n\n\
    Exits with 0 if every reviewer has answered and nothing counts for --fail-on, else with 1: a reviewer that failed \
    has not found nothing.")]
pub(crate) struct Args {
    /// What is not committed, new files included, which is the default
    #[arg(long, group = "subject")]
    uncommitted: bool,
    /// What the working copy has beyond the point where it left this branch or commit
    #[arg(long, value_name = "BASE", group = "subject")]
    base: Option<String>,
    /// This commit
    #[arg(long, value_name = "COMMIT", group = "subject")]
    commit: Option<String>,
    /// What this run changed: its id, or `last`
    #[arg(long, value_name = "RUN", group = "subject")]
    run: Option<String>,
    /// Who reviews, separated by commas [default: a harness that is here, and not the author's]
    #[arg(long, value_name = "HARNESS", value_delimiter = ',')]
    by: Vec<String>,
    /// Who tries to refute what they found
    #[arg(long, value_name = "HARNESS")]
    verify: Option<String>,
    /// What is printed [default: text, or json with --json]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<ReviewFormat>,
    /// Exit with 1 if a finding that stands is at least so bad: low, medium, high or critical
    #[arg(long, value_name = "SEVERITY")]
    fail_on: Option<Severity>,
    /// The folder of the repository [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The most time of each reviewer's run, in seconds or as in `5m` [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = span)]
    timeout: Option<Duration>,
}

/// What is printed of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ReviewFormat {
    Text,
    Json,
    Sarif,
    Github,
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let (fail_on, format) = (self.fail_on, self.format);
        let mut stop = Stop::listen().map_err(StreamError::Input)?;
        let open = context.open()?;
        let runs = Runs::of(&context.settings.dir.value);
        settle::settle(context, &open, &runs).await;
        let evidence = permission::evidence(context, &open, &runs).await?;
        let request = self.request(context, &runs)?;
        let (folder, record) = reviews::begin(context, &open, &evidence, request).await?;
        context.printer.say(&format!("review {} by {}", record.id, record.reviewers.join(", ")));
        let mut audience = Talk(context.printer.clone());
        let review = work(context, &open, &folder, &mut stop, &mut audience).await?;
        print(context, &review, format)?;
        Ok(exit_of(&review, fail_on))
    }
}

impl Args {
    fn request(self, context: &Context, runs: &Runs) -> Result<ReviewRequest, CommandError> {
        let folder = self.cwd.map_or_else(|| context.workdir.clone(), |cwd| context.workdir.join(cwd));
        let subject = match (self.base, self.commit, self.run) {
            (Some(base), ..) => Subject::Base(base),
            (None, Some(commit), _) => Subject::Commit(commit),
            (None, None, Some(run)) => Subject::Run(runs.find(&run)?.1.id),
            (None, None, None) => Subject::Uncommitted,
        };
        Ok(ReviewRequest {
            subject,
            folder: begin::existing(&folder)?,
            by: self.by,
            verify: self.verify,
            time: crate::runs::begin::time_or_usual(self.timeout),
            report: Vec::new(),
        })
    }
}

fn exit_of(review: &Review, fail_on: Option<Severity>) -> Exit {
    let counts = fail_on.map_or(0, |least| counts_against(&review.findings, least));
    if review.is_ok() && counts == 0 { Exit::Success } else { Exit::Failure }
}

fn print(context: &Context, review: &Review, format: Option<ReviewFormat>) -> Result<(), CommandError> {
    let usual = match context.printer.format() {
        Format::Json => ReviewFormat::Json,
        Format::Text => ReviewFormat::Text,
    };
    let shape = || ReviewShape(serde_json::to_value(ReviewView::from(review)).unwrap_or_default());
    match format.unwrap_or(usual) {
        ReviewFormat::Text => context.printer.data(&shape().text()),
        ReviewFormat::Json => context.printer.line(&shape()),
        ReviewFormat::Sarif => context.printer.line(&sarif::sarif(review)),
        ReviewFormat::Github => match sarif::github(review) {
            text if text.is_empty() => Ok(()),
            text => context.printer.data(&text),
        },
    }
}

/// Tells a user how a review goes, on standard error.
pub(crate) struct Talk(pub(crate) Printer);

impl ReviewAudience for Talk {
    fn says(&mut self, line: &str) {
        self.0.say(&crate::render::printable_line(line));
    }
}
