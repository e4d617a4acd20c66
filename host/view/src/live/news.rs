//! What the reader of the mesh tells the view.

use mesh::ports::machine::Instant;

use crate::{
    AgentDetail, AskDetail, CommandDetail, MessageView, ReservationDetail, SearchHitView, ThreadSummaryView, ThreadView,
};

/// The mesh as it was at a time.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// When it was read.
    pub now: Instant,
    /// The machine that this runs on.
    pub machine: String,
    /// Every agent.
    pub agents: Vec<AgentDetail>,
    /// The questions that wait for the user, oldest first.
    pub asks: Vec<AskDetail>,
    /// What is reserved.
    pub reservations: Vec<ReservationDetail>,
    /// Commands that wait or run.
    pub commands: Vec<CommandDetail>,
    /// Runs, the newest first.
    pub runs: Vec<RunRow>,
    /// Mail that goes no further by itself.
    pub stuck: Vec<StuckRow>,
    /// What could not be read, one sentence each.
    pub damaged: Vec<String>,
    /// Why the servers cannot be reached, if they cannot: then this is what was last known.
    pub out_of_reach: Option<String>,
}

/// A run in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Its id.
    pub id: String,
    /// The harness that does it.
    pub harness: String,
    /// `running`, or how it ended.
    pub state: String,
    /// The first line of its task.
    pub about: String,
    /// Why it ended so, if there is more to say.
    pub why: Option<String>,
    /// When it began.
    pub started: Instant,
    /// When it ended.
    pub ended: Option<Instant>,
}

/// Mail that goes no further by itself: held by the loop guard, waiting for the servers, or returned by them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckRow {
    /// Tells it from the others.
    pub key: String,
    /// `held`, `queued` or `undeliverable`.
    pub state: &'static str,
    /// Who sent it.
    pub from: String,
    /// Who does not get it.
    pub to: String,
    /// How many messages.
    pub messages: usize,
    /// Why it goes no further.
    pub why: String,
}

/// An event of the event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// Its place in the log, which tells it from the others.
    pub key: String,
    /// When it happened.
    pub at: Instant,
    /// Its kind, one word.
    pub kind: String,
    /// Its other fields.
    pub text: String,
}

/// Something new for the view.
#[derive(Clone, Debug)]
pub enum News {
    /// Who is here, before their mail is counted and anything else is read.
    Agents(Instant, Vec<AgentDetail>),
    /// The mesh was read.
    Overview(Box<Overview>),
    /// The conversations were read, that of the newest message first.
    Threads(Vec<ThreadSummaryView>),
    /// A conversation was read, by the name that it was opened by.
    Thread(String, Box<ThreadView>),
    /// There is no such conversation, or no more, and why.
    NoThread(String, String),
    /// A message was stored for these agents.
    Sent(Box<MessageView>, Vec<String>),
    /// A search has ended: its words, the best messages, and how many there are in all.
    Found(String, Vec<SearchHitView>, usize),
    /// Further events of the event log, oldest first.
    Log(Vec<LogRow>),
    /// The mesh cannot be read now, and why.
    Lost(String),
    /// What was asked for was done.
    Done(String),
    /// What was asked for could not be done, and why.
    Failed(String),
}
