//! What a payload means to the mesh.

use relay_mesh_sdk::hooks::{Event as Happened, Reading};
use relay_mesh_sdk::payload::carries_mail;
use relay_mesh_sdk::{Activity, Error, Moment, kept, turns};

use crate::payload::{Event, Payload, Source};
use crate::{push, terminals};

/// Codex moves added context above some 2,500 tokens out of the conversation, into a file. What stands
/// around the mail needs the rest.
const ROOM: u32 = 9_000;
/// At a session's start and after registration the protocol text stands in the same string.
const ROOM_BESIDE_PROTOCOL: u32 = 6_500;
/// How long it is remembered that a thread's hooks speak.
const HEARD_LASTS: u64 = 7 * 24 * 3_600_000;

/// Reads a payload, and keeps what later calls need of it.
pub(super) fn read(payload: &Payload) -> Result<Reading, Error> {
    let session = payload.session();
    let is_subagent = session.parent.is_some();
    let id = session.id.clone();
    let does = |activity| Happened::Activity((id.clone(), activity));
    let spoken = |events: Vec<Happened>| Reading { speaker: Some(session.clone()), events, ..Reading::nothing() };

    Ok(match &payload.event {
        Event::SessionStart(source) => {
            turns::clear_away()?;
            kept::clear_away(HEARD, HEARD_LASTS)?;
            terminals::clear_away()?;
            note_hooks(&id)?;
            let before = terminals::enter(&id, &session.workdir, *source, payload.process.as_deref())?;
            let rebound = before.map(|before| Happened::Rebound((before, id.clone())));
            Reading {
                moment: Some(match source {
                    Source::Startup => Moment::SessionStart,
                    Source::Resume => Moment::Resumed,
                    Source::Clear | Source::Compact => Moment::Compacted,
                }),
                room: ROOM_BESIDE_PROTOCOL,
                // Runs as part of the first turn, whoever began it: what a person's prompt frees is
                // shown by the prompt's own hook.
                ..spoken(rebound.into_iter().chain([Happened::Seen(session.clone()), does(Activity::Busy)]).collect())
            }
        }
        Event::UserPromptSubmit { prompt } => {
            note_hooks(&id)?;
            let mut reading = spoken(vec![does(Activity::Busy)]);
            reading.room = ROOM;
            // A subagent's prompts come from its parent, and what rings us was queued by ourselves.
            if !is_subagent && !carries_mail(prompt) && !push::is_bell(prompt) {
                reading.attended = true;
                reading.events.push(Happened::HumanSpoke(id.clone()));
            }
            reading
        }
        Event::PreToolUse { edits } => Reading { edits: edits.clone(), ..spoken(vec![does(Activity::Busy)]) },
        Event::PermissionRequest => spoken(vec![does(Activity::AwaitingHuman)]),
        Event::PostToolUse { registers } => {
            if is_subagent && *registers {
                turns::set_apart(&id)?;
            }
            // A subagent that has not registered speaks as its root thread's agent, whose mail it must
            // not take away.
            let may_take = !is_subagent || turns::is_apart(&id)?;
            Reading {
                room: if may_take { ROOM_BESIDE_PROTOCOL } else { 0 },
                moment: registers.then_some(Moment::Registered),
                ..spoken(vec![does(Activity::Busy)])
            }
        }
        Event::SubagentStart if !is_subagent => Reading::nothing(),
        Event::SubagentStart => {
            note_hooks(&id)?;
            spoken(vec![Happened::Seen(session.clone()), does(Activity::Busy)])
        }
        Event::SubagentStop if !is_subagent => Reading::nothing(),
        Event::SubagentStop => {
            turns::forget_apart(&id)?;
            Reading { events: vec![Happened::Ended(id)], ..Reading::nothing() }
        }
        Event::Stop { again } => {
            let room = if turns::may_go_on(&id, *again)? { ROOM } else { 0 };
            Reading { room, ..spoken(vec![does(Activity::Idle)]) }
        }
        Event::Interrupt => spoken(vec![does(Activity::Idle)]),
        Event::SessionEnd => {
            turns::forget_blocks(&id)?;
            kept::forget(&heard(&id))?;
            terminals::leave(&id, payload.process.as_deref())?;
            Reading { events: vec![Happened::Ended(id)], ..Reading::nothing() }
        }
    })
}

const HEARD: &str = "hooked/";

/// Whether a thread's hooks speak: the person trusts them and has not switched them off.
pub(crate) fn has_hooks(thread: &str) -> Result<bool, Error> {
    kept::is_kept(&heard(thread))
}

fn note_hooks(thread: &str) -> Result<(), Error> {
    match kept::is_kept(&heard(thread))? {
        true => Ok(()),
        false => kept::write(&heard(thread), &()),
    }
}

fn heard(thread: &str) -> String {
    format!("{HEARD}{thread}")
}
