//! What a page gets of the model: the groups, rows, dots and time lines that a terminal draws, as JSON. Times are
//! milliseconds since 1970, so that a page tells them by its own clock and nothing is sent again because time passes.

use mesh::ports::machine::Instant;
use serde::Serialize;

use super::DetailLine;
use super::actions::{no, yes};
use super::agents::AgentRow;
use super::delivery::{Dot, time_line};
use super::detail::{Detail, SHOWN, Tone};
use super::news::LogRow;
use super::rows::{Cell, Row, Tab};
use super::state::Live;
use crate::{AskDetail, MessageView, PriorityView, RecipientView, SearchHitView, ThreadView, visible, visible_line};

/// So many conversations are in the list of a page.
const THREADS: usize = 300;

/// Who is here.
#[derive(Debug, Serialize)]
pub struct PageAgents<'a> {
    counted: bool,
    groups: Vec<PageGroup<'a>>,
}

#[derive(Debug, Serialize)]
struct PageGroup<'a> {
    title: &'static str,
    tone: Tone,
    agents: Vec<PageAgent<'a>>,
}

#[derive(Debug, Serialize)]
struct PageAgent<'a> {
    name: &'a str,
    presence: &'static str,
    evidence: String,
    paused: bool,
    unread: usize,
    asks: usize,
    harness: String,
    task: String,
    details: Vec<(&'static str, String)>,
    heard: Option<u64>,
}

/// The list of a tab.
#[derive(Debug, Serialize)]
pub struct PageList<'a> {
    tab: &'static str,
    title: &'static str,
    empty: &'static str,
    columns: Vec<&'static str>,
    total: usize,
    rows: Vec<PageRow<'a>>,
}

#[derive(Debug, Serialize)]
struct PageRow<'a> {
    key: &'a str,
    cells: Vec<PageCell>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ask: Option<PageAsk>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum PageCell {
    Text(String),
    Ago(u64),
    Left(u64),
    Until(u64),
}

#[derive(Debug, Serialize)]
struct PageAsk {
    id: String,
    agent: Option<String>,
    kind: &'static str,
    what: String,
    reason: Option<String>,
    choices: Vec<PageChoice>,
    answers: Vec<String>,
    yes: Option<String>,
    no: Option<String>,
    until: u64,
}

#[derive(Debug, Serialize)]
struct PageChoice {
    id: String,
    label: String,
}

/// Further events of the log, oldest first.
#[derive(Debug, Serialize)]
pub struct PageLog<'a> {
    rows: Vec<PageRow<'a>>,
}

/// A conversation.
#[derive(Debug, Serialize)]
pub struct PageThread<'a> {
    thread: &'a str,
    subject: String,
    earlier: usize,
    messages: Vec<PageMessage<'a>>,
}

/// A message, and where it stands with each recipient.
#[derive(Debug, Serialize)]
pub struct PageMessage<'a> {
    id: &'a str,
    at: u64,
    from: &'a str,
    to: Vec<&'a str>,
    subject: String,
    body: String,
    bytes: usize,
    cut: bool,
    thread: &'a str,
    reply_to: Option<&'a str>,
    priority: PriorityView,
    tags: &'a [String],
    broadcast: bool,
    recipients: Vec<PageRecipient>,
}

#[derive(Debug, Serialize)]
struct PageRecipient {
    to: String,
    dot: PageDot,
    over: bool,
    steps: Vec<PageStep>,
    waits: Vec<String>,
}

#[derive(Debug, Serialize)]
struct PageDot {
    glyph: char,
    word: &'static str,
    tone: Tone,
}

#[derive(Debug, Serialize)]
struct PageStep {
    at: u64,
    what: &'static str,
    route: String,
    evidence: String,
    gap: Option<u64>,
}

impl From<Cell> for PageCell {
    fn from(cell: Cell) -> PageCell {
        match cell {
            Cell::Text(text) => PageCell::Text(text),
            Cell::Ago(Instant(at)) => PageCell::Ago(at),
            Cell::Left(Instant(at)) => PageCell::Left(at),
            Cell::Until(Instant(at)) => PageCell::Until(at),
        }
    }
}

impl<'a> PageRow<'a> {
    fn of(key: &'a str, row: Row) -> PageRow<'a> {
        let cells = row.cells.into_iter().map(PageCell::from).collect();
        PageRow { key, cells, state: row.state, agents: None, ask: None }
    }
}

impl PageAsk {
    fn of(ask: &AskDetail) -> PageAsk {
        let choice = |choice: &crate::AskChoiceView| {
            // Who asks on a command line gives no more than the words.
            let label = if choice.label.is_empty() { &choice.id } else { &choice.label };
            PageChoice { id: choice.id.clone(), label: visible_line(label).into_owned() }
        };
        PageAsk {
            id: ask.id.clone(),
            agent: ask.by.agent.clone(),
            kind: ask.kind,
            what: visible(&ask.what).into_owned(),
            reason: ask.reason.as_deref().map(|reason| visible(reason).into_owned()),
            choices: ask.choices.iter().map(choice).collect(),
            answers: ask.answers.clone(),
            yes: yes(ask),
            no: no(ask),
            until: ask.until.0.0,
        }
    }
}

impl<'a> PageLog<'a> {
    /// These events.
    pub fn of(rows: impl IntoIterator<Item = &'a LogRow>) -> PageLog<'a> {
        PageLog { rows: rows.into_iter().map(|row| PageRow::of(&row.key, row.row())).collect() }
    }
}

impl<'a> PageThread<'a> {
    /// This conversation.
    pub fn of(thread: &'a ThreadView) -> PageThread<'a> {
        let message = |one: &'a crate::ThreadMessageView| PageMessage::of(&one.message, &one.recipients, SHOWN);
        PageThread {
            thread: &thread.thread,
            subject: visible_line(thread.subject()).into_owned(),
            earlier: thread.earlier,
            messages: thread.messages.iter().map(message).collect(),
        }
    }
}

impl<'a> PageMessage<'a> {
    /// A message with at most so many bytes of its text.
    pub fn of(message: &'a MessageView, recipients: &'a [RecipientView], most: usize) -> PageMessage<'a> {
        let end = message.body.floor_char_boundary(most);
        PageMessage {
            id: &message.id,
            at: message.at.0.0,
            from: &message.from,
            to: recipients.iter().map(|recipient| recipient.to.as_str()).collect(),
            subject: visible_line(&message.subject).into_owned(),
            body: visible(&message.body[..end]).into_owned(),
            bytes: message.body.len(),
            cut: end < message.body.len(),
            thread: &message.thread,
            reply_to: message.reply_to.as_deref(),
            priority: message.priority,
            tags: &message.tags,
            broadcast: message.broadcast,
            recipients: recipients.iter().map(PageRecipient::of).collect(),
        }
    }
}

impl PageRecipient {
    fn of(recipient: &RecipientView) -> PageRecipient {
        // A page counts by itself how long nothing has happened.
        let line = time_line(recipient, Instant(0));
        let step = |step: super::TimeStep| PageStep {
            at: step.at.0,
            what: step.what,
            route: step.route,
            evidence: step.evidence,
            gap: step.gap,
        };
        PageRecipient {
            to: line.to,
            dot: PageDot::of(line.dot),
            over: line.since.is_none(),
            steps: line.steps.into_iter().map(step).collect(),
            waits: line.waits,
        }
    }
}

impl PageDot {
    fn of(dot: Dot) -> PageDot {
        PageDot { glyph: dot.glyph(), word: dot.word(), tone: dot.tone() }
    }
}

impl Tab {
    /// Its word in addresses.
    pub fn word(self) -> &'static str {
        match self {
            Tab::Threads => "threads",
            Tab::Asks => "asks",
            Tab::Reservations => "reservations",
            Tab::Commands => "commands",
            Tab::Runs => "runs",
            Tab::Stuck => "held",
            Tab::Log => "log",
        }
    }
}

impl Live {
    /// Who is here, for a page.
    pub fn page_agents(&self) -> PageAgents<'_> {
        let groups = self.agents.chunk_by(|one, other| one.group == other.group);
        PageAgents { counted: self.is_read(), groups: groups.map(PageGroup::of).collect() }
    }

    /// The list of a tab, for a page. The log comes event by event.
    pub fn page_list(&self, tab: Tab) -> PageList<'_> {
        let total = self.count(tab);
        let shown = match tab {
            Tab::Log => 0,
            Tab::Threads => total.min(THREADS),
            Tab::Asks | Tab::Reservations | Tab::Commands | Tab::Runs | Tab::Stuck => total,
        };
        let row = |at: usize| {
            let row = PageRow::of(self.key(tab, at), self.row(tab, at));
            match tab {
                Tab::Threads => PageRow { agents: Some(&self.threads[at].agents), ..row },
                Tab::Asks => PageRow { ask: Some(PageAsk::of(&self.overview.asks[at])), ..row },
                Tab::Reservations | Tab::Commands | Tab::Runs | Tab::Stuck | Tab::Log => row,
            }
        };
        PageList {
            tab: tab.word(),
            title: tab.title(),
            empty: tab.empty(),
            columns: tab.columns().iter().map(|column| column.name).collect(),
            total,
            rows: (0..shown).map(row).collect(),
        }
    }

    /// What is said of an item of a list; none if it is there no more.
    pub fn detail_of(&self, tab: &str, key: &str) -> Option<Detail> {
        let tab = Tab::ALL.into_iter().find(|known| known.word() == tab)?;
        let at = (0..self.count(tab)).find(|at| self.key(tab, *at) == key)?;
        Some(self.of_item(tab, at))
    }
}

impl PageGroup<'_> {
    /// Agents of one group, of which there is at least one.
    fn of(agents: &[AgentRow]) -> PageGroup<'_> {
        let group = agents[0].group;
        PageGroup { title: group.title(), tone: group.tone(), agents: agents.iter().map(PageAgent::of).collect() }
    }
}

impl PageAgent<'_> {
    fn of(row: &AgentRow) -> PageAgent<'_> {
        let view = &row.detail.agent;
        let fields = [
            ("model", &view.model),
            ("role", &view.role),
            ("project", &view.project),
            ("issue", &view.issue),
            ("session", &row.detail.session),
        ];
        let said =
            |(name, value): (&'static str, &Option<String>)| Some((name, visible_line(value.as_deref()?).into_owned()));
        let machine = ("machine", visible_line(&row.detail.machine).into_owned());
        PageAgent {
            name: row.name(),
            presence: view.presence.as_str(),
            evidence: visible_line(&view.evidence).into_owned(),
            paused: row.detail.paused,
            unread: view.waiting,
            asks: row.asks,
            harness: visible_line(row.harness()).into_owned(),
            task: visible_line(row.task()).into_owned(),
            details: fields.into_iter().filter_map(said).chain([machine]).collect(),
            heard: view.last_heard.map(|heard| heard.0.0),
        }
    }
}

/// A message that a search found.
#[derive(Debug, Serialize)]
pub struct PageHit<'a> {
    id: &'a str,
    at: u64,
    from: &'a str,
    thread: &'a str,
    subject: String,
    excerpt: String,
}

impl<'a> From<&'a SearchHitView> for PageHit<'a> {
    fn from(hit: &'a SearchHitView) -> PageHit<'a> {
        let message = &hit.message;
        PageHit {
            id: &message.id,
            at: message.at.0.0,
            from: &message.from,
            thread: &message.thread,
            subject: visible_line(&message.subject).into_owned(),
            excerpt: visible_line(&hit.excerpt).into_owned(),
        }
    }
}

/// What is said of something, for a page.
#[derive(Debug, Serialize)]
pub struct PageDetail<'a> {
    title: &'a str,
    lines: Vec<PageLine<'a>>,
}

#[derive(Debug, Serialize)]
struct PageLine<'a> {
    indent: usize,
    tone: Tone,
    text: &'a str,
}

impl<'a> From<&'a Detail> for PageDetail<'a> {
    fn from(detail: &'a Detail) -> PageDetail<'a> {
        let line = |line: &'a DetailLine| PageLine { indent: line.indent, tone: line.tone, text: &line.text };
        PageDetail { title: &detail.title, lines: detail.lines.iter().map(line).collect() }
    }
}
