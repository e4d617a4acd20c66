//! Where the catalogs of logs are kept, and how they grow.
//!
//! Whoever may write an entry of a log could also write a wrong catalog, which would hide entries. So a machine believes
//! only catalogs of those who may hide them anyway: of the machine that has the log's home, whose floor counts too, and
//! of itself for a log outside all homes.

use async_nats::jetstream::message::StreamMessage;
use store::{Key, StoreError};

use crate::catalog::{self, Anchor, Catalog};
use crate::connection::Connection;
use crate::direct::{self, Answers};
use crate::logs::{LogWriters, writers_of};
use crate::reading::Messages;
use crate::values::EVERYBODY;
use crate::{ownership, subjects, values};

/// Prefix of the keys that hold the catalogs of logs.
const CATALOGS: &str = "_catalogs/";

/// The catalog of a log on the server.
pub(crate) struct CatalogPlace {
    /// The subjects of the log.
    pub(crate) log_subject: String,
    /// Where its catalog is.
    subject: String,
    key: Key,
    /// Whether this machine writes it.
    pub(crate) is_ours: bool,
}

/// A catalog as it was read.
#[derive(Default)]
pub(crate) struct FoundCatalog {
    /// None if there is none that can be used.
    pub(crate) catalog: Option<Catalog>,
    /// The sequence of the value.
    pub(crate) revision: u64,
}

/// Where the catalog of a log is. None if there is no rule for one, or no machine to believe.
pub(crate) async fn place_of(connection: &Connection, log: &Key) -> Result<Option<CatalogPlace>, StoreError> {
    if connection.rule.is_none() {
        return Ok(None);
    }
    let stream = connection.logs().await?;
    // Each message would be a request.
    if direct::answers(connection, &stream).await == Answers::Nobody {
        return Ok(None);
    }
    let own = &connection.options.machine;
    let writers = writers_of(connection, log).await?;
    let writer = match (&writers, ownership::home_of(connection, log)) {
        (LogWriters::Nobodys, _) => None,
        (LogWriters::OfMachine(machine), _) => Some(machine.clone()),
        (LogWriters::Everybodys, Some(home)) => ownership::machine_of(connection, &home).await?,
        (LogWriters::Everybodys, None) if connection.homes.is_some() => Some(own.clone()),
        (LogWriters::Everybodys, None) => Some(EVERYBODY.to_owned()),
    };
    let (Some(writer), Ok(key)) = (writer, format!("{CATALOGS}{log}").parse::<Key>()) else { return Ok(None) };
    Ok(Some(CatalogPlace {
        log_subject: writers.filter(connection, log),
        subject: subjects::of_value(&connection.options.map_bucket(), &writer, &key),
        key,
        is_ours: writer == *own || writer == EVERYBODY,
    }))
}

/// Reads a catalog.
pub(crate) async fn read(connection: &Connection, place: &CatalogPlace) -> Result<FoundCatalog, StoreError> {
    let Some(rule) = connection.rule.as_deref() else { return Ok(FoundCatalog::default()) };
    let Some(message) = values::newest(connection, &place.subject, &place.key).await? else {
        return Ok(FoundCatalog::default());
    };
    let catalog = Catalog::parse(&message.payload, rule, &place.log_subject);
    Ok(FoundCatalog { catalog, revision: message.sequence })
}

/// Deletes the catalog of a log that was removed.
pub(crate) async fn forget(connection: &Connection, log: &Key) -> Result<(), StoreError> {
    let Some(place) = place_of(connection, log).await?.filter(|place| place.is_ours) else { return Ok(()) };
    let Some(message) = values::newest(connection, &place.subject, &place.key).await?.filter(values::is_value) else {
        return Ok(());
    };
    if let Some(mark) = put(connection, &place, message.sequence, None).await? {
        values::take_away(connection, &place.key, mark).await?;
    }
    Ok(())
}

async fn put(
    connection: &Connection,
    place: &CatalogPlace,
    after: u64,
    text: Option<&[u8]>,
) -> Result<Option<u64>, StoreError> {
    values::put(connection, &place.subject, &place.key, &place.subject, after, text).await
}

/// Makes rows of the messages that a lookup reads at the end of a log.
pub(crate) struct Growing<'a> {
    connection: &'a Connection,
    log: &'a Key,
    place: &'a CatalogPlace,
    pub(crate) catalog: Catalog,
    revision: u64,
    /// Messages after the last row.
    open: Vec<StreamMessage>,
    added: usize,
}

impl<'a> Growing<'a> {
    /// From this catalog on; if it is none, from a sequence on.
    pub(crate) fn of(
        connection: &'a Connection,
        log: &'a Key,
        place: &'a CatalogPlace,
        found: FoundCatalog,
        from: u64,
    ) -> Option<Growing<'a>> {
        let rule = connection.rule.as_deref()?;
        let catalog = found.catalog.unwrap_or_else(|| Catalog::empty(rule, &place.log_subject, from));
        Some(Growing { connection, log, place, catalog, revision: found.revision, open: Vec::new(), added: 0 })
    }

    /// The next message of the log.
    pub(crate) fn take(&mut self, message: StreamMessage) {
        self.open.push(message);
        if let Some(rule) = self.connection.rule.as_deref()
            && catalog::is_row(&self.open)
        {
            self.catalog.add(rule, self.log, &self.open);
            self.open.clear();
            self.added += 1;
        }
    }

    /// Writes the catalog, if it has enough new rows and this machine writes it. That another process was faster, or
    /// that it cannot be written, costs the next lookup time.
    pub(crate) async fn keep(mut self) {
        if !self.place.is_ours || self.added < catalog::WRITTEN_AFTER {
            return;
        }
        if let Err(error) = self.write().await {
            tracing::debug!(log = %self.log, %error, "the catalog of the log was not written");
        }
    }

    async fn write(&mut self) -> Result<(), StoreError> {
        // What the stream dropped by age leaves rows without messages.
        let mut messages = Messages::at(self.connection, self.log, &self.place.log_subject, 1).await?;
        if let Some(first) = messages.next(1).await? {
            self.catalog.forget_before(first.sequence);
        }
        put(self.connection, self.place, self.revision, Some(&self.catalog.text())).await.map(drop)
    }
}

/// Whether the last message that a catalog covers is still there.
pub(crate) fn holds(anchor: Anchor, found: Option<&StreamMessage>) -> bool {
    found.is_some_and(|message| Anchor::of(message) == anchor)
}
