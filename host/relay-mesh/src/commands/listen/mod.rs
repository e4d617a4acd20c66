//! `relay-mesh listen`: prints each message as one JSON line when it comes, and takes receipts as
//! JSON lines on standard input. Connectors inside a harness run it.
//!
//! Each message is leased before it is printed, so that no other process presents it meanwhile. A lease
//! that is not confirmed lapses, and the message is printed again.

mod commands;
mod connector_lines;
mod hooks;
mod invitations;
mod listener;
mod running;
mod target;

use mesh::commands::{Command, Ended};
use mesh::names::AgentName;
use mesh::ports::machine::{Instant, Machine};
use mesh::sessions::SessionRef;
use store::StoreError;
use tokio::sync::mpsc;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::{CommandError, Explain, HARNESSES, NoAgent, StreamError};
use crate::exit::Exit;
use crate::line_reader::{Lines, NextLine};
use crate::shapes::commands::CommandShape;
use crate::signals::Stop;
use commands::Orders;
use connector_lines::{Ending, Input, Output};
use listener::Listener;
use running::Runs;
use target::Target;

/// The longest input line, in bytes. Only its evidence can be long.
const LONGEST_LINE: usize = 256 * 1024;

/// Print messages as they come, one JSON line each: what a connector runs
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh listen --agent bob --no-stdin | jq -r .body\n  \
    relay-mesh listen --harness opencode --session ses_1\n  \
    relay-mesh listen --harness opencode\n  \
    relay-mesh listen --agent ci --commands\n\n\
    Lines out, by `event`:\n  \
    {\"event\":\"watching\",\"session\":\"ses_1\",\"agent\":\"bob\",\"ticket\":{…}}   first, for each; `agent` if one is bound\n  \
    {\"event\":\"bound\",\"session\":\"ses_1\",\"agent\":\"bob\"}                 an agent was bound to it later\n  \
    {\"event\":\"message\",\"id\":…,\"agent\":…,\"session\":…,\"from\":…,\"body\":…,\"text\":…}\n  \
    {\"event\":\"invitation\",\"id\":…,\"session\":…,\"from\":…,\"text\":…}   to a session without an agent\n  \
    {\"event\":\"command\",\"id\":…,\"from\":…,\"command\":\"/test\",\"arguments\":[…]}   with --commands\n  \
    {\"event\":\"answer\",\"call\":7,\"output\":…,\"mail\":[…]}              to a hook; each of `mail` needs a receipt\n  \
    {\"event\":\"error\",\"error\":…}                                  an input line was wrong, or the store failed\n\
    `text` is what a model may be shown: the body inside an envelope. `body` is what the sender wrote. \
    A session gets only mail that may interrupt it now: none of low priority, only urgent mail while it is busy. \
    An invitation comes once, while the session is idle, and needs receipts like a message.\n\n\
    Lines in:\n  \
    {\"id\":…,\"status\":\"notified\"|\"accepted\"|\"shown\"|\"acknowledged\",\"session\":…,\"evidence\":…}\n  \
    {\"id\":…,\"status\":\"refused\",\"session\":…}     it goes back, and comes again after a pause\n  \
    {\"watch\":\"ses_2\"} and {\"unwatch\":\"ses_2\"}   only with --harness\n  \
    {\"command\":…,\"ended\":\"done\"|\"failed\",\"result\":…}     with --commands; then the next one comes\n  \
    {\"watch\":\"ses_2\",\"commands\":[\"review\"]}   commands of the harness's own that its session runs, see below\n  \
    {\"hook\":\"session.idle\",\"payload\":{…},\"call\":7}   an event of the harness, as `relay-mesh hook` takes it\n\
    A connector gets the commands that it names in `commands` as `command` lines with `session`: one at a time, while \
    that session is idle, and only from senders whom the user has allowed (`relay-mesh cmd allow`). The line that ends \
    one may carry `evidence`; `refused` means that it was not begun. \
    `listen` ends when standard input does, and releases what was not confirmed.")]
pub(crate) struct Args {
    /// The mail of an agent that this command line speaks for [$RELAY_AGENT]
    #[arg(long, value_name = "AGENT", conflicts_with_all = ["harness", "session"])]
    agent: Option<AgentName>,
    /// The mail of this harness's sessions: of one by --session, else of those named on standard input
    #[arg(long)]
    harness: Option<String>,
    /// The mail of this session
    #[arg(long, value_name = "ID", requires = "harness")]
    session: Option<String>,
    /// Also take commands for the agent, one at a time, as `relay-mesh cmd take` does
    #[arg(long, conflicts_with_all = ["harness", "session"])]
    commands: bool,
    /// Read nothing: what is printed counts as shown, and only a signal ends it
    #[arg(long)]
    no_stdin: bool,
}

/// Why `listen` failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenError {
    /// No such harness.
    #[error("no adapter is named `{0}`")]
    UnknownHarness(String),
    /// The store failed.
    #[error("the mail could not be watched")]
    Store(#[from] StoreError),
}

impl Explain for ListenError {
    fn exit(&self) -> Exit {
        match self {
            ListenError::UnknownHarness(_) => Exit::NotFound,
            ListenError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ListenError::UnknownHarness(_) => Some(HARNESSES.to_owned()),
            ListenError::Store(error) => error.hint(),
        }
    }
}

/// Who confirms that a message was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receipts {
    /// Lines on standard input.
    Lines,
    /// None: a message counts as shown once it is printed.
    Printing,
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let receipts = if self.no_stdin { Receipts::Printing } else { Receipts::Lines };
        let mut stop = Stop::listen().map_err(StreamError::Input)?;
        let open = context.open()?;
        let harness = match &self.harness {
            Some(name) => Some(known(name, &open).await?),
            None => None,
        };
        let (arrivals, mut arrived) = mpsc::channel(1);
        let environment = context.environment.pairs();
        let mut listener =
            Listener::new(open.mesh.clone(), context.printer.clone(), receipts, harness.clone(), environment, arrivals);
        let mut orders: Option<Orders> = None;
        let mut runs = Runs::of(open.mesh.clone(), harness.clone());
        match (harness, self.session) {
            (Some(harness), Some(id)) => listener.watch(Target::Session(SessionRef { harness, id })).await?,
            (Some(_), None) => {}
            (None, _) => {
                let caller = context.principal(&open, self.agent).await?;
                let agent = caller.agent().ok_or(NoAgent)?;
                listener.watch(Target::Agent(agent.clone())).await?;
                orders = self.commands.then(|| Orders::of(open.mesh.clone(), caller, receipts));
            }
        }
        let input = match receipts {
            Receipts::Lines => Some(tokio::io::stdin()),
            Receipts::Printing => None,
        };
        let mut lines = Lines::of(input, LONGEST_LINE);
        let mut beat = tokio::time::interval(open.mesh.listening_interval());
        let outcome = loop {
            tokio::select! {
                () = stop.asked() => break Ok(()),
                _ = beat.tick() => listener.go_on().await,
                line = lines.next() => match line {
                    Ok(NextLine::End) => break Ok(()),
                    Ok(NextLine::TooLong) => listener.complain("a line is longer than is taken; it was passed over")?,
                    Ok(NextLine::Text(text)) => {
                        let outcome = match text.parse::<Input>() {
                            Ok(heard) => hear(heard, &mut listener, &mut orders, &mut runs).await,
                            Err(error) => listener.complain(&error.to_string()),
                        };
                        if let Err(error) = outcome {
                            break Err(error);
                        }
                    }
                    Err(error) => break Err(StreamError::Input(error).into()),
                },
                taken = next(&mut orders) => if let Err(error) = print(&mut orders, taken, &listener, open.machine.now()).await {
                    break Err(error);
                },
                asked = runs.next() => {
                    let taken = Box::new(CommandShape::of(&asked.command, open.machine.now()));
                    if let Err(error) = listener.printer.line(&Output::Command { session: Some(&asked.session), taken }) {
                        break Err(error);
                    }
                    runs.printed(asked);
                },
                Some(arrival) = arrived.recv() => if let Err(error) = listener.take(arrival).await {
                    break Err(error);
                },
            }
        };
        runs.close().await;
        if let Some(orders) = orders {
            orders.close().await;
        }
        listener.close(arrived).await;
        outcome.map(|()| Exit::Success)
    }
}

/// Handles an input line: those about commands here, every other one in `Listener::hear`.
async fn hear(
    heard: Input,
    listener: &mut Listener,
    orders: &mut Option<Orders>,
    runs: &mut Runs,
) -> Result<(), CommandError> {
    match (heard, orders) {
        (Input::Ended { id, ended, result, evidence }, _) if runs.ended(id, ended, &result, evidence.clone()) => Ok(()),
        (Input::Ended { id, ended, result, .. }, Some(orders)) => {
            let ended = match ended {
                Ending::Done => Ended::Done,
                Ending::Failed => Ended::Failed,
                Ending::Refused => return listener.complain("only a command that a session runs can be refused"),
            };
            orders.ended(id, ended, &result).await.or_else(|error| listener.complain(&error))
        }
        (Input::Runs { session, commands }, _) => {
            listener.hear(Input::Watch(session.clone())).await?;
            runs.notified(session, commands).or_else(|words| listener.complain(words))
        }
        (Input::Unwatch(session), _) => {
            runs.forget(&session);
            listener.hear(Input::Unwatch(session)).await
        }
        (heard, _) => listener.hear(heard).await,
    }
}

/// The next command; pending for ever if none are taken.
async fn next(orders: &mut Option<Orders>) -> Result<Command, String> {
    match orders {
        Some(orders) => orders.next().await,
        None => std::future::pending().await,
    }
}

/// Prints a command, or the fault that kept one from being taken.
async fn print(
    orders: &mut Option<Orders>,
    taken: Result<Command, String>,
    listener: &Listener,
    now: Instant,
) -> Result<(), CommandError> {
    match (taken, orders) {
        (Err(fault), _) => listener.complain(&fault),
        (Ok(command), Some(orders)) => {
            listener
                .printer
                .line(&Output::Command { session: None, taken: Box::new(CommandShape::of(&command, now)) })?;
            orders.printed(command.id).await;
            Ok(())
        }
        (Ok(_), None) => Ok(()),
    }
}

/// A harness's own name, given that name or an alias.
async fn known(name: &str, open: &crate::compose::Open) -> Result<String, CommandError> {
    let harnesses = open.mesh.harnesses();
    if harnesses.names().iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    match harnesses.get(name).await.map_err(mesh::HookError::from)? {
        Some(harness) => Ok(harness.about().harness.clone()),
        None => Err(ListenError::UnknownHarness(name.to_owned()).into()),
    }
}
