//! Where the catalogs of logs are kept, and how they grow.
//!
//! Whoever may write an entry of a log could also write a wrong catalog, which would hide entries. So a machine believes
//! only catalogs of those who may hide them anyway: of the machine that has the log's home, whose floor counts too, and
//! of itself for a log outside all homes.

use async_nats::jetstream::message::StreamMessage;
use store::{Key, StoreError};

use crate::catalog::{self, Anchor, Block, BlockAt, Catalog, Forgotten, Rows};
use crate::connection::Connection;
use crate::direct::{self, Answers};
use crate::logs::{LogWriters, writers_of};
use crate::reading::{first_from, message_at};
use crate::values::EVERYBODY;
use crate::{catalog_cleanup, ownership, subjects, values};

/// Prefix of the keys that hold the catalogs of logs, and of those that hold their blocks.
const CATALOGS: &str = "_catalogs/";
const BLOCKS: &str = "_catalog_blocks/";

/// The catalog of a log on the server.
pub(crate) struct CatalogPlace {
    /// The subjects of the log.
    pub(crate) log_subject: String,
    pub(crate) log: Key,
    /// Who writes its catalog.
    writer: String,
    /// Where its catalog is.
    pub(crate) subject: String,
    pub(crate) key: Key,
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

impl FoundCatalog {
    /// The same without a catalog that `seek` began: it does not say what is before it.
    pub(crate) fn if_whole(self) -> FoundCatalog {
        FoundCatalog { catalog: self.catalog.filter(|catalog| catalog.rows.from == 0), ..self }
    }
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
        log: log.clone(),
        subject: subjects::of_value(&connection.options.map_bucket(), &writer, &key),
        key,
        is_ours: writer == *own || writer == EVERYBODY,
        writer,
    }))
}

impl CatalogPlace {
    /// The key above all blocks.
    pub(crate) fn blocks(&self) -> Option<Key> {
        format!("{BLOCKS}{}", self.log).parse().ok()
    }

    /// The subjects of all blocks.
    pub(crate) fn subjects_of_blocks(&self, connection: &Connection) -> Option<String> {
        let above = subjects::of_value(&connection.options.map_bucket(), &self.writer, &self.blocks()?);
        Some(format!("{above}.>"))
    }

    /// The key of a block and where it is.
    pub(crate) fn block(&self, connection: &Connection, name: &str) -> Option<(Key, String)> {
        let key = format!("{BLOCKS}{}/{name}", self.log).parse().ok()?;
        let subject = subjects::of_value(&connection.options.map_bucket(), &self.writer, &key);
        Some((key, subject))
    }
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

/// A catalog, if there is one, and it is of this log as it is now.
pub(crate) async fn checked(
    connection: &Connection,
    place: &CatalogPlace,
    catalog: Option<Catalog>,
) -> Result<Option<Catalog>, StoreError> {
    let Some(catalog) = catalog else { return Ok(None) };
    let stream = connection.logs().await?;
    let last = message_at(connection, &stream, &place.log, catalog.last.sequence).await?;
    let last = last.filter(|message| subjects::includes(&place.log_subject, &message.subject));
    Ok(holds(catalog.last, last.as_ref()).then_some(catalog))
}

/// Reads the rows of a block. None if it is missing or damaged.
pub(crate) async fn read_block(
    connection: &Connection,
    place: &CatalogPlace,
    block: &BlockAt,
) -> Result<Option<Rows>, StoreError> {
    let Some((key, subject)) = place.block(connection, &block.name) else { return Ok(None) };
    let found = values::newest(connection, &subject, &key).await?;
    Ok(found.and_then(|message| Rows::parse(&message.payload, block)))
}

/// How often a block is written if others write it at the same time.
const TRIES: usize = 4;

/// Makes rows of the messages that a lookup reads at the end of a log.
pub(crate) struct Growing<'a> {
    connection: &'a Connection,
    log: &'a Key,
    place: &'a CatalogPlace,
    pub(crate) catalog: Catalog,
    /// The sequence of the value that this one replaces.
    revision: u64,
    /// Messages after the last row.
    open: Vec<StreamMessage>,
    added: usize,
    /// The rows that were forgotten. None as long as nobody looked.
    gone: Option<Forgotten>,
    /// Whether a block could not be written: then the catalog is not written either.
    has_failed: bool,
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
        let FoundCatalog { catalog, revision } = found;
        let catalog = catalog.unwrap_or_else(|| Catalog::empty(rule, &place.log_subject, from));
        let open = Vec::new();
        Some(Growing { connection, log, place, catalog, revision, open, added: 0, gone: None, has_failed: false })
    }

    /// The next message of the log.
    pub(crate) async fn take(&mut self, message: StreamMessage) {
        self.open.push(message);
        if let Some(rule) = self.connection.rule.as_deref()
            && catalog::is_row(&self.open)
        {
            let blocks = self.catalog.add(rule, self.log, &self.open);
            self.open.clear();
            self.added += 1;
            for block in blocks {
                self.has_failed = self.has_failed || !self.write_block(block).await;
            }
        }
    }

    /// Writes a block that moved out of the catalog, if this machine writes it. It may be there: of a process that was
    /// killed before it wrote the catalog, or lost the race for it. One that is older than the catalog may be about to be
    /// deleted, as nothing names it (`catalog_cleanup.rs`), and is written again.
    async fn write_block(&self, block: Block) -> bool {
        let written = async {
            let (true, Some((key, subject))) = (self.place.is_ours, self.place.block(self.connection, &block.name))
            else {
                return Ok(false);
            };
            for _ in 0..TRIES {
                let there = values::newest(self.connection, &subject, &key).await?;
                let after = there.as_ref().map_or(0, |message| message.sequence);
                let is_there = after > self.revision && there.is_some_and(|message| message.payload == block.text);
                if is_there
                    || values::put(self.connection, &subject, &key, &subject, after, Some(&block.text)).await?.is_some()
                {
                    return Ok(true);
                }
            }
            Ok::<_, StoreError>(false)
        };
        written.await.unwrap_or_else(|error| {
            tracing::debug!(log = %self.log, %error, "a block of the log's catalog was not written");
            false
        })
    }

    /// Forgets rows of which the log has nothing any more, as retention or the server deleted it.
    async fn forget_what_is_gone(&mut self) -> Result<(), StoreError> {
        if self.gone.is_none() {
            let stream = self.connection.logs().await?;
            let first = first_from(self.connection, &stream, (self.log, &self.place.log_subject), 1).await?;
            let begin = first.map_or(0, |first| first.sequence);
            self.gone = Some(self.catalog.forget_before(begin));
        }
        Ok(())
    }

    /// The lowest growing term, cut, of the messages after the last row, from a sequence on.
    pub(crate) fn lowest_of_open(&self, first: u64) -> Option<String> {
        self.connection.rule.as_deref().and_then(|rule| catalog::lowest_from(rule, self.log, &self.open, first))
    }

    /// Writes the catalog, if it has enough new rows or is known to have lost some, and this machine writes it. That
    /// another process was faster, or that it cannot be written, costs the next lookup time.
    pub(crate) async fn keep(mut self) {
        let has_lost_some = self.gone.as_ref().is_some_and(|gone| gone.rows > 0);
        let is_worth_it = self.added >= catalog::WRITTEN_AFTER || has_lost_some;
        if !self.place.is_ours || !is_worth_it || self.has_failed {
            return;
        }
        if let Err(error) = self.write().await {
            tracing::debug!(log = %self.log, %error, "the catalog of the log was not written");
        }
    }

    /// Deletes the blocks of rows that were forgotten, by one request.
    pub(crate) async fn delete_what_is_gone(&mut self) -> Result<(), StoreError> {
        self.forget_what_is_gone().await?;
        let gone = self.gone.as_mut().map(|gone| std::mem::take(&mut gone.blocks)).unwrap_or_default();
        catalog_cleanup::delete_forgotten(self.connection, self.place, (&self.catalog, self.revision), &gone).await
    }

    async fn write(&mut self) -> Result<(), StoreError> {
        let (connection, place) = (self.connection, self.place);
        // Before the rows that name them, else a process that is killed here would leave them for ever.
        self.delete_what_is_gone().await?;
        let text = self.catalog.text();
        values::put(connection, &place.subject, &place.key, &place.subject, self.revision, Some(&text)).await.map(drop)
    }
}

/// Whether the last message that a catalog covers is still there.
pub(crate) fn holds(anchor: Anchor, found: Option<&StreamMessage>) -> bool {
    found.is_some_and(|message| Anchor::of(message) == anchor)
}
