//! `relay-mesh threads`: the conversations of the mesh, and who talks to whom.

use mesh::ThreadFilter;
use mesh::names::AgentName;
use mesh::ports::machine::Machine;
use view::{PairView, ThreadSummaryView};

use crate::command::CommandSpec;
use crate::commands::since::Since;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::runs::permission::mail_reader;
use crate::shapes::conversations::{PairsShape, ThreadListShape, more_are_left};

const DEFAULT_LAST: usize = 20;

/// Show the conversations, and who talks to whom
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh threads\n  \
    relay-mesh threads --with alice --since 1d\n  \
    relay-mesh threads --pairs\n  \
    relay-mesh threads --json | jq -r '.threads[] | select(.waiting > 0) | .thread'\n\n\
    The conversation of the newest message comes first. In your own terminal you see everybody's; an agent sees what it \
    sent and what it was sent. The list reads all mail that is kept.")]
pub(crate) struct Args {
    /// Only those in which this agent wrote or was written to
    #[arg(long, value_name = "AGENT")]
    with: Option<AgentName>,
    /// Only messages since then: `2h` ago, or `2026-11-21T10:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    since: Option<Since>,
    /// Only this many, the newest [default: 20]
    #[arg(long, value_name = "NUMBER")]
    last: Option<usize>,
    /// Show instead who wrote how much to whom
    #[arg(long, conflicts_with = "last")]
    pairs: bool,
    /// Look as this agent, which sees what it sent or was sent [$RELAY_AGENT]
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentName>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let reader = mail_reader(context, &open, self.agent).await?;
        let now = open.machine.now();
        let filter = ThreadFilter { with: self.with.clone(), since: self.since.map(|since| since.before(now)) };
        let found = open.mesh.mail_threads(&reader, &filter).await?;
        if self.pairs {
            let pairs = found.pairs.iter().map(PairView::from).collect();
            context.printer.show(&PairsShape { pairs, now })?;
        } else {
            let listed = self.last.unwrap_or(DEFAULT_LAST);
            let threads = found.threads.iter().take(listed).map(ThreadSummaryView::from).collect();
            let more = found.threads.len().saturating_sub(listed);
            context.printer.show(&ThreadListShape { threads, more, now })?;
            if let Some(note) = more_are_left(more, "conversation") {
                context.printer.say(&note);
            }
        }
        context.warn_of_damage(found.damaged);
        if found.threads.is_empty() {
            context.refuse_unknown(&open, self.with.as_ref()).await?;
            context.printer.say("no conversation");
        }
        Ok(Exit::Success)
    }
}
