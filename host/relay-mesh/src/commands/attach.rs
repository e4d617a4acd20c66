//! `relay-mesh attach`: see what a driven agent does, and talk with it from this terminal.

use std::io::{IsTerminal as _, stdin, stdout};
use std::time::Duration;

use mesh::driven::{DrivenId, LONGEST_REQUEST, RequestKind};

use crate::command::CommandSpec;
use crate::commands::asks::answer::answer;
use crate::compose::Open;
use crate::context::Context;
use crate::driven::transcript::TranscriptReader;
use crate::driven::{DrivenFolder, asking, begin, host, joining};
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::line_reader::{Lines, NextLine};
use crate::runs::permission;
use crate::shapes::driven::transcript_text;
use crate::signals::Stop;

/// How often to look for more.
const LOOK: Duration = Duration::from_millis(100);
/// How long to look on after the end of what is typed, so that what was asked for last is taken.
const TAKES: Duration = Duration::from_secs(60);
/// Lines of the past that are shown first.
const PAST: usize = 20;
/// What can be typed beside words to the agent.
const WORDS: &str = "what you type is told to it; /next TEXT begins a turn, /interrupt stops one, /answer ANSWER answers \
                     what it asks,\n/dismiss ends it, /leave or the end of input leaves it";

/// See what an agent that you started does, and talk with it
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh attach fixer\n  \
    relay-mesh attach fixer --lines\n  \
    echo 'leave the tests alone' | relay-mesh attach fixer\n\n\
    Where the agent's harness lets you join, as Codex does, this opens its own terminal in the agent's session; the agent \
    goes on when you leave it. Everywhere else, and with `--lines`, it shows what the agent does line by line. A line that \
    you type is your own word: the running turn takes it, where the harness can, else it begins the next one. \
    `/next TEXT` always begins a turn, `/interrupt` stops the running one, `/answer ANSWER` answers what the agent asks, \
    `/dismiss` ends it, `/leave` leaves it, and `//` begins a line with a slash. The agent goes on when you leave.")]
pub(crate) struct Args {
    /// The agent
    #[arg(value_name = "NAME")]
    name: String,
    /// Show lines, and take lines, where the harness has a terminal of its own too
    #[arg(long)]
    lines: bool,
}

/// What a line means.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Typed {
    Ask(RequestKind),
    Answer(String),
    Leave,
    Unknown(String),
}

fn typed(line: &str) -> Typed {
    let steer = |text: &str| Typed::Ask(RequestKind::Steer { text: text.to_owned() });
    let Some(order) = line.strip_prefix('/') else { return steer(line) };
    let (word, rest) = order.split_once(char::is_whitespace).unwrap_or((order, ""));
    match (word, rest.trim()) {
        _ if order.starts_with('/') => steer(order),
        ("next", text) if !text.is_empty() => Typed::Ask(RequestKind::Prompt { text: text.to_owned() }),
        ("interrupt", "") => Typed::Ask(RequestKind::Interrupt),
        ("dismiss", "") => Typed::Ask(RequestKind::Dismiss { summary: false }),
        ("answer", words) if !words.is_empty() => Typed::Answer(words.to_owned()),
        ("leave", "") => Typed::Leave,
        _ => Typed::Unknown(line.to_owned()),
    }
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        permission::only_the_user(context, &open, "talk with an agent").await?;
        let mut stop = Stop::listen().map_err(StreamError::Input)?;
        host::look_after(context, &open).await;
        let record = open.mesh.driven_named(&self.name).await?;
        if !self.lines && stdin().is_terminal() && stdout().is_terminal() {
            match joining::command(context, &open, &record).await? {
                Ok(command) => return joining::join(context, &record, command).await,
                Err(why) => context.printer.say(&format!("shown line by line: {why}")),
            }
        }
        let folder = DrivenFolder::of(&context.settings.dir.value, record.id);
        if stdin().is_terminal() {
            context.printer.say(WORDS);
        }
        let transcript = TranscriptReader::of(folder.transcript());
        Attached { context, open: &open, id: record.id, name: self.name, transcript, asked: Vec::new() }
            .run(&mut stop)
            .await
    }
}

struct Attached<'a> {
    context: &'a Context,
    open: &'a Open,
    id: DrivenId,
    name: String,
    transcript: TranscriptReader,
    /// What was asked and is not done.
    asked: Vec<String>,
}

impl Attached<'_> {
    async fn run(mut self, stop: &mut Stop) -> Result<Exit, CommandError> {
        let past = self.transcript.more();
        for line in &past[past.len().saturating_sub(PAST)..] {
            self.context.printer.data(&transcript_text(line))?;
        }
        let mut lines = Lines::of(Some(tokio::io::stdin()), LONGEST_REQUEST);
        let mut input_ended = None;
        loop {
            // Looked at first: what it says last is written before its end is noted.
            let is_over = self.is_over().await?;
            for line in self.transcript.more() {
                self.context.printer.data(&transcript_text(&line))?;
            }
            let waits = |since: tokio::time::Instant| !self.asked.is_empty() && since.elapsed() < TAKES;
            if is_over || input_ended.is_some_and(|since| !waits(since)) {
                return Ok(Exit::Success);
            }
            tokio::select! {
                () = stop.asked() => return Ok(Exit::Success),
                () = tokio::time::sleep(LOOK) => {}
                line = lines.next(), if input_ended.is_none() => match line.map_err(StreamError::Input)? {
                    NextLine::End => input_ended = Some(tokio::time::Instant::now()),
                    NextLine::TooLong => self.context.printer.say("that was too long: put it into a file, and name that"),
                    NextLine::Text(line) => match typed(&line) {
                        Typed::Leave => return Ok(Exit::Success),
                        what => self.takes(what).await?,
                    },
                },
            }
        }
    }

    /// Whether the agent has ended. What was asked and could not be done is told.
    async fn is_over(&mut self) -> Result<bool, CommandError> {
        let Some(record) = self.open.mesh.driven(self.id).await? else { return Ok(true) };
        for outcome in record.outcomes.iter().filter(|outcome| self.asked.contains(&outcome.id)) {
            if let Some(why) = &outcome.failed {
                self.context.printer.say(&format!("not done: {why}"));
            }
        }
        self.asked.retain(|id| !record.outcomes.iter().any(|outcome| outcome.id == *id));
        Ok(record.ended.is_some())
    }

    /// What is typed wrong costs its line and no more.
    async fn takes(&mut self, what: Typed) -> Result<(), CommandError> {
        let done = match what {
            Typed::Ask(kind) => self.ask(kind).await,
            Typed::Answer(words) => self.answer(&words).await,
            Typed::Unknown(line) => {
                self.context.printer.say(&format!("`{line}` is nothing that can be asked; {WORDS}"));
                Ok(())
            }
            Typed::Leave => Ok(()),
        };
        match done {
            Err(error) if matches!(error.exit(), Exit::Store | Exit::Failure) => Err(error),
            Err(error) => {
                self.context.printer.say(&mesh::reasons(&error));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    async fn ask(&mut self, kind: RequestKind) -> Result<(), CommandError> {
        let (_, request) = asking::keep(self.open, &self.id.to_string(), kind, None).await?;
        self.asked.push(request.id);
        begin::ensure_host(self.context, self.open).await?;
        Ok(())
    }

    /// Answers the oldest question of the agent.
    async fn answer(&self, words: &str) -> Result<(), CommandError> {
        let asks = self.open.mesh.asks().await?;
        let own = asks.iter().find(|ask| ask.by.agent.as_ref().is_some_and(|agent| agent.as_str() == self.name));
        match own {
            Some(ask) => answer(&ask.id.to_string(), words, self.context).await.map(drop),
            None => {
                self.context.printer.say("it asks nothing now");
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_to_the_agent_unless_it_begins_with_a_slash() {
        let check = |line: &str, expected: Typed| assert_eq!(typed(line), expected, "{line}");
        let steer = |text: &str| Typed::Ask(RequestKind::Steer { text: text.to_owned() });
        check("leave the tests alone", steer("leave the tests alone"));
        check("//etc is a folder", steer("/etc is a folder"));
        check("/next do it", Typed::Ask(RequestKind::Prompt { text: "do it".to_owned() }));
        check("/interrupt", Typed::Ask(RequestKind::Interrupt));
        check("/dismiss", Typed::Ask(RequestKind::Dismiss { summary: false }));
        check("/answer refuse not now", Typed::Answer("refuse not now".to_owned()));
        check("/leave", Typed::Leave);
        for line in ["/next", "/answer", "/interrupt now", "/etc"] {
            check(line, Typed::Unknown(line.to_owned()));
        }
    }
}
