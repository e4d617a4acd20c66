//! What a payload means to the mesh.

use relay_mesh_sdk::hooks::{Event as Happened, Reading};
use relay_mesh_sdk::payload::carries_mail;
use relay_mesh_sdk::{Activity, Error, Occasion, dated_state, turns};

use crate::payload::{Event, Payload, Source};
use crate::{push, terminals};

/// Codex moves added context above some 2,500 tokens into a file. The remainder is for the text around the mail.
const ROOM: u32 = 9_000;
/// Smaller, because answers at a session's start and after registration also hold the protocol text.
const ROOM_BESIDE_PROTOCOL: u32 = 6_500;
/// How long we remember that a thread's hooks run.
const HEARD_LASTS: u64 = 7 * 24 * 3_600_000;

/// Reads a payload and stores what later calls need.
pub(super) fn read(payload: &Payload) -> Result<Reading, Error> {
    let session = payload.session();
    let is_subagent = session.parent.is_some();
    let id = session.id.clone();
    let does = |activity| Happened::Activity((id.clone(), activity));
    let spoken = |events: Vec<Happened>| Reading { speaker: Some(session.clone()), events, ..Reading::nothing() };

    Ok(match &payload.event {
        Event::SessionStart(source) => {
            turns::remove_old()?;
            dated_state::remove_older_than(HEARD, HEARD_LASTS)?;
            terminals::clear_away()?;
            note_hooks(&id)?;
            let before = terminals::enter(&id, &session.workdir, *source, payload.process.as_deref())?;
            let rebound = before.map(|before| Happened::Rebound((before, id.clone())));
            Reading {
                occasion: Some(match source {
                    Source::Startup => Occasion::Start,
                    Source::Resume => Occasion::Resume,
                    Source::Clear | Source::Compact => Occasion::Compaction,
                }),
                max_bytes: ROOM_BESIDE_PROTOCOL,
                // Not attended: this runs in the first turn, no matter who started it. The hook of the user's
                // prompt shows the mail that the prompt releases.
                ..spoken(rebound.into_iter().chain([Happened::Alive(session.clone()), does(Activity::Busy)]).collect())
            }
        }
        Event::UserPromptSubmit { prompt } => {
            note_hooks(&id)?;
            let mut reading = spoken(vec![does(Activity::Busy)]);
            reading.max_bytes = ROOM;
            // A subagent's prompts come from its parent, and the notifications in the queue are ours.
            if !is_subagent && !carries_mail(prompt) && !push::is_notification(prompt) {
                reading.attended = true;
                reading.events.push(Happened::UserSpoke(id.clone()));
            }
            reading
        }
        // A turn that mail began has no prompt, so this is the first that is heard of it.
        Event::PreModelRequest { compacts: false } => spoken(vec![does(Activity::Busy)]),
        Event::PreModelRequest { compacts: true } => spoken(Vec::new()),
        Event::PreToolUse { edits } => Reading { edits: edits.clone(), ..spoken(vec![does(Activity::Busy)]) },
        Event::PermissionRequest => spoken(vec![does(Activity::NeedsInput)]),
        Event::PostToolUse { registers } => {
            if is_subagent && *registers {
                turns::set_apart(&id)?;
            }
            // Before a subagent registers, it speaks as its root thread's agent and must not take that agent's
            // mail.
            let may_take = !is_subagent || turns::is_apart(&id)?;
            Reading {
                max_bytes: if may_take { ROOM_BESIDE_PROTOCOL } else { 0 },
                occasion: registers.then_some(Occasion::Registration),
                ..spoken(vec![does(Activity::Busy)])
            }
        }
        Event::SubagentStart if !is_subagent => Reading::nothing(),
        Event::SubagentStart => {
            note_hooks(&id)?;
            spoken(vec![Happened::Alive(session.clone()), does(Activity::Busy)])
        }
        Event::SubagentStop if !is_subagent => Reading::nothing(),
        Event::SubagentStop => {
            turns::forget_apart(&id)?;
            Reading { events: vec![Happened::Ended(id)], ..Reading::nothing() }
        }
        Event::Stop { again } => {
            let max_bytes = if turns::may_go_on(&id, *again)? { ROOM } else { 0 };
            Reading { max_bytes, ..spoken(vec![does(Activity::Idle)]) }
        }
        Event::Interrupt => spoken(vec![does(Activity::Idle), Happened::Stopped(id)]),
        Event::SessionEnd => {
            turns::forget_blocks(&id)?;
            dated_state::forget(&heard(&id))?;
            terminals::leave(&id, payload.process.as_deref())?;
            Reading { events: vec![Happened::Ended(id)], ..Reading::nothing() }
        }
    })
}

const HEARD: &str = "hooked/";

/// Whether a thread's hooks run: the user has trusted them and not switched them off.
pub(crate) fn has_hooks(thread: &str) -> Result<bool, Error> {
    dated_state::exists(&heard(thread))
}

fn note_hooks(thread: &str) -> Result<(), Error> {
    match dated_state::exists(&heard(thread))? {
        true => Ok(()),
        false => dated_state::write(&heard(thread), &()),
    }
}

fn heard(thread: &str) -> String {
    format!("{HEARD}{thread}")
}
