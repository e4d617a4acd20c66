//! Beginning a driven agent: everything that can be refused is refused here, before anything is started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::adapters::USERS_COMMAND;
use mesh::driven::{
    DrivenError, DrivenId, DrivenLimits, DrivenRecord, Request, RequestKind, Spent, WantedAgent, guidance, within_root,
};
use mesh::names::AgentName;
use mesh::ports::driver::{Approvals, DrivenAgent, DriverAbilities};
use mesh::ports::harness::{Harness, HarnessError};
use mesh::ports::machine::Machine as _;
use mesh::ports::runner::{Extensions, Launch, Start};
use mesh::runs::{RunId, Workplace, agent_label};
use processes::git::Git;

use super::agent::{profile, session_of};
use super::exec::{self, EXEC};
use super::{DrivenFolder, thread};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure, adapters};
use crate::exit::Exit;
use crate::retention::daily;
use crate::runs::begin::{full_name, known_harness};
use crate::runs::{changes, worktrees};
use crate::server::background;

/// How long a harness may take until it has begun a session.
const BEGINS: Duration = Duration::from_secs(150);
/// How often to look whether a process drives the agents.
const LOOK: Duration = Duration::from_millis(500);
/// The longest first line of a prompt that is kept as what the agent is about, in characters.
const ABOUT: usize = 200;
/// The log of the process that drives them.
const LOG: &str = "drive.log";

/// An agent that has begun, and what its user should know.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) record: DrivenRecord,
    pub(crate) notes: Vec<String>,
}

/// The harness that is named, also by its short name, if it can be driven.
pub(crate) async fn harness(open: &Open, typed: &str) -> Result<Arc<dyn Harness>, CommandError> {
    let harness = known_harness(open, typed).await?;
    match harness.driver() {
        Err(error) if harness.runner().is_err() => Err(adapters::failed(full_name(typed), error)),
        Ok(_) | Err(_) => Ok(harness),
    }
}

/// Begins an agent: from now on there is one, and it is started as soon as a process drives it. If it is refused, nothing of
/// it is left.
pub(crate) async fn begin(
    context: &Context,
    open: &Open,
    id: DrivenId,
    wanted: &WantedAgent,
) -> Result<Spawned, CommandError> {
    let harness = harness(open, &wanted.harness).await?;
    let folder = DrivenFolder::of(&context.settings.dir.value, id);
    folder.create().map_err(|source| unwritable(&folder.root, source))?;
    // A process that was killed may have left a part of one.
    let mut workplace = worktrees::noted(&folder.worktree()).unwrap_or(Workplace::Here { top: None });
    match set_up(context, open, harness.as_ref(), &folder, (id, wanted), &mut workplace).await {
        Ok((record, notes)) => Ok(Spawned { record, notes }),
        Err(error) => {
            // What is noted of a worktree that stays is in the folder.
            if changes::remove_if_clean(&changes::git(context), &workplace).await
                && let Err(error) = folder.delete()
            {
                tracing::warn!(%error, "the folder of an agent that was refused stays");
            }
            Err(error)
        }
    }
}

async fn set_up(
    context: &Context,
    open: &Open,
    harness: &dyn Harness,
    folder: &DrivenFolder,
    (id, wanted): (DrivenId, &WantedAgent),
    planned: &mut Workplace,
) -> Result<(DrivenRecord, Vec<String>), CommandError> {
    let label = harness.about().harness.clone();
    let failed = |error: HarnessError| adapters::failed(&label, error);
    let name = match &wanted.thread {
        Some(thread) => thread::free_name(open, thread).await?,
        None => free_name(open, wanted.name.as_ref(), &label).await?,
    };
    let git = changes::git(context);
    let (workplace, cwd, mut notes) = workplace(&git, wanted, folder, id).await?;
    planned.clone_from(&workplace);
    // It is noted beside the worktree until the agent has a record. That comes last, because by it any process may drive
    // the agent.
    worktrees::make(&git, &workplace, (wanted.folder.as_path(), cwd.as_path())).await?;
    let agent = DrivenAgent {
        name: name.to_string(),
        folder: cwd,
        model: wanted.model.clone(),
        guidance: match &wanted.thread {
            Some(thread) => thread::guidance(&name, wanted, thread),
            None => guidance(&name, wanted.by.as_ref(), wanted.role.as_deref()),
        },
        reach: wanted.reach,
        approvals: if wanted.never_ask { Approvals::Refuse } else { Approvals::Ask },
        extensions: Extensions::Mesh,
        id: open.mesh.new_uuid(),
        environment: Vec::new(),
        tailoring: wanted.thread.as_ref().map(|thread| thread.tailoring.clone()).unwrap_or_default(),
    };
    let continues =
        wanted.thread.as_ref().and_then(|thread| thread.continues.as_ref()).map(|(thread, ..)| thread.clone());
    let (connection, launch) = reached(harness, &agent, continues.as_deref(), folder).await.map_err(failed)?;
    let environment = with_users_own(context, wanted, &launch)?;
    notes.extend(launch.without.iter().map(|clause| format!("{label} has {clause}")));
    let now = open.machine.now();
    let (parent, root) = above(open, wanted.parent).await?;
    let asked =
        DrivenLimits { until: wanted.lives.map(|lives| now.plus(lives)), turns: wanted.turns, tokens: wanted.tokens };
    let first = (!wanted.text.trim().is_empty()).then(|| Request {
        id: open.mesh.new_uuid(),
        kind: RequestKind::Prompt { text: wanted.text.clone() },
        by: wanted.by.clone(),
        at: now,
        context: wanted.thread.as_ref().and_then(|thread| thread::first_context(&name, wanted, thread)),
        may_repeat: false,
    });
    let record = DrivenRecord {
        id,
        harness: label.clone(),
        by: wanted.by.clone(),
        parent: wanted.parent,
        root: parent.as_ref().map_or(id, |parent| parent.root),
        depth: parent.as_ref().map_or(0, |parent| parent.depth) + 1,
        asked_folder: wanted.folder.clone(),
        workplace,
        agent,
        about: wanted.text.lines().next().unwrap_or_default().chars().take(ABOUT).collect(),
        limits: within_root(asked, root.as_ref()),
        spent: Spent::default(),
        below: BTreeMap::new(),
        session: continues,
        connection: Some(connection),
        program: wanted
            .thread
            .as_ref()
            .and_then(|thread| thread.program.clone())
            .or_else(|| launch.command.first().cloned()),
        command: wanted.command.clone(),
        environment,
        mark: None,
        program_mark: None,
        socket: None,
        driver: None,
        given: Vec::new(),
        owed: Vec::new(),
        requests: first.into_iter().collect(),
        outcomes: Vec::new(),
        last_words: None,
        tool: wanted.thread.as_ref().map(|thread| thread::part(thread, now)),
        reported: false,
        started: now,
        ended: None,
    };
    // It is an agent from now on, so that mail may wait for it before its harness has begun.
    let own = std::process::id();
    let joined = open.mesh.driven_joins(session_of(&record), own, name.clone(), profile(&record)).await?;
    if joined.agent() != Some(&name) {
        open.mesh.run_leaves(&session_of(&record)).await?;
        return Err(taken(&name));
    }
    if let Err(error) = open.mesh.begin_driven(&record).await {
        open.mesh.run_leaves(&session_of(&record)).await?;
        return Err(error.into());
    }
    if let Err(error) = worktrees::open_for_work(&record.workplace) {
        // Its driver tries it too, and says so.
        tracing::debug!(%id, %error, "a worktree is still noted as unused");
    }
    Ok((record, notes))
}

/// How an agent is reached: over the best connection of its harness, or by a run for each prompt if it has none.
async fn reached(
    harness: &dyn Harness,
    agent: &DrivenAgent,
    continues: Option<&str>,
    folder: &DrivenFolder,
) -> Result<(String, Launch), HarnessError> {
    if let Ok(driver) = harness.driver()
        && let Some(best) = driver.connections(agent, continues, &folder.files()).await?.into_iter().next()
    {
        thread::is_taken(best.able, agent)?;
        return Ok((best.name, best.launch));
    }
    thread::is_taken(DriverAbilities::default(), agent)?;
    let Ok(runner) = harness.runner() else {
        return Err(HarnessError::Unsupported("its adapter offers no way of driving it".to_owned()));
    };
    let first = exec::task(agent, String::new(), Start::Fresh(agent.id.clone()));
    Ok((EXEC.to_owned(), runner.prepare(&first, &folder.files()).await?))
}

/// The environment of an agent's program. A harness whose program is the user's own to name has one only if they did.
fn with_users_own(
    context: &Context,
    wanted: &WantedAgent,
    launch: &Launch,
) -> Result<Vec<(String, String)>, CommandError> {
    let is_users = launch.command.first().is_some_and(|program| program == USERS_COMMAND);
    if is_users && wanted.command.is_empty() {
        let hint = "you can, in a terminal of your own, as in `relay-mesh spawn helper --acp 'opencode acp'`";
        return Err(CommandError::usage("no program is named for that agent", hint));
    }
    let mut environment = launch.environment.clone();
    for name in &wanted.variables {
        if let Some(value) =
            context.environment.get(name).filter(|_| !environment.iter().any(|(known, _)| known == name))
        {
            environment.push((name.clone(), value.to_owned()));
        }
    }
    Ok(environment)
}

/// The agent above, and the first of its tree.
async fn above(
    open: &Open,
    parent: Option<DrivenId>,
) -> Result<(Option<DrivenRecord>, Option<DrivenRecord>), CommandError> {
    let Some(parent) = parent else { return Ok((None, None)) };
    let parent = open.mesh.driven(parent).await?.filter(|parent| parent.ended.is_none());
    let parent = parent.ok_or_else(|| DrivenError::Ended {
        name: "the agent that wants it".to_owned(),
        why: "it is not here any more".to_owned(),
    })?;
    let root = open.mesh.driven(parent.root).await?;
    Ok((Some(parent), root))
}

/// The name that was asked for, if nobody has it; else the first of the harness's that is free.
pub(super) async fn free_name(
    open: &Open,
    wanted: Option<&AgentName>,
    harness: &str,
) -> Result<AgentName, CommandError> {
    if let Some(name) = wanted {
        let is_free = match open.mesh.agent(name).await? {
            Some(agent) => agent.presence == mesh::agents::Presence::Offline,
            None => true,
        };
        return if is_free { Ok(name.clone()) } else { Err(taken(name)) };
    }
    let label = agent_label(harness);
    for number in 1..=99 {
        let name: AgentName = format!("{label}-{number}").parse()?;
        let known = open.mesh.agent(&name).await?;
        if known.is_none() {
            return Ok(name);
        }
    }
    Err(CommandError::usage("every name for it is taken", "give it one by `--name NAME`"))
}

pub(super) fn taken(name: &AgentName) -> CommandError {
    Failure {
        what: format!("the name `{name}` belongs to an agent that is here"),
        hint: Some("give it another by `--name NAME`; `relay-mesh agents` shows who is here".to_owned()),
        exit: Exit::Held,
        source: None,
    }
    .into()
}

/// Decides where an agent works. Returns the folder in it, and what to tell.
async fn workplace(
    git: &Git,
    wanted: &WantedAgent,
    folder: &DrivenFolder,
    id: DrivenId,
) -> Result<(Workplace, PathBuf, Vec<String>), CommandError> {
    if wanted.worktree {
        return worktrees::planned(git, &wanted.folder, &folder.worktree(), RunId(id.0)).await;
    }
    let top = git.top(&wanted.folder).await.ok();
    Ok((Workplace::Here { top }, wanted.folder.clone(), Vec::new()))
}

/// Returns once a process drives the agent and its harness has a session, or the reason why it has none.
pub(crate) async fn started(
    context: &Context,
    open: &Open,
    record: &DrivenRecord,
) -> Result<DrivenRecord, CommandError> {
    let name = &record.agent.name;
    match tokio::time::timeout(BEGINS, while_driven(context, open, has_session(open, record.id))).await {
        Ok(started) => started,
        Err(_) => Err(Failure {
            what: format!("`{name}` has no session after {} s", BEGINS.as_secs()),
            hint: Some(format!("`relay-mesh dismiss {name}` ends it")),
            exit: Exit::TimedOut,
            source: None,
        }
        .into()),
    }
}

async fn has_session(open: &Open, id: DrivenId) -> Result<DrivenRecord, CommandError> {
    // Watch before reading, so that no change is missed in between.
    let mut changes = open.mesh.watch_driven().await?;
    loop {
        let Some(record) = open.mesh.driven(id).await? else {
            return Err(DrivenError::Unknown(id.to_string()).into());
        };
        if let Some(end) = &record.ended {
            return Err(Failure {
                what: format!("`{}` did not begin: {}", record.agent.name, end.why),
                hint: Some(format!("start {} by hand to see whether it works and is signed in", record.harness)),
                exit: Exit::Failure,
                source: None,
            }
            .into());
        }
        if record.session.is_some() {
            return Ok(record);
        }
        changes.changed().await?;
    }
}

/// Waits for something that only a process that drives the agents can bring about, and starts that process if none runs.
pub(crate) async fn while_driven<T>(
    context: &Context,
    open: &Open,
    waiting: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    tokio::pin!(waiting);
    loop {
        ensure_host(context, open).await?;
        tokio::select! {
            outcome = &mut waiting => return outcome,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Whether the process that drives the agents had begun before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    Before,
    Now,
}

/// Starts the process that drives the agents, unless one does.
pub(crate) async fn ensure_host(context: &Context, open: &Open) -> Result<Begun, CommandError> {
    let Some(free) = open.mesh.hold_driving().await? else { return Ok(Begun::Before) };
    drop(free);
    let mut arguments: Vec<OsString> = ["spawn".into(), "work".into()].to_vec();
    arguments.extend(daily::stores(&context.settings));
    let log = context.settings.dir.value.join(LOG);
    background::leave_with_log(&arguments, &log).map_err(|source| Failure {
        what: "the process that drives agents could not be started".to_owned(),
        hint: Some("the system may be out of processes or memory: see `ulimit -a`".to_owned()),
        exit: Exit::Failure,
        source: Some(Box::new(source)),
    })?;
    Ok(Begun::Now)
}

pub(super) fn unwritable(path: &Path, source: std::io::Error) -> CommandError {
    Failure {
        what: format!("`{}` could not be made", path.display()),
        hint: Some("see whether the disk is full and the data folder is yours".to_owned()),
        exit: Exit::Store,
        source: Some(Box::new(source)),
    }
    .into()
}
