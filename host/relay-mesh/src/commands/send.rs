//! `relay-mesh send`: store a message for an agent, or for everyone, and notify the recipients.

use std::time::Duration;

use mesh::messages::receipt::DeliveryStatus;
use mesh::messages::{Draft, Priority};
use mesh::names::AgentName;
use mesh::sessions::Principal;
use mesh::{Audience, Sent};

use crate::command::CommandSpec;
use crate::commands::input;
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::render::Format;
use crate::shapes::mail::SentShape;
use crate::wake::{bring, is_taken};

/// More than a message may hold, so that the error for a long body can name its length.
const LONGEST_INPUT: usize = 16 * 1024 * 1024;
/// How long `--wake` tries the recipient's routes.
const WAKE_PATIENCE: Duration = Duration::from_secs(5);

/// Send a message to an agent
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "relay-mesh send [OPTIONS] TO BODY\n       \
        relay-mesh send [OPTIONS] TO --stdin\n       \
        relay-mesh send [OPTIONS] --broadcast BODY",
    after_help = "Examples:\n  \
    relay-mesh send bob 'the build is green'\n  \
    relay-mesh send bob@backend 'please review #42' --from alice --priority high --tag review\n  \
    git diff | relay-mesh send bob - --subject 'what I changed'\n  \
    relay-mesh send --broadcast --team backend 'deploying in five minutes'\n  \
    relay-mesh send bob done --reply-to 01JD8Z3K5V0000000000000000"
)]
pub(crate) struct Args {
    /// The recipient (several with commas; none with --broadcast), then the text
    #[arg(value_names = ["TO", "BODY"], num_args = 0..=2)]
    words: Vec<String>,
    /// Take the text from standard input, as `-` in its place does
    #[arg(long)]
    stdin: bool,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session, else `shell`]
    #[arg(long, visible_alias = "agent", value_name = "AGENT")]
    from: Option<AgentName>,
    /// What it is about [default: the first line of the text]
    #[arg(long)]
    subject: Option<String>,
    /// The conversation that it belongs to
    #[arg(long)]
    thread: Option<String>,
    /// The message that it answers; acknowledges that one
    #[arg(long, value_name = "ID", value_parser = mesh::check_id)]
    reply_to: Option<String>,
    /// How far it may interrupt
    #[arg(long, value_enum, default_value_t)]
    priority: PriorityWord,
    /// A word to filter by; may be given several times
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// A key of your own: the same message sent twice with it is stored once, another text is refused
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Send to everyone who is not offline
    #[arg(long)]
    broadcast: bool,
    /// With --broadcast: only to this team
    #[arg(long, requires = "broadcast")]
    team: Option<String>,
    /// With --broadcast: only to agents of this harness
    #[arg(long, requires = "broadcast")]
    harness: Option<String>,
    /// Try every route to the recipient from here, for some seconds, and say whether one took the message
    #[arg(long)]
    wake: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum PriorityWord {
    /// Waits for a hook of the harness, or until it is read.
    Low,
    /// Wakes an idle session; reaches a busy one between tools.
    #[default]
    Normal,
    /// As normal, and shown first.
    High,
    /// May steer a busy session.
    Urgent,
}

impl From<PriorityWord> for Priority {
    fn from(word: PriorityWord) -> Priority {
        match word {
            PriorityWord::Low => Priority::Low,
            PriorityWord::Normal => Priority::Normal,
            PriorityWord::High => Priority::High,
            PriorityWord::Urgent => Priority::Urgent,
        }
    }
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let (recipients, body) = understand(&self)?;
        let body = match body {
            Some(body) => body,
            None => input::text(LONGEST_INPUT)?,
        };
        let open = context.open()?;
        let caller = context.principal(&open, self.from).await?;
        let reply_to = match &self.reply_to {
            Some(id) => Some(open.mesh.id_of(&caller, id).await?),
            None => None,
        };
        let draft = Draft {
            body,
            subject: self.subject,
            thread: self.thread,
            reply_to,
            priority: self.priority.into(),
            tags: self.tags,
            idempotency_key: self.idempotency_key,
        };
        let sent = if self.broadcast {
            let audience = Audience { team: self.team, harness: self.harness };
            open.mesh.broadcast(&caller, &audience, draft).await?
        } else {
            open.mesh.send(&caller, &recipients, draft).await?
        };
        let from = caller.agent().cloned().unwrap_or_else(AgentName::shell);
        let mut shape = SentShape::of(&sent, from.to_string());
        if context.printer.format() == Format::Text {
            for (shown, to) in shape.recipients.iter_mut().zip(&sent.recipients) {
                // The message is stored, whether or not this can be read.
                shown.paused = open.mesh.is_paused(&to.to).await.unwrap_or(false);
            }
        }
        context.printer.show(&shape).map_err(|error| unsaid(error, &sent))?;
        if sent.recipients.is_empty() {
            context.printer.say("no other agent is here");
        }
        if self.wake {
            wake(context, &open, &caller, &sent).await?;
        }
        Ok(Exit::Success)
    }
}

/// The error for a message that was sent but whose id could not be printed. It says so, or the caller would send
/// the message twice.
fn unsaid(error: CommandError, sent: &Sent) -> CommandError {
    if error.is_reader_gone() || sent.recipients.is_empty() {
        return error;
    }
    let waits = sent.recipients.iter().any(|recipient| recipient.status == DeliveryStatus::Queued);
    let state = if waits { "waits here until the servers take it" } else { "is stored" };
    let id = sent.id;
    CommandError::from(Failure {
        what: format!("the message {state}, as `{id}`, but nothing could be printed"),
        hint: Some(format!("do not send it again; `relay-mesh message {id}` shows how far it got")),
        exit: Exit::Failure,
        source: Some(Box::new(error)),
    })
}

/// The recipients, and the text if the command line has it.
fn understand(args: &Args) -> Result<(Vec<String>, Option<String>), CommandError> {
    let (recipients, body) = match (args.broadcast, args.words.as_slice()) {
        (true, []) => (None, None),
        (true, [body]) => (None, Some(body)),
        (true, _) => return Err(usage("`--broadcast` takes the text alone, and no recipient")),
        (false, []) => return Err(usage("the message names no recipient")),
        (false, [to]) => (Some(to), None),
        (false, [to, body, ..]) => (Some(to), Some(body)),
    };
    let recipients =
        recipients.map(|to| to.split(',').map(|name| name.trim().to_owned()).collect()).unwrap_or_default();
    match (body.filter(|body| *body != "-"), args.stdin || body.is_some_and(|body| body == "-")) {
        (Some(_), true) => Err(usage("the text was given twice: as an argument and by `--stdin`")),
        (None, false) => Err(usage("the message has no text")),
        (body, _) => Ok((recipients, body.cloned())),
    }
}

fn usage(what: &str) -> CommandError {
    CommandError::from(Failure {
        what: what.to_owned(),
        hint: Some(
            "write `relay-mesh send TO BODY`, or `relay-mesh send TO --stdin` with the text on standard input"
                .to_owned(),
        ),
        exit: Exit::Usage,
        source: None,
    })
}

/// Delivers from this process until every recipient's harness has taken the message, or time is up.
pub(crate) async fn wake(context: &Context, open: &Open, caller: &Principal, sent: &Sent) -> Result<(), CommandError> {
    let mut has_session = false;
    for recipient in &sent.recipients {
        has_session |= open.mesh.agent(&recipient.to).await?.is_some_and(|seen| seen.agent.session.is_some());
    }
    if !has_session {
        context.printer.say("no recipient has a session to wake: the message waits until it is read");
        return Ok(());
    }
    let status = bring(open, caller, sent.id, WAKE_PATIENCE).await?;
    if !is_taken(&status) {
        context.printer.say(&format!(
            "no route took it within {} s; it waits, and `relay-mesh message {}` shows how far it got",
            WAKE_PATIENCE.as_secs(),
            sent.id
        ));
    }
    Ok(())
}
