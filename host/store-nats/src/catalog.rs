//! The catalog of a log: what ids and times its stretches have, so that a lookup reads the messages that may have what
//! is sought, and the end of the log, whatever the server's clock says of them.
//!
//! A row says of a stretch what never changes: a stream only grows, so nothing new comes into a stretch that was read,
//! and what is deleted leaves the row true. Rows are made of every line at the log's subjects, also of those that do not
//! count, because they may count later (`ownership.rs`). The catalog names the last message that it covers: if that one
//! is not there, the stream is another one, or lost its end, and the catalog is not believed.
//!
//! It is a tree, as the index of a database is: when there are many rows, the oldest move into a block, a value of its
//! own that is never changed, and one row is left of them; when there are many of those, the oldest move into a block
//! again. So it stays as small as it was in the first week, and an old message is found through one block for each
//! level. A block that is missing or damaged costs a lookup the reading of its stretch.
//!
//! Pure; `cataloguing.rs` reads and writes it.

mod row;

use async_nats::jetstream::message::StreamMessage;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::{IndexRule, Key, Term};

pub(crate) use self::row::is_row;
use self::row::{Having, Row};

/// So many rows have to be missing before a lookup writes the catalog again.
pub(crate) const WRITTEN_AFTER: usize = 4;
/// How many rows a block has. As soon as there are twice as many of a level, the older half moves into one.
const IN_BLOCK: usize = 32;
/// The version of the format.
const VERSION: u32 = 2;

/// What is known of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Catalog {
    version: u32,
    /// The version of the rule by which the rows were made.
    rule: u32,
    /// The subjects of the log.
    pub(crate) subject: String,
    /// The last message of the last row.
    pub(crate) last: Anchor,
    pub(crate) rows: Rows,
}

/// A message, and the time at which the server stored it, in nanoseconds since 1970. No other message has both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Anchor {
    pub(crate) sequence: u64,
    stored: i64,
}

/// Rows that follow each other: of a catalog or of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rows {
    /// Where the first row begins. At zero, nothing is before it.
    pub(crate) from: u64,
    rows: Vec<Row>,
}

/// Rows that moved out of a catalog.
pub(crate) struct Block {
    /// Says what it holds, so a block of another content has another name.
    pub(crate) name: String,
    pub(crate) text: Vec<u8>,
}

/// A stretch of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The first sequence, and the last one.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// How many messages of the log it had.
    pub(crate) messages: usize,
}

/// Where something may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In these messages.
    Messages(Vec<u64>),
    /// In a stretch.
    Stretch(Reach),
    /// In a part of a stretch, which a block knows.
    Block(BlockAt),
}

/// A block, and the stretch that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockAt {
    pub(crate) name: String,
    pub(crate) reach: Reach,
}

/// Rows that a catalog has forgotten.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    /// How many.
    pub(crate) rows: usize,
    pub(crate) blocks: Vec<BlockAt>,
}

/// Where rows begin to have something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// At a sequence.
    At(u64),
    /// In a block.
    InBlock(BlockAt),
}

/// The text of a catalog, with a checksum over it.
#[derive(Serialize)]
struct Sealed<'a, C> {
    checksum: u32,
    catalog: &'a C,
}

impl Anchor {
    pub(crate) fn of(message: &StreamMessage) -> Anchor {
        Anchor { sequence: message.sequence, stored: i64::try_from(message.time.unix_timestamp_nanos()).unwrap_or(0) }
    }
}

impl Catalog {
    /// One without rows, of a log from a sequence on.
    pub(crate) fn empty(rule: &dyn IndexRule, subject: &str, from: u64) -> Catalog {
        let rows = Rows { from, rows: Vec::new() };
        Catalog { version: VERSION, rule: rule.version(), subject: subject.to_owned(), last: Anchor::default(), rows }
    }

    /// Parses one. None if it is damaged, of another log, or made by another rule.
    pub(crate) fn parse(text: &[u8], rule: &dyn IndexRule, subject: &str) -> Option<Catalog> {
        let (_, catalog) = unsealed::<Catalog>(text)?;
        let fits = catalog.version == VERSION && catalog.rule == rule.version() && catalog.subject == subject;
        let levels_fall = catalog.rows.rows.is_sorted_by(|one, next| one.level >= next.level);
        let end = catalog.rows.rows.last()?.end;
        (fits && levels_fall && end == catalog.last.sequence && catalog.rows.are_in_order()).then_some(catalog)
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        sealed(self).1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.rows.is_empty()
    }

    /// Adds a row of messages that follow the last one. Returns what moves out, to be written before the catalog.
    #[must_use]
    pub(crate) fn add(&mut self, rule: &dyn IndexRule, log: &Key, messages: &[StreamMessage]) -> Vec<Block> {
        let Some(last) = messages.last() else { return Vec::new() };
        self.rows.rows.push(Row::of(rule, log, messages));
        self.last = Anchor::of(last);
        let mut blocks = Vec::new();
        while let Some(block) = self.rows.move_out(u8::try_from(blocks.len()).unwrap_or(u8::MAX)) {
            blocks.push(block);
        }
        blocks
    }

    /// Forgets rows of which nothing is left, given the log's first message.
    #[must_use]
    pub(crate) fn forget_before(&mut self, first: u64) -> Forgotten {
        let Rows { from, rows } = &mut self.rows;
        let gone = rows.iter().take_while(|row| row.end < first).count().min(rows.len().saturating_sub(1));
        let gone = Rows { from: *from, rows: rows.drain(..gone).collect() };
        if let Some(last) = gone.rows.last()
            && *from > 0
        {
            *from = last.end + 1;
        }
        Forgotten { rows: gone.rows.len(), blocks: gone.blocks().collect() }
    }
}

impl BlockAt {
    /// Whether its rows name blocks.
    pub(crate) fn has_blocks_below(&self) -> bool {
        level_and_end(&self.name).is_some_and(|(level, _)| level > 0)
    }
}

impl Place {
    /// The last sequence of it.
    pub(crate) fn last(&self) -> u64 {
        match self {
            Place::Messages(messages) => messages.last().copied().unwrap_or_default(),
            Place::Stretch(reach) | Place::Block(BlockAt { reach, .. }) => reach.to,
        }
    }
}

impl Rows {
    /// Parses the rows of a block. None if it is not the one of that name, or its rows do not fit there: they are below
    /// the row that names it, each of one level less, so that no chain of blocks has no end.
    pub(crate) fn parse(text: &[u8], block: &BlockAt) -> Option<Rows> {
        let BlockAt { name, reach } = block;
        let (checksum, rows) = unsealed::<Rows>(text)?;
        let level = rows.rows.first()?.level;
        let fits = *name == name_of(&rows.rows, checksum)
            && rows.rows.iter().all(|row| row.level == level)
            && rows.are_in_order()
            && rows.from >= reach.from
            && rows.rows.last()?.end == reach.to;
        fits.then_some(rows)
    }

    /// Whether each row ends after the one before, and names a block if it has to, of its own stretch.
    fn are_in_order(&self) -> bool {
        self.stretches().all(|(from, row)| {
            let level = row.block.as_deref().map(level_and_end);
            let block_fits = match level {
                None => row.level == 0,
                Some(named) => row.level > 0 && named == Some((row.level - 1, row.end)),
            };
            from <= row.end && block_fits
        })
    }

    /// The blocks that they name.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockAt> {
        self.stretches().filter_map(|(from, row)| row.block_at(from))
    }

    /// Where one of these terms may be, in order; stretches that are neighbours as one.
    pub(crate) fn places(&self, terms: &[Term], clocks_differ_by: u64) -> Vec<Place> {
        let mut found: Vec<Place> = Vec::new();
        for (from, row) in self.stretches() {
            match (row.having(terms, clocks_differ_by), row.block_at(from)) {
                (Having::Nothing, _) => {}
                (Having::Messages(messages), _) => found.push(Place::Messages(messages)),
                (Having::Anywhere, Some(block)) => found.push(Place::Block(block)),
                (Having::Anywhere, None) | (Having::Everywhere, _) => match found.last_mut() {
                    Some(Place::Stretch(before)) if before.to.saturating_add(1) == from => {
                        before.to = row.end;
                        before.messages += row.messages;
                    }
                    _ => found.push(Place::Stretch(row.reach(from))),
                },
            }
        }
        found
    }

    /// Before what no row has this time or a later one. None if no row has.
    pub(crate) fn first_at(&self, time: u64) -> Option<Beginning> {
        let (from, row) = self.stretches().find(|(_, row)| row.latest.is_some_and(|latest| latest >= time))?;
        Some(row.block_at(from).map_or(Beginning::At(from), Beginning::InBlock))
    }

    /// Before what no row has this growing term or a higher one. None if no row has.
    pub(crate) fn first_with(&self, term: &str) -> Option<Beginning> {
        let (from, row) = self.stretches().find(|(_, row)| row.reaches(term))?;
        let at = row.first_that_reaches(term).unwrap_or(from);
        Some(row.block_at(from).map_or(Beginning::At(at), Beginning::InBlock))
    }

    /// The lowest growing term, cut, of rows that reach a sequence; and the block of the first of them, whose rows tell
    /// what of it reaches that.
    pub(crate) fn lowest_from(&self, first: u64) -> (Option<String>, Option<BlockAt>) {
        let mut rows = self.stretches().skip_while(|(_, row)| row.end < first).peekable();
        let block = rows.next_if(|(_, row)| row.block.is_some()).and_then(|(from, row)| row.block_at(from));
        (rows.filter_map(|(_, row)| row.lowest_from(first)).min(), block)
    }

    /// The rows, each with the sequence at which it begins.
    fn stretches(&self) -> impl Iterator<Item = (u64, &Row)> {
        let begins = std::iter::once(self.from).chain(self.rows.iter().map(|row| row.end.saturating_add(1)));
        begins.zip(&self.rows)
    }

    /// Moves the oldest rows of a level into a block, if there are many. Older rows are of higher levels.
    fn move_out(&mut self, level: u8) -> Option<Block> {
        let begin = self.rows.iter().position(|row| row.level <= level)?;
        let count = self.rows[begin..].iter().take_while(|row| row.level == level).count();
        if count < 2 * IN_BLOCK {
            return None;
        }
        let from = begin.checked_sub(1).map_or(self.from, |before| self.rows[before].end + 1);
        let moved = Rows { from, rows: self.rows.drain(begin..begin + IN_BLOCK).collect() };
        let (checksum, text) = sealed(&moved);
        let name = name_of(&moved.rows, checksum);
        self.rows.insert(begin, Row::of_block(name.clone(), &moved.rows));
        Some(Block { name, text })
    }
}

/// The lowest growing term, cut, of messages from a sequence on.
pub(crate) fn lowest_from(rule: &dyn IndexRule, log: &Key, messages: &[StreamMessage], first: u64) -> Option<String> {
    Row::of(rule, log, messages).lowest_from(first)
}

/// The name of a block: its level, its last sequence and its checksum.
fn name_of(rows: &[Row], checksum: u32) -> String {
    let (level, end) = rows.last().map_or((0, 0), |row| (row.level, row.end));
    format!("{level}-{end}-{checksum:08x}")
}

/// What the name of a block says of it.
fn level_and_end(name: &str) -> Option<(u8, u64)> {
    let mut parts = name.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn sealed<C: Serialize>(catalog: &C) -> (u32, Vec<u8>) {
    let checksum = crc32fast::hash(&serde_json::to_vec(catalog).unwrap_or_default());
    (checksum, serde_json::to_vec(&Sealed { checksum, catalog }).unwrap_or_default())
}

/// What was sealed, if it is whole. The checksum is over the text, so nothing has to be written again to compare it.
fn unsealed<C: DeserializeOwned>(text: &[u8]) -> Option<(u32, C)> {
    let text = std::str::from_utf8(text).ok()?;
    let (checksum, catalog) = text.strip_prefix("{\"checksum\":")?.split_once(",\"catalog\":")?;
    let (checksum, catalog) = (checksum.parse().ok()?, catalog.strip_suffix('}')?);
    (crc32fast::hash(catalog.as_bytes()) == checksum)
        .then(|| serde_json::from_str(catalog).ok())?
        .map(|catalog| (checksum, catalog))
}

#[cfg(test)]
mod tests;
