//! `relay-mesh ui`: watch the mesh and work in it; in a pipe, what happens, line by line.

use crate::command::CommandSpec;
use crate::commands::events;
use crate::context::Context;
use crate::errors::CommandError;
use crate::events::{Subscription, Topic};
use crate::exit::Exit;
use crate::render::Format;
use crate::runs::permission;
use crate::shapes::page::PageShape;
use crate::watching::{self, browser};

/// What a person would want to know of, line by line.
const TOPICS: [Topic; 7] =
    [Topic::Messages, Topic::Activity, Topic::Asks, Topic::Reservations, Topic::Commands, Topic::Runs, Topic::Agents];

/// Watch the mesh and work in it: agents, conversations, delivery, questions
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh ui\n  \
    relay-mesh ui --web\n  \
    relay-mesh ui --plain | jq -r 'select(.topic == \"asks\")'\n\n\
    `?` shows the keys. It is also what `relay-mesh` alone opens in a terminal. You write, answer and pause as yourself, so \
    it is refused in an agent's shell. In a pipe, with --plain and with --json it prints what happens as \
    `relay-mesh events` does. --web opens the page of the running server, which shows the same in a browser: the address \
    that it prints signs in one browser, once, within two minutes. docs/live-view.md shows both.")]
pub(crate) struct Args {
    /// Print what happens as JSON lines instead
    #[arg(long)]
    plain: bool,
    /// Open the page of the running server in your browser
    #[arg(long, conflicts_with = "plain")]
    web: bool,
    /// With --web: only print the address
    #[arg(long, requires = "web")]
    no_open: bool,
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        if self.web {
            return web(self.no_open, context).await;
        }
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

async fn web(no_open: bool, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    permission::only_the_user(context, &open, "open the page").await?;
    let address = browser::address(context, &open, web::PATH)?;
    let opened = !no_open && browser::open_it(&address, &context.environment);
    context.printer.show(&PageShape { address, opened })?;
    Ok(Exit::Success)
}
