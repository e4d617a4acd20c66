//! Deletes the records of agents that were silent for a long time.

use std::collections::BTreeSet;

use store::{Durability, StoreError, SwapError};

use crate::agents::presence::is_here;
use crate::agents::{Agent, list, presence};
use crate::commands::order;
use crate::core::Core;
use crate::messages::inboxes::Inboxes;
use crate::names::AgentName;
use crate::reservations;
use crate::storage::{keys, records};
use crate::{DryRun, ReservationFilter};

/// Deletes the records of stale agents. Their mail, all of it settled, stays until its segments are old: the next agent
/// of that name finds a message that is being stored right now.
pub(crate) async fn clean_up_agents(
    core: &Core,
    inboxes: &Inboxes,
    dry_run: DryRun,
    stale: u64,
) -> Result<Vec<AgentName>, StoreError> {
    let held = reservations::list::reservations(core, &ReservationFilter::default()).await?;
    let holding: BTreeSet<&AgentName> =
        held.iter().flat_map(|listed| &listed.reservations).map(|one| &one.owner).collect();
    let now = core.machine.now();
    let asked: BTreeSet<AgentName> = order::commands(core, None)
        .await?
        .into_iter()
        .filter(|command| !command.standing(now).is_final())
        .map(|command| command.to)
        .collect();
    let mut cleanup = Vec::new();
    for name in list::names(core).await? {
        let key = keys::meta(&name);
        let (revision, agent) = match records::load::<Agent>(core.shared.as_ref(), &key).await {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            // `status` names a damaged record. It must not keep everything else from being deleted.
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::warn!(agent = %name, %error, "an agent is skipped");
                continue;
            }
            Err(error) => return Err(error),
        };
        // An agent of another machine gives no sign of life here.
        if agent.machine != core.machine.name() || holding.contains(&name) || asked.contains(&name) {
            continue;
        }
        let seen = match presence::seen(core, inboxes, agent).await {
            Ok(seen) => seen,
            // Its session's record, which does not say whether it lives.
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::warn!(agent = %name, %error, "an agent is skipped");
                continue;
            }
            Err(error) => return Err(error),
        };
        let silent = seen.last_heard.is_none_or(|heard| now.since(heard) >= stale);
        if is_here(seen.presence) || !silent || seen.waiting > 0 {
            continue;
        }
        if dry_run == DryRun::No {
            match core.shared.swap(&key, Some(revision), None, Durability::Process).await {
                Ok(_) => {}
                // The agent has just come back.
                Err(SwapError::Changed { .. }) => continue,
                Err(SwapError::Store(error)) => return Err(error),
            }
            let rest = [
                (&core.shared, keys::heartbeat(&name)),
                (&core.shared, keys::channels_of(&name)),
                (&core.local, keys::work(&name)),
            ];
            for (store, key) in rest {
                let gone = |_: Option<serde_json::Value>| (records::Next::Remove, ());
                if store.get(&key).await?.is_some() {
                    records::update(store.as_ref(), &key, Durability::Process, gone).await?;
                }
            }
        }
        cleanup.push(name);
    }
    Ok(cleanup)
}
