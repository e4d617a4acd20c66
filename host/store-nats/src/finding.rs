//! Looks entries up in a log. A server keeps no index of contents. Where this machine may make a catalog of the log, that
//! says which stretches to read (`catalog.rs`); elsewhere a lookup begins at the time of what is sought, because the
//! server knows when it stored each message.

use async_nats::jetstream::message::StreamMessage;
use futures::{StreamExt, TryStreamExt};
use store::{Entry, Key, Position, StoreError, Term, backend};

use crate::beginning::{CLOCKS_DIFFER_BY, begins};
use crate::catalog::{Catalog, Reach};
use crate::cataloguing::{self, CatalogPlace, FoundCatalog, Growing};
use crate::connection::Connection;
use crate::direct;
use crate::logs::{floor_of, place, position};
use crate::reading::{MessageLine, Messages, counts, lines, message_at, read};

/// How many bytes of a log are read at a time.
const STEP: usize = 1 << 20;
/// How many stretches are read at once.
const AT_ONCE: usize = 8;

/// See [`store::Store::find`].
pub(crate) async fn find(connection: &Connection, log: &Key, terms: &[Term]) -> Result<Vec<Entry>, StoreError> {
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let since: Option<Vec<u64>> = terms.iter().map(|term| term.since).collect();
    let since = since.and_then(|since| since.into_iter().min());
    let Some(place) = cataloguing::place_of(connection, log).await? else {
        return find_since(connection, log, terms, since).await;
    };
    let (mut found, (floor, _)) = tokio::try_join!(cataloguing::read(connection, &place), floor_of(connection, log))?;
    // One that `seek` began does not say what is before it.
    found.catalog = found.catalog.filter(|catalog| catalog.from == 0);
    let lookup = Lookup { connection, log, place: &place, terms, floor };
    if !place.is_ours {
        return lookup.in_log_of_others(found.catalog, since).await;
    }
    let revision = found.revision;
    match lookup.by_catalog(found).await? {
        Some(entries) => Ok(entries),
        None => Ok(lookup.by_catalog(FoundCatalog { catalog: None, revision }).await?.unwrap_or_default()),
    }
}

/// Reads a log from the time on at which an entry with one of these terms can be in it.
async fn find_since(
    connection: &Connection,
    log: &Key,
    terms: &[Term],
    since: Option<u64>,
) -> Result<Vec<Entry>, StoreError> {
    let mut from = match since {
        Some(since) => begins(connection, log, since).await?,
        None => Position::START,
    };
    let mut found = Vec::new();
    loop {
        let batch = read(connection, log, from, STEP).await?;
        found.extend(batch.entries.into_iter().filter(|entry| backend::has_any(&entry.bytes, terms)));
        if batch.at_end || batch.next == from {
            return Ok(found);
        }
        from = batch.next;
    }
}

/// What is looked up in a log that has a place for a catalog.
struct Lookup<'a> {
    connection: &'a Connection,
    log: &'a Key,
    place: &'a CatalogPlace,
    terms: &'a [Term],
    floor: Position,
}

impl Lookup<'_> {
    /// Reads the stretches that may have such entries, and what comes after the catalog, of which the catalog grows.
    /// None if the catalog is not of this log as it is now.
    async fn by_catalog(&self, found: FoundCatalog) -> Result<Option<Vec<Entry>>, StoreError> {
        let anchor = found.catalog.as_ref().map(|catalog| catalog.last);
        let stretches = found.catalog.as_ref().map(|catalog| self.stretches(catalog)).unwrap_or_default();
        let Some(mut growing) = Growing::of(self.connection, self.log, self.place, found, 0) else { return Ok(None) };
        let at_the_end = async {
            let mut messages = self.messages(direct::MOST).await?;
            let mut from = 1;
            if let Some(anchor) = anchor {
                let last = messages.next(anchor.sequence).await?;
                if !cataloguing::holds(anchor, last.as_ref()) {
                    return Ok(None);
                }
                from = anchor.sequence + 1;
            }
            let mut entries = Vec::new();
            while let Some(message) = messages.next(from).await? {
                from = message.sequence + 1;
                entries.extend(self.entries_of(&message).await?);
                growing.take(message);
            }
            Ok(Some(entries))
        };
        let (mut entries, last) = tokio::try_join!(self.within(stretches), at_the_end)?;
        let Some(last) = last else { return Ok(None) };
        entries.extend(last);
        growing.keep().await;
        Ok(Some(entries))
    }

    /// The same in a log of which another machine makes the catalog. What that does not cover is read from the time on
    /// at which such an entry can be there.
    async fn in_log_of_others(&self, catalog: Option<Catalog>, since: Option<u64>) -> Result<Vec<Entry>, StoreError> {
        let begin = async {
            match since {
                Some(since) => begins(self.connection, self.log, since).await.map(|begin| place(begin).0),
                None => Ok(0),
            }
        };
        let checked = async {
            let Some(catalog) = catalog else { return Ok(None) };
            let stream = self.connection.logs().await?;
            let last = message_at(self.connection, &stream, self.log, catalog.last.sequence).await?;
            Ok(cataloguing::holds(catalog.last, last.as_ref()).then_some(catalog))
        };
        let (begin, catalog) = tokio::try_join!(begin, checked)?;
        let (stretches, mut from) = match &catalog {
            Some(catalog) => (self.stretches(catalog), begin.max(catalog.last.sequence + 1)),
            None => (Vec::new(), begin),
        };
        let mut entries = self.within(stretches).await?;
        let mut messages = self.messages(direct::MOST).await?;
        while let Some(message) = messages.next(from).await? {
            from = message.sequence + 1;
            entries.extend(self.entries_of(&message).await?);
        }
        Ok(entries)
    }

    fn stretches(&self, catalog: &Catalog) -> Vec<Reach> {
        let mut stretches = catalog.with_any(self.terms, CLOCKS_DIFFER_BY);
        stretches.retain(|stretch| stretch.to >= place(self.floor).0);
        stretches
    }

    async fn messages(&self, most: usize) -> Result<Messages<'_>, StoreError> {
        Messages::at(self.connection, self.log, &self.place.log_subject, most).await
    }

    async fn within(&self, stretches: Vec<Reach>) -> Result<Vec<Entry>, StoreError> {
        let read = futures::stream::iter(stretches).map(|stretch| async move {
            let mut messages = self.messages(stretch.messages).await?;
            let (mut entries, mut from) = (Vec::new(), stretch.from);
            while from <= stretch.to
                && let Some(message) = messages.next(from).await?
                && message.sequence <= stretch.to
            {
                from = message.sequence + 1;
                entries.extend(self.entries_of(&message).await?);
            }
            Ok::<_, StoreError>(entries)
        });
        Ok(read.buffered(AT_ONCE).try_collect::<Vec<_>>().await?.concat())
    }

    async fn entries_of(&self, message: &StreamMessage) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::new();
        for MessageLine { at, next, text } in lines(message) {
            if at >= self.floor
                && backend::has_any(text, self.terms)
                && counts(self.connection, self.log, message, text).await?
            {
                entries.push(Entry { at, next, bytes: text.to_vec() });
            }
        }
        Ok(entries)
    }
}

/// See [`store::Store::seek`]: a position before which nothing is of that time or later.
pub(crate) async fn seek(connection: &Connection, log: &Key, time: u64) -> Result<Position, StoreError> {
    let Some(place_of_catalog) = cataloguing::place_of(connection, log).await? else {
        return begins(connection, log, time).await;
    };
    let place_of_catalog = &place_of_catalog;
    let (begin, found) =
        tokio::try_join!(begins(connection, log, time), cataloguing::read(connection, place_of_catalog))?;
    let from = place(begin).0;
    // By the server's clock, all that is sought is after the catalog, or some of it before.
    if let Some(catalog) = &found.catalog
        && (from > catalog.last.sequence || from < catalog.from)
    {
        return Ok(begin);
    }
    let found = checked(connection, log, place_of_catalog, found).await?;
    let Some(growing) = Growing::of(connection, log, place_of_catalog, found, from) else { return Ok(begin) };
    let catalog = if place_of_catalog.is_ours { grow(connection, log, growing).await? } else { growing.catalog };
    Ok(if catalog.is_empty() { begin } else { position(catalog.begins(time), 0) })
}

/// See [`store::Store::index`]: the catalog of the whole log, if this machine writes it.
pub(crate) async fn index(connection: &Connection, log: &Key) -> Result<(), StoreError> {
    let Some(place) = cataloguing::place_of(connection, log).await?.filter(|place| place.is_ours) else {
        return Ok(());
    };
    let mut found = cataloguing::read(connection, &place).await?;
    found.catalog = found.catalog.filter(|catalog| catalog.from == 0);
    let found = checked(connection, log, &place, found).await?;
    if let Some(growing) = Growing::of(connection, log, &place, found, 0) {
        grow(connection, log, growing).await?;
    }
    Ok(())
}

/// A catalog as it was read; without it if it is not of this log as it is now.
async fn checked(
    connection: &Connection,
    log: &Key,
    place: &CatalogPlace,
    found: FoundCatalog,
) -> Result<FoundCatalog, StoreError> {
    let Some(catalog) = found.catalog else { return Ok(found) };
    let mut messages = Messages::at(connection, log, &place.log_subject, 1).await?;
    let last = messages.next(catalog.last.sequence).await?;
    let is_of_it = cataloguing::holds(catalog.last, last.as_ref());
    Ok(FoundCatalog { catalog: is_of_it.then_some(catalog), ..found })
}

/// Reads what comes after a catalog, writes the catalog, and returns it.
async fn grow(connection: &Connection, log: &Key, mut growing: Growing<'_>) -> Result<Catalog, StoreError> {
    let mut messages = Messages::at(connection, log, &growing.catalog.subject, direct::MOST).await?;
    let mut from = growing.catalog.from.max(growing.catalog.last.sequence + 1);
    while let Some(message) = messages.next(from).await? {
        from = message.sequence + 1;
        growing.take(message);
    }
    let catalog = growing.catalog.clone();
    growing.keep().await;
    Ok(catalog)
}
