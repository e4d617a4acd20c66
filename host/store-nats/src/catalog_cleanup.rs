//! Deletes what catalogs leave behind: of logs that were removed, of rows that were forgotten, and blocks that no
//! catalog names, because their process was killed before it wrote the catalog, or was too late with it.

use std::collections::BTreeSet;

use store::{Key, StoreError};

use crate::catalog::{BlockAt, Catalog};
use crate::cataloguing::{CatalogPlace, place_of, read_block};
use crate::connection::Connection;
use crate::values;

/// Deletes the catalog of a log that was removed.
pub(crate) async fn forget(connection: &Connection, log: &Key) -> Result<(), StoreError> {
    match place_of(connection, log).await?.filter(|place| place.is_ours) {
        Some(place) => discard(connection, &place, u64::MAX).await,
        None => Ok(()),
    }
}

/// Deletes a catalog that is of no use, if it is the one of this revision or an older one, and the blocks before it. Of
/// a process that makes the first one at this time, blocks go too: then the next cleanup makes it again.
pub(crate) async fn discard(connection: &Connection, place: &CatalogPlace, revision: u64) -> Result<(), StoreError> {
    let before = if revision == 0 { u64::MAX } else { revision };
    if !purge(connection, place, before).await? {
        for name in names(connection, place).await? {
            delete_block(connection, place, &name, before).await?;
        }
    }
    delete(connection, (&place.key, &place.subject), before.saturating_add(1)).await
}

/// Deletes the blocks that a catalog does not name and that are older than it: the process that makes the next
/// one writes those that it names again. Returns whether all that it does name are there.
pub(crate) async fn tidy(
    connection: &Connection,
    place: &CatalogPlace,
    catalog: &Catalog,
    revision: u64,
) -> Result<bool, StoreError> {
    let there = names(connection, place).await?;
    let mut named = BTreeSet::new();
    let mut open: Vec<BlockAt> = catalog.rows.blocks().collect();
    while let Some(block) = open.pop() {
        if !there.contains(&block.name) {
            return Ok(false);
        }
        if block.has_blocks_below() {
            let Some(rows) = read_block(connection, place, &block).await? else { return Ok(false) };
            open.extend(rows.blocks());
        }
        named.insert(block.name);
    }
    for name in there.difference(&named) {
        delete_block(connection, place, name, revision).await?;
    }
    Ok(true)
}

/// Deletes the blocks of rows that a catalog has forgotten, and the blocks below them: by one request all that were written
/// before those that it still names. If others wrote them in another order, one that it names may go too, and the next
/// cleanup makes the catalog anew.
pub(crate) async fn delete_forgotten(
    connection: &Connection,
    place: &CatalogPlace,
    (catalog, revision): (&Catalog, u64),
    gone: &[BlockAt],
) -> Result<(), StoreError> {
    if gone.is_empty() {
        return Ok(());
    }
    let mut before = revision;
    let mut named: Vec<BlockAt> = catalog.rows.blocks().collect();
    // The first of each level are the oldest.
    let mut first = named.first().cloned();
    while let Some(block) = first.take().filter(BlockAt::has_blocks_below) {
        let rows = read_block(connection, place, &block).await?.unwrap_or_default();
        first = rows.blocks().next();
        named.extend(first.clone());
    }
    for block in &named {
        let Some((key, subject)) = place.block(connection, &block.name) else { continue };
        let written = values::newest(connection, &subject, &key).await?.map(|message| message.sequence);
        before = before.min(written.unwrap_or(u64::MAX));
    }
    if !purge(connection, place, before).await? {
        for block in gone {
            delete_with_all_below(connection, place, block).await?;
        }
    }
    Ok(())
}

/// Deletes all blocks of a log's catalogs that were written before a sequence. False if the server does not allow it.
async fn purge(connection: &Connection, place: &CatalogPlace, before: u64) -> Result<bool, StoreError> {
    let Some(subjects) = place.subjects_of_blocks(connection) else { return Ok(true) };
    let bucket = connection.map().await?;
    let purge = bucket.purge().filter(subjects);
    let purged = match before {
        u64::MAX => purge.await,
        before => purge.sequence(before).await,
    };
    match purged {
        Ok(_) => Ok(true),
        Err(error) => {
            tracing::debug!(%error, log = %place.log, "the blocks of the log's catalog are deleted one by one");
            Ok(false)
        }
    }
}

/// Deletes a block, and first the blocks below it.
async fn delete_with_all_below(
    connection: &Connection,
    place: &CatalogPlace,
    block: &BlockAt,
) -> Result<(), StoreError> {
    // Each before the ones below it: deleted from the end.
    let mut blocks = vec![block.clone()];
    let mut looked = 0;
    while let Some(block) = blocks.get(looked) {
        if block.has_blocks_below()
            && let Some(rows) = read_block(connection, place, block).await?
        {
            blocks.extend(rows.blocks());
        }
        looked += 1;
    }
    for block in blocks.iter().rev() {
        delete_block(connection, place, &block.name, u64::MAX).await?;
    }
    Ok(())
}

/// The names of the blocks of a log's catalogs.
async fn names(connection: &Connection, place: &CatalogPlace) -> Result<BTreeSet<String>, StoreError> {
    let Some(above) = place.blocks() else { return Ok(BTreeSet::new()) };
    let keys = values::list(connection, &above).await?;
    let right_below = keys.iter().filter(|key| key.segments().count() == above.segments().count() + 1);
    Ok(right_below.map(|key| key.leaf().to_string()).collect())
}

async fn delete_block(
    connection: &Connection,
    place: &CatalogPlace,
    name: &str,
    before: u64,
) -> Result<(), StoreError> {
    match place.block(connection, name) {
        Some((key, subject)) => delete(connection, (&key, &subject), before).await,
        None => Ok(()),
    }
}

/// Deletes a value that was written before a sequence.
async fn delete(connection: &Connection, (key, subject): (&Key, &str), before: u64) -> Result<(), StoreError> {
    let found = values::newest(connection, subject, key).await?.filter(values::is_value);
    let Some(old) = found.filter(|message| message.sequence < before) else { return Ok(()) };
    if let Some(mark) = values::put(connection, subject, key, subject, old.sequence, None).await? {
        values::take_away(connection, key, mark).await?;
    }
    Ok(())
}
