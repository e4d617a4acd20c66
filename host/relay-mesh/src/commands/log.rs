//! `relay-mesh log`: print the event log, each event once and in order.

use std::time::Duration;

use mesh::names::AgentName;
use mesh::ports::machine::{Instant, Machine};
use mesh::{EVENT_KINDS, Event};
use store::Position;

use crate::command::CommandSpec;
use crate::commands::since::Since;
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::shapes::events::EventShape;
use crate::signals::Stop;

/// Poll interval while following: if the system has no file watches left, no change is announced.
const LOOK: Duration = Duration::from_secs(5);

/// Show what happened on the mesh
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh log --since 2h --agent alice\n  \
    relay-mesh log --follow --type reserved --type released\n  \
    relay-mesh log --json | jq -r 'select(.event == \"sent\") | .from'\n\n\
    One line for each event, oldest first: when, what, and whom it concerned.")]
pub(crate) struct Args {
    /// Keep running, and print events as they happen
    #[arg(long, short)]
    follow: bool,
    /// Only events that concern this agent, or `shell`
    #[arg(long, value_name = "AGENT", value_parser = whom)]
    agent: Option<AgentName>,
    /// Only since then: `2h` ago, `2026-11-21`, or `2026-11-21T10:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    since: Option<Since>,
    /// Only events of this kind, as the second column names them; may be given several times
    #[arg(long = "type", value_name = "KIND", value_parser = kind)]
    kinds: Vec<String>,
    /// On a terminal, whole lines, also those that are wider
    #[arg(long, short)]
    verbose: bool,
}

/// Also accepts the names that kinds had before 0.1.
fn kind(text: &str) -> Result<String, String> {
    let kind = text.to_ascii_lowercase();
    let kind = mesh::kind_of_today(&kind);
    if EVENT_KINDS.contains(&kind) {
        Ok(kind.to_owned())
    } else {
        Err(format!("the kinds are {}", EVENT_KINDS.join(", ")))
    }
}

/// An agent, or `shell`: the command line that speaks for no agent.
pub(crate) fn whom(text: &str) -> Result<AgentName, mesh::names::InvalidName> {
    let shell = AgentName::shell();
    if text == shell.as_str() { Ok(shell) } else { text.parse() }
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let since = self.since.map(|since| since.before(open.machine.now()));
        let wanted = |event: &Event| {
            since.is_none_or(|since: Instant| event.at >= since)
                && self.agent.as_ref().is_none_or(|agent| event.concerns(agent))
                && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
        };
        let mut stop = Stop::listen().map_err(StreamError::Input)?;
        // Watch before reading, so that no change is missed in between.
        let mut watch = if self.follow { Some(open.mesh.watch_event_log().await?) } else { None };
        let mut from = match since {
            Some(since) => open.mesh.event_log_since(since).await?,
            None => Position::START,
        };
        // Silence raises no event by itself: while following, this process looks for silent agents and logs them.
        let noticing = open.mesh.keep_noticing_silence();
        tokio::pin!(noticing);
        loop {
            let printed;
            (from, printed) = print_from(context, &open, from, &wanted, self.verbose).await?;
            let Some(watch) = &mut watch else {
                if printed == 0 {
                    let what = match self.kinds.as_slice() {
                        [] if self.agent.is_none() && since.is_none() => "nothing has happened yet".to_owned(),
                        [] => "nothing of that kind has happened".to_owned(),
                        kinds => format!("nothing of that kind has happened: {}", kinds.join(", ")),
                    };
                    context.refuse_unknown(&open, self.agent.as_ref()).await?;
                    context.printer.say(&what);
                }
                return Ok(Exit::Success);
            };
            tokio::select! {
                () = &mut noticing => return Ok(Exit::Success),
                () = stop.asked() => return Ok(Exit::Success),
                changed = watch.changed() => changed?,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }
}

/// Prints all events from a position to the end. Returns the end's position and the number of events printed.
async fn print_from(
    context: &Context,
    open: &Open,
    mut from: Position,
    wanted: &impl Fn(&Event) -> bool,
    is_whole: bool,
) -> Result<(Position, usize), CommandError> {
    let mut printed = 0;
    loop {
        let stretch = open.mesh.event_log(from).await?;
        for event in stretch.events.iter().filter(|event| wanted(event)) {
            context.printer.show(&EventShape::of(event, is_whole))?;
            printed += 1;
        }
        if stretch.damage > 0 {
            let (lines, were) = if stretch.damage == 1 { ("line", "was") } else { ("lines", "were") };
            context.printer.warn(&format!("{} damaged {lines} {were} passed over", stretch.damage));
        }
        from = stretch.next;
        if stretch.at_end {
            return Ok((from, printed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_nothing_is_called_is_an_error_with_the_list() {
        assert_eq!(kind("sent").as_deref(), Ok("sent"));
        assert_eq!(kind("Reserved").as_deref(), Ok("reserved"));
        assert_eq!(kind("swept").as_deref(), Ok("deleted"), "a name of before 0.1");
        let error = kind("send").expect_err("no kind");
        assert!(error.starts_with("the kinds are adopted,") && error.ends_with(", woke"), "{error}");
    }
}
