//! Whose a key is. Several hosts share one server, and a server's permissions know subjects alone: each
//! host writes under its own name and nowhere else. What counts of all that is decided here, by a rule
//! that the mesh lends: a home is a key whose values and logs belong to the host that was first to
//! write there, and whatever others put beside it is as if it were not there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_nats::jetstream::message::StreamMessage;
use tokio::time::Instant;

use super::connection::Connection;
use super::{subjects, values};
use crate::{Key, StoreError};

/// What the mesh knows of its keys, and the store does not.
pub trait Homes: Send + Sync + 'static {
    /// The home that a value or a log lies in. None where no host has more right to it than another.
    fn home_of(&self, key: &Key) -> Option<Key>;

    /// Whether other hosts append to this log of a home too, as to an inbox.
    fn is_open(&self, log: &Key) -> bool;

    /// The home in whose name an entry of an open log speaks. None where it speaks for nobody, so that
    /// any host may have written it.
    fn speaker(&self, log: &Key, entry: &[u8]) -> Option<Key>;

    /// The homes whose hosts must be known to put the parts of a value together that lies in no home.
    fn voices(&self, key: &Key, parts: &[Part]) -> BTreeSet<Key>;

    /// What the hosts' parts of such a value come to, the oldest part first, where `hosts` says who has
    /// which home. None where nothing that counts is left.
    fn together(&self, key: &Key, parts: &[Part], hosts: &BTreeMap<Key, String>) -> Option<Vec<u8>>;
}

/// What one host says of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The host, as the server knows it.
    pub host: String,
    /// What it says: JSON text.
    pub bytes: Vec<u8>,
}

/// How long a home's host is remembered before it is asked for again: only an operator moves a home.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The homes whose hosts this process has learned. Written by whoever asks.
pub(super) type Known = std::sync::Mutex<BTreeMap<Key, (String, Instant)>>;

/// The home that a key lies in, notes about it included.
pub(super) fn home_of(connection: &Connection, key: &Key) -> Option<Key> {
    let homes = connection.homes.as_ref()?;
    match key.as_str().strip_prefix(super::logs::RETIRED).map(str::parse) {
        Some(Ok(log)) => homes.home_of(&log),
        Some(Err(_)) | None => homes.home_of(key),
    }
}

/// The host that has a home; none before anybody has it.
pub(super) async fn host_of(connection: &Connection, home: &Key) -> Result<Option<String>, StoreError> {
    if let Some(host) = remembered(connection, home) {
        return Ok(Some(host));
    }
    // Whoever was first is the one whose claim came first, and a claim is never written twice.
    let mut from = 1;
    while let Some(claim) = values::first(connection, &claim_of(home), from).await? {
        if values::is_value(&claim)
            && let Some(host) = host_in(connection, &claim)
        {
            remember(connection, home, &host);
            return Ok(Some(host));
        }
        from = claim.sequence + 1;
    }
    Ok(None)
}

/// The host that has a home, which is ours from now on where it was nobody's.
pub(super) async fn settle(connection: &Connection, home: &Key) -> Result<String, StoreError> {
    loop {
        if let Some(host) = host_of(connection, home).await? {
            return Ok(host);
        }
        values::claim(connection, &claim_of(home)).await?;
    }
}

/// Refuses what lies in another host's home. Takes the home where it is nobody's.
pub(super) async fn ours(connection: &Connection, home: &Key) -> Result<(), StoreError> {
    let host = settle(connection, home).await?;
    if host == connection.options.host { Ok(()) } else { Err(StoreError::Elsewhere { what: home.to_string(), host }) }
}

/// The host that wrote a value.
pub(super) fn host_in(connection: &Connection, message: &StreamMessage) -> Option<String> {
    subjects::value_of(&connection.options.map_bucket(), &message.subject).map(|(host, _)| host)
}

/// Where it is written who has a home.
fn claim_of(home: &Key) -> Key {
    format!("_homes/{home}").parse().unwrap_or_else(|_| home.clone())
}

fn remembered(connection: &Connection, home: &Key) -> Option<String> {
    let known = connection.known.lock().expect("no holder of this lock panics");
    known.get(home).filter(|(_, at)| at.elapsed() < REMEMBERED).map(|(host, _)| host.clone())
}

fn remember(connection: &Connection, home: &Key, host: &str) {
    let mut known = connection.known.lock().expect("no holder of this lock panics");
    known.insert(home.clone(), (host.to_owned(), Instant::now()));
}
