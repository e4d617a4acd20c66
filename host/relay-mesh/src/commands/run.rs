//! `relay-mesh run`: run a harness for one task, to its end, and print what came of it.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use mesh::names::AgentName;
use mesh::ports::runner::{Ending, Extensions, Reach, RunEvent, Start};
use mesh::runs::{RunLimits, RunReport};
use serde_json::Value;
use view::RunView;

use crate::command::CommandSpec;
use crate::commands::input;
use crate::context::Context;
use crate::duration::span;
use crate::errors::{CommandError, Failure, StreamError};
use crate::exit::Exit;
use crate::render::{Format, Printer};
use crate::runs::supervise::{Audience, supervise};
use crate::runs::{AnswerSchema, RunRequest, Runs, WorkFolder, begin};
use crate::shapes::runs::{RunLine, event_line, told};
use crate::signals::Stop;
use crate::whole_numbers::at_least_one;

/// The longest task, in bytes.
const LONGEST_TASK: usize = 16 * 1024 * 1024;

/// Run a harness for one task, to its end
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh run claude-code 'why does the build fail?'\n  \
    relay-mesh run codex 'fix the failing test' --reach edit --report alice --detach\n  \
    git diff | relay-mesh run opencode --stdin --json | jq -r .structured.response\n  \
    relay-mesh run claude-code 'list the modules' --schema modules.json --timeout 5m\n  \
    relay-mesh run --agent claude --prompt 'say hello' --timeout 30\n\n\
    A run that may change files works in a worktree of its own, on the branch relay/ID: see `relay-mesh runs diff` and \
    `relay-mesh runs apply`. With `--here` it works in the folder itself, and reserves what it may change.\n\n\
    Nothing of a run outlives it: whatever it started is ended with it, also if this command is killed.\n\n\
    Exits with 0 if it answered, with 7 if its time was up, and with 1 if it ended in any other way; `ended` of the \
    result says how.")]
pub(crate) struct Args {
    /// The harness that works: claude-code (or claude), codex, gemini-cli (or gemini), opencode, …
    #[arg(value_name = "HARNESS", required_unless_present = "agent", conflicts_with = "agent")]
    harness: Option<String>,
    /// What to do
    #[arg(value_name = "TASK", conflicts_with = "prompt")]
    task: Option<String>,
    /// Take the task from standard input, after TASK if both are given
    #[arg(long)]
    stdin: bool,
    /// HARNESS by another spelling; prints one JSON result
    #[arg(long, value_name = "HARNESS")]
    agent: Option<String>,
    /// TASK by another spelling
    #[arg(long, value_name = "TASK")]
    prompt: Option<String>,
    /// The folder to work in [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Work in a worktree of its own, whatever the reach
    #[arg(long, conflicts_with = "here")]
    worktree: bool,
    /// Work in the folder itself, whatever the reach
    #[arg(long)]
    here: bool,
    /// What it may change: nothing (look), files (edit), what the harness's rules allow (work), anything (unguarded)
    #[arg(long, value_name = "REACH", default_value = "look")]
    reach: Reach,
    /// A JSON schema that the answer has to fit: a file, or the schema itself
    #[arg(long, value_name = "SCHEMA")]
    schema: Option<String>,
    /// The most time, in seconds or as in `5m` [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = span)]
    timeout: Option<Duration>,
    /// The most time without any output [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = span)]
    silence: Option<Duration>,
    /// The most turns of the model
    #[arg(long, value_name = "N", value_parser = at_least_one::<u32>)]
    turns: Option<u32>,
    /// The most cost, in US dollars
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    budget: Option<u64>,
    /// How much of it runs that this one starts may spend
    #[arg(long, value_name = "DOLLARS", value_parser = dollars, requires = "budget")]
    budget_below: Option<u64>,
    /// Continue a session of the harness that nobody has open
    #[arg(long, value_name = "SESSION", conflicts_with = "fork")]
    resume: Option<String>,
    /// Continue a copy of a session
    #[arg(long, value_name = "SESSION")]
    fork: Option<String>,
    /// Its name in the mesh [default: as in claude-run]
    #[arg(long = "as", value_name = "NAME")]
    name: Option<AgentName>,
    /// With --here: what it may change, and reserves; may be given several times [default: everything in the folder]
    #[arg(long, value_name = "PATTERN")]
    reserve: Vec<String>,
    /// Send the result to this agent, and wake it; may be given several times
    #[arg(long, value_name = "AGENT")]
    report: Vec<String>,
    /// Return at once; the run goes on
    #[arg(long)]
    detach: bool,
    /// Print each event as a JSON line, and the result as the last one
    #[arg(long)]
    jsonl: bool,
    /// The model, in the harness's own spelling
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// What the harness loads beside itself: nothing (none), the mesh alone (mesh), all that you have set up (all)
    #[arg(long, value_enum, value_name = "WHICH", default_value = "mesh")]
    extensions: Loaded,
}

/// Which extensions a harness loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Loaded {
    None,
    Mesh,
    All,
}

impl From<Loaded> for Extensions {
    fn from(loaded: Loaded) -> Extensions {
        match loaded {
            Loaded::None => Extensions::None,
            Loaded::Mesh => Extensions::Mesh,
            Loaded::All => Extensions::All,
        }
    }
}

/// Dollars as millionths.
pub(crate) fn dollars(text: &str) -> Result<u64, String> {
    let amount: f64 = text.trim_start_matches('$').parse().map_err(|_| "write it as `0.50`".to_owned())?;
    if !amount.is_finite() || amount <= 0.0 || amount > 1e9 {
        return Err("a run costs something: it must be more than zero".to_owned());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive and below 10^15")]
    Ok((amount * 1e6).ceil() as u64)
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let (detach, jsonl) = (self.detach, self.jsonl);
        let as_json = context.printer.format() == Format::Json || self.agent.is_some();
        let request = self.request(context)?;
        // Before anything is started, so that no signal is missed.
        let mut stop = Stop::listen().map_err(StreamError::Input)?;
        let open = context.open()?;
        let begun = begin::begin(context, &open, request).await?;
        for note in begun.notes.iter().chain(begun.record.launch.iter().flat_map(|launch| &launch.without)) {
            context.printer.say(note);
        }
        if detach {
            let record = begin::leave(context, &open, begun).await?;
            let line = RunLine::of(&record, mesh::runs::RunStage::Running);
            if jsonl {
                context.printer.line(&line)?
            } else {
                context.printer.show(&line)?
            }
            context.printer.say(&format!("`relay-mesh runs follow {}` shows how it goes", record.id));
            return Ok(Exit::Success);
        }
        let mut audience = Watcher::of(context, jsonl);
        let report = supervise(context, &open, begun, &mut stop, &mut audience).await?;
        if as_json || jsonl {
            context.printer.line(&RunView::from(&report))?;
        } else {
            let answer = answer(&report).filter(|answer| !audience.has_shown(answer));
            show(context, &report, answer.as_deref())?;
        }
        Ok(exit_of(report.verdict.ending))
    }
}

impl Args {
    fn request(self, context: &Context) -> Result<RunRequest, CommandError> {
        let folder = self.cwd.map_or_else(|| context.workdir.clone(), |cwd| context.workdir.join(cwd));
        let folder = begin::existing(&folder)?;
        let mut text = self.task.or(self.prompt).unwrap_or_default();
        if self.stdin {
            let more = input::text(LONGEST_TASK)?;
            text = if text.is_empty() { more } else { format!("{text}\n\n{more}") };
        }
        if text.trim().is_empty() {
            return Err(CommandError::usage("the run has no task", "give it as an argument, or by `--stdin`"));
        }
        if !self.reserve.is_empty() && !self.here {
            let hint = "a worktree needs no reservation; add `--here` to work in the folder itself";
            return Err(CommandError::usage("`--reserve` is for runs with `--here`", hint));
        }
        let mut limits = RunLimits::default();
        let milliseconds = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        limits.time = self.timeout.map_or(limits.time, milliseconds);
        limits.silence = self.silence.map_or(limits.silence, milliseconds);
        Ok(RunRequest {
            harness: self.harness.or(self.agent).unwrap_or_default(),
            text,
            folder,
            place: match (self.worktree, self.here) {
                (true, _) => WorkFolder::Worktree,
                (false, true) => WorkFolder::Here,
                (false, false) => WorkFolder::Usual,
            },
            reach: self.reach,
            start: self.resume.map(Start::Resume).or(self.fork.map(Start::Fork)),
            extensions: self.extensions.into(),
            model: self.model,
            schema: self.schema.as_deref().map(|typed| schema(context, typed)).transpose()?,
            turns: self.turns,
            cost: self.budget,
            below: self.budget_below,
            limits,
            name: self.name,
            reserve: self.reserve,
            report: self.report,
        })
    }
}

/// A schema as it is typed: itself, or the file that holds it.
fn schema(context: &Context, typed: &str) -> Result<Value, CommandError> {
    if typed.trim_start().starts_with('{') {
        return Ok(AnswerSchema::parse(typed)?);
    }
    let path = context.workdir.join(typed);
    let text = std::fs::read_to_string(&path).map_err(|source| Failure {
        what: format!("the schema `{}` could not be read", path.display()),
        hint: Some("`--schema` takes a file with a JSON schema, or the schema itself".to_owned()),
        exit: Exit::NotFound,
        source: Some(Box::new(source)),
    })?;
    Ok(AnswerSchema::parse(&text)?)
}

/// How a run's end is told to the shell.
pub(crate) fn exit_of(ending: Ending) -> Exit {
    match ending {
        Ending::Answered => Exit::Success,
        Ending::Time => Exit::TimedOut,
        Ending::Turns
        | Ending::Cost
        | Ending::Shape
        | Ending::Login
        | Ending::Limited
        | Ending::Provider
        | Ending::Denied
        | Ending::Stopped
        | Ending::BrokeOff => Exit::Failure,
    }
}

/// What a run answered, as it is printed.
fn answer(report: &RunReport) -> Option<String> {
    let answer = report.verdict.output.as_ref().map(Value::to_string).or_else(|| report.outcome.answer.clone())?;
    Some(crate::render::printable(&answer))
}

/// Prints what a run came to, for a user: its answer, and what to do next.
fn show(context: &Context, report: &RunReport, answer: Option<&str>) -> Result<(), CommandError> {
    if let Some(answer) = answer {
        context.printer.data(answer)?;
    }
    for note in &report.notes {
        context.printer.say(note);
    }
    let lines = told(report);
    if report.verdict.ok {
        context.printer.say(&lines);
    } else {
        context.printer.warn_of_failure(&lines);
        if report.verdict.ending == Ending::Login {
            let name = &report.record.harness;
            context
                .printer
                .say(&format!("hint: sign in to {name} as you do without us, or set its key for this command"));
        }
        if report.record.ended.is_some() {
            context.printer.say(&format!(
                "`relay-mesh runs show {}` has all of it; its files are in {}",
                report.record.id,
                Runs::of(&context.settings.dir.value).folder(report.record.id).root.display()
            ));
        }
    }
    Ok(())
}

/// Shows a run while it works.
struct Watcher {
    printer: Printer,
    mode: Mode,
    /// What it said last, if nothing was shown since.
    last_words: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Silent,
    /// A line for each event, on standard error.
    Lines,
    /// Each event as JSON, on standard output.
    Json,
}

impl Watcher {
    fn of(context: &Context, jsonl: bool) -> Watcher {
        let mode = match (jsonl, context.printer.format()) {
            (true, _) => Mode::Json,
            (false, Format::Text) if std::io::stderr().is_terminal() => Mode::Lines,
            (false, Format::Text | Format::Json) => Mode::Silent,
        };
        Watcher { printer: context.printer.clone(), mode, last_words: None }
    }

    /// Whether the user has just read the answer as what was said last: on the terminal where it would be printed.
    fn has_shown(&self, answer: &str) -> bool {
        self.printer.screen().is_some() && self.last_words.as_deref().map(str::trim) == Some(answer.trim())
    }
}

impl Audience for Watcher {
    fn event(&mut self, event: &RunEvent) {
        match self.mode {
            Mode::Silent => {}
            Mode::Lines => {
                if let Some(line) = event_line(event) {
                    self.printer.say(&line);
                    self.last_words = matches!(event, RunEvent::Said { .. }).then_some(line);
                }
            }
            // A reader that went away does not end the run: its result is kept.
            Mode::Json => {
                let _unread = self.printer.line(event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_amounts_are_more_than_nothing() {
        for (text, expected) in [("30", Some(30_000)), ("5m", Some(300_000)), ("0", None), ("0s", None), ("soon", None)]
        {
            assert_eq!(span(text).ok().map(|span| span.as_millis()), expected, "{text}");
        }
        for (text, expected) in
            [("0.50", Some(500_000)), ("$2", Some(2_000_000)), ("0", None), ("-1", None), ("NaN", None), ("x", None)]
        {
            assert_eq!(dollars(text).ok(), expected, "{text}");
        }
    }
}
