//! Applies a plan: shows it, asks if needed, and reports the outcome.

use std::io::{self, BufRead, IsTerminal};
use std::path::Path;

use mesh::ports::harness::{Edit, Plan, Scope};

use super::agreement::{Audience, Confirmation, Decision, TypedAnswer, decision, typed};
use super::diff;
use super::installed::scope_name;
use super::shapes::{FileChange, PlanOutcome, PlanShape};
use crate::context::Context;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::render::Format;
use crate::render::{Show, framed, printable, printable_line, table};
use crate::screen::Screen;

/// What a plan is for, and the texts shown to the user.
pub(crate) struct PlanContext<'a> {
    pub(crate) harness: &'a str,
    /// Whether the plan's words are those of an adapter that is not part of the program.
    pub(crate) is_foreign: bool,
    pub(crate) scope: Scope,
    pub(crate) confirmation: Confirmation,
    /// Shown if there is nothing to do.
    pub(crate) nothing_to_do: String,
    /// Shown after the plan was applied.
    pub(crate) done: String,
}

#[derive(Debug)]
pub(crate) enum Performed {
    Done,
    /// Nothing was applied: a file changed since the plan was made. A new plan may succeed.
    Outdated(CommandError),
}

/// How often to plan. Two concurrent installs need one repetition: by then the other is done.
const PLANS: usize = 5;

/// Makes a plan, shows it, asks if needed, and applies it if the user agreed. Repeats all of that if another process
/// changed a file meanwhile.
pub(crate) async fn carry_out(
    context: &Context,
    about: &PlanContext<'_>,
    make: impl AsyncFn() -> Result<Plan, CommandError>,
    locate: impl Fn(&Edit) -> String,
    perform: impl Fn(&Plan) -> Result<Performed, CommandError>,
) -> Result<Exit, CommandError> {
    let mut plans = 1;
    loop {
        match carry_out_once(context, about, make().await?, &locate, &perform)? {
            Attempt::Over(outcome) => return Ok(outcome),
            Attempt::Outdated(error) if plans == PLANS => return Err(error),
            Attempt::Outdated(_) => {
                plans += 1;
                context.printer.say("Another process changed these files meanwhile; planning again.");
            }
        }
    }
}

enum Attempt {
    Over(Exit),
    Outdated(CommandError),
}

fn carry_out_once(
    context: &Context,
    about: &PlanContext<'_>,
    plan: Plan,
    locate: &impl Fn(&Edit) -> String,
    perform: &impl Fn(&Plan) -> Result<Performed, CommandError>,
) -> Result<Attempt, CommandError> {
    let files: Vec<FileChange> = plan.edits.iter().map(|edit| change(edit, &locate(edit))).collect();
    let decision = decision(&plan, about.confirmation, audience(context.printer.format()));
    if context.printer.format() == Format::Text && !files.is_empty() {
        context.printer.data(&listed(&files, context.printer.screen()))?;
        // A terminal would scroll the list and the question away; what was agreed to before is not read there either.
        let is_read = match decision {
            Decision::Ask => false,
            Decision::Apply => context.printer.screen().is_none(),
            Decision::ShowOnly | Decision::Unasked | Decision::NothingToDo => true,
        };
        if is_read {
            context.printer.data(&diffs(&files))?;
        }
    }
    let agreed = match decision {
        Decision::NothingToDo => Err(PlanOutcome::Unchanged),
        Decision::ShowOnly => Err(PlanOutcome::Shown),
        Decision::Unasked => Err(PlanOutcome::Unasked),
        Decision::Apply => Ok(()),
        Decision::Ask if ask(context, &plan, &files)? => Ok(()),
        Decision::Ask => Err(PlanOutcome::Declined),
    };
    let outcome = match agreed {
        Err(outcome) => outcome,
        Ok(()) => match perform(&plan)? {
            Performed::Done => PlanOutcome::Applied,
            Performed::Outdated(error) => return Ok(Attempt::Outdated(error)),
        },
    };
    tell(context, about, &plan, outcome);
    let carried = PlanShape {
        harness: Some(about.harness.to_owned()),
        scope: Some(scope_name(about.scope)),
        outcome,
        files,
        next_steps: plan.next_steps,
    };
    context.printer.show(&carried)?;
    Ok(Attempt::Over(exit(outcome)))
}

/// A path for display, with `~` for the home folder.
pub(crate) fn shown_path(path: &Path, home: Option<&Path>) -> String {
    let below = home.and_then(|home| path.strip_prefix(home).ok());
    let text = below.map_or_else(|| path.display().to_string(), |rest| format!("~/{}", rest.display()));
    printable_line(&text)
}

impl Show for PlanShape {
    /// Empty: the diffs and notes were printed before, because the question came in between.
    fn text(&self) -> String {
        String::new()
    }
}

fn change(edit: &Edit, path: &str) -> FileChange {
    let change = match (&edit.before, &edit.after) {
        (None, Some(_)) => "created",
        (Some(_), Some(_)) => "changed",
        (Some(_) | None, None) => "removed",
    };
    let (lines_added, lines_removed) = diff::lines(edit);
    FileChange {
        path: path.to_owned(),
        change,
        lines_added,
        lines_removed,
        shared: is_shared(edit),
        executable: edit.executable && edit.after.is_some(),
        diff: diff::unified(edit, path),
    }
}

/// Whether a file lies in the project, for everyone who works in it. Harnesses keep what is one machine's beside it,
/// under names such as `settings.local.json`.
fn is_shared(edit: &Edit) -> bool {
    let name = edit.path.rsplit('/').next().unwrap_or(&edit.path);
    edit.root == PROJECT_ROOT && !name.contains(".local.") && !edit.path.starts_with(".git/")
}

/// The root of an adapter that is the project's folder.
const PROJECT_ROOT: &str = "project";

/// A line for each file: what happens to it, how much of it, whose it is.
fn listed(files: &[FileChange], screen: Option<Screen>) -> String {
    let rows: Vec<Vec<String>> = files
        .iter()
        .map(|file| {
            let whose = if file.shared { "shared" } else { "this machine's" };
            let program = if file.executable { ", executable" } else { "" };
            vec![file.change.to_owned(), lines(file), format!("{whose}{program}"), file.path.clone()]
        })
        .collect();
    let head = ["CHANGE", "LINES", "WHOSE", "FILE"];
    screen.map_or_else(|| table(&head, &rows), |screen| screen.last_below(&head, &rows))
}

/// How many lines come and go. What is 0 is left out, so that the path has room on a terminal.
fn lines(file: &FileChange) -> String {
    match (file.lines_added, file.lines_removed) {
        (added, 0) => format!("+{added}"),
        (0, removed) => format!("\u{2212}{removed}"),
        (added, removed) => format!("+{added} \u{2212}{removed}"),
    }
}

fn diffs(files: &[FileChange]) -> String {
    files.iter().map(|file| file.diff.as_str()).collect()
}

/// JSON output shows nothing before the question, and users must not agree to a change they could not see.
fn audience(format: Format) -> Audience {
    match format {
        Format::Text if io::stdin().is_terminal() && io::stderr().is_terminal() => Audience::Terminal,
        Format::Text | Format::Json => Audience::Nobody,
    }
}

fn ask(context: &Context, plan: &Plan, files: &[FileChange]) -> Result<bool, CommandError> {
    loop {
        context.printer.on_standard_error(&format!("{}. Go on? [y]es [d]iff [N]o ", diff::future(plan)));
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).map_err(StreamError::Input)?;
        match typed(&answer) {
            TypedAnswer::Apply => return Ok(true),
            TypedAnswer::Decline => return Ok(false),
            TypedAnswer::SeeDiff => context.printer.data(&diffs(files))?,
        }
    }
}

fn tell(context: &Context, about: &PlanContext<'_>, plan: &Plan, outcome: PlanOutcome) {
    let printer = &context.printer;
    match outcome {
        PlanOutcome::Unchanged => {
            printer.say(&about.nothing_to_do);
            for step in &plan.next_steps {
                printer.say(&next_step(step, about.is_foreign));
            }
        }
        PlanOutcome::Shown => printer.say(&format!("{}. Nothing was changed; leave out `--dry-run` to do it.", diff::future(plan))),
        PlanOutcome::Declined => printer.say("Nothing was changed."),
        PlanOutcome::Unasked => printer.warn_of_failure(&format!(
            "nothing was changed, because without a terminal no user can agree ({}); look at the changes and say `--yes` to make them",
            diff::future(plan)
        )),
        PlanOutcome::Applied => {
            printer.say(&format!("{} ({}).", about.done, diff::summary(plan)));
            for step in &plan.next_steps {
                printer.say(&next_step(step, about.is_foreign));
            }
        }
    }
}

/// What is left to the user. The author of an adapter could write lines that look like ours.
pub(crate) fn next_step(step: &str, is_foreign: bool) -> String {
    if is_foreign { format!("Next:{}", framed(step)) } else { format!("Next: {}", printable(step)) }
}

fn exit(outcome: PlanOutcome) -> Exit {
    match outcome {
        PlanOutcome::Applied | PlanOutcome::Unchanged | PlanOutcome::Shown => Exit::Success,
        PlanOutcome::Declined | PlanOutcome::Unasked => Exit::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_sees_whether_anybody_agreed() {
        for (outcome, expected) in [
            (PlanOutcome::Applied, 0),
            (PlanOutcome::Unchanged, 0),
            (PlanOutcome::Shown, 0),
            (PlanOutcome::Declined, 4),
            (PlanOutcome::Unasked, 4),
        ] {
            assert_eq!(exit(outcome).code(), expected, "{outcome:?}");
        }
    }

    #[test]
    fn a_step_of_a_foreign_adapter_forges_no_line() {
        let step = "restart it\ntoad is set up for the project (1 file created).\nNext: run `sh x`";
        let told = next_step(step, true);
        assert_eq!(told.lines().next(), Some("Next:"));
        assert!(told.lines().skip(1).all(|line| line.starts_with("  | ")), "{told}");
        assert_eq!(next_step("restart it", false), "Next: restart it");
        assert_eq!(shown_path(Path::new("/srv/x\ncreated  +1"), None), "/srv/x created  +1");
    }

    #[test]
    fn each_file_is_listed_with_whose_it_is() {
        let edit = |root: &str, path: &str, executable| Edit {
            root: root.to_owned(),
            path: path.to_owned(),
            before: Some("a\n".to_owned()),
            after: Some("a\nb\n".to_owned()),
            executable,
        };
        for (edit, expected) in [
            (edit("project", ".mcp.json", false), "changed  +1  shared  FILE"),
            (edit("project", ".claude/settings.local.json", false), "changed  +1  this machine's  FILE"),
            (edit("project", ".git/hooks/pre-commit", true), "changed  +1  this machine's, executable  FILE"),
            (edit("config", "settings.json", false), "changed  +1  this machine's  FILE"),
            (edit("project", "hook.sh", true), "changed  +1  shared, executable  FILE"),
        ] {
            let line = listed(&[change(&edit, "FILE")], None).lines().nth(1).unwrap_or_default().to_owned();
            let words: Vec<&str> = line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
            assert_eq!(words.join("  "), expected, "{}/{}", edit.root, edit.path);
        }
    }

    #[test]
    fn paths_are_shown_as_people_type_them() {
        let home = Some(Path::new("/home/u"));
        for (path, expected) in
            [("/home/u/.claude/x", "~/.claude/x"), ("/srv/app/x", "/srv/app/x"), ("/home/user2/x", "/home/user2/x")]
        {
            assert_eq!(shown_path(Path::new(path), home), expected);
        }
    }
}
