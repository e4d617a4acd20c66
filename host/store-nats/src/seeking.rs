//! Where a time or an id begins in a log, by its catalog; and the catalog of a whole log, for the daily cleanup.

use store::{Key, Position, StoreError};

use crate::beginning::begins;
use crate::catalog::{Beginning, Catalog, Rows};
use crate::cataloguing::{self, CatalogPlace, FoundCatalog, Growing};
use crate::connection::Connection;
use crate::logs::{self, floor_of, position};
use crate::reading::{Messages, first_from};
use crate::{catalog_cleanup, direct};

/// A position before which nothing is of that time or later.
pub(crate) async fn first_at(connection: &Connection, log: &Key, time: u64) -> Result<Position, StoreError> {
    let Some(catalog_place) = &cataloguing::place_of(connection, log).await? else {
        return begins(connection, log, time).await;
    };
    let (begin, found) = tokio::try_join!(begins(connection, log, time), cataloguing::read(connection, catalog_place))?;
    let from = logs::place(begin).0;
    // By the server's clock, all that is sought is after the catalog, or some of it before.
    if let Some(catalog) = &found.catalog
        && (from > catalog.last.sequence || from < catalog.rows.from)
    {
        return Ok(begin);
    }
    let found = checked(connection, catalog_place, found).await?;
    let Some(growing) = Growing::of(connection, log, catalog_place, found, from) else { return Ok(begin) };
    let catalog = if catalog_place.is_ours { grow(connection, log, growing).await? } else { growing.catalog };
    if catalog.is_empty() {
        return Ok(begin);
    }
    beginning(connection, catalog_place, &catalog, |rows| rows.first_at(time)).await
}

/// A position before which nothing has this growing term or a higher one. None if the catalog does not say.
pub(crate) async fn first_with(connection: &Connection, log: &Key, term: &str) -> Result<Option<Position>, StoreError> {
    let Some(catalog_place) = &cataloguing::place_of(connection, log).await? else { return Ok(None) };
    let found = cataloguing::read(connection, catalog_place).await?.if_whole();
    let Some(catalog) = checked(connection, catalog_place, found).await?.catalog else { return Ok(None) };
    beginning(connection, catalog_place, &catalog, |rows| rows.first_with(term)).await.map(Some)
}

/// See [`store::Store::lowest_term`]: by the catalog, if this machine writes it, and what comes after it.
pub(crate) async fn lowest_term(
    connection: &Connection,
    log: &Key,
    from: Position,
) -> Result<Option<String>, StoreError> {
    let Some(place) = cataloguing::place_of(connection, log).await?.filter(|place| place.is_ours) else {
        return Ok(None);
    };
    let stream = connection.logs().await?;
    let Some(first) = first_from(connection, &stream, (log, &place.log_subject), 1).await? else { return Ok(None) };
    // Before the floor, the server has the last message of all, and what it does not let this login delete.
    let (floor, _) = floor_of(connection, log).await?;
    let first = first.sequence.max(logs::place(floor.max(from)).0);
    let found = cataloguing::read(connection, &place).await?.if_whole();
    let found = checked(connection, &place, found).await?;
    let Some(growing) = Growing::of(connection, log, &place, found, 0) else { return Ok(None) };
    let growing = read_the_rest(connection, log, growing).await?;
    let (mut lowest, mut block) = growing.catalog.rows.lowest_from(first);
    lowest = lowest.into_iter().chain(growing.lowest_of_open(first)).min();
    while let Some(at) = block {
        let Some(rows) = cataloguing::read_block(connection, &place, &at).await? else { return Ok(None) };
        let (below, next) = rows.lowest_from(first);
        (lowest, block) = (lowest.into_iter().chain(below).min(), next);
    }
    growing.keep().await;
    Ok(lowest)
}

/// Where something begins, by the rows of a catalog and of the blocks below them. After the catalog if no row has it.
async fn beginning(
    connection: &Connection,
    place: &CatalogPlace,
    catalog: &Catalog,
    first: impl Fn(&Rows) -> Option<Beginning>,
) -> Result<Position, StoreError> {
    let mut begin = first(&catalog.rows).unwrap_or(Beginning::At(catalog.last.sequence + 1));
    loop {
        let block = match begin {
            Beginning::At(sequence) => return Ok(position(sequence, 0)),
            Beginning::InBlock(block) => block,
        };
        let rows = cataloguing::read_block(connection, place, &block).await?;
        begin = rows.and_then(|rows| first(&rows)).unwrap_or(Beginning::At(block.reach.from));
    }
}

/// See [`store::Store::index`]: the catalog of the whole log, if this machine writes it.
pub(crate) async fn index(connection: &Connection, log: &Key) -> Result<(), StoreError> {
    let Some(place) = cataloguing::place_of(connection, log).await?.filter(|place| place.is_ours) else {
        return Ok(());
    };
    let found = cataloguing::read(connection, &place).await?.if_whole();
    let found = checked(connection, &place, found).await?;
    let revision = found.revision;
    if found.catalog.is_some()
        && let Some(mut growing) = Growing::of(connection, log, &place, found, 0)
    {
        // Before what is left over is looked for, which is deleted one by one.
        growing.delete_what_is_gone().await?;
        if catalog_cleanup::tidy(connection, &place, &growing.catalog, revision).await? {
            return grow(connection, log, growing).await.map(drop);
        }
    }
    // There is none, or not of this log as it is now, or a block of it is lost.
    catalog_cleanup::discard(connection, &place, revision).await?;
    let FoundCatalog { revision, .. } = cataloguing::read(connection, &place).await?;
    match Growing::of(connection, log, &place, FoundCatalog { catalog: None, revision }, 0) {
        Some(growing) => grow(connection, log, growing).await.map(drop),
        None => Ok(()),
    }
}

/// A catalog as it was read; without it if it is not of this log as it is now.
async fn checked(
    connection: &Connection,
    place: &CatalogPlace,
    found: FoundCatalog,
) -> Result<FoundCatalog, StoreError> {
    let catalog = cataloguing::checked(connection, place, found.catalog).await?;
    Ok(FoundCatalog { catalog, ..found })
}

/// Reads what comes after a catalog, writes the catalog, and returns it.
async fn grow(connection: &Connection, log: &Key, growing: Growing<'_>) -> Result<Catalog, StoreError> {
    let growing = read_the_rest(connection, log, growing).await?;
    let catalog = growing.catalog.clone();
    growing.keep().await;
    Ok(catalog)
}

/// Reads what comes after a catalog.
async fn read_the_rest<'a>(
    connection: &Connection,
    log: &Key,
    mut growing: Growing<'a>,
) -> Result<Growing<'a>, StoreError> {
    let mut messages = Messages::at(connection, log, &growing.catalog.subject, direct::MOST).await?;
    let mut from = growing.catalog.rows.from.max(growing.catalog.last.sequence + 1);
    while let Some(message) = messages.next(from).await? {
        from = message.sequence + 1;
        growing.take(message).await;
    }
    Ok(growing)
}
