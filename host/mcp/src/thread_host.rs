//! What the tools that talk with another agent ask of the process that they are served by.

use async_trait::async_trait;
use mesh::ports::driver::Approvals;
use mesh::ports::runner::Reach;
use mesh::sessions::Principal;
use mesh::tool_threads::ThreadRow;
use serde_json::{Map, Value};

use crate::run_host::RunRefusal;

/// A thread as a client asks for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewThread {
    /// The tool that asks.
    pub tool: &'static str,
    /// The harness, also by its short name; that of the role if it is empty.
    pub harness: String,
    /// The first prompt.
    pub prompt: String,
    /// The folder to work in; the client's own if there is none.
    pub folder: Option<String>,
    /// The model, in the harness's own spelling.
    pub model: Option<String>,
    /// How much the model thinks, in the harness's own word.
    pub effort: Option<String>,
    /// What it may change; what the settings say if there is none.
    pub reach: Option<Reach>,
    /// Who answers what it asks; what the settings say if there is none.
    pub approvals: Option<Approvals>,
    /// Instructions in the place of the harness's own.
    pub base: Option<String>,
    /// Instructions beside them.
    pub instructions: Option<String>,
    /// The prompt by which a conversation that grows too long is summed up.
    pub compaction: Option<String>,
    /// Settings of the harness, by its own names.
    pub settings: Map<String, Value>,
    /// A role of the settings.
    pub role: Option<String>,
    /// What the caller calls it.
    pub tag: Option<String>,
}

/// A further prompt for a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadReply {
    /// The tool that asks.
    pub tool: &'static str,
    /// The harness whose threads the tool is for; any if there is none.
    pub harness: Option<&'static str>,
    /// The thread.
    pub thread: String,
    /// The prompt. An empty one waits for the turn that runs.
    pub prompt: String,
}

/// A call whose turn was begun, or waits for the user's consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCall {
    /// The id of the agent that the thread is, or will be once the user has agreed.
    pub agent: String,
    /// The prompt; none if the user is asked first.
    pub prompt: Option<String>,
    /// The question to the user.
    pub question: Option<String>,
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnReport {
    /// The thread; the agent's id while its harness has not named it.
    pub thread: String,
    /// The agent's final words, or what there is of them.
    pub content: String,
    /// How the turn ended.
    pub state: TurnState,
}

/// How a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnState {
    /// It ended by itself.
    Completed,
    /// It goes on.
    Running,
    /// The user is asked first.
    Waits,
    /// It was stopped.
    Interrupted,
    /// It was stopped because its time was up.
    TimedOut,
}

/// How the threads of this server stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadsStatus {
    /// The name that new threads get.
    pub identity: String,
    /// Its team.
    pub team: Option<String>,
    /// The role of the settings that they have.
    pub role: Option<String>,
    /// The harness, by its adapter's name.
    pub harness: String,
    /// Its version, if it is installed.
    pub version: Option<String>,
    /// How long this server has run, in seconds.
    pub uptime: u64,
    /// The caller's live threads.
    pub live: Vec<LiveThread>,
    /// Messages that wait for the caller.
    pub pending: usize,
}

/// A live thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveThread {
    /// The thread.
    pub thread: String,
    /// Its agent's name.
    pub agent: String,
    /// Whether a turn runs.
    pub works: bool,
    /// Whether its program runs.
    pub alive: bool,
    /// Messages that wait for it.
    pub pending: usize,
}

/// Has agents talk with other agents by tools. Who asks is known by evidence: an agent sees and continues what it has begun
/// itself.
#[async_trait]
pub trait ThreadHost: Send + Sync {
    /// Begins a thread, if the user allows it; else asks them.
    async fn begin(&self, caller: &Principal, new: NewThread) -> Result<ThreadCall, RunRefusal>;
    /// Gives a thread a further prompt. One that is not live is resumed.
    async fn reply(&self, caller: &Principal, reply: ThreadReply) -> Result<ThreadCall, RunRefusal>;
    /// Waits for the end of the turn. It ends by its time-out at the latest. Cancel-safe.
    async fn finish(&self, call: &ThreadCall) -> Result<TurnReport, RunRefusal>;
    /// How the call stands now.
    async fn look(&self, call: &ThreadCall) -> Result<TurnReport, RunRefusal>;
    /// Stops the turn.
    async fn interrupt(&self, call: &ThreadCall) -> Result<(), RunRefusal>;
    /// The caller's threads, the last active first.
    async fn threads(&self, caller: &Principal) -> Result<Vec<ThreadRow>, RunRefusal>;
    /// How the threads of this server stand.
    async fn status(&self, caller: &Principal) -> Result<ThreadsStatus, RunRefusal>;
}
