//! The errors of the mesh, by what they are about.

mod agents;
mod commands;
mod messages;
mod moving;
mod reservations;
mod sessions;

use mesh::names::AgentName;

/// What to do if an agent is not known.
pub(crate) const WHO_IS_HERE: &str = "run `relay-mesh agents` to see who is here";
const WHO_ARE_YOU: &str = "say who you are: `--from NAME`, after `relay-mesh register NAME`";
/// What to do if a harness is not known.
pub(crate) const HARNESSES: &str = "run `relay-mesh harnesses` to see which are known";

fn listed(names: &[AgentName]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
