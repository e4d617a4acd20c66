//! The catalog of a log: what ids and times its stretches have, so that a lookup reads the stretches that may have what
//! is sought, and the end of the log, whatever the server's clock says of them.
//!
//! A row says of a stretch what never changes: a stream only grows, so nothing new comes into a stretch that was read,
//! and what is deleted leaves the row true. Rows are made of every line at the log's subjects, also of those that do not
//! count, because they may count later (`ownership.rs`). The catalog names the last message that it covers: if that one
//! is not there, the stream is another one, or lost its end, and the catalog is not believed.
//!
//! Pure; `cataloguing.rs` reads and writes it.

use async_nats::jetstream::message::StreamMessage;
use serde::{Deserialize, Serialize};
use store::{IndexRule, Key, Term, TermOrder};

/// A row is closed at this many messages or bytes.
const MESSAGES: usize = 64;
const BYTES: usize = 64 * 1024;
/// So many rows have to be missing before a lookup writes the catalog again.
pub(crate) const WRITTEN_AFTER: usize = 2;
/// The most rows. Beyond that, the smallest neighbours become one row, until there are only so many.
const MOST_ROWS: usize = 512;
const ROWS_LEFT: usize = 384;
/// How many characters of a term a row has: the time of a ULID.
const PREFIX: usize = 10;
/// The version of the format.
const VERSION: u32 = 1;

/// What is known of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Catalog {
    version: u32,
    /// The version of the rule by which the rows were made.
    rule: u32,
    /// The subjects of the log.
    pub(crate) subject: String,
    /// Where the first row begins. At zero, nothing is before it.
    pub(crate) from: u64,
    /// The last message of the last row.
    pub(crate) last: Anchor,
    rows: Vec<Row>,
}

/// A message, and the time at which the server stored it, in nanoseconds since 1970. No other message has both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Anchor {
    pub(crate) sequence: u64,
    stored: i64,
}

/// A stretch of a log, from the end of the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The sequence of its last message.
    #[serde(rename = "e")]
    end: u64,
    /// How many messages it had.
    #[serde(rename = "n")]
    messages: usize,
    /// The lowest and the highest growing term, cut.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    terms: Option<(String, String)>,
    /// The highest time, in milliseconds since 1970.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    latest: Option<u64>,
}

/// A stretch of the stream in which a log is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The first sequence, and the last one.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// How many messages of the log it had.
    pub(crate) messages: usize,
}

/// The text of a catalog, with a checksum over it.
#[derive(Serialize, Deserialize)]
struct Sealed<C> {
    checksum: u32,
    catalog: C,
}

impl Anchor {
    pub(crate) fn of(message: &StreamMessage) -> Anchor {
        Anchor { sequence: message.sequence, stored: i64::try_from(message.time.unix_timestamp_nanos()).unwrap_or(0) }
    }
}

impl Catalog {
    /// One without rows, of a log from a sequence on.
    pub(crate) fn empty(rule: &dyn IndexRule, subject: &str, from: u64) -> Catalog {
        let last = Anchor::default();
        Catalog { version: VERSION, rule: rule.version(), subject: subject.to_owned(), from, last, rows: Vec::new() }
    }

    /// Parses one. None if it is damaged, of another log, or made by another rule.
    pub(crate) fn parse(text: &[u8], rule: &dyn IndexRule, subject: &str) -> Option<Catalog> {
        let Sealed { checksum, catalog } = serde_json::from_slice::<Sealed<Catalog>>(text).ok()?;
        let fits = catalog.version == VERSION && catalog.rule == rule.version() && catalog.subject == subject;
        (fits && checksum_of(&catalog) == checksum && !catalog.rows.is_empty()).then_some(catalog)
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        serde_json::to_vec(&Sealed { checksum: checksum_of(self), catalog: self }).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The stretches that may have one of these terms, neighbours as one.
    pub(crate) fn with_any(&self, terms: &[Term], clocks_differ_by: u64) -> Vec<Reach> {
        let has = |row: &Row| terms.iter().any(|term| row.may_have(term, clocks_differ_by));
        let mut found: Vec<Reach> = Vec::new();
        for (from, row) in self.stretches().filter(|(_, row)| has(row)) {
            match found.last_mut() {
                Some(before) if before.to + 1 == from => {
                    before.to = row.end;
                    before.messages += row.messages;
                }
                Some(_) | None => found.push(Reach { from, to: row.end, messages: row.messages }),
            }
        }
        found
    }

    /// The sequence before which no row has this time or a later one. The one after the last row if none has.
    pub(crate) fn begins(&self, time: u64) -> u64 {
        let first = self.stretches().find(|(_, row)| row.latest.is_some_and(|latest| latest >= time));
        first.map_or(self.last.sequence + 1, |(from, _)| from)
    }

    /// Adds a row of messages that follow the last one.
    pub(crate) fn add(&mut self, rule: &dyn IndexRule, log: &Key, messages: &[StreamMessage]) {
        let Some(last) = messages.last() else { return };
        self.rows.push(Row::of(rule, log, messages));
        self.last = Anchor::of(last);
        if self.rows.len() > MOST_ROWS {
            self.join_rows();
        }
    }

    /// Forgets rows of which nothing is left, given the log's first message.
    pub(crate) fn forget_before(&mut self, first: u64) {
        let gone = self.rows.iter().take_while(|row| row.end < first).count().min(self.rows.len().saturating_sub(1));
        if let Some(last) = self.rows.drain(..gone).next_back()
            && self.from > 0
        {
            self.from = last.end + 1;
        }
    }

    /// The rows, each with the sequence at which it begins.
    fn stretches(&self) -> impl Iterator<Item = (u64, &Row)> {
        let begins = std::iter::once(self.from).chain(self.rows.iter().map(|row| row.end + 1));
        begins.zip(&self.rows)
    }

    /// Joins the smallest neighbours, so that old stretches become longer together.
    fn join_rows(&mut self) {
        while self.rows.len() > ROWS_LEFT {
            let size = |place: &usize| self.rows[*place].messages + self.rows[*place + 1].messages;
            let Some(smallest) = (0..self.rows.len() - 1).min_by_key(size) else { return };
            let next = self.rows.remove(smallest + 1);
            self.rows[smallest].join(next);
        }
    }
}

impl Row {
    fn of(rule: &dyn IndexRule, log: &Key, messages: &[StreamMessage]) -> Row {
        let end = messages.last().map_or(0, |message| message.sequence);
        let mut row = Row { end, messages: messages.len(), terms: None, latest: None };
        for line in messages.iter().flat_map(|message| message.payload.split(|byte| *byte == b'\n')) {
            let indexed = rule.of(log, line);
            row.latest = row.latest.max(indexed.at);
            for term in indexed.terms.iter().filter(|term| term.order == TermOrder::Growing) {
                row.take((prefix(&term.text).to_owned(), prefix(&term.text).to_owned()));
            }
        }
        row
    }

    fn take(&mut self, (low, high): (String, String)) {
        match &mut self.terms {
            Some((lowest, highest)) => {
                if low < *lowest {
                    *lowest = low;
                }
                if high > *highest {
                    *highest = high;
                }
            }
            None => self.terms = Some((low, high)),
        }
    }

    fn join(&mut self, next: Row) {
        self.end = next.end;
        self.messages += next.messages;
        self.latest = self.latest.max(next.latest);
        if let Some(terms) = next.terms {
            self.take(terms);
        }
    }

    fn may_have(&self, term: &Term, clocks_differ_by: u64) -> bool {
        match (term.order, &self.terms) {
            (TermOrder::Growing, Some((lowest, highest))) => {
                (lowest.as_str()..=highest.as_str()).contains(&prefix(&term.text))
            }
            (TermOrder::Growing, None) => false,
            // What has no time of its own may be of any.
            (TermOrder::Scattered, _) => term
                .since
                .zip(self.latest)
                .is_none_or(|(since, latest)| latest >= since.saturating_sub(clocks_differ_by)),
        }
    }
}

/// Whether so many messages make a row.
pub(crate) fn is_row(messages: &[StreamMessage]) -> bool {
    messages.len() >= MESSAGES || messages.iter().map(|message| message.payload.len()).sum::<usize>() >= BYTES
}

/// The beginning of a term. Beginnings sort as terms do.
fn prefix(text: &str) -> &str {
    text.char_indices().nth(PREFIX).map_or(text, |(end, _)| &text[..end])
}

fn checksum_of(catalog: &Catalog) -> u32 {
    crc32fast::hash(&serde_json::to_vec(catalog).unwrap_or_default())
}
