//! A row of a catalog: what a stretch of a log has, and where.

use async_nats::jetstream::message::StreamMessage;
use serde::{Deserialize, Serialize};
use store::{IndexRule, Key, Term, TermOrder};

use super::{BlockAt, Reach};

/// A row is closed at this many messages or bytes.
const MESSAGES: usize = 32;
const BYTES: usize = 64 * 1024;
/// How many characters of a term a row has: the time of a ULID.
const PREFIX: usize = 10;

/// A stretch of a log, from the end of the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The sequence of its last message.
    #[serde(rename = "e")]
    pub(super) end: u64,
    /// How many messages it had.
    #[serde(rename = "n")]
    pub(super) messages: usize,
    /// The lowest and the highest growing term, cut.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(super) terms: Option<(String, String)>,
    /// The highest time, in milliseconds since 1970.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub(super) latest: Option<u64>,
    /// Its messages that have growing terms.
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    places: Vec<Place>,
    /// The block that has its rows: of the stretch of a block, this is all that is left in the catalog.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub(super) block: Option<String>,
    /// How many blocks are below each other there.
    #[serde(rename = "l", default, skip_serializing_if = "is_zero")]
    pub(super) level: u8,
}

/// A message of a row: how far its sequence is from the message's before it (the first one's: from zero), and its
/// lowest and highest growing term without what all terms of the row begin with. One term if both are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Place {
    OneTerm(u64, String),
    Terms(u64, String, String),
}

/// What a row has of some terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Having {
    /// Nothing.
    Nothing,
    /// These messages may have one.
    Messages(Vec<u64>),
    /// Any of its messages may have one.
    Anywhere,
    /// Any of its messages, and none of its rows can be passed over.
    Everywhere,
}

impl Row {
    /// The row of messages that follow each other.
    pub(super) fn of(rule: &dyn IndexRule, log: &Key, messages: &[StreamMessage]) -> Row {
        let end = messages.last().map_or(0, |message| message.sequence);
        let (mut latest, mut ranges) = (None, Vec::new());
        for message in messages {
            let mut range = None;
            for line in message.payload.split(|byte| *byte == b'\n') {
                let indexed = rule.of(log, line);
                latest = latest.max(indexed.at);
                for term in indexed.terms.iter().filter(|term| term.order == TermOrder::Growing) {
                    widen(&mut range, (prefix(&term.text), prefix(&term.text)));
                }
            }
            ranges.extend(range.map(|range| (message.sequence, range)));
        }
        let mut terms = None;
        ranges.iter().for_each(|(_, (low, high))| widen(&mut terms, (low, high)));
        let shared = terms.as_ref().map_or(0, |(low, high)| shared_beginning(low, high));
        let mut before = 0;
        let place = |(sequence, (low, high)): (u64, (String, String))| {
            let step = sequence - std::mem::replace(&mut before, sequence);
            let (low, high) = (low[shared..].to_owned(), high[shared..].to_owned());
            if low == high { Place::OneTerm(step, low) } else { Place::Terms(step, low, high) }
        };
        let places = ranges.into_iter().map(place).collect();
        Row { end, messages: messages.len(), terms, latest, places, block: None, level: 0 }
    }

    /// The row of a block with these rows.
    pub(super) fn of_block(name: String, rows: &[Row]) -> Row {
        let mut terms = None;
        for (low, high) in rows.iter().filter_map(|row| row.terms.as_ref()) {
            widen(&mut terms, (low, high));
        }
        Row {
            end: rows.last().map_or(0, |row| row.end),
            messages: rows.iter().map(|row| row.messages).sum(),
            terms,
            latest: rows.iter().filter_map(|row| row.latest).max(),
            places: Vec::new(),
            block: Some(name),
            level: rows.first().map_or(0, |row| row.level) + 1,
        }
    }

    /// Its stretch, given where it begins.
    pub(super) fn reach(&self, from: u64) -> Reach {
        Reach { from, to: self.end, messages: self.messages }
    }

    /// Its block and its stretch, given where it begins.
    pub(super) fn block_at(&self, from: u64) -> Option<BlockAt> {
        self.block.clone().map(|name| BlockAt { name, reach: self.reach(from) })
    }

    /// What it has of these terms.
    pub(super) fn having(&self, terms: &[Term], clocks_differ_by: u64) -> Having {
        let growing: Vec<&str> =
            terms.iter().filter(|term| self.may_have_growing(term)).map(|term| prefix(&term.text)).collect();
        let mut scattered = terms.iter().filter(|term| term.order == TermOrder::Scattered);
        // What has no time of its own may be of any.
        let is_late = |since: u64| self.latest.is_none_or(|latest| latest >= since.saturating_sub(clocks_differ_by));
        if scattered.clone().any(|term| term.since.is_none()) {
            return Having::Everywhere;
        }
        if scattered.any(|term| term.since.is_some_and(is_late)) || (!growing.is_empty() && self.block.is_some()) {
            return Having::Anywhere;
        }
        if growing.is_empty() {
            return Having::Nothing;
        }
        let has =
            |(_, low, high): &(u64, String, String)| growing.iter().any(|term| (low.as_str()..=high).contains(term));
        let found: Vec<u64> = self.places().filter(has).map(|(sequence, _, _)| sequence).collect();
        match found.len() {
            0 => Having::Nothing,
            // One request for all of them.
            many if many * 2 > self.messages => Having::Anywhere,
            _ => Having::Messages(found),
        }
    }

    /// Whether an entry of it may have a term like this one or above it.
    pub(super) fn reaches(&self, term: &str) -> bool {
        self.terms.as_ref().is_some_and(|(_, highest)| highest.as_str() >= prefix(term))
    }

    /// The first message that may have a term like this one or above it; none if it lists none.
    pub(super) fn first_that_reaches(&self, term: &str) -> Option<u64> {
        self.places().find(|(_, _, high)| high.as_str() >= prefix(term)).map(|(sequence, _, _)| sequence)
    }

    /// Its lowest growing term, cut, from a sequence on if it lists its messages.
    pub(super) fn lowest_from(&self, first: u64) -> Option<String> {
        match &self.terms {
            Some((lowest, _)) if self.places.is_empty() => Some(lowest.clone()),
            _ => self.places().filter(|(at, _, _)| *at >= first).map(|(_, low, _)| low).min(),
        }
    }

    fn may_have_growing(&self, term: &Term) -> bool {
        term.order == TermOrder::Growing
            && self
                .terms
                .as_ref()
                .is_some_and(|(lowest, highest)| (lowest.as_str()..=highest.as_str()).contains(&prefix(&term.text)))
    }

    /// Its messages that have growing terms: their sequences, and their lowest and highest terms, cut.
    fn places(&self) -> impl Iterator<Item = (u64, String, String)> {
        let shared = self.terms.as_ref().map_or("", |(low, high)| &low[..shared_beginning(low, high)]);
        let mut sequence = 0;
        self.places.iter().map(move |place| {
            let (step, low, high) = match place {
                Place::OneTerm(step, term) => (step, term, term),
                Place::Terms(step, low, high) => (step, low, high),
            };
            sequence = step.saturating_add(sequence);
            (sequence, format!("{shared}{low}"), format!("{shared}{high}"))
        })
    }
}

/// Whether so many messages make a row.
pub(crate) fn is_row(messages: &[StreamMessage]) -> bool {
    messages.len() >= MESSAGES || messages.iter().map(|message| message.payload.len()).sum::<usize>() >= BYTES
}

/// Makes a range include another one.
fn widen(range: &mut Option<(String, String)>, (low, high): (&str, &str)) {
    match range {
        Some((lowest, highest)) => {
            if low < lowest.as_str() {
                low.clone_into(lowest);
            }
            if high > highest.as_str() {
                high.clone_into(highest);
            }
        }
        None => *range = Some((low.to_owned(), high.to_owned())),
    }
}

/// How many bytes two texts have in common at the beginning, and every text between them.
fn shared_beginning(low: &str, high: &str) -> usize {
    let differ = low.char_indices().zip(high.chars()).find(|((_, one), other)| one != other);
    differ.map_or(low.len().min(high.len()), |((at, _), _)| at)
}

/// The beginning of a term. Beginnings sort as terms do.
fn prefix(text: &str) -> &str {
    text.char_indices().nth(PREFIX).map_or(text, |(end, _)| &text[..end])
}

fn is_zero(level: &u8) -> bool {
    *level == 0
}
