//! Beginning a run: everything that can be refused is refused here, before anything is started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mesh::allowances::{Asker, DAY, Starts};
use mesh::names::AgentName;
use mesh::ports::harness::Harness;
use mesh::ports::machine::{Instant, Machine as _, Process};
use mesh::ports::runner::{Extensions, Reach, Start, Task};
use mesh::runs::{RunId, RunLimits, RunRecord, permit, share};
use mesh::sessions::Principal;
use serde_json::Value;

use super::permission::{self, Evidence};
use super::{RunFolder, Runs, RunsError, agent, changes, runner_of, settle, worktrees};
use crate::compose::Open;
use crate::config::Allowed;
use crate::context::Context;
use crate::errors::{CommandError, Failure, adapters};
use crate::exit::Exit;
use crate::retention::daily;
use crate::server::background;

/// The longest first line of a task that is kept as its title, in characters.
const ABOUT: usize = 200;

/// Where a run is to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkFolder {
    /// A worktree if it may change files, else the folder itself.
    Usual,
    Worktree,
    Here,
    /// In a worktree that the caller has made, and removes.
    Given,
}

/// A run as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct RunRequest {
    pub(crate) harness: String,
    pub(crate) text: String,
    /// Absolute, without symlinks.
    pub(crate) folder: PathBuf,
    pub(crate) place: WorkFolder,
    pub(crate) reach: Reach,
    pub(crate) start: Option<Start>,
    pub(crate) extensions: Extensions,
    pub(crate) model: Option<String>,
    pub(crate) schema: Option<Value>,
    pub(crate) turns: Option<u32>,
    pub(crate) cost: Option<u64>,
    /// How much of it is set aside for runs below it.
    pub(crate) below: Option<u64>,
    pub(crate) limits: RunLimits,
    pub(crate) name: Option<AgentName>,
    pub(crate) reserve: Vec<String>,
    pub(crate) report: Vec<String>,
}

/// A run that can be started.
pub(crate) struct Begun {
    pub(crate) harness: Arc<dyn Harness>,
    pub(crate) folder: RunFolder,
    pub(crate) record: RunRecord,
    pub(crate) principal: Principal,
    pub(crate) notes: Vec<String>,
}

/// The file with the task's text.
pub(super) const TASK: &str = "task";

/// The name of a harness's adapter, as a user may shorten it.
pub(crate) fn full_name(typed: &str) -> &str {
    match typed {
        "claude" => "claude-code",
        "gemini" => "gemini-cli",
        other => other,
    }
}

/// The harness that a user names, also by its short name.
pub(crate) async fn harness(open: &Open, typed: &str) -> Result<Arc<dyn Harness>, CommandError> {
    let harness = known_harness(open, typed).await?;
    if let Err(error) = runner_of(harness.as_ref()) {
        let hint = "those of Claude Code, Codex, Gemini CLI and OpenCode do, and those that you add may".to_owned();
        let what = format!("the adapter `{}` could not do it", full_name(typed));
        return Err(CommandError::caused_by(&what, Some(hint), Exit::Failure, error));
    }
    Ok(harness)
}

/// The harness that a user names, whatever it can do.
pub(crate) async fn known_harness(open: &Open, typed: &str) -> Result<Arc<dyn Harness>, CommandError> {
    let name = full_name(typed);
    let found = open.mesh.harnesses().get(name).await.map_err(|error| adapters::failed(name, error))?;
    found.ok_or_else(|| adapters::unknown(typed, open.mesh.harnesses().as_ref()))
}

/// Begins a run that this command line asks for.
pub(crate) async fn begin(context: &Context, open: &Open, request: RunRequest) -> Result<Begun, CommandError> {
    let evidence = permission::evidence(context, open, &Runs::of(&context.settings.dir.value)).await?;
    begin_for(context, open, &evidence, request).await
}

/// Begins a run for a caller. If it is refused, nothing of it is left.
pub(crate) async fn begin_for(
    context: &Context,
    open: &Open,
    evidence: &Evidence,
    request: RunRequest,
) -> Result<Begun, CommandError> {
    let runs = Runs::of(&context.settings.dir.value);
    settle::settle(context, open, &runs).await;
    let harness = harness(open, &request.harness).await?;
    for address in &request.report {
        open.mesh.resolve(address, None).await?;
    }
    let counts_cost = counts_cost(&runs, evidence, &harness).await;
    let (folder, mut record) = {
        // Two that spend the last run of a budget at once are told apart here.
        let _alone = runs.alone().await?;
        permitted(context, open, &runs, evidence, (&harness, request.reach))?;
        may_go_on(&runs, evidence, request.start.as_ref())?;
        reserve_id(open, &runs, &request, (harness.about().harness.clone(), counts_cost), evidence)?
    };
    match set_up(context, open, harness.as_ref(), &folder, &mut record, &request).await {
        Ok((principal, notes)) => {
            open.mesh.note_run_started(&record).await;
            Ok(Begun { harness, folder, record, principal, notes })
        }
        Err(error) => {
            let removed = changes::remove_if_clean(&changes::git(context), &record.workplace).await;
            // By its record the next command concludes one whose worktree stays.
            if !removed && folder.worktree().exists() {
                folder.give_up();
            } else if let Err(error) = folder.delete() {
                tracing::warn!(%error, "the folder of a run that was refused stays");
            }
            Err(error)
        }
    }
}

/// How long the process that takes a run over may take to say so.
const TAKEN_OVER: Duration = Duration::from_secs(30);
/// How often to look whether it has.
const LOOK: Duration = Duration::from_millis(10);

/// Leaves a run to a process of its own, and returns once that one has it.
pub(crate) async fn leave(context: &Context, open: &Open, begun: Begun) -> Result<RunRecord, CommandError> {
    work_beside(context, begun.record.id)?;
    taken_over(open, || Ok(begun.folder.record()?.supervisor)).await?;
    Ok(begun.folder.record()?)
}

/// Starts a process that works on a run or a review.
pub(crate) fn work_beside(context: &Context, id: RunId) -> Result<(), CommandError> {
    let mut arguments: Vec<OsString> = ["runs".into(), "work".into(), id.to_string().into()].to_vec();
    arguments.extend(daily::stores(&context.settings));
    background::leave(&arguments).map_err(|source| Failure {
        what: "the process that goes on with it could not be started".to_owned(),
        hint: Some("the system may be out of processes or memory: see `ulimit -a`".to_owned()),
        exit: Exit::Failure,
        source: Some(Box::new(source)),
    })?;
    Ok(())
}

/// Returns once another process works on it.
pub(crate) async fn taken_over(
    open: &Open,
    supervisor: impl Fn() -> Result<Process, CommandError> + Send,
) -> Result<(), CommandError> {
    let own = agent::supervisor(open);
    let deadline = tokio::time::Instant::now() + TAKEN_OVER;
    while supervisor()? == own {
        if tokio::time::Instant::now() > deadline {
            // It is abandoned when this process ends, and the next command concludes it.
            return Err(CommandError::from(Failure {
                what: "the process that goes on with it has not begun".to_owned(),
                hint: Some("run it without `--detach` to see why".to_owned()),
                exit: Exit::Failure,
                source: None,
            }));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Takes over a run that another process has begun.
pub(crate) async fn take_over(open: &Open, runs: &Runs, id: RunId) -> Result<Begun, CommandError> {
    let (mut folder, mut record) = runs.load(id)?;
    folder.work_on()?;
    let harness = harness(open, &record.harness).await?;
    let principal = agent::join(open, &mut record, std::process::id()).await?;
    Ok(Begun { harness, folder, record, principal, notes: Vec::new() })
}

/// Whether a caller may run a harness with a reach.
pub(crate) fn permitted(
    context: &Context,
    open: &Open,
    runs: &Runs,
    evidence: &Evidence,
    (harness, reach): (&Arc<dyn Harness>, Reach),
) -> Result<(), CommandError> {
    if evidence.is_user() {
        return Ok(());
    }
    let allowed = Allowed::to_start(Starts::Runs, &context.settings, &context.environment)?;
    let (listed, depth) = (allowed.listed()?, allowed.depth()?);
    let now = open.machine.now();
    let young = runs.since(Instant(now.0.saturating_sub(DAY)));
    let asked = (harness.about().harness.as_str(), reach);
    Ok(permit(&evidence.asker, asked, evidence.parent.as_ref(), depth, &listed, &young, now)?)
}

/// Whether a caller may continue a session, or a copy of it. It knows all that was said there, so an agent may only
/// continue those of its own runs.
pub(super) fn may_go_on(runs: &Runs, evidence: &Evidence, start: Option<&Start>) -> Result<(), CommandError> {
    let Some(Start::Resume(session) | Start::Fork(session)) = start else { return Ok(()) };
    if matches!(evidence.asker, Asker::User) {
        return Ok(());
    }
    let by = asked_by(evidence);
    if by.is_some() && runs.ended_with(session).any(|run| run.by == by) {
        return Ok(());
    }
    Err(Failure {
        what: format!("the session `{session}` is of no run that you have started"),
        hint: Some("an agent may continue the sessions of its own runs; begin a new one".to_owned()),
        exit: Exit::Refused,
        source: None,
    }
    .into())
}

/// The first of the runs above a caller.
fn root_of(runs: &Runs, evidence: &Evidence) -> Option<RunRecord> {
    let parent = evidence.parent.as_ref()?;
    runs.load(parent.root).ok().map(|(_, root)| root)
}

/// Whether a harness keeps to a limit of cost, or says what it spends. It is asked only where that decides: below a run
/// with a budget.
async fn counts_cost(runs: &Runs, evidence: &Evidence, harness: &Arc<dyn Harness>) -> bool {
    if root_of(runs, evidence).is_none_or(|root| root.task.cost.is_none()) {
        return true;
    }
    match runner_of(harness.as_ref()) {
        Ok(runner) => runner.ready().await.is_ok_and(|ready| ready.able.cost),
        Err(_) => false,
    }
}

/// What a run may cost itself: its budget without what is set aside for runs below it.
fn own_cost(request: &RunRequest, parent: Option<&RunRecord>) -> Result<Option<u64>, CommandError> {
    let Some(below) = request.below else { return Ok(request.cost) };
    if parent.is_some() {
        let hint = "leave `--budget-below` out: what it may spend is part of what that run has set aside";
        return Err(CommandError::usage("only a run that no other run has started sets something aside", hint));
    }
    match request.cost.and_then(|cost| cost.checked_sub(below)).filter(|own| *own > 0) {
        Some(own) => Ok(Some(own)),
        None => {
            let hint = "`--budget` is for all of them together, and has to be more than `--budget-below`";
            Err(CommandError::usage("nothing of the budget is left for the run itself", hint))
        }
    }
}

/// The agent that asks: by its own name, or by that of the run that it is.
fn asked_by(evidence: &Evidence) -> Option<AgentName> {
    match (&evidence.asker, &evidence.parent) {
        (Asker::Session { agent: Some(agent), .. }, _) => Some(agent.clone()),
        (Asker::User | Asker::Session { agent: None, .. }, parent) => parent.as_ref()?.agent.clone(),
    }
}

/// Makes the folder of a run with its first record, so that the next to ask counts it.
fn reserve_id(
    open: &Open,
    runs: &Runs,
    request: &RunRequest,
    (harness, counts_cost): (String, bool),
    evidence: &Evidence,
) -> Result<(RunFolder, RunRecord), CommandError> {
    let now = open.machine.now();
    let parent = evidence.parent.as_ref();
    let (mut limits, mut cost) = (request.limits, own_cost(request, parent)?);
    if let Some(root) = root_of(runs, evidence) {
        let asked = (limits.time, cost);
        (limits.time, cost) = share(&root, &runs.since(root.started), now, asked, (&harness, counts_cost))?;
    }
    let id = open.mesh.new_run_id();
    let folder = runs.create(id)?;
    let by = asked_by(evidence);
    let record = RunRecord {
        id,
        harness,
        agent: request.name.clone(),
        by,
        parent: parent.map(|parent| parent.id),
        root: parent.map_or(id, |parent| parent.root),
        depth: parent.map_or(0, |parent| parent.depth) + 1,
        asked_folder: request.folder.clone(),
        workplace: mesh::runs::Workplace::Here { top: None },
        task: Task {
            id: id.to_string(),
            folder: request.folder.clone(),
            start: request.start.clone().unwrap_or_else(|| Start::Fresh(open.mesh.new_uuid())),
            reach: request.reach,
            extensions: request.extensions,
            model: request.model.clone(),
            schema: request.schema.clone(),
            guidance: None,
            turns: request.turns,
            cost,
        },
        about: request.text.lines().next().unwrap_or_default().chars().take(ABOUT).collect(),
        limits,
        report: request.report.clone(),
        reserve: Vec::new(),
        launch: None,
        before: None,
        supervisor: agent::supervisor(open),
        started: now,
        attempts: 0,
        earlier: None,
        below: request.below,
        spent: None,
        session: None,
        halt: None,
        ended: None,
        applied: None,
    };
    folder.keep(&record)?;
    Ok((folder, record))
}

/// Everything that a run needs before its program starts.
async fn set_up(
    context: &Context,
    open: &Open,
    harness: &dyn Harness,
    folder: &RunFolder,
    record: &mut RunRecord,
    request: &RunRequest,
) -> Result<(Principal, Vec<String>), CommandError> {
    let git = changes::git(context);
    let (workplace, cwd, notes) =
        changes::workplace(&git, (request.place, request.reach), &request.folder, folder).await?;
    record.task.folder = cwd;
    let is_here = matches!(workplace, mesh::runs::Workplace::Here { .. });
    record.workplace = workplace;
    if is_here && request.reach >= Reach::Edit && request.place != WorkFolder::Given {
        record.reserve = if request.reserve.is_empty() { vec!["**".to_owned()] } else { request.reserve.clone() };
    }
    folder.keep(record)?;
    // After the record: by it the next command finds the worktree of a process that was killed.
    worktrees::make(&git, &record.workplace, (request.folder.as_path(), record.task.folder.as_path())).await?;
    worktrees::open_for_work(&record.workplace)?;
    folder.write(TASK, request.text.as_bytes())?;
    let name = record.harness.clone();
    let launch = runner_of(harness).map_err(|error| adapters::failed(&name, error))?;
    let launch = launch.prepare(&record.task, &folder.files()).await.map_err(|error| adapters::failed(&name, error))?;
    for (file, text) in &launch.files {
        let path = folder.files().join(file);
        std::fs::write(&path, text).map_err(|source| RunsError::Unwritable { id: record.id, source })?;
    }
    record.launch = Some(launch);
    record.before = changes::tree(&git, record, folder).await?.map(|tree| tree.0);
    let principal = agent::join(open, record, std::process::id()).await?;
    let joined = async {
        if !record.reserve.is_empty() {
            agent::reserve(open, &principal, record).await?;
        }
        folder.keep(record)?;
        Ok::<(), CommandError>(())
    };
    if let Err(error) = joined.await {
        agent::leave(open, &principal).await;
        return Err(error);
    }
    Ok((principal, notes))
}

/// A folder that is there, without symlinks.
pub(crate) fn existing(folder: &Path) -> Result<PathBuf, CommandError> {
    let missing = |source: Option<std::io::Error>| Failure {
        what: format!("`{}` is not a folder", folder.display()),
        hint: Some("name the folder to work in by `--cwd DIR`; `--dir` is the data folder".to_owned()),
        exit: Exit::NotFound,
        source: source.map(|source| Box::new(source) as Box<dyn std::error::Error + Send + Sync>),
    };
    let real = std::fs::canonicalize(folder).map_err(|source| missing(Some(source)))?;
    if real.is_dir() { Ok(real) } else { Err(missing(None).into()) }
}

/// The time of a run in milliseconds, if so much is wanted, else the usual one.
pub(crate) fn time_or_usual(wanted: Option<std::time::Duration>) -> u64 {
    let usual = mesh::runs::RunLimits::default().time;
    wanted.map_or(usual, |wanted| u64::try_from(wanted.as_millis()).unwrap_or(u64::MAX))
}
