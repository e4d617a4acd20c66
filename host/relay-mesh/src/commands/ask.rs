//! `relay-mesh ask`: put a question to the user of this machine.

use std::time::Duration;

use mesh::asks::{AskOutcome, NewAsk, answer_text};
use mesh::names::AgentName;
use mesh::ports::driver::UserAnswer;
use mesh::ports::machine::Machine as _;

use crate::command::CommandSpec;
use crate::commands::asks::how_to_answer;
use crate::commands::waiting::{Patience, Waited};
use crate::compose::Open;
use crate::context::Context;
use crate::duration::timeout;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::shapes::asks::AskShape;
use crate::signals::Stop;

/// Ask the user of this machine something
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh ask 'Which port shall the server use?' --wait\n  \
    relay-mesh ask 'Deploy now?' --choices yes,no --wait --timeout 5m\n\n\
    With --wait it prints the answer. Exits with 0 if the user answered, with 4 if they refused, and with 7 if no \
    answer came in time, which is refused too. Without --wait it prints the question with its id (`--json | jq -r .id` is the id alone); an agent gets the answer \
    as a message. The user sees the question by `relay-mesh asks`.")]
pub(crate) struct Args {
    /// The question
    #[arg(value_name = "QUESTION")]
    question: String,
    /// What can be chosen; without it the answer is text
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    choices: Vec<String>,
    /// Why you ask
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Wait for the answer, and print it
    #[arg(long)]
    wait: bool,
    /// How long the question waits for the user [default: `ask-patience` of the settings]
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    timeout: Option<Duration>,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session]
    #[arg(long, visible_alias = "agent", value_name = "AGENT")]
    from: Option<AgentName>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        // Listen before the question is stored, so that one that nobody waits for any more is settled.
        let mut stop = if self.wait { Some(Stop::listen().map_err(StreamError::Input)?) } else { None };
        let open = context.open()?;
        let caller = context.principal(&open, self.from).await?;
        let new = NewAsk {
            reason: self.reason,
            patience: self.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            process: self.wait.then(|| open.machine.this_process()),
            by_mail: !self.wait,
            ..NewAsk::question((&caller).into(), self.question, self.choices)
        };
        let ask = open.mesh.ask(new).await?;
        let Some(stop) = &mut stop else {
            context.printer.show(&AskShape::of(&ask, open.machine.now()))?;
            context.printer.say(&how_to_answer(&ask));
            return Ok(Exit::Success);
        };
        context.printer.say(&format!("waits for the user: `relay-mesh asks answer {} …`", ask.id));
        match Patience::from_now(None).wait_unless(stop, open.mesh.wait_for_answer(ask.id)).await {
            Waited::For(outcome) => told(context, &open, ask.id, outcome?).await,
            Waited::InVain | Waited::UntilStopped => {
                open.mesh.settle_ask(ask.id, "the asker waits no more").await?;
                Ok(Exit::Failure)
            }
        }
    }
}

async fn told(
    context: &Context,
    open: &Open,
    id: mesh::names::MessageId,
    outcome: AskOutcome,
) -> Result<Exit, CommandError> {
    if context.printer.format() == crate::render::Format::Json
        && let Some(ask) = open.mesh.ask_record(id).await?
    {
        context.printer.show(&AskShape::of(&ask, open.machine.now()))?;
    }
    let is_text = context.printer.format() == crate::render::Format::Text;
    match outcome {
        AskOutcome::Answered(UserAnswer::Refuse(why)) => {
            context.printer.say(&match why.as_str() {
                "" => "the user refused".to_owned(),
                why => format!("the user refused: {why}"),
            });
            Ok(Exit::Refused)
        }
        AskOutcome::Answered(answer) => {
            if is_text {
                context.printer.data(&answer_text(&answer))?;
            }
            Ok(Exit::Success)
        }
        AskOutcome::Settled => {
            context.printer.say("no answer is needed any more");
            Ok(Exit::Refused)
        }
        AskOutcome::Expired => {
            context.printer.say("no answer came in time, so it counts as refused");
            Ok(Exit::TimedOut)
        }
    }
}
