//! `relay-mesh uninstall --all`: out of every harness, wherever this data folder's installs put the mesh.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use adapters::SetUp;
use mesh::ports::harness::{Action, HarnessError, Harnesses as _, Plan, Scope, Setup};

use crate::commands::wake;
use crate::commit_guard;
use crate::commit_guard::git::Git;
use crate::compose::{Open, settings_folder};
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::own_path::own_path;
use crate::server::ServerRecord;
use crate::setup::agreement::Confirmation;
use crate::setup::apply::{next_step, shown_path};
use crate::setup::request::{Installation, Reach, setup};
use crate::setup::shapes::{PlanOutcome, PlanShape};
use crate::shapes::counted;

/// Goes on past what fails, and then says how it ended.
pub(super) async fn take_out(context: &Context, confirmation: Confirmation) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let (all, unreadable) = open.adapters.all_set_up();
    let server = ServerRecord::find(&context.settings.dir.value, open.machine.as_ref())?;
    let driven = open.mesh.driven_agents().await?.len();
    drop(open);
    let mut work = Work { context, confirmation, worst: Exit::Success, has_shown: false };
    for set_up in &all {
        work.out_of(set_up).await;
    }
    for error in unreadable {
        let hint = error.hint();
        let error = CommandError::caused_by("it cannot be told what it changed", hint, Exit::Store, error);
        work.ended(Err(error), "an install");
    }
    let projects: BTreeSet<&PathBuf> =
        all.iter().filter(|one| one.scope == Scope::Project).filter_map(|one| one.folder.as_ref()).collect();
    for project in projects {
        work.out_of_commits(project);
    }
    if wake::has_units(context) {
        let outcome = wake::take_units_out(context, confirmation).await;
        work.has_shown |= outcome.is_ok();
        work.ended(outcome, "the files of `relay-mesh wake install`");
    }
    if all.is_empty() {
        context.printer.say("No harness is set up by this data folder.");
    }
    if confirmation != Confirmation::DryRun {
        if server.is_some() {
            context.printer.say("A server of this data folder runs: `relay-mesh down` stops it.");
        }
        if driven > 0 {
            let (agents, go) = (counted(driven, "agent"), if driven == 1 { "goes" } else { "go" });
            context.printer.say(&format!(
                "{agents} that you started {go} on: `relay-mesh dismiss NAME` ends one, and `relay-mesh down` stops all."
            ));
        }
    }
    let left = if work.worst == Exit::Refused { Vec::new() } else { left_to_harnesses(context, &all).await? };
    for step in &left {
        context.printer.say(&next_step(&step.words, step.is_foreign));
    }
    // After a refusal everything is left. Asking adapters may have compiled some.
    if confirmation != Confirmation::DryRun && work.worst != Exit::Refused {
        context.printer.say(&what_is_left(context));
    }
    if !work.has_shown {
        context.printer.show(&nothing_set_up(left))?;
    }
    Ok(work.worst)
}

/// What `--json` says if no file was to be changed.
fn nothing_set_up(left: Vec<NextStep>) -> PlanShape {
    PlanShape {
        harness: None,
        scope: None,
        outcome: PlanOutcome::Unchanged,
        files: Vec::new(),
        next_steps: left.into_iter().map(|step| step.words).collect(),
    }
}

/// What is left to the user, in the words of an adapter.
struct NextStep {
    words: String,
    /// Whether the adapter is not part of the program.
    is_foreign: bool,
}

/// What the harnesses have of the mesh that no install wrote and that they remove themselves, such as a plugin: in the
/// words of their adapters. An uninstall from the user's own settings has told it already.
async fn left_to_harnesses(context: &Context, all: &[SetUp]) -> Result<Vec<NextStep>, CommandError> {
    let open = context.open()?;
    let asked = setup(Action::Remove, Scope::User, &Reach::Stdio(None), &Installation::of(context)?);
    let mut steps = Vec::new();
    for name in open.adapters.names() {
        if all.iter().any(|one| one.adapter == name && one.scope == Scope::User) || !reads_folders(&open, &name) {
            continue;
        }
        let is_foreign = !open.adapters.is_built_in(&name);
        match removal(&open, &name, &asked).await {
            // What it would change was set up by another data folder, and is not to be taken out here.
            Ok(Some(plan)) if plan.edits.is_empty() => {
                steps.extend(plan.next_steps.into_iter().map(|words| NextStep { words, is_foreign }));
            }
            Ok(Some(_) | None) => {}
            // It may lack the grant to read its harness's settings.
            Err(_) if is_foreign => {}
            Err(error) => {
                let error = store::reasons(&error);
                context.printer.warn(&format!("whether {name} has a plugin of relay-mesh is unknown: {error}"));
            }
        }
    }
    Ok(steps)
}

/// An adapter that reads no folder does not know what its harness has.
fn reads_folders(open: &Open, name: &str) -> bool {
    let described = open.adapters.describe(name).ok().flatten();
    described.is_some_and(|(manifest, _)| !manifest.requests.roots.is_empty())
}

async fn removal(open: &Open, name: &str, asked: &Setup) -> Result<Option<Plan>, HarnessError> {
    match open.adapters.get(name).await? {
        Some(harness) => Ok(Some(harness.propose(asked).await?)),
        None => Ok(None),
    }
}

struct Work<'a> {
    context: &'a Context,
    confirmation: Confirmation,
    worst: Exit,
    /// Whether a plan was printed, which is a line of JSON if that was asked for.
    has_shown: bool,
}

impl Work<'_> {
    async fn out_of(&mut self, set_up: &SetUp) {
        let (context, adapter) = (self.context, &set_up.adapter);
        let Some(folder) = &set_up.folder else {
            let files: Vec<String> = set_up.files.iter().map(|file| self.shown(file)).collect();
            context.printer.warn_of_failure(&format!(
                "{adapter} was set up in a folder that is not there any more, and these files may have a part of it: {}",
                files.join(", ")
            ));
            self.worst = Exit::Failure;
            return;
        };
        let place = match set_up.scope {
            Scope::Project => format!("{adapter} in {}", self.shown(folder)),
            Scope::User => format!("{adapter} in your own settings"),
        };
        context.printer.say(&format!("── {place}"));
        let outcome = super::take_out(&context.at(folder.clone()), adapter, set_up.scope, self.confirmation).await;
        self.has_shown |= outcome.is_ok();
        self.ended(outcome, &place);
    }

    /// The guard in a project's repository, which other projects may share.
    fn out_of_commits(&mut self, project: &Path) {
        let Ok(git) = Git::of(project) else { return };
        let found = commit_guard::found(&git).unwrap_or_default();
        let Some(first) = found.first() else { return };
        let place = format!("The guard of commits in {}", self.shown(first));
        if self.confirmation == Confirmation::Yes {
            let outcome = commit_guard::uninstall(&git).map(|_| Exit::Success).map_err(CommandError::from);
            if outcome.is_ok() {
                self.context.printer.say(&format!("{place} is removed."));
            }
            self.ended(outcome, &place);
        } else {
            let command = format!("relay-mesh guard uninstall --repo {}", self.shown(&git.top));
            self.context.printer.say(&format!("{place} is there; `--yes` removes it too, or `{command}`."));
        }
    }

    fn ended(&mut self, outcome: Result<Exit, CommandError>, what: &str) {
        let exit = outcome.unwrap_or_else(|error| {
            self.context.printer.warn_of_failure(&format!("{what}: {}", error.in_one_line()));
            error.exit()
        });
        if self.worst == Exit::Success {
            self.worst = exit;
        }
    }

    fn shown(&self, path: &Path) -> String {
        shown_path(path, self.context.environment.home().as_deref())
    }
}

/// What nobody removes but the user.
fn what_is_left(context: &Context) -> String {
    let home = context.environment.home();
    let shown = |path: &Path| shown_path(path, home.as_deref());
    let mut left = vec![format!("your mail and all else in {}", shown(&context.settings.dir.value))];
    if let Some(settings) = settings_folder(context).filter(|folder| folder.is_dir()) {
        left.push(format!("your settings in {}", shown(&settings)));
    }
    if let Some(cache) = context.environment.xdg("XDG_CACHE_HOME", ".cache").map(|folder| folder.join("relay-mesh"))
        && cache.is_dir()
    {
        left.push(format!("compiled adapters in {}", shown(&cache)));
    }
    if let Ok(program) = own_path(context.environment.get("PATH")) {
        left.push(format!("the program {}", shown(&program)));
    }
    format!("What is left is yours to remove: {}.", left.join(", "))
}
