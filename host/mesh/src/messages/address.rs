//! Addresses: a name must match exactly; a name that matches nothing gets suggestions.

use std::collections::BTreeSet;

use store::Key;

use crate::agents;
use crate::agents::remote_cache::RemoteCache;
use crate::core::Core;
use crate::names::{AgentName, InvalidName};
use crate::storage::keys;

/// Why an address cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The address is not a valid name.
    #[error(transparent)]
    Invalid(#[from] InvalidName),
    /// No agent has that name.
    #[error("{}", crate::names::no_such_agent(address))]
    Unknown {
        /// The name that was asked for.
        address: AgentName,
        /// Similar names.
        near: Vec<AgentName>,
    },
    /// The address matches two agents: one of that exact name, and one in the sender's own team.
    #[error("`{address}` may mean several agents")]
    Ambiguous {
        /// The name that was asked for.
        address: AgentName,
        /// The agents that it may mean.
        candidates: Vec<AgentName>,
    },
    /// The store failed.
    #[error("the store could not be read")]
    Store(#[from] store::StoreError),
}

pub(crate) async fn resolve(
    core: &Core,
    remote: &RemoteCache,
    address: &str,
    asker: Option<&AgentName>,
) -> Result<AgentName, AddressError> {
    let typed: AgentName = address.parse()?;
    let of_team = match (typed.team(), asker.and_then(AgentName::team)) {
        (None, Some(team)) => Some(typed.in_team(Some(team))?),
        (Some(_), _) | (None, None) => None,
    };
    let exact = exists(core, remote, &typed).await?;
    let mate = match &of_team {
        Some(name) => exists(core, remote, name).await?,
        None => false,
    };
    match (exact, of_team.filter(|_| mate)) {
        (true, None) => Ok(typed),
        (false, Some(mate)) => Ok(mate),
        (true, Some(mate)) => Err(AddressError::Ambiguous { candidates: vec![typed.clone(), mate], address: typed }),
        (false, None) => {
            let near = near(&typed, &agents::list::names(core).await?);
            Err(AddressError::Unknown { address: typed, near })
        }
    }
}

async fn exists(core: &Core, remote: &RemoteCache, name: &AgentName) -> Result<bool, store::StoreError> {
    // An unreadable record is an error here, before anything is stored.
    Ok(remote.presence(name, core.machine.now()).is_some() || agents::list::load_agent(core, name).await?.is_some())
}

/// The owners of all inboxes, including agents whose records were cleaned up.
pub(crate) async fn inbox_owners(core: &Core) -> Result<BTreeSet<AgentName>, store::StoreError> {
    let keys = core.shared.list(&keys::agents()).await?;
    Ok(keys.iter().filter_map(|key| Key::decode(key.segments().nth(1)?).parse().ok()).collect())
}

/// Suggestions for a name that does not exist, likeliest first.
fn near(wanted: &AgentName, names: &[AgentName]) -> Vec<AgentName> {
    let mut scored: Vec<(f64, &AgentName)> = names
        .iter()
        .filter(|name| !name.is_shell())
        .map(|name| (likeness(wanted, name), name))
        .filter(|(score, _)| *score > 0.75)
        .collect();
    scored.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.cmp(b)));
    scored.into_iter().take(3).map(|(_, name)| name.clone()).collect()
}

fn likeness(wanted: &AgentName, name: &AgentName) -> f64 {
    let (wanted, name) = (wanted.local(), name.local());
    if name.starts_with(wanted) || wanted.starts_with(name) {
        0.99
    } else if wanted.len().min(name.len()) > 2 && strsim::osa_distance(wanted, name) == 1 {
        // One slip of the fingers. In short names it leaves too little in common for the other measure.
        0.98
    } else {
        strsim::jaro_winkler(wanted, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: &str, names: &str, expected: &str) {
        let names: Vec<AgentName> = names.split(' ').map(|name| name.parse().expect("a name")).collect();
        let near = near(&wanted.parse().expect("a name"), &names);
        assert_eq!(near.iter().map(AgentName::as_str).collect::<Vec<_>>().join(" "), expected, "for {wanted}");
    }

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        check("build", "builder zoe alice", "builder");
        check("alcie", "builder zoe alice", "alice");
        check("alice", "alice@backend bob", "alice@backend");
        check("alice-2", "alice bob", "alice");
        check("q", "alice bob", "");
        check("bbo", "alice bob", "bob");
        check("bib", "alice bob", "bob");
        check("zbc", "alice bob", "");
        check("ax", "ay", "");
    }
}
