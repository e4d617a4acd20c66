//! The children of a prefix, read in bulk: their newest messages come in a few requests of a thousand each, instead of
//! one request per key. They are cached; the next read requests only newer messages, and the count, which shows
//! removals. So the result is always what the leader has, never a stale cache.
//!
//! Only for a stream with one replica, whose leader answers direct reads. Otherwise each key is read by itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::stream::Stream;
use futures::TryStreamExt;
use futures::future::try_join_all;
use store::backend::Gathered;
use store::{ChildLeaf, Key, Leaf, Revision, StoreError, Versioned};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::direct::{self, Answers};
use crate::errors::{again_if_late, server_error};
use crate::ownership::{self, Ownership};
use crate::{subjects, values};

/// The most bytes per request.
const PIECE: usize = 1 << 20;
/// How long an unused cache entry stays.
const KEPT: Duration = Duration::from_secs(600);
/// How often to catch up before reading everything again: a write may fall between the two requests of a read.
const TRIES: usize = 2;

/// The newest messages as of the last read, by subject filter. One task reads at a time: a second one would send the
/// same requests.
pub(crate) type ChildrenCache = Mutex<BTreeMap<String, NewestMessages>>;

/// The newest messages at some subjects.
pub(crate) struct NewestMessages {
    messages: BTreeMap<String, NewestMessage>,
    /// The sequence of the last one read.
    through: u64,
    /// The number of the connection: after a reconnect it may be another server.
    made: u64,
    looked: Instant,
}

/// One message, decoded.
struct NewestMessage {
    /// The machine and the key; none if the subject is not one of ours.
    at: Option<(String, Key)>,
    sequence: u64,
    /// None for a removal marker.
    bytes: Option<Vec<u8>>,
}

impl NewestMessages {
    fn nothing(made: u64) -> NewestMessages {
        NewestMessages { messages: BTreeMap::new(), through: 0, made, looked: Instant::now() }
    }

    /// The values, each with its key, the machine that wrote it and its sequence.
    fn values(&self) -> impl Iterator<Item = (&Key, &str, u64, &[u8])> {
        self.messages.values().filter_map(|known| {
            let (machine, key) = known.at.as_ref()?;
            Some((key, machine.as_str(), known.sequence, known.bytes.as_deref()?))
        })
    }
}

/// The keys right below a prefix that have a value of this name, with their other leaves. None if they cannot be read
/// in bulk.
pub(crate) async fn children(
    connection: &Connection,
    prefix: &Key,
    leaf: &str,
    beside: &[Leaf<'_>],
) -> Result<Option<Vec<Gathered>>, StoreError> {
    let map = connection.map().await?;
    let lies = |name: &str| prefix.child("one").child(name);
    let values_beside = beside.iter().filter_map(|leaf| match leaf {
        Leaf::Value(name) => Some(*name),
        Leaf::Log(_) => None,
    });
    let names: Vec<&str> = std::iter::once(leaf).chain(values_beside).collect();
    // A value outside all homes is merged from the parts of all machines, key by key.
    let in_homes = |name: &&str| connection.homes.is_none() || ownership::home_of(connection, &lies(name)).is_some();
    let one_each = map.cached_info().config.max_messages_per_subject == 1;
    if !one_each || !names.iter().all(in_homes) || direct::answers(connection, &map).await != Answers::Leader {
        return Ok(None);
    }
    let bucket = connection.options.map_bucket();
    let mut wanted: Vec<String> = names.iter().map(|name| subjects::values_called(&bucket, prefix, name)).collect();
    if connection.homes.is_some() {
        wanted.push(subjects::values_right_below(&bucket, &ownership::owner_key(prefix)));
    }
    let made = *connection.made.borrow();
    let mut kept = connection.children.lock().await;
    kept.retain(|_, newest| newest.made == made && newest.looked.elapsed() < KEPT);
    let looks = wanted.iter().map(|subject| {
        let newest = kept.remove(subject).unwrap_or_else(|| NewestMessages::nothing(made));
        look(connection, &map, subject, newest)
    });
    // Taken out of the cache while it is updated: if this is cancelled, the next call reads everything again.
    let looks: Vec<_> = looks.collect();
    let logs = beside.iter().map(|leaf| appends(connection, prefix, *leaf));
    let (looked, logs) = tokio::try_join!(try_join_all(looks), try_join_all(logs))?;
    let Some(looked) = looked.into_iter().collect::<Option<Vec<NewestMessages>>>() else { return Ok(None) };
    let homes = match (&connection.homes, looked.last()) {
        (Some(_), Some(owners)) => Some(ownership::tell(owners.values())?),
        (Some(_) | None, _) => None,
    };
    if let (Some(homes), false) = (&homes, beside.is_empty()) {
        // A caller that asks for more than the values goes on to read other keys of these homes.
        ownership::note(connection, made, homes.iter());
    }
    let glance = Glance { prefix, leaf, beside, looked: &looked, logs: &logs, homes: homes.as_ref() };
    let children = glance.children(connection);
    kept.extend(wanted.into_iter().zip(looked));
    Ok(Some(children))
}

/// Brings the cache of some subjects up to date. None if no server answered completely.
async fn look(
    connection: &Connection,
    stream: &Stream,
    subject: &str,
    mut newest: NewestMessages,
) -> Result<Option<NewestMessages>, StoreError> {
    for attempt in 1.. {
        let (caught_up, there) = tokio::join!(
            catch_up(connection, stream, subject, &mut newest),
            direct::count(connection, stream, subject)
        );
        let (Some(()), Some(there)) = (caught_up?, there?) else { return Ok(None) };
        newest.looked = Instant::now();
        // If the removal marker has expired too, only the count shows the removal.
        if newest.messages.len() as u64 == there || attempt > 2 * TRIES {
            break;
        }
        if attempt == TRIES {
            newest = NewestMessages::nothing(newest.made);
        }
    }
    Ok(Some(newest))
}

/// Adds the messages written since. None if no server answered completely.
async fn catch_up(
    connection: &Connection,
    stream: &Stream,
    subject: &str,
    newest: &mut NewestMessages,
) -> Result<Option<()>, StoreError> {
    let bucket = connection.options.map_bucket();
    loop {
        let stretch = direct::stretch(connection, stream, subject, newest.through + 1, (direct::MOST, PIECE)).await?;
        let Some(stretch) = stretch else { return Ok(None) };
        for message in stretch.messages {
            newest.through = message.sequence;
            let bytes = values::is_value(&message).then(|| message.payload.to_vec());
            let at = subjects::value_of(&bucket, &message.subject);
            newest
                .messages
                .insert(message.subject.to_string(), NewestMessage { at, sequence: message.sequence, bytes });
        }
        if stretch.at_end {
            return Ok(Some(()));
        }
    }
}

/// The number of appends in the logs of one name, by log and machine. Empty for a value.
async fn appends(connection: &Connection, prefix: &Key, leaf: Leaf<'_>) -> Result<Appends, StoreError> {
    let mut appends = Appends::new();
    let Leaf::Log(name) = leaf else { return Ok(appends) };
    let stream = connection.logs().await?;
    let told = |error: Box<dyn std::error::Error + Send + Sync>| server_error("could not list", prefix)(error);
    let subject = subjects::logs_called(&connection.options, prefix, name);
    let asked = again_if_late(|| stream.info_with_subjects(subject.as_str())).await;
    let mut there = asked.map_err(|error| told(error.into()))?;
    while let Some((subject, count)) = there.try_next().await.map_err(|error| told(error.into()))? {
        let machine = subjects::machine_of_entry(&connection.options, &subject).map(str::to_owned);
        if let Some((machine, log)) = machine.zip(subjects::log_of(&connection.options, &subject)) {
            appends.entry(log).or_default().push((machine, count as u64));
        }
    }
    Ok(appends)
}

/// The number of appends by log and machine.
type Appends = BTreeMap<Key, Vec<(String, u64)>>;

/// The results of one read.
struct Glance<'a> {
    prefix: &'a Key,
    leaf: &'a str,
    beside: &'a [Leaf<'a>],
    /// The values, the other values in the order of the request, and the owners.
    looked: &'a [NewestMessages],
    /// The appends of each other log; empty for a value.
    logs: &'a [Appends],
    /// The owner of each home; none without an ownership rule.
    homes: Option<&'a BTreeMap<Key, Arc<Ownership>>>,
}

impl Glance<'_> {
    fn children(&self, connection: &Connection) -> Vec<Gathered> {
        let Some((own, others)) = self.looked.split_first() else { return Vec::new() };
        let mut children: BTreeMap<Key, Gathered> = self
            .counting(connection, own)
            .filter_map(|(key, value)| {
                let child = self.child_of(key, self.leaf)?;
                Some((child.clone(), Gathered { key: child, value: Ok(value), beside: Vec::new() }))
            })
            .collect();
        let mut others = others.iter();
        for (leaf, logs) in self.beside.iter().zip(self.logs) {
            match leaf {
                Leaf::Value(name) => {
                    let Some(newest) = others.next() else { continue };
                    let values = self.counting(connection, newest);
                    let mut values: BTreeMap<Key, Versioned> =
                        values.filter_map(|(key, value)| Some((self.child_of(key, name)?, value))).collect();
                    for child in children.values_mut() {
                        let value = values.remove(&child.key);
                        child.beside.push(value.map_or(ChildLeaf::Nothing, |value| ChildLeaf::Value(Ok(value))));
                    }
                }
                Leaf::Log(name) => {
                    for child in children.values_mut() {
                        let log = child.key.child(name);
                        let count = self.appends(connection, &log, logs.get(&log).map_or(&[][..], Vec::as_slice));
                        child.beside.push(if count == 0 { ChildLeaf::Nothing } else { ChildLeaf::Appends(count) });
                    }
                }
            }
        }
        children.into_values().collect()
    }

    /// The values that count.
    fn counting<'a>(
        &self,
        connection: &Connection,
        newest: &'a NewestMessages,
    ) -> impl Iterator<Item = (&'a Key, Versioned)> {
        newest.values().filter_map(|(key, machine, sequence, bytes)| {
            let counts = match self.homes {
                Some(homes) => ownership::home_of(connection, key).is_some_and(|home| is_of(homes, &home, machine)),
                None => machine == values::EVERYBODY,
            };
            counts.then(|| (key, Versioned { revision: Revision(sequence), bytes: bytes.to_vec() }))
        })
    }

    /// Number of appends in a log that count, or may count.
    fn appends(&self, connection: &Connection, log: &Key, by_machine: &[(String, u64)]) -> u64 {
        let open = connection.homes.as_ref().is_none_or(|rule| rule.is_open(log));
        let home = self.homes.and_then(|homes| Some((homes, ownership::home_of(connection, log)?)));
        let counts = |machine: &str| open || home.as_ref().is_none_or(|(homes, home)| is_of(homes, home, machine));
        by_machine.iter().filter(|(machine, _)| counts(machine)).map(|(_, count)| count).sum()
    }

    /// The key right below the prefix that a value of this name belongs to.
    fn child_of(&self, key: &Key, leaf: &str) -> Option<Key> {
        let child = key.as_str().strip_suffix(leaf)?.strip_suffix('/')?;
        let name = child.strip_prefix(self.prefix.as_str())?.strip_prefix('/')?;
        if name.contains('/') { None } else { child.parse().ok() }
    }
}

fn is_of(homes: &BTreeMap<Key, Arc<Ownership>>, home: &Key, machine: &str) -> bool {
    homes.get(home).is_some_and(|having| having.machine == machine)
}
