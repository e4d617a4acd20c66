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

use std::io::{self, IsTerminal as _};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use ui::{Palette, View};
use view::live::Effect;

use self::reading::{Reader, Request};
use crate::context::Context;
use crate::environment::Environment;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::logging;
use crate::runs::permission;
use crate::signals::Stop;

/// How long the view may take to give the terminal back. A terminal that is gone may keep it for ever.
const GIVES_BACK: Duration = Duration::from_secs(2);

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
    let mut working = FuturesUnordered::new();
    loop {
        tokio::select! {
            () = stop.asked() => {
                view.stop();
                return over(view, &mut effects).await;
            }
            effect = effects.recv() => match effect {
                None => return over(view, &mut effects).await,
                Some(Effect::Open(thread)) => drop(ask.send(Request::Show(vec![thread]))),
                Some(Effect::Close) => drop(ask.send(Request::Show(Vec::new()))),
                Some(effect) => working.push(effects::carry_out(context, &open, effect)),
            },
            Some(outcome) = working.next(), if !working.is_empty() => {
                drop(ask.send(Request::Again));
                news.tell(outcome);
            }
            never = &mut reading => match never {},
        }
    }
}

/// Waits until the view has given the terminal back, and gives it back here if it cannot.
async fn over(view: View, effects: &mut UnboundedReceiver<Effect>) -> Result<Exit, CommandError> {
    let ended = async { while effects.recv().await.is_some() {} };
    if tokio::time::timeout(GIVES_BACK, ended).await.is_err() {
        ui::restore();
        return Ok(Exit::Failure);
    }
    // A terminal that is gone is how many views end.
    if let Err(error) = view.join() {
        tracing::debug!(%error, "the terminal is gone");
    }
    Ok(Exit::Success)
}
