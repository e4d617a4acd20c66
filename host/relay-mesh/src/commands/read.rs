//! `relay-mesh read`: an agent's mail in a terminal.
//!
//! Printing marks a message as read if the command line speaks for the agent. Mail of any other agent is shown
//! and left as it was.

use std::collections::BTreeSet;
use std::time::Duration;

use mesh::messages::LONGEST_BODY;
use mesh::messages::receipt::DeliveryStatus;
use mesh::names::{AgentName, MessageId};
use mesh::ports::machine::Machine;
use mesh::{Fetch, FetchError, Fetched, IdentifyError, MailReader};

use crate::command::CommandSpec;
use crate::commands::since::Since;
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, NoAgent, StreamError};
use crate::exit::Exit;
use crate::runs::permission::mail_reader;
use crate::shapes::conversations::{MailListShape, SentMailShape};
use crate::shapes::mail::{MailShape, more_waits};
use crate::signals::Stop;

const DEFAULT_LAST: usize = 20;
/// Messages fetched at a time while following.
const BATCH: usize = 100;
/// What was shown could not be marked.
const NO_ROOM: &str = "the store is full, so what is shown here stays unread; make room to mark it";
/// Poll interval while following: another process's lease that lapses changes no file.
const LOOK: Duration = Duration::from_secs(5);

/// Show an agent's mail
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh read --agent bob\n  \
    relay-mesh read --unread --mark-read\n  \
    relay-mesh read --from alice --since 2h --last 5\n  \
    relay-mesh read --list --last 50\n  \
    relay-mesh read --sent --agent bob\n  \
    relay-mesh read --tail --json | jq -r .messages[].body\n\n\
    What is printed counts as read if the command line speaks for the agent (an agent registered here, or this \
    shell's session). Mail of any other agent is shown and left as it was. A list shows no texts, so nothing in it \
    counts as read.")]
pub(crate) struct Args {
    /// Whose mail [$RELAY_AGENT, else this shell's session]
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentName>,
    /// Only what was not read before, oldest first
    #[arg(long)]
    unread: bool,
    /// Only from this sender
    #[arg(long, value_name = "AGENT")]
    from: Option<AgentName>,
    /// Only of this conversation
    #[arg(long)]
    thread: Option<String>,
    /// Only since then: `2h` ago, or `2026-11-21T10:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    since: Option<Since>,
    /// Only this many, the newest [default: 20]
    #[arg(long, value_name = "NUMBER")]
    last: Option<usize>,
    /// Keep running, and print new mail
    #[arg(long)]
    tail: bool,
    /// Also acknowledge what is printed
    #[arg(long)]
    mark_read: bool,
    /// Look, and leave everything as it was
    #[arg(long, conflicts_with = "mark_read")]
    peek: bool,
    /// One line for each message, without its text; nothing counts as read
    #[arg(long, conflicts_with_all = ["mark_read", "tail"])]
    list: bool,
    /// What the agent sent instead, and what became of it
    #[arg(long, conflicts_with_all = ["unread", "from", "thread", "tail", "mark_read"])]
    sent: bool,
}

/// What printing does to the receipts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    Look,
    /// What is printed counts as read.
    Fetch,
    /// What is printed counts as read and is acknowledged.
    Acknowledge,
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let now = open.machine.now();
        if self.sent {
            return sent(&self, context, &open).await;
        }
        let (agent, effect) = whose(&self, context, &open).await?;
        let effect = if self.list { Effect::Look } else { effect };
        let ask = Fetch {
            limit: self.last.unwrap_or(DEFAULT_LAST),
            max_length: LONGEST_BODY,
            peek: effect == Effect::Look,
            include_settled: !self.unread,
            from: self.from.clone(),
            thread: self.thread.clone(),
            since: self.since.map(|since| since.before(now)),
            newest: self.last.is_some() || !self.unread,
            interrupting: None,
            ..Fetch::default()
        };
        if self.tail {
            return follow(context, &open, &agent, effect, ask).await;
        }
        let fetched = open.mesh.fetch(&agent, &ask).await?;
        let waiting = fetched.waiting;
        let shown = fetched.messages.len();
        if self.list {
            let shape = MailListShape::of(agent.to_string(), &fetched.messages, waiting, now);
            context.printer.show(&shape)?;
        } else {
            print(context, &open, &agent, effect, fetched).await?;
        }
        if shown == 0 {
            let narrowed = self.from.is_some() || self.thread.is_some() || self.since.is_some();
            let such = if narrowed { "no such mail" } else { "no mail" };
            let unread = if self.unread { " that was not read" } else { "" };
            context.say_nothing_found(&open, &format!("{such} for {agent}{unread}"), self.from.as_ref()).await?;
        }
        let named = self.agent.as_ref().map_or_else(String::new, |agent| format!(" --agent {agent}"));
        if let Some(note) = more_waits(waiting, &named) {
            context.printer.say(&note);
        }
        Ok(Exit::Success)
    }
}

/// Prints what an agent sent. The user may look at what any agent sent, an agent at its own.
async fn sent(args: &Args, context: &Context, open: &Open) -> Result<Exit, CommandError> {
    let MailReader::Agent(agent) = mail_reader(context, open, args.agent.clone()).await? else {
        return Err(NoAgent.into());
    };
    let now = open.machine.now();
    let since = args.since.map(|since| since.before(now));
    let messages = open.mesh.sent(&agent, since, args.last.unwrap_or(DEFAULT_LAST)).await?;
    context.printer.show(&SentMailShape::of(agent.to_string(), &messages, args.list, now))?;
    if messages.is_empty() {
        context.say_nothing_found(open, &format!("{agent} sent nothing that is kept"), None).await?;
    }
    Ok(Exit::Success)
}

/// The agent whose mail to print, and what printing it may change.
async fn whose(args: &Args, context: &Context, open: &Open) -> Result<(AgentName, Effect), CommandError> {
    let own = if args.mark_read { Effect::Acknowledge } else { Effect::Fetch };
    let own = if args.peek { Effect::Look } else { own };
    let named = args.agent.clone().or_else(|| context.settings.agent.value.clone());
    match (open.mesh.identify(&context.call(named.clone())).await, named) {
        (Ok(caller), _) => caller.agent().map(|agent| (agent.clone(), own)).ok_or_else(|| NoAgent.into()),
        (Err(IdentifyError::NotYours(_) | IdentifyError::Elsewhere { .. }), Some(named))
            if own != Effect::Acknowledge =>
        {
            if own == Effect::Fetch {
                context.printer.say(&format!("this is the mail of {named}, who is not you; it stays as it was"));
            }
            Ok((named, Effect::Look))
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// Prints messages, and writes their receipts once they are printed.
async fn print(
    context: &Context,
    open: &Open,
    agent: &AgentName,
    effect: Effect,
    fetched: Fetched,
) -> Result<(), CommandError> {
    let Fetched { mut messages, waiting, lease, unnoted } = fetched;
    messages.sort_by_key(|fetched| fetched.at);
    let ids: Vec<MessageId> = messages.iter().map(|fetched| fetched.message.id).collect();
    let shape = MailShape {
        agent: agent.to_string(),
        messages: messages.iter().map(Into::into).collect(),
        waiting,
        now: open.machine.now(),
    };
    if let Err(error) = context.printer.show(&shape) {
        if let Some(lease) = lease {
            open.mesh.release(lease).await?;
        }
        return Err(error);
    }
    if unnoted {
        context.printer.warn(NO_ROOM);
        return Ok(());
    }
    if let Some(lease) = &lease {
        match open.mesh.confirm(lease, DeliveryStatus::Read, "read", None).await {
            Ok(()) => {}
            Err(FetchError::Store(error)) if error.is_full() => {
                context.printer.warn(NO_ROOM);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    }
    match effect {
        Effect::Look | Effect::Fetch => {}
        Effect::Acknowledge => {
            open.mesh.acknowledge(agent, &ids).await?;
        }
    }
    Ok(())
}

/// Prints the mail that is there and new mail, until a signal stops it.
async fn follow(
    context: &Context,
    open: &Open,
    agent: &AgentName,
    effect: Effect,
    first: Fetch,
) -> Result<Exit, CommandError> {
    let mut stop = Stop::listen().map_err(StreamError::Input)?;
    // Watch before reading, so that no change is missed in between.
    let mut watch = open.mesh.watch_inbox(agent).await?;
    // A peek leaves mail unread, so every fetch returns it again.
    let mut seen: BTreeSet<MessageId> = BTreeSet::new();
    let next = Fetch { limit: BATCH, include_settled: false, newest: false, ..first.clone() };
    let mut ask = first;
    loop {
        let mut fetched = open.mesh.fetch(agent, &ask).await?;
        let is_full = fetched.messages.len() >= ask.limit;
        fetched.messages.retain(|message| seen.insert(message.message.id) || !next.peek);
        let is_new = !fetched.messages.is_empty();
        if is_new {
            print(context, open, agent, effect, fetched).await?;
        }
        ask = match (next.peek, is_full) {
            // A peek starts over each time, so its limit must reach past what was printed already.
            (true, true) => Fetch { limit: ask.limit.max(BATCH) * 2, ..next.clone() },
            (true, false) => Fetch { limit: ask.limit.max(BATCH), ..next.clone() },
            (false, _) => next.clone(),
        };
        if is_new && is_full {
            continue;
        }
        tokio::select! {
            () = stop.asked() => return Ok(Exit::Success),
            changed = watch.changed() => changed?,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}
