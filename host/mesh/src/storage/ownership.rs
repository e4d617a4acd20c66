//! Whose a key is, for a store that several machines share. An agent lives on one machine, and what is kept
//! under its name is that machine's to write: its record, its receipts, what it sent. Its inbox is open
//! to all, and a message in it counts only where it comes from its sender's machine. What belongs to
//! nobody alone, as a repository's reservations do, is put together from what each machine may say.
//!
//! Pure: the store asks, and acts on the answer. See docs/adr/0010.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use store::Key;
use store::nats::Part;

use crate::commands::{Command, CommandStage};
use crate::names::{AgentName, MessageId};
use crate::reservations::Reservation;
use crate::reservations::ledger::Ledger;
use crate::storage::{keys, records};

/// The rule by which a store that machines share keeps each to its own.
#[derive(Clone, Copy, Debug)]
pub struct Homes;

/// Who has which home.
type Hosts = BTreeMap<Key, String>;

impl store::nats::Homes for Homes {
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
        // What names no sender is no message, and whoever reads it says so.
        serde_json::from_slice::<Spoken>(entry).ok().and_then(|spoken| home(&spoken.from))
    }

    fn voices(&self, key: &Key, parts: &[Part]) -> BTreeSet<Key> {
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

    fn together(&self, key: &Key, parts: &[Part], hosts: &Hosts) -> Option<Vec<u8>> {
        // A part that cannot be read is one machine's fault. Where none can, whoever reads is told.
        let any = || parts.last().map(|part| part.bytes.clone());
        if key.is_under(&keys::reservations()) {
            let readable: Vec<(&str, Ledger)> =
                parts.iter().filter_map(|part| Some((part.host.as_str(), ledger(part)?))).collect();
            if readable.is_empty() { any() } else { reservations(readable, hosts).map(|ledger| records::json(&ledger)) }
        } else if key.is_under(&keys::commands()) {
            let readable: Vec<(&str, Command)> =
                parts.iter().filter_map(|part| Some((part.host.as_str(), command(part)?))).collect();
            if readable.is_empty() {
                any()
            } else {
                of_command(&readable, hosts).map(|command| records::json(&command))
            }
        } else {
            any()
        }
    }
}

/// All that must be read of a message to know who sent it.
#[derive(Deserialize)]
struct Spoken {
    from: AgentName,
}

/// Where an agent's things lie. The anonymous command line is nobody.
fn home(name: &AgentName) -> Option<Key> {
    (!name.is_shell()).then(|| keys::agents().child(name.as_str()))
}

/// Whether a machine may speak for an agent.
fn speaks(host: &str, name: &AgentName, hosts: &Hosts) -> bool {
    home(name).is_none_or(|home| hosts.get(&home).is_some_and(|has| has == host))
}

fn ledger(part: &Part) -> Option<Ledger> {
    serde_json::from_slice(&part.bytes).ok()
}

fn command(part: &Part) -> Option<Command> {
    serde_json::from_slice(&part.bytes).ok()
}

/// Every reservation as its owner's machine has it; and as taken, where the machine of whoever took it says
/// so. That its owner was told may be said by any, for whoever comes by sees to it.
fn reservations(parts: Vec<(&str, Ledger)>, hosts: &Hosts) -> Option<Ledger> {
    let repository = parts.first().map(|(_, ledger)| ledger.repository.clone())?;
    let mut counted: BTreeMap<MessageId, Reservation> = BTreeMap::new();
    let mut told: BTreeSet<MessageId> = BTreeSet::new();
    for (host, ledger) in parts {
        for one in ledger.reservations {
            let counts = match &one.taken {
                Some(taken) => speaks(host, &taken.by, hosts),
                None => speaks(host, &one.owner, hosts) && !counted.contains_key(&one.id),
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
    // Ids are in the order in which they were made.
    let ledger = Ledger { repository, reservations: counted.into_values().collect() };
    (!ledger.reservations.is_empty()).then_some(ledger)
}

/// A command as the machine of whoever asked has it, and as far as the machine of whoever runs it says.
fn of_command(parts: &[(&str, Command)], hosts: &Hosts) -> Option<Command> {
    let asked = |(host, command): &&(&str, Command)| speaks(host, &command.from, hosts);
    let taken = |(host, command): &&(&str, Command)| {
        speaks(host, &command.to, hosts) && command.stage != CommandStage::Pending { waits: None }
    };
    let order = match parts.iter().find(taken) {
        // The anonymous command line is on no machine: what was taken is what had been asked.
        Some((_, command)) if command.from.is_shell() => return Some(command.clone()),
        Some(_) | None => parts.iter().find(asked).map(|(_, command)| command)?,
    };
    let stage = parts.iter().filter(|(_, command)| command.to == order.to).find(taken);
    let stage = stage.map_or(CommandStage::Pending { waits: None }, |(_, command)| command.stage.clone());
    Some(Command { stage, ..order.clone() })
}

#[cfg(test)]
mod tests;
