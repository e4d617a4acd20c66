//! `relay-mesh ui`: watch the mesh and work in it; in a pipe, what happens, line by line.

use crate::command::CommandSpec;
use crate::commands::events;
use crate::context::Context;
use crate::errors::CommandError;
use crate::events::{Subscription, Topic};
use crate::exit::Exit;
use crate::render::Format;
use crate::watching;

/// What a person would want to know of, line by line.
const TOPICS: [Topic; 7] =
    [Topic::Messages, Topic::Activity, Topic::Asks, Topic::Reservations, Topic::Commands, Topic::Runs, Topic::Agents];

/// Watch the mesh and work in it: agents, conversations, delivery, questions
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh ui\n  \
    relay-mesh ui --plain | jq -r 'select(.topic == \"asks\")'\n\n\
    `?` shows the keys. It is also what `relay-mesh` alone opens in a terminal. You write, answer and pause as yourself, so \
    it is refused in an agent's shell. In a pipe, with --plain and with --json it prints what happens as \
    `relay-mesh events` does. docs/live-view.md shows it.")]
pub(crate) struct Args {
    /// Print what happens as JSON lines instead
    #[arg(long)]
    plain: bool,
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let wants_lines = self.plain || context.printer.format() == Format::Json;
        if wants_lines || !watching::has_a_terminal() {
            return events::print(Subscription::new(TOPICS.to_vec(), None, None)?, context).await;
        }
        if !watching::can_draw(&context.environment) {
            return Err(CommandError::usage(
                "the view needs a terminal that can move its cursor, and TERM names none: `relay-mesh ui --plain` prints lines",
                "set TERM to what your terminal is, such as `xterm-256color`",
            ));
        }
        watching::watch(context).await
    }
}
