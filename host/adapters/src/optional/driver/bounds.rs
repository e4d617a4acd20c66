//! Bounds on what a driver answers. An answer beyond one is the adapter's error, and nothing of it is used.

use super::driver::{Connection, Event, Exchange};

/// Ways of reaching one agent.
const CONNECTIONS: usize = 8;
/// Frames of one call, and bytes of all of them.
const FRAMES: usize = 1_024;
const FRAME_BYTES: usize = 4 * 1024 * 1024;
/// Events of one call.
const EVENTS: usize = 16_384;
/// Bytes of what an adapter wants to be given back with the next call, and of what it keeps of a question.
const MEMORY: usize = 1024 * 1024;
const KEPT: usize = 256 * 1024;
/// Bytes of an item's detail.
const DETAIL: usize = 4 * 1024;
/// Bytes of an id, and choices of a question.
const NAME: usize = 256;
const CHOICES: usize = 64;

pub(super) fn connections(offered: Vec<Connection>) -> Result<Vec<Connection>, String> {
    at_most("connections", offered.len(), CONNECTIONS)?;
    offered.iter().try_for_each(|connection| at_most("bytes of a name", connection.name.len(), NAME))?;
    Ok(offered)
}

pub(super) fn exchange(exchange: &Exchange) -> Result<(), String> {
    at_most("bytes kept between two calls", exchange.memory.as_ref().map_or(0, String::len), MEMORY)?;
    at_most("frames at once", exchange.frames.len(), FRAMES)?;
    at_most("bytes of frames at once", exchange.frames.iter().map(String::len).sum(), FRAME_BYTES)?;
    at_most("events at once", exchange.events.len(), EVENTS)?;
    for event in &exchange.events {
        at_most("bytes of a session's id", event.session.as_ref().map_or(0, String::len), NAME)?;
        match &event.event {
            Event::Opened(id)
            | Event::TurnStarted(id)
            | Event::TurnEnded((id, _))
            | Event::Prompt((id, _))
            | Event::Settled(id)
            | Event::Refused((id, _)) => at_most("bytes of an id", id.len(), NAME)?,
            Event::Asks(question) => {
                at_most("bytes of an id", question.id.len(), NAME)?;
                at_most("choices of a question", question.choices.len(), CHOICES)?;
                at_most("bytes kept of a question", question.kept.as_ref().map_or(0, String::len), KEPT)?;
            }
            Event::Item(item) => {
                at_most("bytes of an id", item.id.len(), NAME)?;
                at_most("bytes of an item's detail", item.detail.as_ref().map_or(0, String::len), DETAIL)?;
            }
            Event::Ready
            | Event::Activity(_)
            | Event::Piece(_)
            | Event::Said(_)
            | Event::Diff(_)
            | Event::UserSpoke
            | Event::Used(_)
            | Event::Note(_)
            | Event::Ended => {}
        }
    }
    Ok(())
}

fn at_most(what: &str, found: usize, most: usize) -> Result<(), String> {
    if found > most { Err(format!("it answered {found} {what}, and {most} are the most")) } else { Ok(()) }
}
