//! Runs: a harness works on one task to its end, without a user. This folder holds what a run is, who may start one,
//! and what its end means. Starting, watching and ending the processes is the binary's work.

pub mod agent;
mod judge;
mod permit;
mod record;
mod report;

pub use agent::RunAgentError;
pub use judge::{Halt, SchemaCheck, Verdict, asked_again, fenced_json, judge, repair_task, usage_of_run};
pub use permit::{NotPermitted, budget, charged_below, permit, share};
pub use record::{RunEnd, RunId, RunLimits, RunRecord, RunStage, Scope as UsageScope, Workplace, agent_label};
pub use report::{RunChanges, RunReport};
