//! The ownership of keys. Several machines share one server, and a server's permissions are by subject: each machine
//! writes under its own name and nowhere else. This decides which of those messages count, by a rule that the mesh
//! passes in: a home is a key whose values and logs belong to the machine that was first to write there, and data of
//! other machines there is ignored. An operator may move a home (`moving.rs`): the record of a move outweighs those of
//! the machines, and only an operator may write it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::message::StreamMessage;
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};
use store::{Key, StoreError};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::errors::{again_if_late, server_error};
use crate::{subjects, values};

/// Prefix of the keys that record the owner of a home.
const OWNERS: &str = "_homes/";
/// Replaces the machine's name in an operator's subjects. No machine's name begins with `_`.
pub(crate) const OPERATORS: &str = "_moved";
/// How long an owner is cached. A move waits longer than this.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(5);

/// The owners of homes that this process has read. Written by each lookup.
pub(crate) type OwnerCache = std::sync::Mutex<BTreeMap<Key, CachedOwner>>;

/// An owner, and when it was read.
pub(crate) struct CachedOwner {
    having: Arc<Ownership>,
    at: Instant,
    /// The number of the connection: a process that slept through a move has lost its connection.
    made: u64,
}

/// The owner of a home, and the former ones. Also the text that an operator writes for a moved home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ownership {
    // `host` stands in the records of meshes of before 0.1.
    #[serde(alias = "host")]
    pub(crate) machine: String,
    /// Former owners, oldest first.
    #[serde(default)]
    pub(crate) before: Vec<FormerOwner>,
}

/// A machine that had the home before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FormerOwner {
    // `host` stands in the records of meshes of before 0.1.
    #[serde(alias = "host")]
    pub(crate) machine: String,
    /// The sequence of the stream of logs up to which its entries count for the home. None while the home is being
    /// moved.
    pub(crate) until: Option<u64>,
}

impl Ownership {
    /// Whether a machine's entries counted for the home when the stream of logs was at a sequence.
    pub(crate) fn spoke(&self, machine: &str, sequence: u64) -> bool {
        let did =
            |former: &FormerOwner| former.machine == machine && former.until.is_none_or(|until| sequence <= until);
        self.machine == machine || self.before.iter().any(did)
    }
}

/// The home of a key. The floor of a log belongs to the log's home.
pub(crate) fn home_of(connection: &Connection, key: &Key) -> Option<Key> {
    let homes = connection.homes.as_ref()?;
    match key.as_str().strip_prefix(crate::logs::RETIRED).map(str::parse) {
        Some(Ok(log)) => homes.home_of(&log),
        Some(Err(_)) | None => homes.home_of(key),
    }
}

/// The machine that has a home; none if no machine has written there.
pub(crate) async fn machine_of(connection: &Connection, home: &Key) -> Result<Option<String>, StoreError> {
    Ok(having(connection, home).await?.map(|having| having.machine.clone()))
}

/// The owner of a home and the former ones; none if no machine has written there.
pub(crate) async fn having(connection: &Connection, home: &Key) -> Result<Option<Arc<Ownership>>, StoreError> {
    if let Some(having) = remembered(connection, home) {
        return Ok(Some(having));
    }
    let made = *connection.made.borrow();
    let learned = match tokio::try_join!(moved(connection, home), first_writer(connection, home))? {
        (Some((_, having)), _) => Some(having),
        (None, machine) => machine.map(|machine| Ownership { machine, before: Vec::new() }),
    };
    let Some(having) = learned.map(Arc::new) else { return Ok(None) };
    let learned = CachedOwner { having: Arc::clone(&having), at: Instant::now(), made };
    connection.known.lock().expect("no holder of this lock panics").insert(home.clone(), learned);
    Ok(Some(having))
}

/// Caches the owners of all homes under a prefix in one request, except for homes with records of several machines.
pub(crate) async fn learn(connection: &Connection, prefix: &Key) -> Result<(), StoreError> {
    let made = *connection.made.borrow();
    let bucket = connection.options.map_bucket();
    let stream = connection.map().await?;
    let told = |error: Box<dyn std::error::Error + Send + Sync>| server_error("could not list", prefix)(error);
    let [under, _] = subjects::values_under(&bucket, &owner_key(prefix));
    let asked = again_if_late(|| stream.info_with_subjects(under.as_str())).await;
    let mut there = asked.map_err(|error| told(error.into()))?;
    let mut owners: BTreeMap<Key, Vec<String>> = BTreeMap::new();
    while let Some((subject, _)) = there.try_next().await.map_err(|error| told(error.into()))? {
        let record = subjects::value_of(&bucket, &subject);
        let home = record.and_then(|(machine, key)| Some((machine, key.as_str().strip_prefix(OWNERS)?.parse().ok()?)));
        if let Some((machine, home)) = home {
            owners.entry(home).or_default().push(machine);
        }
    }
    let at = Instant::now();
    let mut known = connection.known.lock().expect("no holder of this lock panics");
    for (home, machines) in owners {
        if let [machine] = machines.as_slice()
            && machine != OPERATORS
        {
            let having = Arc::new(Ownership { machine: machine.clone(), before: Vec::new() });
            known.insert(home, CachedOwner { having, at, made });
        }
    }
    Ok(())
}

/// The owners of homes by these messages: the machines' records, and operators'. `told` yields the key, the machine, the
/// sequence and the text of each.
pub(crate) fn tell<'a>(
    told: impl Iterator<Item = (&'a Key, &'a str, u64, &'a [u8])>,
) -> Result<BTreeMap<Key, Arc<Ownership>>, StoreError> {
    let mut first: BTreeMap<Key, (u64, Ownership)> = BTreeMap::new();
    for (key, machine, sequence, text) in told {
        let Some(Ok(home)) = key.as_str().strip_prefix(OWNERS).map(str::parse::<Key>) else { continue };
        let (sequence, having) = if machine == OPERATORS {
            (0, written(&home, text)?)
        } else {
            (sequence, Ownership { machine: machine.to_owned(), before: Vec::new() })
        };
        match first.get(&home) {
            Some((before, _)) if *before < sequence => {}
            Some(_) | None => drop(first.insert(home, (sequence, having))),
        }
    }
    Ok(first.into_iter().map(|(home, (_, having))| (home, Arc::new(having))).collect())
}

/// Caches owners that were just read.
pub(crate) fn note<'a>(connection: &Connection, made: u64, homes: impl Iterator<Item = (&'a Key, &'a Arc<Ownership>)>) {
    let at = Instant::now();
    let mut known = connection.known.lock().expect("no holder of this lock panics");
    for (home, having) in homes {
        known.insert(home.clone(), CachedOwner { having: Arc::clone(having), at, made });
    }
}

/// Drops a home from the cache: its owner may have changed.
pub(crate) fn forget(connection: &Connection, home: &Key) {
    connection.known.lock().expect("no holder of this lock panics").remove(home);
}

/// What an operator wrote for a home, and its revision. None if it was never moved.
pub(crate) async fn moved(connection: &Connection, home: &Key) -> Result<Option<(u64, Ownership)>, StoreError> {
    let subject = subjects::of_value(&connection.options.map_bucket(), OPERATORS, &owner_key(home));
    let Some(message) = values::newest(connection, &subject, home).await? else { return Ok(None) };
    Ok(Some((message.sequence, written(home, &message.payload)?)))
}

/// Parses what an operator wrote for a home.
fn written(home: &Key, text: &[u8]) -> Result<Ownership, StoreError> {
    serde_json::from_slice(text).map_err(|error| StoreError::Damaged {
        what: format!("what an operator wrote of {home}"),
        why: error.to_string(),
    })
}

/// The machine whose record of a home is the first. None is written twice.
async fn first_writer(connection: &Connection, home: &Key) -> Result<Option<String>, StoreError> {
    let mut from = 1;
    while let Some(record) = values::first(connection, &owner_key(home), from).await? {
        if values::is_value(&record)
            && let Some(machine) = machine_in(connection, &record)
            && machine != OPERATORS
        {
            return Ok(Some(machine));
        }
        from = record.sequence + 1;
    }
    Ok(None)
}

/// The machine that has a home. Records this machine as its owner if no machine has it.
pub(crate) async fn settle(connection: &Connection, home: &Key) -> Result<String, StoreError> {
    loop {
        if let Some(machine) = machine_of(connection, home).await? {
            return Ok(machine);
        }
        values::become_owner(connection, &owner_key(home)).await?;
    }
}

/// Refuses a write in another machine's home. Takes the home if no machine has it.
pub(crate) async fn ours(connection: &Connection, home: &Key) -> Result<(), StoreError> {
    let machine = settle(connection, home).await?;
    if machine == connection.options.machine {
        Ok(())
    } else {
        Err(StoreError::Elsewhere { what: home.to_string(), machine })
    }
}

/// The machine that wrote a value.
pub(crate) fn machine_in(connection: &Connection, message: &StreamMessage) -> Option<String> {
    subjects::value_of(&connection.options.map_bucket(), &message.subject).map(|(machine, _)| machine)
}

/// The key that records the owner of a home.
pub(crate) fn owner_key(home: &Key) -> Key {
    format!("{OWNERS}{home}").parse().unwrap_or_else(|_| home.clone())
}

fn remembered(connection: &Connection, home: &Key) -> Option<Arc<Ownership>> {
    let made = *connection.made.borrow();
    let known = connection.known.lock().expect("no holder of this lock panics");
    let learned = known.get(home).filter(|learned| learned.at.elapsed() < REMEMBERED && learned.made == made);
    learned.map(|learned| Arc::clone(&learned.having))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_speaks_for_a_home_until_it_was_moved() {
        let former = |machine: &str, until| FormerOwner { machine: machine.to_owned(), until };
        let having =
            Ownership { machine: "new".to_owned(), before: vec![former("first", Some(10)), former("old", None)] };
        for (machine, sequence, spoke) in [
            ("new", 1, true),
            ("new", 99, true),
            ("first", 10, true),
            ("first", 11, false),
            ("old", 99, true),
            ("another", 1, false),
        ] {
            assert_eq!(having.spoke(machine, sequence), spoke, "{machine} at {sequence}");
        }
    }
}
