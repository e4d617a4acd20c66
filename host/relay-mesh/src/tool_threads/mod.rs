//! Threads of tools for the clients of an MCP server: what the tools `codex` and `ask_agent` of the crate `mcp` ask for. A
//! live thread is a driven agent, under the same consent as any other; what is particular to one whose prompts are calls
//! is here: whose it is, what it is told at each call, how long a turn may take, and what becomes of it when its server
//! ends.

mod begin;
mod ending;
pub(crate) mod flags;
mod limits;
mod place;
mod reply;
mod status;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use mcp::{NewThread, RunRefusal, ThreadCall, ThreadHost, ThreadReply, ThreadsStatus, TurnReport};
use mesh::driven::DrivenId;
use mesh::ports::machine::{Instant, Machine as _};
use mesh::sessions::Principal;
use mesh::tool_threads::ThreadRow;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::runs::for_clients::refusal;

/// Which thread the first call of a server goes on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// The last active one of this identity.
    Latest,
    /// This one.
    Thread(String),
}

/// The threads of one server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ToolThreads(Arc<Shared>);

struct Shared {
    context: Context,
    open: Arc<Open>,
    began: Instant,
    /// What the next new thread goes on with. Taken by the first call.
    resume: Mutex<Option<Resume>>,
    /// Which agent a thread was at its last call.
    known: Mutex<BTreeMap<String, DrivenId>>,
    /// The prompts whose turns were stopped because their time was up.
    timed_out: Mutex<BTreeSet<String>>,
    /// Whether this server has had a thread: without one it does nothing at all.
    has_threads: AtomicBool,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl ToolThreads {
    pub(crate) fn new(context: &Context, open: Arc<Open>, resume: Option<Resume>) -> ToolThreads {
        let began = open.machine.now();
        let shared = Shared {
            context: context.at(context.workdir.clone()),
            open,
            began,
            resume: Mutex::new(resume),
            known: Mutex::default(),
            timed_out: Mutex::default(),
            has_threads: AtomicBool::new(false),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        ToolThreads(Arc::new(shared))
    }

    /// Ends every live thread of this server, each with a summary, and returns once they have ended.
    pub(crate) async fn finish(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
        if self.0.has_threads.load(Ordering::Relaxed)
            && let Err(error) = self.0.end_all().await
        {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "the threads of this server end without it");
        }
    }
}

/// The caller's agent: nobody nameless begins or continues a thread.
fn agent_of(caller: &Principal) -> Result<mesh::names::AgentName, CommandError> {
    caller.agent().cloned().ok_or_else(|| {
        CommandError::usage("you have no name in the mesh", "join first, with the tool `register_agent`")
    })
}

#[async_trait]
impl ThreadHost for ToolThreads {
    async fn begin(&self, caller: &Principal, new: NewThread) -> Result<ThreadCall, RunRefusal> {
        self.0.begin(caller, new).await.map_err(|error| refusal(&error))
    }

    async fn reply(&self, caller: &Principal, reply: ThreadReply) -> Result<ThreadCall, RunRefusal> {
        self.0.reply(caller, reply).await.map_err(|error| refusal(&error))
    }

    async fn finish(&self, call: &ThreadCall) -> Result<TurnReport, RunRefusal> {
        self.0.finished(call).await.map_err(|error| refusal(&error))
    }

    async fn look(&self, call: &ThreadCall) -> Result<TurnReport, RunRefusal> {
        self.0.look(call).await.map_err(|error| refusal(&error))
    }

    async fn interrupt(&self, call: &ThreadCall) -> Result<(), RunRefusal> {
        self.0.interrupt(call).await.map_err(|error| refusal(&error))
    }

    async fn threads(&self, caller: &Principal) -> Result<Vec<ThreadRow>, RunRefusal> {
        self.0.threads(caller).await.map_err(|error| refusal(&error))
    }

    async fn status(&self, caller: &Principal) -> Result<ThreadsStatus, RunRefusal> {
        self.0.status(caller).await.map_err(|error| refusal(&error))
    }
}
