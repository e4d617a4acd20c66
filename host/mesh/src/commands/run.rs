//! Running commands in live sessions: consent, timing, and at most once.
//!
//! An agent or a script that takes a command interprets it itself. A command that the harness runs is another agent's
//! keystroke in the user's session, so it needs the user's consent, an idle session, and the stage `Running` on disk
//! before anything happens.

use std::time::Duration;

use store::{Durability, Hold, StoreError};

use crate::agents;
use crate::asks;
use crate::asks::about_command::CommandConsent;
use crate::commands::order;
use crate::commands::{Command, CommandStage, CommandStatus, Ended, LONGEST_RESULT, Run};
use crate::core::Core;
use crate::delivery::backoff::spaced;
use crate::delivery::chain;
use crate::delivery::serve::Either;
use crate::delivery::wake_file::{self, Counts};
use crate::names::{AgentName, MessageId};
use crate::ports::consent::why_not_allowed;
use crate::ports::harness::{HarnessError, Means};
use crate::sessions::discover::of_record;
use crate::sessions::identify::CONNECTION;
use crate::sessions::record;
use crate::sessions::{Activity, Session, SessionRecord, SessionRef};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// How long a running command counts as alive without renewal, in milliseconds.
const SURE: u64 = 60_000;
/// Renewal interval of a running command.
const RENEWED: Duration = Duration::from_secs(20);
/// For how long a result is kept that the servers do not take, in milliseconds.
const KEPT_RESULT: u64 = 600_000;
/// After how many milliseconds to check a busy session again.
const LATER: u64 = 2_000;

/// Runs commands in a session: by its adapter, or by a connector inside the harness.
pub trait Runner: Send + Sync {
    /// The means that would run a command. Runs nothing.
    fn plan(&self, to: &Session, command: &Command) -> impl Future<Output = Result<Means, HarnessError>> + Send;
    /// Runs a command to its end. An error means that nothing has begun.
    fn run(&self, to: &Session, command: &Command) -> impl Future<Output = Result<Ran, HarnessError>> + Send;
}

/// The result of running a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Whether it succeeded; `None` if that will never be known.
    pub ended: Option<Ended>,
    /// Its output.
    pub said: String,
    /// The harness's evidence.
    pub evidence: Option<serde_json::Value>,
}

/// Whether a command can run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// Yes, by these means.
    Ready(Means),
    /// No, for a reason that has to change first.
    Waits(String),
    /// Not right now; with the reason and after how many milliseconds to check again.
    Later(String, u64),
}

pub(crate) async fn foreseen(core: &Core, command: &Command) -> Result<Option<String>, StoreError> {
    let Some(agent) = agents::list::load_agent(core, &command.to).await? else { return Ok(None) };
    if agent.machine != core.machine.name() {
        return Ok(Some(format!("`{}` lives on the machine `{}`, whose user decides", command.to, agent.machine)));
    }
    // An agent of the command line takes its commands itself.
    let Some(session) = &agent.session else { return Ok(None) };
    let Some(record) = record::current_record(core, session).await? else { return Ok(Some(no_session(&command.to))) };
    // The process that drives an agent knows what can be done for it.
    if !record.driven
        && let Err(why) = harness_runs_commands(core, &command.to, &record).await
    {
        return Ok(Some(why));
    }
    Ok(match obstacle(core, command, &record).await? {
        Some(Prospect::Waits(why) | Prospect::Later(why, _)) => Some(why),
        Some(Prospect::Ready(_)) | None => None,
    })
}

pub(crate) async fn hold_commands(core: &Core, session: &SessionRef) -> Result<Option<Box<dyn Hold>>, StoreError> {
    core.local.hold(&keys::running(session)).await
}

pub(crate) async fn watch_for_commands(core: &Core) -> Result<Box<dyn store::Watch>, StoreError> {
    let shared = core.shared.watch(&[keys::commands()]).await?;
    let local = core.local.watch(&[keys::sessions()]).await?;
    Ok(Box::new(Either(shared, local)))
}

pub(crate) async fn watch_orders(core: &Core) -> Result<Box<dyn store::Watch>, StoreError> {
    core.shared.watch(&[keys::commands()]).await
}

pub(crate) async fn run_commands(
    core: &Core,
    agent: &AgentName,
    session: &SessionRef,
    runner: &impl Runner,
) -> Result<Option<u64>, StoreError> {
    let mut soonest: Option<u64> = None;
    for command in order::commands(core, Some(agent)).await? {
        if command.standing(core.machine.now()) != CommandStatus::Pending {
            continue;
        }
        let Some(record) = record::session_record(core, session).await? else { return Ok(None) };
        match prospect(core, &command, &record, runner).await? {
            Prospect::Ready(means) => {
                if let Some(taken) = take_to_run(core, &command, &means).await? {
                    return carry_out(core, taken, &means, &record, runner).await.map(Some);
                }
            }
            Prospect::Waits(why) => let_wait(core, command.id, &why).await?,
            Prospect::Later(why, wait) => {
                let_wait(core, command.id, &why).await?;
                soonest = Some(soonest.map_or(wait, |soonest| soonest.min(wait)));
            }
        }
    }
    Ok(soonest)
}

pub(crate) async fn look_again(core: &Core) -> Result<Vec<Command>, StoreError> {
    let given = core.consents.given();
    let mut freed = Vec::new();
    for command in order::commands(core, None).await? {
        let is_pending = command.standing(core.machine.now()) == CommandStatus::Pending;
        if is_pending && command.waits().is_some() && why_not_allowed(&command, &given).is_none() {
            note_wait(core, command.id, None).await?;
            freed.push(command);
        }
    }
    Ok(freed)
}

/// Clears the reason why a command waits, so that its runner tries again.
pub(crate) async fn free(core: &Core, id: MessageId) -> Result<(), StoreError> {
    note_wait(core, id, None).await.map(drop)
}

/// Notes on every pending command of an agent why it waits.
pub(super) async fn let_all_wait(core: &Core, agent: &AgentName, why: &str) -> Result<(), StoreError> {
    for command in order::commands(core, Some(agent)).await? {
        if command.standing(core.machine.now()) == CommandStatus::Pending {
            let_wait(core, command.id, why).await?;
        }
    }
    Ok(())
}

/// Whether a command can run now, including the harness's own answer.
async fn prospect(
    core: &Core,
    command: &Command,
    record: &SessionRecord,
    runner: &impl Runner,
) -> Result<Prospect, StoreError> {
    if let Some(obstacle) = self::obstacle(core, command, record).await? {
        return Ok(obstacle);
    }
    let activity = record::activity(core, record);
    Ok(match runner.plan(&of_record(core, record), command).await {
        Ok(means) if means.when.contains(&activity) => Prospect::Ready(means),
        Ok(_) => Prospect::Later(format!("`{}` is {} just now", command.to, activity.as_str()), LATER),
        Err(HarnessError::Busy(wait)) => Prospect::Later(format!("`{}` is busy just now", command.to), wait.into()),
        Err(error) => Prospect::Waits(left_to_others(&error.to_string(), &command.to)),
    })
}

/// Obstacles that are known without asking the harness. The user's consent comes first: without it, nothing at all
/// happens.
async fn obstacle(core: &Core, command: &Command, record: &SessionRecord) -> Result<Option<Prospect>, StoreError> {
    if let Some(why) = why_not_allowed(command, &core.consents.given()) {
        match asks::about_command::consent(core, command).await? {
            CommandConsent::Allowed => {}
            CommandConsent::Refused(said) => return Ok(Some(Prospect::Waits(left_to_others(&said, &command.to)))),
            CommandConsent::NotAsked => return Ok(Some(Prospect::Waits(why))),
            CommandConsent::Asked => {
                let why = format!("{why}, or let this one run: `relay-mesh asks` shows the question");
                return Ok(Some(Prospect::Waits(why)));
            }
        }
    }
    if command.arguments.iter().any(|argument| argument.chars().any(char::is_control)) {
        let why = "an argument holds a line break or another control character, which is never passed to a harness";
        return Ok(Some(Prospect::Waits(left_to_others(why, &command.to))));
    }
    if agents::pause::is_paused(core, &command.to).await? {
        return Ok(Some(Prospect::Waits(format!("the user of `{}` has paused it", command.to))));
    }
    match record::activity(core, record) {
        Activity::Idle | Activity::Busy => {}
        Activity::NeedsInput => {
            let why = format!("`{}` waits for its user, and gets nothing until the user has answered", command.to);
            return Ok(Some(Prospect::Waits(why)));
        }
        Activity::Ended => return Ok(Some(Prospect::Waits(no_session(&command.to)))),
    }
    let hops = command.trace.map_or(0, |trace| trace.hops);
    let held = wake_file::why_not_wake(core, &record.session, &command.from, hops).await?;
    Ok(held.map(|hold| {
        Prospect::Waits(left_to_others(&format!("the loop guard holds it back: {}", hold.reason), &command.to))
    }))
}

/// Takes a command to run it. Synced before anything happens, so that it never runs twice.
async fn take_to_run(core: &Core, command: &Command, means: &Means) -> Result<Option<Command>, StoreError> {
    let now = core.machine.now();
    let run = Run { by: means.name.clone(), until: now.plus(SURE), evidence: None };
    let reservation = |old: Option<Command>| match old.filter(|old| old.standing(now) == CommandStatus::Pending) {
        None => (Next::Keep, None),
        Some(mut command) => {
            command.stage = CommandStage::Running { at: now, run: Some(run.clone()), handed_over_by: None };
            (Next::Put(command.clone()), Some(command))
        }
    };
    let key = keys::command(command.id);
    records::update(core.shared.as_ref(), &key, Durability::Synced, reservation).await
}

/// Runs a taken command and stores its result. Returns after how many milliseconds the next one may run.
async fn carry_out(
    core: &Core,
    command: Command,
    means: &Means,
    record: &SessionRecord,
    runner: &impl Runner,
) -> Result<u64, StoreError> {
    let Command { id, from, to, .. } = &command;
    if let Err(error) = note_wake(core, &command, record).await {
        // Nothing has begun: it may be taken again.
        if let Err(error) = give_back(core, *id).await {
            tracing::warn!(%error, %id, "a command that has not begun could not be given back");
        }
        return Err(error);
    }
    core.event_log
        .note("command-run", serde_json::json!({ "id": id, "agent": to, "from": from, "by": means.name }))
        .await;
    let session = of_record(core, record);
    let running = runner.run(&session, &command);
    tokio::pin!(running);
    let ran = loop {
        tokio::select! {
            ran = &mut running => break ran,
            () = tokio::time::sleep(RENEWED) => {
                let renewed = change_run(core, *id, |run| run.until = core.machine.now().plus(SURE)).await;
                // It has begun, and goes on whether or not that can be noted.
                if let Err(error) = renewed {
                    tracing::warn!(%error, %id, "that a command still runs could not be noted");
                }
            }
        }
    };
    match ran {
        Ok(ran) => store_result(core, &command, &ran).await.map(|()| 0),
        Err(HarnessError::Busy(wait)) => {
            give_back(core, *id).await?;
            Ok(u64::from(wait))
        }
        Err(error) => {
            let said = format!("it did not start: {error}");
            let ran = Ran { ended: Some(Ended::Failed), said, evidence: None };
            store_result(core, &command, &ran).await.map(|()| 0)
        }
    }
}

/// Notes what a command does before it begins: it wakes the session as a message does, and the wake file is the record
/// of all wakes. From then on the agent works on the command's chain. That is noted first: doing it twice is the same
/// as doing it once, so that a try that fails there adds no wake.
async fn note_wake(core: &Core, command: &Command, record: &SessionRecord) -> Result<(), StoreError> {
    if let Some(trace) = command.trace {
        chain::works_on(core, &command.to, trace).await?;
    }
    wake_file::append_to_wake_file(core, &record.session, &command.from, command.id, Counts::Alone).await
}

/// Stores the result of a command, again and again for a while if the servers cannot be reached: nobody else knows it.
async fn store_result(core: &Core, command: &Command, ran: &Ran) -> Result<(), StoreError> {
    let (mut failed, mut waited) = (0, 0);
    loop {
        match self::ran(core, command, ran.clone()).await {
            Err(error) if error.is_out_of_reach() && waited < KEPT_RESULT => {
                tracing::debug!(%error, id = %command.id, "the result of a command waits");
                let wait = spaced(LATER, failed);
                tokio::time::sleep(Duration::from_millis(wait)).await;
                (failed, waited) = (failed + 1, waited + wait);
            }
            outcome => return outcome,
        }
    }
}

/// Stores the result of a command.
async fn ran(core: &Core, command: &Command, ran: Ran) -> Result<(), StoreError> {
    let Ran { ended, mut said, evidence } = ran;
    let now = core.machine.now();
    let Some(ended) = ended else {
        let evidence = evidence.unwrap_or_else(|| serde_json::json!({ "said": said }));
        return change_run(core, command.id, |run| {
            run.until = now;
            run.evidence = Some(evidence.clone());
        })
        .await;
    };
    said.truncate(said.floor_char_boundary(LONGEST_RESULT));
    let key = keys::command(command.id);
    records::update(core.shared.as_ref(), &key, Durability::Synced, |old: Option<Command>| {
        let Some(Command { stage: CommandStage::Running { run: Some(run), .. }, .. }) = &old else {
            return (Next::Keep, ());
        };
        let run = Some(Run { evidence: evidence.clone(), ..run.clone() });
        let stage = CommandStage::Done { at: now, ended, result: said.clone(), run };
        (old.map_or(Next::Keep, |old| Next::Put(Command { stage, ..old })), ())
    })
    .await?;
    let Command { id, to, .. } = command;
    core.event_log.note("command-done", serde_json::json!({ "id": id, "agent": to, "ended": ended })).await;
    Ok(())
}

/// Makes a command pending again that did not begin: its harness is busy, or a write before it failed.
async fn give_back(core: &Core, id: MessageId) -> Result<(), StoreError> {
    records::update(core.shared.as_ref(), &keys::command(id), Durability::Synced, |old: Option<Command>| match old {
        Some(Command { stage: CommandStage::Running { run: Some(_), .. }, .. }) => (
            old.map_or(Next::Keep, |old| Next::Put(Command { stage: CommandStage::Pending { waits: None }, ..old })),
            (),
        ),
        Some(_) | None => (Next::Keep, ()),
    })
    .await
}

async fn change_run(core: &Core, id: MessageId, change: impl Fn(&mut Run) + Send + Sync) -> Result<(), StoreError> {
    records::update(core.shared.as_ref(), &keys::command(id), Durability::Process, |old: Option<Command>| match old {
        Some(mut command) => match &mut command.stage {
            CommandStage::Running { run: Some(run), .. } => {
                change(run);
                (Next::Put(command), ())
            }
            CommandStage::Pending { .. } | CommandStage::Running { .. } | CommandStage::Done { .. } => (Next::Keep, ()),
        },
        None => (Next::Keep, ()),
    })
    .await
}

/// Notes why a command waits, if the reason is new.
async fn let_wait(core: &Core, id: MessageId, why: &str) -> Result<(), StoreError> {
    if note_wait(core, id, Some(why)).await? {
        core.event_log.note("command-waits", serde_json::json!({ "id": id, "why": why })).await;
    }
    Ok(())
}

async fn note_wait(core: &Core, id: MessageId, why: Option<&str>) -> Result<bool, StoreError> {
    records::update(core.shared.as_ref(), &keys::command(id), Durability::Process, |old: Option<Command>| match old {
        Some(old) if matches!(&old.stage, CommandStage::Pending { waits } if waits.as_deref() != why) => {
            let stage = CommandStage::Pending { waits: why.map(str::to_owned) };
            (Next::Put(Command { stage, ..old }), true)
        }
        Some(_) | None => (Next::Keep, false),
    })
    .await
}

/// The harness of a session, if it can run commands; otherwise the reason why not.
pub(super) async fn harness_runs_commands(
    core: &Core,
    agent: &AgentName,
    record: &SessionRecord,
) -> Result<std::sync::Arc<dyn crate::ports::harness::Harness>, String> {
    let name = &record.session.harness;
    if name == CONNECTION {
        return Err(left_to_others("its client has no commands that others could run", agent));
    }
    match core.harnesses.get(name).await {
        Ok(Some(harness)) if harness.optional().commands.is_some() => Ok(harness),
        Ok(Some(harness)) => {
            let why = format!("{} cannot run commands in a live session", harness.about().title);
            Err(left_to_others(&why, agent))
        }
        Ok(None) => Err(left_to_others(&format!("no adapter for `{name}` is installed here"), agent)),
        Err(error) => Err(left_to_others(&format!("the adapter `{name}` cannot be used ({error})"), agent)),
    }
}

/// Adds to a reason who else could take the command.
fn left_to_others(why: &str, agent: &AgentName) -> String {
    format!("{why}; its agent can take it with the tool take_command, and a script with `relay-mesh cmd take {agent}`")
}

fn no_session(agent: &AgentName) -> String {
    left_to_others(&format!("`{agent}` has no live session"), agent)
}
