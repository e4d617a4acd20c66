//! `relay-mesh spawn HARNESS`: begin an agent.

use mesh::driven::{LONGEST_REQUEST, RequestOutcome, WantedAgent};

use super::{Start, acp};
use crate::commands::input;
use crate::config::AcpProgram;
use crate::context::Context;
use crate::driven::begin;
use crate::driven::permission::{self, PermissionOutcome};
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::runs::begin::existing;
use crate::shapes::driven::{SpawnRequestShape, SpawnedShape};

/// The adapter for any program that speaks the Agent Client Protocol.
pub(crate) const ANY_PROGRAM: &str = "acp";

pub(super) async fn run(start: Start, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let asker = permission::on_command_line(context, &open).await?;
    let waits = start.wait;
    let program = match start.acp.as_deref() {
        Some(typed) => Some(acp::allowed(typed, context).await?),
        None => None,
    };
    let wanted = wanted(start, program, context)?;
    if waits && wanted.text.trim().is_empty() {
        return Err(CommandError::usage(
            "there is nothing to wait for",
            "`--wait` is for an agent with a first prompt",
        ));
    }
    let (record, notes) = match permission::ask_for(context, &open, &asker, wanted).await? {
        PermissionOutcome::Begun(begun) => (begun.record, begun.notes),
        PermissionOutcome::Waits(ask) => {
            context.printer.show(&SpawnRequestShape::of(&ask))?;
            context.printer.say("not waiting: what comes of it is told by mail");
            return Ok(Exit::Success);
        }
    };
    open.mesh.want_driving(true).await?;
    let record = begin::started(context, &open, &record).await?;
    for note in &notes {
        context.printer.say(note);
    }
    let first = record.requests.first().map(|request| request.id.clone());
    if !waits {
        context.printer.show(&SpawnedShape::of(&record, None))?;
        let name = &record.agent.name;
        context.printer.say(&format!(
            "next: `relay-mesh spawn show {name} --follow` shows what it does,\n`relay-mesh steer {name} TEXT` tells it \
             something, `relay-mesh dismiss {name}` ends it"
        ));
        return Ok(Exit::Success);
    }
    let (record, failed) = first_turn(&open, record, first).await?;
    context.printer.show(&SpawnedShape::of(&record, record.last_words.clone()))?;
    Ok(if failed { Exit::Failure } else { Exit::Success })
}

/// Waits until the first turn has ended. Returns whether it came to nothing.
async fn first_turn(
    open: &crate::compose::Open,
    record: mesh::driven::DrivenRecord,
    first: Option<String>,
) -> Result<(mesh::driven::DrivenRecord, bool), CommandError> {
    if let Some(first) = first {
        let RequestOutcome { failed: Some(why), .. } = open.mesh.request_outcome(record.id, &first).await? else {
            let mut changes = open.mesh.watch_driven().await?;
            loop {
                let found = open.mesh.driven(record.id).await?.unwrap_or_else(|| record.clone());
                if found.spent.turns > 0 || found.ended.is_some() {
                    let failed = found.last_words.is_none();
                    return Ok((found, failed));
                }
                changes.changed().await?;
            }
        };
        return Err(Failure {
            what: format!("its first prompt was not taken: {why}"),
            hint: Some(format!("`relay-mesh spawn show {}` shows more", record.agent.name)),
            exit: Exit::Failure,
            source: None,
        }
        .into());
    }
    Ok((record, false))
}

fn wanted(start: Start, program: Option<AcpProgram>, context: &Context) -> Result<WantedAgent, CommandError> {
    let (harness, name) = match (start.harness, &program) {
        (Some(name), Some(_)) => (Some(ANY_PROGRAM.to_owned()), Some(name.parse()?)),
        (None, Some(_)) => {
            return Err(CommandError::usage("the agent has no name", "as in `relay-mesh spawn helper --acp COMMAND`"));
        }
        (harness, None) => (harness, start.name),
    };
    let Some(harness) = harness else {
        return Err(CommandError::usage(
            "the harness is missing",
            "as in `relay-mesh spawn codex 'look for flaky tests'`; `relay-mesh harnesses` shows which are here",
        ));
    };
    let text = match start.prompt.or(start.task).as_deref() {
        Some("-") => input::text(LONGEST_REQUEST)?,
        Some(text) => text.to_owned(),
        None => String::new(),
    };
    if text.len() > LONGEST_REQUEST {
        return Err(CommandError::usage("the prompt is too long", "put what is long into a file, and name that"));
    }
    let folder = start.cwd.map_or_else(|| context.workdir.clone(), |cwd| context.workdir.join(cwd));
    Ok(WantedAgent {
        harness,
        command: program.as_ref().map(|program| program.command.clone()).unwrap_or_default(),
        variables: program.map(|program| program.environment).unwrap_or_default(),
        name,
        text,
        folder: existing(&folder)?,
        worktree: start.worktree,
        reach: start.reach,
        never_ask: start.never_ask,
        model: start.model,
        role: start.role,
        turns: start.budget_turns,
        tokens: start.budget_tokens,
        lives: start.lives.map(|lives| u64::try_from(lives.as_millis()).unwrap_or(u64::MAX)),
        thread: None,
        by: None,
        parent: None,
    })
}
