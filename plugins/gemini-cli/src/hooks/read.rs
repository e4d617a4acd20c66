//! What a payload means to the mesh.

use relay_mesh_sdk::hooks::{Event as Happened, Reading};
use relay_mesh_sdk::payload::{absolute, carries_mail};
use relay_mesh_sdk::{Activity, Error, Occasion, Session, turns};

use crate::memory;
use crate::payload::{Event, Payload, Source, Tool};

/// Gemini CLI has no known limit, but more than this at once would crowd out the work.
const ROOM: u32 = 9_000;
/// Smaller, because an answer after registration also holds the protocol text.
const ROOM_BESIDE_PROTOCOL: u32 = 6_500;

/// Reads a payload and stores what later calls need.
pub(super) fn read(payload: &Payload) -> Result<Reading, Error> {
    let (session, window) = (&payload.session, payload.window.as_deref());
    let id = session.id.clone();
    let does = |activity| Happened::Activity((session.id.clone(), activity));
    let spoken = |events: Vec<Happened>| Reading { speaker: Some(session.clone()), events, ..Reading::nothing() };

    Ok(match &payload.event {
        Event::SessionStart(source) => session_start(session, window, *source)?,
        Event::BeforeAgent { prompt } => {
            let mut reading = spoken(vec![does(Activity::Busy)]);
            // If our hook made this prompt of mail at the end of a turn, it is not the user's.
            if !carries_mail(prompt) {
                reading.events.push(Happened::UserSpoke(id.clone()));
                reading.attended = true;
                reading.max_bytes = ROOM_BESIDE_PROTOCOL;
            }
            reading.occasion = memory::is_untold(&id)?.then_some(Occasion::Compaction);
            reading
        }
        Event::BeforeTool(tool) => {
            let edits = match tool {
                Tool::Writes(path) => vec![absolute(path, &session.workdir)],
                Tool::Ours(..) | Tool::Other => Vec::new(),
            };
            Reading { edits, ..spoken(vec![does(Activity::Busy)]) }
        }
        Event::AfterTool(tool) => {
            let registered = matches!(tool, Tool::Ours(name, _) if name == "register_agent");
            Reading {
                max_bytes: ROOM_BESIDE_PROTOCOL,
                occasion: registered.then_some(Occasion::Registration),
                ..spoken(vec![does(Activity::Busy)])
            }
        }
        // Its user pressed Esc.
        Event::AfterAgent { answered: false, .. } => spoken(vec![Happened::Stopped(id)]),
        Event::AfterAgent { again, answered: true } => {
            let max_bytes = if turns::may_go_on(&id, *again)? { ROOM } else { 0 };
            Reading { max_bytes, ..spoken(vec![does(Activity::Idle)]) }
        }
        Event::Notification { asks: true } => spoken(vec![does(Activity::NeedsInput)]),
        Event::Notification { asks: false } => spoken(Vec::new()),
        Event::PreCompress { by_person } => {
            if *by_person {
                memory::forgets(&id)?;
            }
            spoken(Vec::new())
        }
        Event::SessionEnd { cleared } => {
            turns::forget_blocks(&id)?;
            if *cleared {
                memory::cleared(session, window)?;
            }
            Reading { events: vec![Happened::Ended(id)], ..Reading::nothing() }
        }
    })
}

/// Shows no mail. The model reads what this hook adds only with the first prompt, whose own hook brings the mail;
/// if the session is closed before that, its mail would be lost.
fn session_start(session: &Session, window: Option<&str>, source: Source) -> Result<Reading, Error> {
    memory::clear_away()?;
    let mut events = vec![Happened::Alive(session.clone())];
    let occasion = match source {
        Source::Startup => Some(Occasion::Start),
        Source::Resume => Some(Occasion::Resume),
        // Gemini CLI drops what this hook adds after a /clear, so the next prompt's hook adds it.
        Source::Clear => {
            if let Some(before) = memory::cleared_before(session, window)? {
                events.push(Happened::Rebound((before, session.id.clone())));
            }
            memory::forgets(&session.id)?;
            None
        }
    };
    events.push(Happened::Activity((session.id.clone(), Activity::Idle)));
    Ok(Reading { speaker: Some(session.clone()), events, occasion, ..Reading::nothing() })
}
