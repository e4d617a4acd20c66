//! Between the mesh and who watches it, `relay-mesh ui` in a terminal and the page of the server: reads the mesh for them,
//! and does what their user asks for.
//!
//! The crate `ui` has threads of its own for the terminal, so that nothing here keeps it from drawing. The crate `web` has
//! the page.

pub(crate) mod browser;
mod effects;
mod overview;
pub(crate) mod page;
mod reading;
mod work;

use std::io::{self, IsTerminal as _};
use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use ui::{Palette, View};
use view::live::Effect;

use self::reading::{Reader, Request};
use self::work::Work;
use crate::context::Context;
use crate::environment::Environment;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::logging;
use crate::render::printable_line;
use crate::runs::permission;
use crate::signals::Stop;

/// How long the view may take to give the terminal back. A terminal that is gone may keep it for ever.
const GIVES_BACK: Duration = Duration::from_secs(2);
/// How long what the user has asked for may still take after the view has ended.
const FINISHES: Duration = Duration::from_secs(10);

/// Whether a person sits in front of both sides of this process.
pub(crate) fn has_a_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Whether the terminal can move its cursor.
pub(crate) fn can_draw(environment: &Environment) -> bool {
    environment.get("TERM").is_some_and(|terminal| terminal != "dumb")
}

/// Shows the view until its user quits, a signal comes, or the terminal is gone.
pub(crate) async fn watch(context: &Context) -> Result<Exit, CommandError> {
    let mut stop = Stop::listen().map_err(StreamError::Input)?;
    let context = &context.as_the_user();
    let open = context.open()?;
    permission::only_the_user(context, &open, "watch everybody's mail").await?;
    let is_coloured = context.printer.screen().is_some_and(|screen| screen.is_coloured);
    let palette = if is_coloured { Palette::Coloured } else { Palette::Plain };
    let _withheld = logging::withhold();
    let (wanted, mut effects) = unbounded_channel();
    let view = View::start(palette, move |effect| {
        // After the view has ended no effect is carried out.
        let _over = wanted.send(effect);
    });
    let view = view.map_err(StreamError::Output)?;
    let news = view.news();
    let (ask, requests) = unbounded_channel();
    let teller = news.clone();
    let reader = Reader::of(context, &open, Box::new(move |news| teller.tell(news)));
    let mut reading = pin!(reader.read(requests));
    let mut work = Work::none();
    loop {
        tokio::select! {
            () = stop.asked() => {
                view.stop();
                break;
            }
            effect = effects.recv() => match effect {
                None => break,
                Some(Effect::Open(thread)) => drop(ask.send(Request::Show(vec![thread]))),
                Some(Effect::Close) => drop(ask.send(Request::Show(Vec::new()))),
                Some(effect) => work.begin(effects::loss(&effect), effects::carry_out(context, &open, effect)),
            },
            Some(outcome) = work.next(), if !work.is_done() => {
                drop(ask.send(Request::Again));
                news.tell(outcome);
            }
            never = &mut reading => match never {},
        }
    }
    // What was asked for right before the end is done all the same.
    let (queued, exit) = over(view, &mut effects).await;
    for effect in queued {
        if let Some(loss) = effects::loss(&effect) {
            work.begin(Some(loss), effects::carry_out(context, &open, effect));
        }
    }
    let undone = work.finish(tokio::time::sleep(FINISHES)).await;
    for sentence in &undone {
        context.printer.warn_of_failure(&printable_line(sentence));
    }
    Ok(if undone.is_empty() { exit } else { Exit::Failure })
}

/// Waits until the view has given the terminal back, and gives it back here if it cannot. Returns what its user has
/// asked for until then and nobody has taken.
async fn over(view: View, effects: &mut UnboundedReceiver<Effect>) -> (Vec<Effect>, Exit) {
    let mut queued = Vec::new();
    let ended = async {
        while let Some(effect) = effects.recv().await {
            queued.push(effect);
        }
    };
    if tokio::time::timeout(GIVES_BACK, ended).await.is_err() {
        ui::restore();
        return (queued, Exit::Failure);
    }
    // A terminal that is gone is how many views end.
    if let Err(error) = view.join() {
        tracing::debug!(%error, "the terminal is gone");
    }
    (queued, Exit::Success)
}
