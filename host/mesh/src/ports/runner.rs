//! Running a harness for one task, without a user, to its end. The adapter words the command line and reads what the
//! harness prints; the host starts the program, bounds it, and ends it with everything that it has started.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ports::harness::HarnessError;

/// What a run may change, from least to most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Nothing.
    #[default]
    Look,
    /// Files in the folder; nothing else outlasts the run.
    Edit,
    /// Whatever the harness's own rules let its programs change.
    Work,
    /// Nothing is held back.
    Unguarded,
}

impl Reach {
    /// The word in output, JSON and settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Reach::Look => "look",
            Reach::Edit => "edit",
            Reach::Work => "work",
            Reach::Unguarded => "unguarded",
        }
    }
}

/// Why text is not a reach.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a reach: look, edit, work or unguarded")]
pub struct InvalidReach(String);

impl std::str::FromStr for Reach {
    type Err = InvalidReach;

    fn from_str(text: &str) -> Result<Reach, InvalidReach> {
        let all = [Reach::Look, Reach::Edit, Reach::Work, Reach::Unguarded];
        all.into_iter().find(|reach| reach.as_str() == text).ok_or_else(|| InvalidReach(text.to_owned()))
    }
}

/// Where a run begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "session")]
pub enum Start {
    /// A new session, under this UUID if the harness lets the caller choose it.
    Fresh(String),
    /// Continues a session that no living process holds.
    Resume(String),
    /// Continues a copy of a session.
    Fork(String),
}

/// Which MCP servers, hooks and plugins the harness loads for a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extensions {
    /// None at all.
    None,
    /// Ours alone: the run is an agent of the mesh.
    #[default]
    Mesh,
    /// Whatever the user has set up.
    All,
}

/// A task, without its text: the host alone writes that, to the program's standard input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The run's id, the same in every call about it.
    pub id: String,
    /// The folder that it works in, absolute.
    pub folder: PathBuf,
    /// Where it begins.
    pub start: Start,
    /// What it may change.
    pub reach: Reach,
    /// What the harness loads.
    pub extensions: Extensions,
    /// The model's name, in the harness's own spelling.
    pub model: Option<String>,
    /// A JSON schema of the answer. The host checks the answer against it, whatever the harness promises.
    pub schema: Option<Value>,
    /// Text with the weight of the harness's own instructions, if it has a place for that.
    pub guidance: Option<String>,
    /// The most turns.
    pub turns: Option<u32>,
    /// The most cost, in millionths of a US dollar.
    pub cost: Option<u64>,
}

/// What a harness can keep of what a task may ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent ability")]
pub struct Abilities {
    /// The caller may choose the id of a new session.
    pub own_id: bool,
    /// It can continue a session.
    pub resume: bool,
    /// It can continue a copy of a session.
    pub fork: bool,
    /// It takes a schema of the answer.
    pub schema: bool,
    /// It has a place for guidance.
    pub guidance: bool,
    /// It takes a limit of turns, or tells of each.
    pub turns: bool,
    /// It takes a limit of cost, or tells of it after each turn.
    pub cost: bool,
    /// It can run without extensions.
    pub alone: bool,
    /// It can keep [`Reach::Look`].
    pub look: bool,
    /// It can keep [`Reach::Edit`].
    pub edit: bool,
    /// It can keep [`Reach::Work`].
    pub work: bool,
    /// It can run unguarded.
    pub unguarded: bool,
}

/// Whether the harness is signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// It is.
    LoggedIn,
    /// It is not.
    LoggedOut,
    /// The harness does not say.
    Unknown,
}

/// Whether a run could begin now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// The harness's version.
    pub version: String,
    /// Whether it is signed in.
    pub login: Login,
    /// How the login is known, or what the user has to do.
    pub why: Option<String>,
    /// What it can keep.
    pub able: Abilities,
}

/// How a run is asked to stop: with this signal, after which it gets this much time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopStep {
    pub signal: StopSignal,
    /// How long it may take until the next step.
    pub grace: Duration,
}

/// A signal that asks a program to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopSignal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// What the host starts. All words come from the manifest; the adapter chose among them and filled their blanks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The program, absolute, and its arguments.
    pub command: Vec<String>,
    /// The whole environment of the program: what the manifest names and the surroundings have, and what the adapter
    /// set. Nothing else gets in.
    pub environment: Vec<(String, String)>,
    /// Files in the run's own folder, by name. A word of the command that holds one has the absolute path already.
    pub files: Vec<(String, String)>,
    /// How it is asked to stop. After the last step everything is killed.
    pub stop: Vec<StopStep>,
    /// What was asked for and this harness cannot keep, as clauses for the user: `no limit of turns`.
    pub without: Vec<String>,
}

/// A line of standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLine {
    /// The line without its end.
    pub text: String,
    /// The host left out the end of a line that was too long.
    pub cut: bool,
}

/// What a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, without those from the cache.
    pub input: u64,
    /// Input tokens that were read from the cache.
    pub cached_input: u64,
    /// Output tokens.
    pub output: u64,
    /// Output tokens that the model spent on reasoning, if the harness says so.
    pub reasoning: Option<u64>,
    /// The cost as the harness estimates it, in millionths of a US dollar.
    pub cost: Option<u64>,
    /// The figures are of the whole session, earlier runs included.
    pub whole_session: bool,
}

/// A tool call that a harness refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    pub tool: String,
    pub why: String,
}

/// Something that a run reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum RunEvent {
    /// The harness has named its session.
    Session { session: String },
    /// The model said this, as a whole message.
    Said {
        /// The message.
        text: String,
    },
    /// A tool began or ended.
    Tool {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// What it does, in a few words.
        about: String,
        /// None while it runs; then whether it succeeded.
        succeeded: Option<bool>,
    },
    /// Files that the harness says it wrote.
    Wrote {
        /// Their paths.
        files: Vec<String>,
    },
    /// A tool call was refused and the run goes on.
    Denied { tool: String, why: String },
    /// The model's server did not answer and is asked again.
    Retries {
        /// Which attempt this is.
        attempt: u32,
        /// The HTTP status, if there was one.
        status: Option<u16>,
        /// How long the harness waits before, in milliseconds.
        wait_ms: u64,
    },
    /// What it has used so far.
    Used {
        /// The figures.
        usage: Usage,
    },
    /// A turn of its model has ended, and another one follows.
    Turns {
        /// How many it has taken.
        taken: u32,
    },
    /// A warning.
    Note { text: String },
}

/// What lines of output mean, and what is to be given with the next ones: the adapter's own memory (at most 64 KiB), and
/// the message that the model said last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputReading {
    /// Given back with the next lines.
    pub memory: Option<Value>,
    /// What was reported, in order.
    pub events: Vec<RunEvent>,
}

/// How the process ended, as the system says: with a code or by a signal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessExit {
    /// Its exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// We had asked it to stop.
    pub asked_to_stop: bool,
    /// The end of its standard error.
    pub stderr_end: String,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It gave its answer.
    Answered,
    /// The limit of turns.
    Turns,
    /// The limit of cost.
    Cost,
    /// No answer that fits the schema.
    Shape,
    /// No account is signed in, or the key is refused.
    Login,
    /// Too many requests, or nothing left to spend.
    Limited,
    /// The model's server failed.
    Provider,
    /// It was not permitted to go on.
    Denied,
    /// It was told to stop.
    Stopped,
    /// It ran out of time. Only the host gives this.
    Time,
    /// It ended without the last word that a run of this harness has.
    BrokeOff,
}

impl Ending {
    /// The word in output and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Ending::Answered => "answered",
            Ending::Turns => "turns",
            Ending::Cost => "cost",
            Ending::Shape => "shape",
            Ending::Login => "login",
            Ending::Limited => "limited",
            Ending::Provider => "provider",
            Ending::Denied => "denied",
            Ending::Stopped => "stopped",
            Ending::Time => "time",
            Ending::BrokeOff => "broke-off",
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    /// Why it ended.
    pub ending: Ending,
    /// What the model said last.
    pub answer: Option<String>,
    /// The answer by the schema, if the harness gave it apart.
    pub output: Option<Value>,
    /// The session's id.
    pub session: Option<String>,
    /// What it used.
    pub usage: Option<Usage>,
    /// How many turns it took.
    pub turns: Option<u32>,
    /// What was refused.
    pub denials: Vec<Denial>,
    /// One sentence for the user.
    pub why: Option<String>,
    /// When a retry could succeed.
    pub retry_after: Option<Duration>,
}

impl RunOutcome {
    /// An outcome of which no more is known than how it ended.
    pub fn of(ending: Ending) -> RunOutcome {
        RunOutcome {
            ending,
            answer: None,
            output: None,
            session: None,
            usage: None,
            turns: None,
            denials: Vec::new(),
            why: None,
            retry_after: None,
        }
    }
}

/// A harness that runs tasks.
#[async_trait]
pub trait HarnessRunner: Send + Sync {
    /// Whether a run could begin now. It asks the harness, never its model.
    async fn ready(&self) -> Result<Readiness, HarnessError>;
    /// The command line. Nothing happens yet. `files` is the run's own folder, in which the host will write
    /// [`Launch::files`]. `Unsupported` if a promise of the task cannot be kept.
    async fn prepare(&self, task: &Task, files: &std::path::Path) -> Result<Launch, HarnessError>;
    /// What lines of standard output mean, in order, each given once.
    async fn read(
        &self,
        task: &Task,
        memory: Option<&Value>,
        lines: &[OutputLine],
    ) -> Result<OutputReading, HarnessError>;
    /// What came of it, once it has ended and all lines were read.
    async fn conclude(
        &self,
        task: &Task,
        memory: Option<&Value>,
        exit: &ProcessExit,
    ) -> Result<RunOutcome, HarnessError>;
}
