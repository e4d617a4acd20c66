//! Threads of tools: agents that an MCP client talks with by the tools `codex` and `ask_agent`. While one is live it is a
//! driven agent whose mail begins no turns; what is kept of every thread is its row in the registry, from which it goes
//! on later.

mod context;
mod part;
mod registry;
pub(crate) mod retention;
mod wanted;

pub use context::{ThreadPlace, thread_context, thread_guidance};
pub use part::{MOST_ANSWERS, ToolThread, TurnAnswer};
pub use registry::{ThreadRow, ThreadStatus};
pub use wanted::{WantedThread, numbered};
