//! Runs: a harness works on one task to its end. This folder keeps the record of each run, starts and watches it, and
//! puts its result together; what a run is and what its end means are the mesh's rules (`mesh::runs`), and processes are
//! the crate `processes`.
//!
//! Each run has a folder, `runs/ID` of the data folder, from which any process can tell how it stands. A run whose
//! process was killed is concluded by the next command that looks, or by the server ([`settle`]). Only the cleanup reads all
//! records: what is live has a mark, and what ended with a session a name ([`by_session`]).

mod agent;
pub(crate) mod alive;
pub(crate) mod applying;
pub(crate) mod begin;
mod by_session;
pub(crate) mod changes;
mod conclude;
mod files;
pub(crate) mod folder;
pub(crate) mod for_clients;
pub(crate) mod permission;
pub(crate) mod reading;
pub(crate) mod record_folder;
pub(crate) mod reports;
pub(crate) mod retention;
mod schema;
pub(crate) mod settle;
pub(crate) mod stop;
pub(crate) mod supervise;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod worktrees;

use mesh::ports::harness::{Harness, HarnessError};
use mesh::ports::runner::HarnessRunner;

pub(crate) use begin::{RunRequest, WorkFolder};
pub(crate) use folder::{RunFolder, Runs, RunsError, whole_id};
pub(crate) use schema::AnswerSchema;
pub(crate) use supervise::binary;

/// The variable that marks every process of a run.
pub(crate) const MARK: &str = "RELAY_RUN";

/// What runs a harness's tasks.
pub(crate) fn runner_of(harness: &dyn Harness) -> Result<&dyn HarnessRunner, HarnessError> {
    harness.runner()
}
