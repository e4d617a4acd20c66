//! Looks entries up in a log. A server keeps no index of contents. Where this machine may make a catalog of the log, that
//! says which stretches to read (`catalog.rs`); elsewhere a lookup begins at the time of what is sought, because the
//! server knows when it stored each message.

use async_nats::jetstream::message::StreamMessage;
use futures::{StreamExt, TryStreamExt};
use store::{Entry, Key, Position, StoreError, Term, backend};

use crate::beginning::{CLOCKS_DIFFER_BY, begins};
use crate::catalog::{BlockAt, Catalog, Place, Reach, Rows};
use crate::cataloguing::{self, CatalogPlace, FoundCatalog, Growing};
use crate::connection::Connection;
use crate::direct;
use crate::logs::{floor_of, place};
use crate::reading::{MessageLine, Messages, counts, lines, message_at, read};
use crate::subjects;

/// How many bytes of a log are read at a time.
const STEP: usize = 1 << 20;
/// How many messages, blocks or stretches are read at once.
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
    let (found, (floor, _)) = tokio::try_join!(cataloguing::read(connection, &place), floor_of(connection, log))?;
    let found = found.if_whole();
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
        let rows = found.catalog.as_ref().map(|catalog| catalog.rows.clone()).unwrap_or_default();
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
                growing.take(message).await;
            }
            Ok(Some(entries))
        };
        let (mut entries, last) = tokio::try_join!(self.within(&rows), at_the_end)?;
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
        let checked = cataloguing::checked(self.connection, self.place, catalog);
        let (begin, catalog) = tokio::try_join!(begin, checked)?;
        let (mut entries, mut from) = match &catalog {
            Some(catalog) => (self.within(&catalog.rows).await?, begin.max(catalog.last.sequence + 1)),
            None => (Vec::new(), begin),
        };
        let mut messages = self.messages(direct::MOST).await?;
        while let Some(message) = messages.next(from).await? {
            from = message.sequence + 1;
            entries.extend(self.entries_of(&message).await?);
        }
        Ok(entries)
    }

    async fn messages(&self, most: usize) -> Result<Messages<'_>, StoreError> {
        Messages::at(self.connection, self.log, &self.place.log_subject, most).await
    }

    /// Reads what rows, and the blocks below them, know of.
    async fn within(&self, rows: &Rows) -> Result<Vec<Entry>, StoreError> {
        let floor = place(self.floor).0;
        let mut places = rows.places(self.terms, CLOCKS_DIFFER_BY);
        loop {
            places.retain(|place| place.last() >= floor);
            if !places.iter().any(|place| matches!(place, Place::Block(_))) {
                break;
            }
            let looks = futures::stream::iter(places).map(|place| self.below(place)).buffered(AT_ONCE);
            places = looks.try_collect::<Vec<_>>().await?.concat();
        }
        let read = futures::stream::iter(places).map(|place| async move {
            match place {
                Place::Messages(messages) => self.of_messages(messages).await,
                Place::Stretch(reach) | Place::Block(BlockAt { reach, .. }) => self.of_stretch(reach).await,
            }
        });
        Ok(read.buffered(AT_ONCE).try_collect::<Vec<_>>().await?.concat())
    }

    /// What a block knows, or the place itself if it is none. The stretch of a block that is lost.
    async fn below(&self, place: Place) -> Result<Vec<Place>, StoreError> {
        let Place::Block(block) = place else { return Ok(vec![place]) };
        let rows = cataloguing::read_block(self.connection, self.place, &block).await?;
        Ok(rows.map_or_else(|| vec![Place::Stretch(block.reach)], |rows| rows.places(self.terms, CLOCKS_DIFFER_BY)))
    }

    /// Each is asked for by its sequence: to a request for several the server says how many follow, for which it walks
    /// through all files behind an old one.
    async fn of_messages(&self, sequences: Vec<u64>) -> Result<Vec<Entry>, StoreError> {
        let stream = &self.connection.logs().await?;
        let asked = futures::stream::iter(sequences).map(|sequence| async move {
            match message_at(self.connection, stream, self.log, sequence).await? {
                Some(message) if subjects::includes(&self.place.log_subject, &message.subject) => {
                    self.entries_of(&message).await
                }
                Some(_) | None => Ok(Vec::new()),
            }
        });
        Ok(asked.buffered(AT_ONCE).try_collect::<Vec<_>>().await?.concat())
    }

    async fn of_stretch(&self, reach: Reach) -> Result<Vec<Entry>, StoreError> {
        let mut messages = self.messages(reach.messages).await?;
        let (mut entries, mut from) = (Vec::new(), reach.from);
        while from <= reach.to
            && let Some(message) = messages.next(from).await?
            && message.sequence <= reach.to
        {
            from = message.sequence + 1;
            entries.extend(self.entries_of(&message).await?);
        }
        Ok(entries)
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
