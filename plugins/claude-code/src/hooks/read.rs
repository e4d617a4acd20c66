//! What a payload means to the mesh.

use relay_mesh_sdk::hooks::{Event as Happened, Reading};
use relay_mesh_sdk::payload::{absolute, carries_mail};
use relay_mesh_sdk::{Activity, Error, Occasion, Session, turns};

use crate::memory;
use crate::payload::{Event, Payload, Source};
use crate::transcript::{END, End};

/// Claude Code moves context above 10,000 characters into a file. The remainder is for the text around the mail.
const ROOM: u32 = 9_000;
/// Smaller, because the answer after a tool may also hold the protocol text.
const ROOM_BESIDE_PROTOCOL: u32 = 6_500;

/// Reads a payload and stores what later calls need.
pub(super) fn read(payload: &Payload) -> Result<Reading, Error> {
    let session = payload.session();
    let is_subagent = session.parent.is_some();
    let id = session.id.clone();
    let busy = Happened::Activity((id.clone(), Activity::Busy));
    let spoken = |events: Vec<Happened>| Reading { speaker: Some(session.clone()), events, ..Reading::nothing() };

    Ok(match &payload.event {
        Event::SessionStart(source) => session_start(payload, &session, *source)?,
        Event::UserPromptSubmit { prompt } => {
            let mut reading = spoken(vec![busy]);
            // The hook that woke the session has shown it the mail.
            if !is_injected(prompt) {
                reading.max_bytes = ROOM;
                reading.attended = payload.attended;
                if payload.attended {
                    reading.events.push(Happened::UserSpoke(id));
                }
            }
            reading
        }
        Event::PreToolUse { tool, tool_use_id, path } => {
            if let Some(tool_use_id) = tool_use_id.as_deref().filter(|_| tool.starts_with("mcp__")) {
                memory::remember_call(tool_use_id, &session)?;
            }
            if is_subagent && tool.ends_with("__register_agent") {
                turns::set_apart(&id)?;
            }
            Reading { edits: path.iter().map(|path| absolute(path, &payload.cwd)).collect(), ..spoken(vec![busy]) }
        }
        Event::PostToolUse { tool } => {
            // Before a subagent registers, it speaks as its root session's agent and must not take that agent's
            // mail.
            let may_take = !is_subagent || turns::is_apart(&id)?;
            Reading {
                max_bytes: if may_take { ROOM_BESIDE_PROTOCOL } else { 0 },
                occasion: tool.ends_with("__register_agent").then_some(Occasion::Registration),
                ..spoken(vec![busy])
            }
        }
        Event::PermissionRequest | Event::Elicitation => spoken(vec![Happened::Activity((id, Activity::NeedsInput))]),
        Event::ElicitationResult => spoken(vec![busy]),
        Event::Notification { kind } => match kind.as_str() {
            "permission_prompt" | "elicitation_dialog" => spoken(vec![Happened::Activity((id, Activity::NeedsInput))]),
            "idle_prompt" => {
                spoken(std::iter::once(Happened::Activity((id, Activity::Idle))).chain(stop(payload)).collect())
            }
            _ => spoken(Vec::new()),
        },
        Event::Stop { again } => {
            let max_bytes = if turns::may_go_on(&id, *again)? { ROOM } else { 0 };
            Reading { max_bytes, ..spoken(vec![Happened::Activity((id, Activity::Idle))]) }
        }
        Event::SubagentStop { internal } if *internal || !is_subagent => Reading::nothing(),
        // Shows no mail: the reading does not know yet whether any waits.
        Event::SubagentStop { .. } => {
            turns::forget_apart(&id)?;
            Reading { events: vec![Happened::Ended(id)], ..Reading::nothing() }
        }
        // Claude Code forgets which files it watches, and asks again.
        Event::CwdChanged => Reading { watches_wake_file: true, ..spoken(Vec::new()) },
        // Other hooks may watch files too. Ours are in the folder of wake files.
        Event::FileChanged { path, gone } if *gone || !is_notification(path) => Reading::nothing(),
        Event::FileChanged { .. } => Reading { max_bytes: ROOM, ..spoken(stop(payload).into_iter().collect()) },
        Event::SessionEnd { reason } => {
            turns::forget_blocks(&id)?;
            if let Some(process) = payload.process {
                match reason.as_str() {
                    // The window's next session starts at once and looks this up to know which one it follows.
                    "clear" => memory::enter_window(process, &id).map(|_| ())?,
                    _ => memory::leave_window(process)?,
                }
            }
            Reading { events: vec![Happened::Ended(id)], ..Reading::nothing() }
        }
    })
}

fn session_start(payload: &Payload, session: &Session, source: Source) -> Result<Reading, Error> {
    memory::clear_away()?;
    turns::remove_old()?;
    let before = match payload.process {
        Some(process) => memory::enter_window(process, &session.id)?,
        None => None,
    };
    let mut events = vec![Happened::Alive(session.clone())];
    if let (Source::Clear, Some(before)) = (source, before) {
        memory::follow(&before, &session.id)?;
        events.push(Happened::Rebound((before, session.id.clone())));
    }
    // After compaction the interrupted turn continues; after any other start the session waits for a prompt.
    if source != Source::Compact {
        events.push(Happened::Activity((session.id.clone(), Activity::Idle)));
    }
    Ok(Reading {
        speaker: Some(session.clone()),
        events,
        occasion: Some(match source {
            Source::Startup | Source::Fork => Occasion::Start,
            Source::Resume => Occasion::Resume,
            Source::Clear | Source::Compact => Occasion::Compaction,
        }),
        // No mail: it would be read with the next prompt and begin no turn. By the wake file it does.
        max_bytes: 0,
        attended: payload.attended && source != Source::Compact,
        watches_wake_file: true,
        edits: Vec::new(),
    })
}

/// The user's stop, if the session stands there: Claude Code runs no hook at it. What cannot be read says nothing.
fn stop(payload: &Payload) -> Option<Happened> {
    let end = End::read(payload, END).unwrap_or_else(|error| {
        relay_mesh_sdk::debug!("whether the user stopped the turn is not known: {error:?}");
        None
    });
    end.is_some_and(|end| end.was_stopped()).then(|| Happened::Stopped(payload.session().id))
}

/// Whether a program wrote a prompt: a background task that ended (a wake-up arrives this way), another session's
/// message, or a text with our envelope.
fn is_injected(prompt: &str) -> bool {
    let prompt = prompt.trim_start();
    prompt.starts_with("<task-notification")
        || prompt.starts_with("Another Claude session sent a message")
        || carries_mail(prompt)
}

/// Whether a path is a wake file: the host keeps them in a folder of that name.
fn is_notification(path: &str) -> bool {
    path.split(['/', '\\']).any(|step| step == "wakes")
}
