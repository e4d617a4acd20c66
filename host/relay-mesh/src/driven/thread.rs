//! Beginning an agent that is a thread of a tool: its name, what it is told, and its part of the record.

use mesh::driven::WantedAgent;
use mesh::names::AgentName;
use mesh::ports::driver::{DrivenAgent, DriverAbilities};
use mesh::ports::harness::HarnessError;
use mesh::ports::machine::Instant;
use mesh::tool_threads::{ToolThread, WantedThread, numbered, thread_context, thread_guidance};

use super::begin::taken;
use crate::compose::Open;
use crate::errors::CommandError;

/// The first name of an identity that no live agent has. That of an agent which is offline is taken over.
pub(super) async fn free_name(open: &Open, thread: &WantedThread) -> Result<AgentName, CommandError> {
    let live = open.mesh.driven_agents().await?;
    let names = numbered(&thread.identity, thread.team.as_deref())?;
    if let Some((id, ..)) = &thread.continues
        && live.iter().any(|record| record.session.as_ref() == Some(id))
    {
        return Err(CommandError::usage("another call has just gone on with this thread", "call once more"));
    }
    for name in &names {
        let is_driven = live.iter().any(|record| record.agent.name == name.as_str());
        let is_here = match open.mesh.agent(name).await? {
            Some(agent) => agent.presence != mesh::agents::Presence::Offline,
            None => false,
        };
        if !is_driven && !is_here {
            if *name != names[0] {
                tracing::warn!(identity = %thread.identity, %name, "a live agent has the name of this identity");
            }
            return Ok(name.clone());
        }
    }
    Err(names.first().map_or_else(|| CommandError::usage("the identity is empty", "name one"), taken))
}

/// What it is told for its whole session.
pub(super) fn guidance(name: &AgentName, wanted: &WantedAgent, thread: &WantedThread) -> String {
    let context = thread_context(name, thread.team.as_deref(), &thread.place, &wanted.folder);
    thread_guidance(thread.instructions.as_deref(), wanted.by.as_ref(), &context)
}

/// What it is told at the first turn if it goes on with an earlier one's session: that keeps the guidance of its beginning.
pub(super) fn first_context(name: &AgentName, wanted: &WantedAgent, thread: &WantedThread) -> Option<String> {
    thread.continues.as_ref()?;
    Some(thread_context(name, thread.team.as_deref(), &thread.place, &wanted.folder))
}

/// An error if the connection does not take what the thread has of its own.
pub(super) fn is_taken(able: DriverAbilities, agent: &DrivenAgent) -> Result<(), HarnessError> {
    if agent.tailoring.is_none() || able.tailor {
        return Ok(());
    }
    let what = "its sessions take no effort, base instructions, compact prompt and settings of their own";
    Err(HarnessError::Unsupported(what.to_owned()))
}

/// Its part of the record.
pub(super) fn part(thread: &WantedThread, now: Instant) -> ToolThread {
    let (continues, began, summary) = match &thread.continues {
        Some((id, began, summary)) => (Some(id.clone()), *began, summary.clone()),
        None => (None, now, None),
    };
    ToolThread {
        identity: thread.identity.clone(),
        team: thread.team.clone(),
        place: thread.place.clone(),
        tag: thread.tag.clone(),
        role: thread.role.clone(),
        instructions: thread.instructions.clone(),
        began,
        continues,
        summary,
        server: thread.server,
        beat: now,
        last_active: now,
        answers: Vec::new(),
    }
}
