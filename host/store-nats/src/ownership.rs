//! Whose a key is. Several hosts share one server, and a server's permissions know subjects alone: each
//! host writes under its own name and nowhere else. What counts of all that is decided here, by a rule
//! that the mesh lends: a home is a key whose values and logs belong to the host that was first to
//! write there, and whatever others put beside it is as if it were not there. An operator may move a home
//! (`moving.rs`): what is written of that outweighs every claim, and only an operator may write there.

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

/// Under what it is written who has a home.
const CLAIMS: &str = "_homes/";
/// Stands where a host would in what an operator writes of a home. No host's name begins so.
pub(crate) const OPERATORS: &str = "_moved";
/// How long it is remembered who has a home before it is asked for again. Whoever moves one waits for longer.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(5);

/// The homes of which this process has learned who has them. Written by whoever asks.
pub(crate) type OwnerCache = std::sync::Mutex<BTreeMap<Key, CachedOwner>>;

/// What was learned of a home, and when.
pub(crate) struct CachedOwner {
    having: Arc<Ownership>,
    at: Instant,
    /// How often the connection had been made by then. A process that slept through a move has lost its own.
    made: u64,
}

/// Who has a home, and had it before: also what an operator writes of one that was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ownership {
    pub(crate) host: String,
    /// The oldest first.
    #[serde(default)]
    pub(crate) before: Vec<FormerOwner>,
}

/// A host that had a home once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FormerOwner {
    pub(crate) host: String,
    /// The sequence of the stream of logs up to which it spoke for the home. None while the home is being moved.
    pub(crate) until: Option<u64>,
}

impl Ownership {
    /// Whether a host spoke for the home when the stream of logs was at a sequence.
    pub(crate) fn spoke(&self, host: &str, sequence: u64) -> bool {
        let did = |former: &FormerOwner| former.host == host && former.until.is_none_or(|until| sequence <= until);
        self.host == host || self.before.iter().any(did)
    }
}

/// The home that a key lies in, notes about it included.
pub(crate) fn home_of(connection: &Connection, key: &Key) -> Option<Key> {
    let homes = connection.homes.as_ref()?;
    match key.as_str().strip_prefix(crate::logs::RETIRED).map(str::parse) {
        Some(Ok(log)) => homes.home_of(&log),
        Some(Err(_)) | None => homes.home_of(key),
    }
}

/// The host that has a home; none before anybody has it.
pub(crate) async fn host_of(connection: &Connection, home: &Key) -> Result<Option<String>, StoreError> {
    Ok(having(connection, home).await?.map(|having| having.host.clone()))
}

/// Who has a home and had it before; none before anybody has it.
pub(crate) async fn having(connection: &Connection, home: &Key) -> Result<Option<Arc<Ownership>>, StoreError> {
    if let Some(having) = remembered(connection, home) {
        return Ok(Some(having));
    }
    let made = *connection.made.borrow();
    let learned = match tokio::try_join!(moved(connection, home), claimed(connection, home))? {
        (Some((_, having)), _) => Some(having),
        (None, host) => host.map(|host| Ownership { host, before: Vec::new() }),
    };
    let Some(having) = learned.map(Arc::new) else { return Ok(None) };
    let learned = CachedOwner { having: Arc::clone(&having), at: Instant::now(), made };
    connection.known.lock().expect("no holder of this lock panics").insert(home.clone(), learned);
    Ok(Some(having))
}

/// Learns at once who has the homes under a prefix, as far as one host alone has ever claimed each: whoever looks
/// at very many asks for none of them by itself then.
pub(crate) async fn learn(connection: &Connection, prefix: &Key) -> Result<(), StoreError> {
    let made = *connection.made.borrow();
    let bucket = connection.options.map_bucket();
    let stream = connection.map().await?;
    let told = |error: Box<dyn std::error::Error + Send + Sync>| server_error("could not list", prefix)(error);
    let [under, _] = subjects::values_under(&bucket, &claim_of(prefix));
    let asked = again_if_late(|| stream.info_with_subjects(under.as_str())).await;
    let mut there = asked.map_err(|error| told(error.into()))?;
    let mut claims: BTreeMap<Key, Vec<String>> = BTreeMap::new();
    while let Some((subject, _)) = there.try_next().await.map_err(|error| told(error.into()))? {
        let claim = subjects::value_of(&bucket, &subject);
        let home = claim.and_then(|(host, key)| Some((host, key.as_str().strip_prefix(CLAIMS)?.parse().ok()?)));
        if let Some((host, home)) = home {
            claims.entry(home).or_default().push(host);
        }
    }
    let at = Instant::now();
    let mut known = connection.known.lock().expect("no holder of this lock panics");
    for (home, hosts) in claims {
        if let [host] = hosts.as_slice()
            && host != OPERATORS
        {
            let having = Arc::new(Ownership { host: host.clone(), before: Vec::new() });
            known.insert(home, CachedOwner { having, at, made });
        }
    }
    Ok(())
}

/// Who has the homes of which these messages tell: claims, and what operators wrote. `told` gives the key of each,
/// its host, its sequence and its text.
pub(crate) fn tell<'a>(
    told: impl Iterator<Item = (&'a Key, &'a str, u64, &'a [u8])>,
) -> Result<BTreeMap<Key, Arc<Ownership>>, StoreError> {
    let mut first: BTreeMap<Key, (u64, Ownership)> = BTreeMap::new();
    for (claim, host, sequence, text) in told {
        let Some(Ok(home)) = claim.as_str().strip_prefix(CLAIMS).map(str::parse::<Key>) else { continue };
        let (sequence, having) = if host == OPERATORS {
            (0, written(&home, text)?)
        } else {
            (sequence, Ownership { host: host.to_owned(), before: Vec::new() })
        };
        match first.get(&home) {
            Some((before, _)) if *before < sequence => {}
            Some(_) | None => drop(first.insert(home, (sequence, having))),
        }
    }
    Ok(first.into_iter().map(|(home, (_, having))| (home, Arc::new(having))).collect())
}

/// Notes who has which home, as it was found out just now.
pub(crate) fn note<'a>(connection: &Connection, made: u64, homes: impl Iterator<Item = (&'a Key, &'a Arc<Ownership>)>) {
    let at = Instant::now();
    let mut known = connection.known.lock().expect("no holder of this lock panics");
    for (home, having) in homes {
        known.insert(home.clone(), CachedOwner { having: Arc::clone(having), at, made });
    }
}

/// Forgets who has a home: what was taken for granted has turned out to be otherwise.
pub(crate) fn forget(connection: &Connection, home: &Key) {
    connection.known.lock().expect("no holder of this lock panics").remove(home);
}

/// What an operator wrote of a home, and its revision. None where nobody ever moved it.
pub(crate) async fn moved(connection: &Connection, home: &Key) -> Result<Option<(u64, Ownership)>, StoreError> {
    let subject = subjects::of_value(&connection.options.map_bucket(), OPERATORS, &claim_of(home));
    let Some(message) = values::newest(connection, &subject, home).await? else { return Ok(None) };
    Ok(Some((message.sequence, written(home, &message.payload)?)))
}

/// What an operator wrote of a home.
fn written(home: &Key, text: &[u8]) -> Result<Ownership, StoreError> {
    serde_json::from_slice(text).map_err(|error| StoreError::Damaged {
        what: format!("what an operator wrote of {home}"),
        why: error.to_string(),
    })
}

/// Whose claim of a home came first. A claim is never written twice.
async fn claimed(connection: &Connection, home: &Key) -> Result<Option<String>, StoreError> {
    let mut from = 1;
    while let Some(claim) = values::first(connection, &claim_of(home), from).await? {
        if values::is_value(&claim)
            && let Some(host) = host_in(connection, &claim)
            && host != OPERATORS
        {
            return Ok(Some(host));
        }
        from = claim.sequence + 1;
    }
    Ok(None)
}

/// The host that has a home, which is ours from now on where it was nobody's.
pub(crate) async fn settle(connection: &Connection, home: &Key) -> Result<String, StoreError> {
    loop {
        if let Some(host) = host_of(connection, home).await? {
            return Ok(host);
        }
        values::claim(connection, &claim_of(home)).await?;
    }
}

/// Refuses what lies in another host's home. Takes the home where it is nobody's.
pub(crate) async fn ours(connection: &Connection, home: &Key) -> Result<(), StoreError> {
    let host = settle(connection, home).await?;
    if host == connection.options.host { Ok(()) } else { Err(StoreError::Elsewhere { what: home.to_string(), host }) }
}

/// The host that wrote a value.
pub(crate) fn host_in(connection: &Connection, message: &StreamMessage) -> Option<String> {
    subjects::value_of(&connection.options.map_bucket(), &message.subject).map(|(host, _)| host)
}

/// Where it is written who has a home.
pub(crate) fn claim_of(home: &Key) -> Key {
    format!("{CLAIMS}{home}").parse().unwrap_or_else(|_| home.clone())
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
        let former = |host: &str, until| FormerOwner { host: host.to_owned(), until };
        let having = Ownership { host: "new".to_owned(), before: vec![former("first", Some(10)), former("old", None)] };
        for (host, sequence, spoke) in [
            ("new", 1, true),
            ("new", 99, true),
            ("first", 10, true),
            ("first", 11, false),
            ("old", 99, true),
            ("another", 1, false),
        ] {
            assert_eq!(having.spoke(host, sequence), spoke, "{host} at {sequence}");
        }
    }
}
