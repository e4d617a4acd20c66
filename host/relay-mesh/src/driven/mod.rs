//! Driven agents: one process per data folder starts their harnesses, carries what is said, and keeps their records. What
//! such an agent is, and what follows from what a harness tells, are the mesh's rules (`mesh::driven`); processes are the
//! crate `processes`; frames are the adapters'.
//!
//! Each agent has a record in the store, from which any process can go on with it, and a folder, `spawned/ID` of the data
//! folder, with what it said and what its program wrote.

mod agent;
pub(crate) mod asking;
pub(crate) mod begin;
mod connect;
mod deltas;
mod ending;
mod events;
mod exec;
mod final_words;
pub(crate) mod folder;
pub(crate) mod for_clients;
mod frames;
pub(crate) mod host;
pub(crate) mod joining;
mod link;
mod orders;
pub(crate) mod permission;
mod program;
mod prompts;
mod questions;
#[cfg(test)]
mod tests;
mod thread;
mod tool;
pub(crate) mod transcript;
mod turns;

pub(crate) use folder::DrivenFolder;

/// The variable that marks every process of a driven agent.
pub(crate) const MARK: &str = "RELAY_SPAWN";
/// The variable that names an agent's outbox to it.
pub(crate) const OUTBOX: &str = "RELAY_OUTBOX";

/// Ends everything that bears a mark, without keeping other tasks waiting.
async fn end_marked(mark: String) {
    let _ended = tokio::task::spawn_blocking(move || processes::end_marked(MARK, &mark)).await;
}
