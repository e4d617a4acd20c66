//! Driving a live agent of a harness. The adapter turns what the agent is to do into frames, and frames into events; the
//! host starts the program, carries the frames, and keeps what has to be kept.

use std::path::PathBuf;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ports::harness::HarnessError;
use crate::ports::runner::{Extensions, Launch, Reach};
use crate::sessions::Activity;

/// Who answers if the harness would ask its user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approvals {
    /// The host asks the user.
    #[default]
    Ask,
    /// Nobody, so that it is refused.
    Refuse,
}

/// Who an agent is, and what it may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrivenAgent {
    /// Its name in the mesh.
    pub name: String,
    /// The folder that it works in, absolute.
    pub folder: PathBuf,
    /// The model's name, in the harness's own spelling.
    pub model: Option<String>,
    /// Text for the whole session.
    pub guidance: String,
    /// What it may change.
    pub reach: Reach,
    /// Who answers what the harness asks.
    pub approvals: Approvals,
    /// What the harness loads.
    pub extensions: Extensions,
    /// A UUID for the session, if the harness lets the caller choose it.
    pub id: String,
    /// Variables for its commands, if its program is not its own alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<(String, String)>,
    /// What only some harnesses take.
    #[serde(default, skip_serializing_if = "Tailoring::is_none")]
    pub tailoring: Tailoring,
}

/// What a session has of its own, where the harness takes that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tailoring {
    /// How much the model thinks, in the harness's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Instructions in the place of the harness's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The prompt by which a conversation that grows too long is summed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<String>,
    /// Settings of the harness, by its own names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<(String, Value)>,
}

impl Tailoring {
    /// Whether nothing of it is there.
    pub fn is_none(&self) -> bool {
        *self == Tailoring::default()
    }
}

/// What can be done over a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent ability")]
pub struct DriverAbilities {
    /// A running turn takes further text.
    pub steer: bool,
    /// A running turn can be stopped.
    pub interrupt: bool,
    /// The harness asks before it does what the reach does not cover.
    pub ask: bool,
    /// A session can be continued after its program has ended.
    pub resume: bool,
    /// A turn goes on without a connection.
    pub outlive: bool,
    /// Users can join the session with the harness's own terminal.
    pub join: bool,
    /// A prompt that is given twice under one id is taken once.
    pub once: bool,
    /// One connection carries many sessions at once.
    pub share: bool,
    /// A prompt's context has a place of its own.
    pub context: bool,
    /// A session takes a [`Tailoring`].
    pub tailor: bool,
}

/// How frames reach the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverFraming {
    /// One per line of its standard input and output.
    Lines,
    /// One per text message of a WebSocket, over a Unix socket at which it listens.
    WebSocket,
}

/// How a user joins a session with the harness's own terminal: a command line, in which `{socket}` and `{session}` stand
/// for both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinCommand(pub Vec<String>);

/// Stands for the path of a connection's socket, in a command line.
pub const SOCKET: &str = "{socket}";
/// Stands for the id of a session.
pub const SESSION: &str = "{session}";

impl JoinCommand {
    /// The command line, for this session at this socket.
    pub fn filled(&self, socket: &str, session: &str) -> Vec<String> {
        self.0.iter().map(|word| word.replace(SESSION, session).replace(SOCKET, socket)).collect()
    }
}

/// A way of reaching an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverConnection {
    /// Its name in receipts and listings.
    pub name: String,
    /// What the host starts. [`SOCKET`] stands for the path of the socket that its frames need.
    pub launch: Launch,
    /// How frames reach it.
    pub framing: DriverFraming,
    /// How users join, if they can.
    pub join: Option<JoinCommand>,
    /// What can be done over it.
    pub able: DriverAbilities,
    /// The best status that a prompt can be proven to reach before its turn ends.
    pub proves: PromptStatus,
}

/// Something that an agent is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// The same whenever it is given again.
    pub id: String,
    /// The text: a task, or mail in its envelopes.
    pub text: String,
    /// A user's own words.
    pub by_user: bool,
    /// The host's word on how things stand now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// How far a prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptStatus {
    /// The harness has taken it. It may still be lost if the harness is killed.
    Accepted,
    /// The harness's own record of the session holds it, or a model request did.
    Shown,
    /// Its turn has ended.
    Answered,
    /// The harness shows that it never had it, or has dropped it.
    Lost,
    /// It cannot be told any more.
    Unknown,
}

/// The answer to what a harness asks its user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "answer", content = "with")]
pub enum UserAnswer {
    /// It may.
    Allow,
    /// It may, and so may what is like it for the rest of the session.
    AllowForSession,
    /// It may not, with the reason. The turn goes on.
    Refuse(String),
    /// It may not, and the turn ends.
    Stop,
    /// One of the question's choices, by its id.
    Choose(String),
    /// What fills a form.
    Fill(Value),
}

/// What an agent is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Begin a new session.
    Begin(DrivenAgent),
    /// Continue a session.
    Resume(String, DrivenAgent),
    /// Begin a turn.
    Prompt(String, Prompt),
    /// Take further text in the running turn.
    Steer(String, Prompt),
    /// Stop the running turn.
    Interrupt(String),
    /// Go on with this answer to a question.
    Answer {
        session: String,
        /// The question's id.
        question: String,
        /// What the adapter kept of it.
        kept: Option<Value>,
        answer: UserAnswer,
    },
    /// Say what became of these prompts.
    Account(String, Vec<Prompt>),
    /// End the session.
    End(String),
}

/// What the harness did, or would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "what")]
pub enum Operation {
    /// A command, whole.
    Command(String),
    /// Files that it changes.
    Files(Vec<String>),
    /// A tool and its arguments.
    Tool(String, Value),
    /// Anything else.
    Other(String),
}

/// What a harness asks its user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The harness's id of it.
    pub id: String,
    /// What it would do.
    pub operation: Operation,
    /// Why, in the harness's words.
    pub reason: Option<String>,
    /// What can be chosen beside the plain answers: id and label.
    pub choices: Vec<(String, String)>,
    /// Given back with the answer.
    pub kept: Option<Value>,
}

/// Why a turn failed, as far as the host can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The harness or its model has too much to do.
    Overloaded,
    /// Nothing is left to spend.
    OutOfQuota,
    /// Nobody is signed in.
    NotSignedIn,
    /// The context is full.
    ContextFull,
    /// Anything else.
    Other,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum TurnEnd {
    /// By itself.
    Completed,
    /// It was stopped.
    Interrupted,
    /// It failed.
    Failed {
        /// Why, as far as the host can act on it.
        failure: Failure,
        /// In the harness's words.
        why: String,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Input tokens, without those from the cache.
    pub input: u64,
    /// Input tokens that were read from the cache.
    pub cached_input: u64,
    /// Output tokens.
    pub output: u64,
}

/// What happened to a driven agent.
#[derive(Clone, Debug, PartialEq)]
pub enum DriverEvent {
    /// The connection takes actions.
    Ready,
    /// The session has begun, or is continued, under this id.
    Opened(String),
    /// What it does now.
    Activity(Activity),
    /// How far a prompt is.
    Prompt(String, PromptStatus),
    /// A turn began.
    TurnStarted(String),
    TurnEnded(String, TurnEnd),
    /// A piece of a message.
    Piece(String),
    /// A whole message.
    Said(String),
    /// Something that it does: begun, or ended with whether it succeeded.
    Item {
        /// The same at both times.
        id: String,
        /// What; none if it was said when it began.
        operation: Option<Operation>,
        /// None while it runs.
        succeeded: Option<bool>,
        /// The end of its output, a diff, or why it failed.
        detail: Option<String>,
    },
    /// What has changed since the turn began, as a unified diff.
    Diff(String),
    /// It asks its user.
    Asks(Question),
    /// Somebody else has answered, or nobody has to any more.
    Settled(String),
    /// Somebody else typed in this session.
    UserSpoke,
    /// What it used.
    Used(Tokens),
    /// The last action about this did nothing.
    Refused(String, HarnessError),
    /// A warning.
    Note(String),
    /// The session has ended.
    Ended,
}

/// What a call makes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exchange {
    /// Given back with the next call about this connection.
    pub memory: Option<Value>,
    /// Frames to send, in order.
    pub frames: Vec<String>,
    /// What happened, each with its session if it concerns one.
    pub events: Vec<(Option<String>, DriverEvent)>,
}

/// A harness whose agents can be driven.
#[async_trait]
pub trait HarnessDriver: Send + Sync {
    /// The ways of reaching such an agent, the best first. The files of a launch are to be written to `files`.
    async fn connections(
        &self,
        agent: &DrivenAgent,
        resume: Option<&str>,
        files: &std::path::Path,
    ) -> Result<Vec<DriverConnection>, HarnessError>;
    /// The first frames of a new connection.
    async fn connect(&self, connection: &str) -> Result<Exchange, HarnessError>;
    /// Frames that make the agent do something.
    async fn act(&self, memory: Option<&Value>, action: &Action) -> Result<Exchange, HarnessError>;
    /// What frames mean that came.
    async fn receive(&self, memory: Option<&Value>, frames: &[String]) -> Result<Exchange, HarnessError>;
}
