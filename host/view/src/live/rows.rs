//! The lists of the middle: conversations, questions, reservations, commands, runs, mail that is stuck, the log.

use std::borrow::Cow;

use mesh::commands::CommandStatus;
use mesh::ports::machine::Instant;

use super::Dot;
use super::news::{LogRow, RunRow};
use super::state::Live;
use crate::{CommandDetail, SearchHitView, ThreadMessageView, ago, span, visible_line};

/// A list of the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tab {
    /// Conversations, or one of them.
    Threads,
    /// Questions to the user.
    Asks,
    /// What is reserved.
    Reservations,
    /// Commands that wait or run.
    Commands,
    /// Runs.
    Runs,
    /// Mail that goes no further by itself.
    Stuck,
    /// What happened.
    Log,
}

impl Tab {
    /// Every tab, in order.
    pub const ALL: [Tab; 7] =
        [Tab::Threads, Tab::Asks, Tab::Reservations, Tab::Commands, Tab::Runs, Tab::Stuck, Tab::Log];

    /// What it is called.
    pub fn title(self) -> &'static str {
        match self {
            Tab::Threads => "Threads",
            Tab::Asks => "Asks",
            Tab::Reservations => "Reservations",
            Tab::Commands => "Commands",
            Tab::Runs => "Runs",
            Tab::Stuck => "Held",
            Tab::Log => "Log",
        }
    }

    /// What is said if it has nothing.
    pub fn empty(self) -> &'static str {
        match self {
            Tab::Threads => "no conversation is kept",
            Tab::Asks => "no question waits for you",
            Tab::Reservations => "nothing is reserved",
            Tab::Commands => "no command waits or runs",
            Tab::Runs => "no run is kept; `relay-mesh run HARNESS TASK` starts one",
            Tab::Stuck => "no mail is held, queued or undeliverable",
            Tab::Log => "nothing has happened in the last hours",
        }
    }

    pub(crate) fn number(self) -> usize {
        Tab::ALL.iter().position(|tab| *tab == self).unwrap_or_default()
    }

    /// The tab so many places further, around the ends.
    pub(crate) fn further(self, by: isize) -> Tab {
        let count = isize::try_from(Tab::ALL.len()).unwrap_or(1);
        let at = isize::try_from(self.number()).unwrap_or_default() + by;
        Tab::ALL[usize::try_from(at.rem_euclid(count)).unwrap_or_default()]
    }
}

/// A column of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// How many columns of the screen it takes at most; the last column of a list takes what is left.
    pub width: usize,
    /// Where there is no space for all, the one of the highest rank is left out first; one of rank 0 never.
    pub rank: u8,
}

const fn column(name: &'static str, width: usize, rank: u8) -> Column {
    Column { name, width, rank }
}

/// What a list shows in one place. A time is told from the moment at which it is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Harmless text on one line.
    Text(String),
    /// How long ago that was.
    Ago(Instant),
    /// How long it is until then.
    Left(Instant),
    /// The same, where the column does not say that it is time that is left.
    Until(Instant),
}

impl Cell {
    /// What it says at a time.
    pub fn text(&self, now: Instant) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Ago(at) => ago(*at, now),
            Cell::Left(at) => span(at.since(now)),
            Cell::Until(at) => format!("{} left", span(at.since(now))),
        }
    }
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// One for each column of the list.
    pub cells: Vec<Cell>,
    /// The state in a word, for its colour.
    pub state: &'static str,
    /// A dot for each recipient, of a message alone.
    pub dots: Vec<Dot>,
}

fn cell(text: &str) -> Cell {
    Cell::Text(visible_line(text).into_owned())
}

/// A state that comes as a text, as one of the words that have a colour.
fn known(state: &str) -> &'static str {
    const STATES: [&str; 8] = ["running", "held", "queued", "undeliverable", "pending", "failed", "answered", "taken"];
    STATES.into_iter().find(|known| *known == state).unwrap_or("")
}

impl Tab {
    /// The columns of its list.
    pub fn columns(self) -> &'static [Column] {
        const THREADS: [Column; 5] = [
            column("LAST", 11, 2),
            column("MSGS", 5, 3),
            column("OPEN", 5, 4),
            column("AGENTS", 26, 1),
            column("ABOUT", 0, 0),
        ];
        const ASKS: [Column; 4] =
            [column("AGENT", 16, 1), column("KIND", 9, 3), column("LEFT", 8, 2), column("WHAT", 0, 0)];
        const RESERVATIONS: [Column; 4] =
            [column("AGENT", 16, 1), column("MODE", 9, 3), column("LEFT", 8, 2), column("PATHS", 0, 0)];
        const COMMANDS: [Column; 4] =
            [column("FROM → TO", 24, 1), column("STATUS", 9, 2), column("WHEN", 11, 3), column("COMMAND", 0, 0)];
        const RUNS: [Column; 4] =
            [column("HARNESS", 12, 2), column("STATE", 9, 1), column("WHEN", 11, 3), column("TASK", 0, 0)];
        const STUCK: [Column; 4] =
            [column("FROM → TO", 24, 1), column("STATE", 13, 2), column("MSGS", 5, 3), column("WHY", 0, 0)];
        const LOG: [Column; 3] = [column("WHEN", 11, 3), column("EVENT", 17, 1), column("DETAILS", 0, 0)];
        match self {
            Tab::Threads => &THREADS,
            Tab::Asks => &ASKS,
            Tab::Reservations => &RESERVATIONS,
            Tab::Commands => &COMMANDS,
            Tab::Runs => &RUNS,
            Tab::Stuck => &STUCK,
            Tab::Log => &LOG,
        }
    }
}

/// The columns of an open conversation: the dots are behind the name.
pub(crate) const OF_MESSAGES: [Column; 3] = [column("WHEN", 11, 3), column("FROM", 16, 1), column("MESSAGE", 0, 0)];
/// The columns of what a search found.
pub(crate) const OF_FOUND: [Column; 4] =
    [column("WHEN", 11, 3), column("FROM", 14, 1), column("ABOUT", 24, 2), column("TEXT", 0, 0)];

impl Live {
    /// How many items a list has, whatever the filter leaves of it.
    pub fn count(&self, tab: Tab) -> usize {
        match tab {
            Tab::Threads => self.threads.len(),
            Tab::Asks => self.overview.asks.len(),
            Tab::Reservations => self.overview.reservations.len(),
            Tab::Commands => self.overview.commands.len(),
            Tab::Runs => self.overview.runs.len(),
            Tab::Stuck => self.overview.stuck.len(),
            Tab::Log => self.log.len(),
        }
    }

    /// What tells an item of a list from the others.
    pub(crate) fn key(&self, tab: Tab, at: usize) -> &str {
        let overview = &self.overview;
        match tab {
            Tab::Threads => &self.threads[at].thread,
            Tab::Asks => &overview.asks[at].id,
            Tab::Reservations => &overview.reservations[at].id,
            Tab::Commands => &overview.commands[at].command.id,
            Tab::Runs => &overview.runs[at].id,
            Tab::Stuck => &overview.stuck[at].key,
            Tab::Log => &self.log[at].key,
        }
    }

    /// The places of the items that the filter leaves of a list.
    pub fn listed(&self, tab: Tab) -> Vec<usize> {
        let all = 0..self.count(tab);
        match self.filter() {
            None => all.collect(),
            Some(filter) => all.filter(|at| self.has(tab, *at, &filter)).collect(),
        }
    }

    /// Whether a folded text is in what an item shows.
    fn has(&self, tab: Tab, at: usize, filter: &str) -> bool {
        let overview = &self.overview;
        let any = |texts: &[&str]| texts.iter().any(|text| mesh::folded(text).contains(filter));
        match tab {
            Tab::Threads => {
                let thread = &self.threads[at];
                any(&[&thread.thread, &thread.subject]) || thread.agents.iter().any(|agent| any(&[agent]))
            }
            Tab::Asks => {
                let ask = &overview.asks[at];
                any(&[ask.by.agent.as_deref().unwrap_or_default(), ask.kind, &ask.what])
            }
            Tab::Reservations => {
                let one = &overview.reservations[at].reservation;
                any(&[&one.owner, &one.pattern, one.reason.as_deref().unwrap_or_default()])
            }
            Tab::Commands => {
                let command = &overview.commands[at].command;
                any(&[&command.from, &command.to, command.status, &command.line()])
            }
            Tab::Runs => {
                let run = &overview.runs[at];
                any(&[&run.harness, &run.state, &run.about])
            }
            Tab::Stuck => {
                let one = &overview.stuck[at];
                any(&[&one.from, &one.to, one.state, &one.why])
            }
            Tab::Log => any(&[&self.log[at].kind, &self.log[at].text]),
        }
    }

    /// An item of a list, as it is shown.
    pub fn row(&self, tab: Tab, at: usize) -> Row {
        let overview = &self.overview;
        let plain = |cells: Vec<Cell>, state: &'static str| Row { cells, state, dots: Vec::new() };
        match tab {
            Tab::Threads => {
                let thread = &self.threads[at];
                let open = Some(thread.waiting).filter(|waiting| *waiting > 0).map(|waiting| waiting.to_string());
                let about = if thread.subject.is_empty() { &thread.thread } else { &thread.subject };
                plain(
                    vec![
                        Cell::Ago(thread.last.0),
                        cell(&thread.messages.to_string()),
                        cell(&open.unwrap_or_default()),
                        cell(&thread.agents.join(", ")),
                        cell(about),
                    ],
                    if thread.waiting > 0 { "open" } else { "" },
                )
            }
            Tab::Asks => {
                let ask = &overview.asks[at];
                let who = ask.by.agent.as_deref().or(ask.by.harness.as_deref()).unwrap_or("a script");
                plain(vec![cell(who), cell(ask.kind), Cell::Left(ask.until.0), cell(&ask.what)], "needs-input")
            }
            Tab::Reservations => {
                let detail = &overview.reservations[at];
                let one = &detail.reservation;
                let left = if detail.status == "held" { Cell::Left(one.expires.0) } else { cell(detail.status) };
                plain(vec![cell(&one.owner), cell(one.mode), left, cell(&one.pattern)], known(detail.status))
            }
            Tab::Commands => {
                let detail = &overview.commands[at];
                let command = &detail.command;
                let pair = format!("{} → {}", command.from, command.to);
                plain(
                    vec![cell(&pair), cell(command.status), when(detail), cell(&command.line())],
                    known(command.status),
                )
            }
            Tab::Runs => {
                let run: &RunRow = &overview.runs[at];
                let at = run.ended.unwrap_or(run.started);
                plain(vec![cell(&run.harness), cell(&run.state), Cell::Ago(at), cell(&run.about)], known(&run.state))
            }
            Tab::Stuck => {
                let one = &overview.stuck[at];
                let pair = format!("{} → {}", one.from, one.to);
                let messages = one.messages.to_string();
                plain(vec![cell(&pair), cell(one.state), cell(&messages), cell(&one.why)], one.state)
            }
            Tab::Log => {
                let event = &self.log[at];
                event.row()
            }
        }
    }

    /// A message of the open conversation, as it is shown.
    pub fn message_row(&self, one: &ThreadMessageView) -> Row {
        let message = &one.message;
        let first = message.body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let text = if first.trim_start().starts_with(&message.subject) || message.subject.is_empty() {
            Cow::Borrowed(first)
        } else {
            Cow::Owned(format!("{}: {first}", message.subject))
        };
        // A line of 256 KB would be measured at each drawing.
        let shown: String = text.chars().take(400).collect();
        Row {
            cells: vec![Cell::Ago(message.at.0), cell(&message.from), cell(&shown)],
            state: "",
            dots: one.recipients.iter().map(Dot::of).collect(),
        }
    }

    /// A message that a search found, as it is shown.
    pub fn hit_row(&self, hit: &SearchHitView) -> Row {
        let message = &hit.message;
        let cells = vec![Cell::Ago(message.at.0), cell(&message.from), cell(&message.subject), cell(&hit.excerpt)];
        Row { cells, state: "", dots: Vec::new() }
    }
}

impl LogRow {
    /// An event, as the log shows it.
    pub(crate) fn row(&self) -> Row {
        Row { cells: vec![Cell::Ago(self.at), cell(&self.kind), cell(&self.text)], state: "", dots: Vec::new() }
    }
}

/// The time that a command has left, or the time since its last change.
fn when(command: &CommandDetail) -> Cell {
    match command.standing {
        CommandStatus::Pending => Cell::Until(command.expires.0),
        CommandStatus::Expired => Cell::Ago(command.expires.0),
        CommandStatus::Running | CommandStatus::Unknown | CommandStatus::Done | CommandStatus::Failed => {
            Cell::Ago(command.since.unwrap_or(command.created).0)
        }
    }
}
