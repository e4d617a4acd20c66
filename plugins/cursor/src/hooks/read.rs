//! What a payload means to the mesh.

use relay_mesh_sdk::hooks::{Event as Happened, Reading};
use relay_mesh_sdk::payload::{absolute, carries_mail};
use relay_mesh_sdk::{Activity, Error, Occasion};

use super::LOOP_LIMIT;
use crate::memory::{self, Note};
use crate::payload::{Ending, Event, Payload, Server, ToolCall};
use crate::tools;

/// Cursor drops a context of more than 10,000 characters entirely. The protocol text may stand beside the mail.
const ROOM_BESIDE_PROTOCOL: u32 = 6_500;
/// A prompt submitted after a turn has no such limit, but the user sees it too.
const ROOM: u32 = 9_000;

/// Reads a payload and stores what later calls need.
pub(super) fn read(payload: &Payload) -> Result<Reading, Error> {
    let session = payload.session();
    let id = session.id.clone();
    let busy = Happened::Activity((id.clone(), Activity::Busy));
    let idle = Happened::Activity((id.clone(), Activity::Idle));
    let spoken = |events: Vec<Happened>| Reading { speaker: Some(session.clone()), events, ..Reading::nothing() };

    Ok(match &payload.event {
        // The editor sometimes drops what this hook adds. So it gets only the protocol, which the rule file also
        // says, and no mail, whose status would become shown.
        Event::SessionStart => {
            memory::clear_away()?;
            Reading { occasion: Some(Occasion::Start), ..spoken(vec![Happened::Alive(session.clone()), idle]) }
        }
        // Cursor's documents and its builds disagree on whether this event takes context.
        Event::BeforeSubmitPrompt { prompt } => {
            memory::clear_away()?;
            let mut events = vec![busy];
            if !carries_mail(prompt) {
                events.push(Happened::UserSpoke(id));
            }
            spoken(events)
        }
        Event::PreToolUse(call) => {
            if let Some((tool, note)) = ours(payload, call)
                && !memory::is_of_another_server(tool)?
            {
                memory::remember_call(call, &note)?;
            }
            let writes = call.writes.iter().map(|path| absolute(path, payload.workdir()));
            Reading { edits: writes.collect(), ..spoken(vec![busy]) }
        }
        Event::BeforeMcpExecution { call, server } => {
            if let Some((tool, note)) = ours(payload, call) {
                match server {
                    Server::Ours => memory::remember_unless_seen(call, &note)?,
                    Server::Another => {
                        memory::belongs_to_another(tool)?;
                        memory::forget_call(call, &note)?;
                    }
                    Server::Untold => {}
                }
            }
            spoken(vec![busy])
        }
        Event::PostToolUse(call) => {
            let ended = ours(payload, call);
            if let Some((_, note)) = &ended {
                memory::forget_call(call, note)?;
            }
            let registered = ended.is_some_and(|(tool, _)| tool == "register_agent");
            // This event takes no context; the next tool's result is the first place for it.
            let compacted = memory::was_compacted(&id)?;
            let occasion = match (registered, compacted) {
                (true, _) => Some(Occasion::Registration),
                (false, true) => Some(Occasion::Compaction),
                (false, false) => None,
            };
            Reading { max_bytes: ROOM_BESIDE_PROTOCOL, occasion, ..spoken(vec![busy]) }
        }
        Event::PostToolUseFailure(call) => {
            if let Some((_, note)) = ours(payload, call) {
                memory::forget_call(call, &note)?;
            }
            spoken(vec![busy])
        }
        Event::PreCompact => {
            memory::compacts(&id)?;
            spoken(vec![busy])
        }
        Event::Stop { how, loop_count } => {
            memory::forget_calls_of(&id)?;
            // A turn that its user or a fault has interrupted must not continue.
            let max_bytes = if *how == Ending::Completed && *loop_count < LOOP_LIMIT { ROOM } else { 0 };
            let stopped = (*how == Ending::Aborted).then_some(Happened::Stopped(id));
            Reading { max_bytes, ..spoken(std::iter::once(idle).chain(stopped).collect()) }
        }
        Event::SessionEnd => {
            memory::forget_calls_of(&id)?;
            Reading { events: vec![Happened::Ended(id)], ..Reading::nothing() }
        }
    })
}

/// The tool name and the stored call, if a call looks like one of ours.
pub(super) fn ours<'a>(payload: &Payload, call: &'a ToolCall) -> Option<(&'a str, Note)> {
    let tool = call.mcp.as_deref().filter(|tool| tools::is_ours(tool, &call.arguments))?;
    Some((tool, Note::new(&payload.conversation, &payload.workspaces, tool, &call.arguments)))
}
