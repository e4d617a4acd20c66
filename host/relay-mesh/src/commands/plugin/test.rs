//! `relay-mesh plugin test`: the conformance kit, for authors and their CI. It reads and writes none of the user's
//! files: the component runs in a scratch folder.

use std::path::PathBuf;

use adapters::compiling::Attempt;
use conformance::{Ability, Check, CheckOutcome as Found, ExamineError, FixturesError, Report, Subject, Verdict};
use serde::Serialize;

use crate::compose;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::render::{Show, printable, printable_line, table};

/// Test an adapter in the sandbox: what it can do, how that is known, and what is wrong
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh plugin test target/wasm32-wasip2/release/my_adapter.wasm --fixtures fixtures\n  \
    relay-mesh plugin test my-adapter.wasm --json | jq '.abilities[] | {name, verdict}'\n\n\
    Fixtures are recordings of the harness: docs/fixtures.md says how they are written. The exit code is 0 \
    if every check held, and 1 if one failed; what the adapter does not offer is no failure.")]
pub(crate) struct Args {
    /// The component, with its manifest inside or beside it
    #[arg(value_name = "FILE.wasm")]
    component: PathBuf,
    /// The folder of recordings (default: `fixtures` beside the component)
    #[arg(long, value_name = "DIR")]
    fixtures: Option<PathBuf>,
    /// Show every check, also those that held
    #[arg(long)]
    all: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let component = context.workdir.join(&args.component);
    let fixtures = match args.fixtures {
        Some(folder) => Some(context.workdir.join(folder)),
        None => conformance::fixtures_beside(&component),
    };
    let scratch = tempfile::tempdir()?;
    let compiler = compose::compiler(Attempt::Trial)?;
    let subject = Subject { component, fixtures, scratch: scratch.path().to_owned(), compiler };
    let report = conformance::examine(&subject).await.map_err(told)?;
    if subject.fixtures.is_none() {
        context.printer.say("no fixtures were given, so only what needs none was tested; see docs/fixtures.md");
    }
    let exit = if report.passed { Exit::Success } else { Exit::Failure };
    context.printer.show(&ReportShape { report, detail: if args.all { Detail::All } else { Detail::Open } })?;
    Ok(exit)
}

fn told(error: ExamineError) -> CommandError {
    let hint = match &error {
        ExamineError::Unusable { source, .. } => source.hint(),
        ExamineError::Unloadable { .. } => "build it against the sdk of this version; docs/adapters.md says how",
        ExamineError::Fixtures(_) => "docs/fixtures.md says how recordings are written",
        ExamineError::Scratch { .. } => "make room there, or set TMPDIR to another folder",
    };
    CommandError::from(Failure {
        what: error.to_string(),
        hint: Some(hint.to_owned()),
        exit: Exit::Failure,
        source: source_of(error),
    })
}

/// The cause, unless the error's own text names it.
fn source_of(error: ExamineError) -> Option<Box<dyn std::error::Error + Send + Sync>> {
    match error {
        ExamineError::Scratch { source, .. } => Some(Box::new(source)),
        ExamineError::Fixtures(FixturesError::Unreadable { source, .. }) => Some(Box::new(source)),
        ExamineError::Unusable { source, .. } => Some(Box::new(source)),
        ExamineError::Fixtures(FixturesError::Malformed { .. }) | ExamineError::Unloadable { .. } => None,
    }
}

/// How much of the report to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// The checks that failed or were not tried.
    Open,
    /// Every check.
    All,
}

/// The report, and how much of it to print as text. The JSON is always complete.
#[derive(Debug, Serialize)]
struct ReportShape {
    #[serde(flatten)]
    report: Report,
    #[serde(skip)]
    detail: Detail,
}

impl Show for ReportShape {
    fn text(&self) -> String {
        let report = &self.report;
        let digest: String = report.digest.chars().take(12).collect();
        let mut blocks = vec![printable_line(&format!(
            "{} {} (`{}`, interface {}, digest {digest})",
            report.title, report.version, report.name, report.wit
        ))];
        let rows: Vec<Vec<String>> = report.abilities.iter().map(row).collect();
        blocks.push(table(&["ABILITY", "", "BY"], &rows));
        blocks.extend(report.abilities.iter().flat_map(|ability| {
            let shown = ability.checks.iter().filter(|check| self.detail == Detail::All || is_open(check));
            shown.map(|check| worded(ability, check)).collect::<Vec<_>>()
        }));
        blocks.push(last_line(report));
        blocks.join("\n\n")
    }
}

fn row(ability: &Ability) -> Vec<String> {
    let count = |is: fn(&Found) -> bool| ability.checks.iter().filter(|check| is(&check.outcome)).count();
    let held = count(|found| matches!(found, Found::Held { .. }));
    let parts = [
        (count(|found| matches!(found, Found::Failed { .. })), "failed"),
        (count(|found| matches!(found, Found::Untried { .. })), "not tried"),
        (count(|found| matches!(found, Found::Absent { .. })), "not offered"),
    ];
    let others = parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    let by = std::iter::once(format!("{held} of {} checks", ability.checks.len())).chain(others);
    let by = by.collect::<Vec<_>>().join(", ");
    let example = ability.checks.iter().find_map(|check| match &check.outcome {
        Found::Held { evidence } => Some(format!("{by}; {}: {evidence}", check.name)),
        Found::Failed { .. } | Found::Absent { .. } | Found::Untried { .. } => None,
    });
    let evidence = match ability.verdict {
        Verdict::Yes | Verdict::Partly | Verdict::No => example.unwrap_or(by),
        Verdict::Absent => absence(ability),
    };
    vec![ability.name.to_owned(), ability.verdict.as_str().to_owned(), shorten(&printable_line(&evidence))]
}

/// The evidence that the adapter does not offer an ability.
fn absence(ability: &Ability) -> String {
    let said = ability.checks.iter().find_map(|check| match &check.outcome {
        Found::Absent { evidence } => Some(evidence.clone()),
        Found::Held { .. } | Found::Failed { .. } | Found::Untried { .. } => None,
    });
    said.unwrap_or_default()
}

/// Shortens a table cell, which is read at a glance; `--all` and `--json` have the rest.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 90;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn is_open(check: &Check) -> bool {
    match check.outcome {
        Found::Failed { .. } | Found::Untried { .. } => true,
        Found::Held { .. } | Found::Absent { .. } => false,
    }
}

fn worded(ability: &Ability, check: &Check) -> String {
    let head = format!("{}: {}", ability.name, check.name);
    // What the adapter said stays behind its label: a line of it could look like one of ours.
    let behind = |text: &str| text.replace('\n', "\n  | ");
    printable(&match &check.outcome {
        Found::Held { evidence } => format!("held: {head}\n  {}", behind(evidence)),
        Found::Failed { expected, got, hint } => {
            format!("failed: {head}\n  expected: {}\n  got: {}\n  hint: {hint}", behind(expected), behind(got))
        }
        Found::Absent { evidence } => format!("not offered: {head}\n  {}", behind(evidence)),
        Found::Untried { needs } => format!("not tried: {head}\n  hint: {needs}"),
    })
}

fn last_line(report: &Report) -> String {
    let checks = || report.abilities.iter().flat_map(|ability| &ability.checks);
    let (failed, all) = (checks().filter(|check| check.is_failed()).count(), checks().count());
    let calls = report.costs.calls;
    match failed {
        0 => format!("passed: {all} checks, {calls} calls"),
        _ => format!("failed: {failed} of {all} checks, {calls} calls"),
    }
}
