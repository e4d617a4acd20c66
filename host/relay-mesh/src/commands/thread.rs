//! `relay-mesh thread`: both halves of a conversation, and where each message stands.

use mesh::names::AgentName;
use mesh::ports::machine::Machine;
use view::ThreadView;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::runs::permission::mail_reader;
use crate::shapes::conversations::{ThreadShape, more_are_left};

const DEFAULT_LAST: usize = 50;

/// Show a conversation: what everybody in it wrote, and how far each message got
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh thread 01JD8Z3K5V0000000000000000\n  \
    relay-mesh thread build --last 5\n  \
    relay-mesh thread build --json | jq -r '.messages[] | .from + \": \" + .body'\n\n\
    In your own terminal you see what everybody wrote; an agent sees what it sent and what it was sent. Nothing counts as \
    read by it.")]
pub(crate) struct Args {
    /// A thread's name, or the id of one of its messages; the first characters of the id are enough
    #[arg(value_name = "ID")]
    thread: String,
    /// Only this many, the newest [default: 50]
    #[arg(long, value_name = "NUMBER")]
    last: Option<usize>,
    /// Look as this agent, which sees what it sent or was sent [$RELAY_AGENT]
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentName>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let reader = mail_reader(context, &open, self.agent).await?;
        let thread = open.mesh.mail_thread(&reader, &self.thread, self.last.unwrap_or(DEFAULT_LAST).max(1)).await?;
        context.printer.show(&ThreadShape { thread: ThreadView::from(&thread), now: open.machine.now() })?;
        if let Some(note) = more_are_left(thread.earlier, "earlier message") {
            context.printer.say(&note);
        }
        context.warn_of_damage(thread.damaged);
        Ok(Exit::Success)
    }
}
