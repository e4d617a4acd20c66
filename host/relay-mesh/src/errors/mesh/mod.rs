//! The errors of the mesh, by subject.

mod agents;
mod asks;
mod commands;
mod messages;
mod moving;
mod reservations;
mod runs;
mod sessions;

use mesh::names::AgentName;

/// Hint for an unknown agent.
pub(crate) const WHO_IS_HERE: &str = "run `relay-mesh agents` to see who is here";
const WHO_ARE_YOU: &str = "say who you are: `--from NAME`, after `relay-mesh register NAME`";
/// Hint for an unknown harness.
pub(crate) const HARNESSES: &str = "run `relay-mesh harnesses` to see which are known";

fn listed(names: &[AgentName]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
