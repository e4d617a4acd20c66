//! `relay-mesh asks`: the questions that wait for the user, and their answers.

pub(in crate::commands) mod answer;

use mesh::asks::{Ask, AskStatus};
use mesh::ports::machine::Machine as _;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::driven::host;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::shapes::asks::{AskShape, AsksShape};

/// Show what agents ask you, and answer
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    relay-mesh asks\n  \
    relay-mesh asks answer 01JD8Z3K5V allow\n  \
    relay-mesh asks answer 01JD8Z3K5V refuse 'ask the team first'\n  \
    relay-mesh asks --all --json | jq '.asks[].what'\n\n\
    What waits here: approvals and questions of agents, consents, and agents that the loop guard has stopped. The first \
    answer wins, wherever it is given. What is not answered in time is refused. The questions of this machine alone are \
    here, also if several machines share the mesh."
)]
pub(crate) struct Args {
    /// Show or answer one instead.
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Also those that were answered, settled or refused within a day
    #[arg(long)]
    all: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Show one question whole
    #[command(after_help = "Example:\n  relay-mesh asks show 01JD8Z3K5V")]
    Show {
        /// Its id; its first characters are enough if they are unique
        #[arg(value_name = "ID", value_parser = mesh::check_id)]
        id: String,
    },
    /// Answer a question
    Answer(AnswerArgs),
}

/// Answer a question
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh asks answer 01JD8Z3K5V allow\n  \
    relay-mesh asks answer 01JD8Z3K5V refuse 'not on a Friday'\n  \
    relay-mesh asks answer 01JD8Z3K5V 'port 8080'\n\n\
    ANSWER is `allow`, `allow-session` (and what is like it for the rest of the session), `refuse` with a reason, \
    `stop` (refuse, and end the turn), the name of a choice, or text, as the question offers. Exits with 6 if it was \
    answered before. It is refused below a harness and below a run: an agent cannot answer for its user.")]
struct AnswerArgs {
    /// The question's id; its first characters are enough if they are unique
    #[arg(value_name = "ID", value_parser = mesh::check_id)]
    id: String,
    /// The answer
    #[arg(value_name = "ANSWER", required = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        match self.verb {
            None => list(self.all, context).await,
            Some(Verb::Show { id }) => show(&id, context).await,
            Some(Verb::Answer(AnswerArgs { id, words })) => answer::answer(&id, &words.join(" "), context).await,
        }
    }
}

async fn list(all: bool, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    host::look_after(context, &open).await;
    let asks = if all { open.mesh.all_asks().await? } else { open.mesh.asks().await? };
    context.printer.show(&AsksShape::of(&asks, open.machine.now()))?;
    let mut waiting = asks.iter().filter(|ask| ask.status(open.machine.now()) == AskStatus::Open);
    match (waiting.next(), waiting.next()) {
        (Some(only), None) => context.printer.say(&how_to_answer(only)),
        (Some(_), Some(_)) => context.printer.say("`relay-mesh asks answer ID …` answers one"),
        (None, _) if !asks.is_empty() => {}
        (None, _) => context.printer.say(if all { "no question is kept" } else { "no question waits for you" }),
    }
    Ok(Exit::Success)
}

async fn show(id: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let ask = open.mesh.find_ask(id).await?;
    context.printer.show(&AskShape::of(&ask, open.machine.now()))?;
    if ask.status(open.machine.now()) == AskStatus::Open {
        context.printer.say(&how_to_answer(&ask));
    }
    Ok(Exit::Success)
}

/// What a user types to answer a question.
pub(in crate::commands) fn how_to_answer(ask: &Ask) -> String {
    format!("`relay-mesh asks answer {} …` answers it", ask.id)
}
