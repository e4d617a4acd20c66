//! What the tools about runs and reviews ask of the process that they are served by. Starting and watching processes is
//! the binary's work; this crate knows how to ask for it, and how long a client waits.

use std::time::Duration;

use async_trait::async_trait;
use mesh::ports::runner::Reach;
use mesh::sessions::Principal;
use serde_json::Value;

/// A run as a client asks for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewRun {
    /// The harness, also by its short name.
    pub harness: String,
    /// What to do.
    pub task: String,
    /// The folder to work in; the client's own if there is none.
    pub folder: Option<String>,
    /// What it may change.
    pub reach: Reach,
    /// Whether it works in the folder itself although it may change files.
    pub here: bool,
    /// The session to continue.
    pub resume: Option<String>,
    /// The model, in the harness's own spelling.
    pub model: Option<String>,
    /// A JSON schema of the answer.
    pub schema: Option<Value>,
    /// The most time.
    pub timeout: Option<Duration>,
    /// The most turns.
    pub turns: Option<u32>,
    /// The most cost, in millionths of a US dollar.
    pub cost: Option<u64>,
    /// How it is tied to the call.
    pub tie: Tie,
}

/// How long a run lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tie {
    /// Until its own end, also when the client has left; its result goes to the caller by mail.
    #[default]
    Free,
    /// No longer than this server.
    Server,
}

/// A review as a client asks for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewReview {
    /// What to review.
    pub subject: ReviewSubject,
    /// The folder of the repository; the client's own if there is none.
    pub folder: Option<String>,
    /// The harnesses that review; another one than the caller's if there are none.
    pub by: Vec<String>,
    /// The harness that tries to refute what they found.
    pub verify: Option<String>,
    /// The most time for each reviewer.
    pub timeout: Option<Duration>,
}

/// What a review looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReviewSubject {
    /// What is not committed.
    #[default]
    Uncommitted,
    /// What the working copy has beyond a base.
    Base(String),
    /// One commit.
    Commit(String),
    /// What a run changed.
    Run(String),
}

/// How a run or a review stands.
#[derive(Clone, Debug, PartialEq)]
pub struct RunProgress {
    /// Its id.
    pub id: String,
    /// Whether it is a run or a review.
    pub kind: RunKind,
    /// How many events it has reported.
    pub events: u64,
    /// What it does now, in a few words.
    pub doing: String,
    /// When it began, in RFC 3339.
    pub started: String,
    /// The whole result, once it has ended.
    pub result: Option<Value>,
}

/// What an id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunKind {
    /// A run.
    Run,
    /// A review.
    Review,
}

/// Why it was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRefusal {
    /// What is wrong, as one clause.
    pub what: String,
    /// What to do next, as one clause.
    pub next: Option<String>,
}

/// Starts, shows and stops runs and reviews for the clients of this server. Who asks is known by evidence: an agent may
/// start what the user has allowed it, and sees and stops what it has started itself.
#[async_trait]
pub trait RunHost: Send + Sync {
    /// Starts a run. Returns its id.
    async fn start(&self, caller: &Principal, run: NewRun) -> Result<String, RunRefusal>;
    /// Starts a review. Returns its id.
    async fn review(&self, caller: &Principal, review: NewReview) -> Result<String, RunRefusal>;
    /// How a run or a review stands.
    async fn look(&self, caller: &Principal, id: &str) -> Result<RunProgress, RunRefusal>;
    /// Ends a run or a review with everything that it started. Returns once it has ended.
    async fn stop(&self, caller: &Principal, id: &str) -> Result<(), RunRefusal>;
}

/// The longest that a call about a run is held, so that the client does not give up first: Codex gives up after 300 s
/// whatever it hears, others start anew at each progress notification, and a client that asks for none may have the
/// usual limit of 60 s.
pub(crate) fn longest_hold(hears_progress: bool) -> Duration {
    if hears_progress { Duration::from_secs(240) } else { Duration::from_secs(45) }
}
