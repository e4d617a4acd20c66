//! Which machine owns a key, for a store that several machines share. An agent lives on one machine, and only that
//! machine writes the agent's keys: its record, its receipts, what it sent. Its inbox is open to all machines, but a
//! message in it counts only if the sender's machine wrote it. Keys with several owners, such as a repository's
//! reservations, are merged from the parts that each machine may decide.
//!
//! Pure functions: the store calls them and acts on the answer. See docs/adr/0010.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use store::Key;
use store::MachinePart;

use crate::commands::{Command, CommandStage};
use crate::names::{AgentName, MessageId};
use crate::reservations::Reservation;
use crate::reservations::ledger::Ledger;
use crate::storage::{keys, records};

/// The ownership rules of a shared store.
#[derive(Clone, Copy, Debug)]
pub struct AgentOwnership;

/// The machine that each home belongs to.
type Owners = BTreeMap<Key, String>;

impl store::Ownership for AgentOwnership {
    fn home_of(&self, key: &Key) -> Option<Key> {
        let mut segments = key.segments();
        let (Some("agents"), Some(_), Some(_)) = (segments.next(), segments.next(), segments.next()) else {
            return None;
        };
        let name: AgentName = Key::decode(key.segments().nth(1)?).parse().ok()?;
        home(&name)
    }

    fn is_open(&self, log: &Key) -> bool {
        log.segments().count() == 3 && log.segments().next_back() == Some("inbox")
    }

    fn speaker(&self, _: &Key, entry: &[u8]) -> Option<Key> {
        // An entry without a sender is not a message; its reader reports it as damaged.
        serde_json::from_slice::<Spoken>(entry).ok().and_then(|spoken| home(&spoken.from))
    }

    fn owners_needed(&self, key: &Key, parts: &[MachinePart]) -> BTreeSet<Key> {
        let mut names = BTreeSet::new();
        for part in parts {
            if key.is_under(&keys::reservations()) {
                for one in ledger(part).into_iter().flat_map(|ledger| ledger.reservations) {
                    names.extend(one.taken.map(|taken| taken.by));
                    names.insert(one.owner);
                }
            } else if let (true, Some(command)) = (key.is_under(&keys::commands()), command(part)) {
                names.extend([command.from, command.to]);
            }
        }
        names.iter().filter_map(home).collect()
    }

    fn merge(&self, key: &Key, parts: &[MachinePart], machines: &Owners) -> Option<Vec<u8>> {
        // An unreadable part is one machine's fault and is ignored. If no part is readable, one is returned as it is,
        // so that the reader reports the damage.
        let any = || parts.last().map(|part| part.bytes.clone());
        if key.is_under(&keys::reservations()) {
            let readable: Vec<(&str, Ledger)> =
                parts.iter().filter_map(|part| Some((part.machine.as_str(), ledger(part)?))).collect();
            if readable.is_empty() {
                any()
            } else {
                reservations(readable, machines).map(|ledger| records::json(&ledger))
            }
        } else if key.is_under(&keys::commands()) {
            let readable: Vec<(&str, Command)> =
                parts.iter().filter_map(|part| Some((part.machine.as_str(), command(part)?))).collect();
            if readable.is_empty() {
                any()
            } else {
                of_command(&readable, machines).map(|command| records::json(&command))
            }
        } else {
            any()
        }
    }
}

/// The one field of a message that names its sender.
#[derive(Deserialize)]
struct Spoken {
    from: AgentName,
}

/// The key of an agent's home. The anonymous command line has none.
fn home(name: &AgentName) -> Option<Key> {
    (!name.is_shell()).then(|| keys::agents().child(name.as_str()))
}

/// Whether a machine may write for an agent.
fn speaks(machine: &str, name: &AgentName, machines: &Owners) -> bool {
    home(name).is_none_or(|home| machines.get(&home).is_some_and(|has| has == machine))
}

fn ledger(part: &MachinePart) -> Option<Ledger> {
    serde_json::from_slice(&part.bytes).ok()
}

fn command(part: &MachinePart) -> Option<Command> {
    serde_json::from_slice(&part.bytes).ok()
}

/// Merges reservations: each is as its owner's machine wrote it, or taken over if the new owner's machine says so. Any
/// machine may mark that the former owner was told, since any process may send that notice.
fn reservations(parts: Vec<(&str, Ledger)>, machines: &Owners) -> Option<Ledger> {
    let repository = parts.first().map(|(_, ledger)| ledger.repository.clone())?;
    let mut counted: BTreeMap<MessageId, Reservation> = BTreeMap::new();
    let mut told: BTreeSet<MessageId> = BTreeSet::new();
    for (machine, ledger) in parts {
        for one in ledger.reservations {
            let counts = match &one.taken {
                Some(taken) => speaks(machine, &taken.by, machines),
                None => speaks(machine, &one.owner, machines) && !counted.contains_key(&one.id),
            };
            if one.taken.as_ref().is_some_and(|taken| taken.told) {
                told.insert(one.id);
            }
            if counts {
                counted.insert(one.id, one);
            }
        }
    }
    for taken in counted.values_mut().filter(|one| told.contains(&one.id)).filter_map(|one| one.taken.as_mut()) {
        taken.told = true;
    }
    // Ids sort by creation time.
    let ledger = Ledger { repository, reservations: counted.into_values().collect() };
    (!ledger.reservations.is_empty()).then_some(ledger)
}

/// Merges a command: the request is as the sender's machine wrote it, the stage as the recipient's machine wrote it.
fn of_command(parts: &[(&str, Command)], machines: &Owners) -> Option<Command> {
    let asked = |(machine, command): &&(&str, Command)| speaks(machine, &command.from, machines);
    let taken = |(machine, command): &&(&str, Command)| {
        speaks(machine, &command.to, machines) && command.stage != CommandStage::Pending { waits: None }
    };
    let order = match parts.iter().find(taken) {
        // The anonymous command line has no machine of its own, so the taker's copy of the request counts.
        Some((_, command)) if command.from.is_shell() => return Some(command.clone()),
        Some(_) | None => parts.iter().find(asked).map(|(_, command)| command)?,
    };
    let stage = parts.iter().filter(|(_, command)| command.to == order.to).find(taken);
    let stage = stage.map_or(CommandStage::Pending { waits: None }, |(_, command)| command.stage.clone());
    Some(Command { stage, ..order.clone() })
}

#[cfg(test)]
mod tests;
