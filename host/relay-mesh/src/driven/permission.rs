//! Agents that agents want: who asks, by evidence; what the user allows; and what waits for the user's answer.

use std::fs::File;

use mesh::allowances::{Asker, Starts};
use mesh::asks::{Ask, AskedBy};
use mesh::driven::{DrivenError, DrivenId, DrivenRecord, SpawnAsker, SpawnRefused, WantedAgent, is_allowed, may_ask};
use mesh::names::AgentName;
use mesh::ports::machine::Machine as _;
use mesh::sessions::{Principal, Transport};
use store::StoreError;

use super::begin::{self, Spawned};
use super::{DrivenFolder, MARK};
use crate::compose::Open;
use crate::config::Allowed;
use crate::context::Context;
use crate::errors::{CommandError, Explain};
use crate::exit::Exit;
use crate::runs::{Runs, permission};

/// What comes of asking for an agent.
#[derive(Debug)]
pub(crate) enum PermissionOutcome {
    /// There is one.
    Begun(Box<Spawned>),
    /// The user is asked first.
    Waits(Box<Ask>),
}

/// Who asks on this command line. Nothing that was typed counts.
pub(crate) async fn on_command_line(context: &Context, open: &Open) -> Result<SpawnAsker, CommandError> {
    let runs = Runs::of(&context.settings.dir.value);
    let evidence = permission::evidence(context, open, &runs).await?;
    of(open, evidence, context.environment.get(MARK)).await
}

/// Who asks through a client of one of our servers. It is never the user.
pub(crate) async fn of_client(context: &Context, open: &Open, caller: &Principal) -> Result<SpawnAsker, CommandError> {
    let runs = Runs::of(&context.settings.dir.value);
    let evidence = permission::of_client(context, open, &runs, caller);
    let mark = match caller.transport() {
        Transport::Stdio => context.environment.get(MARK),
        Transport::Http | Transport::CommandLine => None,
    };
    of(open, evidence, mark).await
}

async fn of(open: &Open, evidence: permission::Evidence, mark: Option<&str>) -> Result<SpawnAsker, CommandError> {
    let permission::Evidence { asker, parent } = evidence;
    let agent = match &asker {
        Asker::Session { agent, .. } => agent.as_ref().map(AgentName::as_str),
        Asker::User => None,
    };
    let agents = open.mesh.driven_agents().await?;
    let marks = |of: fn(&DrivenRecord) -> &Option<String>| {
        agents.iter().find(|record| mark.is_some() && of(record).as_deref() == mark)
    };
    let named = agents.iter().find(|record| agent == Some(record.agent.name.as_str()));
    // Whatever a program that is shared starts by itself is below one of its agents.
    let driven =
        named.or_else(|| marks(|record| &record.mark)).or_else(|| marks(|record| &record.program_mark)).cloned();
    Ok(SpawnAsker { asker, parent: driven, run: parent.map(|run| run.id) })
}

/// Begins an agent that is wanted, if the user allows it; else asks them. What would be refused whatever they say is
/// refused here.
pub(crate) async fn ask_for(
    context: &Context,
    open: &Open,
    asker: &SpawnAsker,
    wanted: WantedAgent,
) -> Result<PermissionOutcome, CommandError> {
    ask_for_as(context, open, asker, (open.mesh.new_driven_id(), wanted)).await
}

/// The same, with the id that the agent has if it is begun at once.
pub(super) async fn ask_for_as(
    context: &Context,
    open: &Open,
    asker: &SpawnAsker,
    (id, wanted): (DrivenId, WantedAgent),
) -> Result<PermissionOutcome, CommandError> {
    let harness = begin::harness(open, &wanted.harness).await?.about().harness.clone();
    if asker.is_user() {
        let wanted = WantedAgent { harness, by: None, parent: None, ..wanted };
        return Ok(PermissionOutcome::Begun(Box::new(begin::begin(context, open, id, &wanted).await?)));
    }
    // Two that have the last place at once are told apart here.
    let _alone = alone(context).await?;
    let (records, now) = (open.mesh.driven_agents_that_count(asker).await?, open.machine.now());
    let allowed = Allowed::to_start(Starts::Agents, &context.settings, &context.environment)?;
    may_ask(asker, allowed.bounds()?, &records, now)?;
    let agent = asker.agent()?;
    let parent = asker.parent.as_ref().map(|parent| parent.id);
    let wanted = WantedAgent { harness, by: Some(agent.clone()), parent, ..wanted };
    match is_allowed(asker, (&wanted.harness, wanted.reach), &allowed.listed()?, &records, now) {
        Ok(()) => Ok(PermissionOutcome::Begun(Box::new(begin::begin(context, open, id, &wanted).await?))),
        Err(why) => {
            if wanted.name.is_some() {
                begin::free_name(open, wanted.name.as_ref(), &wanted.harness).await?;
            }
            let harness = match &asker.asker {
                Asker::Session { harness, .. } => Some(harness.clone()),
                Asker::User => asker.parent.as_ref().map(|parent| parent.harness.clone()),
            };
            let by = AskedBy { agent: Some(agent), harness, session: None };
            let ask = open.mesh.ask_about_agent(by, wanted, why.to_string()).await?;
            Ok(PermissionOutcome::Waits(Box::new(ask)))
        }
    }
}

/// What became of an agent that the user has agreed to.
#[derive(Debug)]
pub(crate) struct Agreed {
    pub(crate) ask: Ask,
    /// The agent, or why there is none.
    pub(crate) outcome: Result<DrivenRecord, String>,
}

/// Begins the agents that the user has agreed to, here or in a process that was killed before it began them. Doing it
/// twice is the same as doing it once.
pub(crate) async fn begin_agreed(context: &Context, open: &Open) -> Result<Vec<Agreed>, CommandError> {
    let mut begun = Vec::new();
    if open.mesh.agreed_agents().await?.is_empty() {
        return Ok(begun);
    }
    let _alone = alone(context).await?;
    for (ask, wanted) in open.mesh.agreed_agents().await? {
        let outcome = agreed(context, open, DrivenId(ask.id), &wanted).await;
        let outcome = outcome.map_err(|error| mesh::reasons(&error));
        match tell_of_start(open, &ask, &outcome).await {
            Ok(()) => {}
            // The next round tells it. There is one every few seconds, and the servers may be out of reach for long.
            Err(error) if error.is_out_of_reach() => {
                tracing::debug!(id = %ask.id, %error, "that an agent was started is told later");
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(id = %ask.id, error, "that an agent was started is not told now");
            }
        }
        begun.push(Agreed { ask, outcome });
    }
    Ok(begun)
}

/// Tells who wanted an agent what came of it.
async fn tell_of_start(open: &Open, ask: &Ask, outcome: &Result<DrivenRecord, String>) -> Result<(), StoreError> {
    if outcome.is_ok() {
        // Before its asker is told that it is here: the user may have stopped all driving before they agreed.
        open.mesh.want_driving(true).await?;
    }
    let told = outcome.as_ref().map(|record| record.agent.name.as_str()).map_err(String::as_str);
    open.mesh.agent_was_started(ask, told).await
}

async fn agreed(
    context: &Context,
    open: &Open,
    id: DrivenId,
    wanted: &WantedAgent,
) -> Result<DrivenRecord, CommandError> {
    // An earlier process has begun it, and was killed before it could say so.
    if let Some(record) = open.mesh.driven(id).await? {
        return Ok(record);
    }
    let parent = match wanted.parent {
        Some(parent) => open.mesh.driven(parent).await?,
        None => None,
    };
    let asker = Asker::Session { harness: wanted.harness.clone(), agent: wanted.by.clone() };
    let asker = SpawnAsker { asker, parent, run: None };
    let allowed = Allowed::to_start(Starts::Agents, &context.settings, &context.environment)?;
    let records = open.mesh.driven_agents_that_count(&asker).await?;
    may_ask(&asker, allowed.bounds()?, &records, open.machine.now())?;
    Ok(begin::begin(context, open, id, wanted).await?.record)
}

/// Whether an agent may dismiss another: the one that it had started.
pub(crate) async fn may_dismiss(open: &Open, asker: &SpawnAsker, name: &str) -> Result<AgentName, CommandError> {
    let agent = asker.agent()?;
    let record = open.mesh.driven_named(name).await?;
    if record.by.as_ref() == Some(&agent) { Ok(agent) } else { Err(DrivenError::Unknown(name.to_owned()).into()) }
}

/// The exclusive right to count the agents and begin one, until it is dropped.
async fn alone(context: &Context) -> Result<File, CommandError> {
    let data = &context.settings.dir.value;
    DrivenFolder::alone(data).await.map_err(|source| begin::unwritable(data, source))
}

impl Explain for SpawnRefused {
    fn exit(&self) -> Exit {
        Exit::Refused
    }

    fn hint(&self) -> Option<String> {
        use SpawnRefused::{InRun, Nameless, Spent, TooDeep, TooMany, TooManyOfOne};
        Some(match self {
            Nameless(error) => return error.hint(),
            InRun(_) => "do the work here, or report what is left to do".to_owned(),
            TooDeep { .. } => {
                "do the work here, or report what is left to do; the user can set `depth` in spawn.toml".to_owned()
            }
            TooManyOfOne { .. } => "dismiss one that is done; the user can set `each` in spawn.toml".to_owned(),
            TooMany { .. } => "wait until one has ended; the user can set `all` in spawn.toml".to_owned(),
            Spent { .. } => "do the work here, or report what is left to do".to_owned(),
        })
    }
}
