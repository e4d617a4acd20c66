//! `relay-mesh search`: find messages by their words.

use mesh::Search;
use mesh::names::AgentName;
use mesh::ports::machine::Machine;
use view::SearchHitView;

use crate::command::CommandSpec;
use crate::commands::log::whom;
use crate::commands::since::Since;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::runs::permission::mail_reader;
use crate::shapes::conversations::{SearchShape, more_are_left};

const DEFAULT_LAST: usize = 20;

/// Find messages by words in their subjects and texts
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh search port\n  \
    relay-mesh search 'rate limit' api --from alice --since 7d\n  \
    relay-mesh search port --json | jq -r '.hits[].thread'\n\n\
    All words have to be there, in either case; several words in quotes are a phrase. The best comes first: a word in the \
    subject counts for more than one in the text, a whole word for more than a part. In your own terminal you search \
    everybody's mail; an agent searches what it sent and what it was sent. `relay-mesh thread ID` shows a conversation.")]
pub(crate) struct Args {
    /// What to look for
    #[arg(value_name = "WORD", required = true)]
    words: Vec<String>,
    /// Only from this sender, or `shell`
    #[arg(long, value_name = "AGENT", value_parser = whom)]
    from: Option<AgentName>,
    /// Only to this recipient
    #[arg(long, value_name = "AGENT")]
    to: Option<AgentName>,
    /// Only in this conversation
    #[arg(long)]
    thread: Option<String>,
    /// Only since then: `2h` ago, or `2026-11-21T10:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    since: Option<Since>,
    /// Only this many, the best [default: 20]
    #[arg(long, value_name = "NUMBER")]
    last: Option<usize>,
    /// Look as this agent, which sees what it sent or was sent [$RELAY_AGENT]
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentName>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        if self.words.iter().all(|word| word.trim().is_empty()) {
            return Err(CommandError::usage(
                "there is no word to look for",
                "name one, as in `relay-mesh search port`",
            ));
        }
        let open = context.open()?;
        let reader = mail_reader(context, &open, self.agent).await?;
        let now = open.machine.now();
        let search = Search {
            words: self.words,
            from: self.from,
            to: self.to,
            thread: self.thread,
            since: self.since.map(|since| since.before(now)),
            limit: self.last.unwrap_or(DEFAULT_LAST).max(1),
        };
        let found = open.mesh.search(&reader, &search).await?;
        let hits = found.hits.iter().map(|hit| SearchHitView::of(hit, &search.words)).collect();
        context.printer.show(&SearchShape { hits, found: found.found, now })?;
        if let Some(note) = more_are_left(found.found - found.hits.len(), "message") {
            context.printer.say(&note);
        }
        context.warn_of_damage(found.damaged);
        if found.hits.is_empty() {
            let narrowed = search.from.as_ref().or(search.to.as_ref());
            context.say_nothing_found(&open, "no message has these words", narrowed).await?;
        }
        Ok(Exit::Success)
    }
}
