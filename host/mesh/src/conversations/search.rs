//! Search over subjects and bodies: reads through the mail that is kept, and keeps the best.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Deserialize;
use store::StoreError;

use super::MailReader;
use super::rank::{Query, Scratch};
use super::reader::Sight;
use super::scan::{ScanFrom, scan};
use crate::core::Core;
use crate::messages::Message;
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;

/// What to look for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Words and phrases, all of which have to be in the subject or the body.
    pub words: Vec<String>,
    /// Only from this sender.
    pub from: Option<AgentName>,
    /// Only to this recipient.
    pub to: Option<AgentName>,
    /// Only in this thread.
    pub thread: Option<String>,
    /// Only of then or later.
    pub since: Option<Instant>,
    /// At most so many, the best.
    pub limit: usize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchHits {
    /// The best, best first; of two that fit alike the newer one.
    pub hits: Vec<SearchHit>,
    /// How many there are in all.
    pub found: usize,
    /// Damaged stretches and lines of inboxes that were skipped.
    pub damaged: usize,
}

/// A message that has the words.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The message, as one of its recipients has it.
    pub message: Message,
    /// Everybody who got it.
    pub to: BTreeSet<AgentName>,
    /// How well it fits.
    pub score: u32,
}

/// What the search reads of a message.
#[derive(Deserialize)]
struct SearchedMessage<'a> {
    id: MessageId,
    at: Instant,
    #[serde(borrow)]
    from: Cow<'a, str>,
    #[serde(borrow)]
    subject: Cow<'a, str>,
    #[serde(borrow)]
    body: Cow<'a, str>,
    #[serde(borrow)]
    thread: Cow<'a, str>,
}

/// The order of hits, worst first.
type Rank = (u32, Instant, MessageId);

pub(crate) async fn search(core: &Core, reader: &MailReader, search: &Search) -> Result<SearchHits, StoreError> {
    let query = Query::new(&search.words);
    if query.is_empty() || search.limit == 0 {
        return Ok(SearchHits::default());
    }
    let mut sight = Sight::of(core, reader, search.since).await?;
    if let Some(to) = &search.to {
        sight.owners.retain(|owner| owner == to);
    }
    let mut best: BTreeMap<Rank, SearchHit> = BTreeMap::new();
    // A message to several agents is in several inboxes, and counts once.
    let mut found: HashSet<MessageId> = HashSet::new();
    let (mut scratch, mut unreadable) = (Scratch::default(), 0);
    let torn = scan(core, &sight, ScanFrom::Time(search.since), |owner, entry| {
        if !query.may_match(&entry.bytes, &mut scratch) {
            return;
        }
        let Ok(line) = serde_json::from_slice::<SearchedMessage<'_>>(&entry.bytes) else {
            unreadable += 1;
            return;
        };
        if !search.wants(&line) || !sight.shows(owner, line.id) {
            return;
        }
        let Some(score) = query.score(&line.subject, &line.body, &mut scratch) else { return };
        let rank = (score, line.at, line.id);
        if !found.insert(line.id) {
            if let Some(hit) = best.get_mut(&rank) {
                hit.to.insert(owner.clone());
            }
            return;
        }
        // Only what is among the best so far is read whole.
        if best.len() == search.limit && best.first_key_value().is_some_and(|(worst, _)| rank < *worst) {
            return;
        }
        let Ok(message) = serde_json::from_slice::<Message>(&entry.bytes) else {
            unreadable += 1;
            return;
        };
        best.insert(rank, SearchHit { message, to: BTreeSet::from([owner.clone()]), score });
        if best.len() > search.limit {
            best.pop_first();
        }
    })
    .await?;
    let hits = best.into_values().rev().collect();
    Ok(SearchHits { hits, found: found.len(), damaged: torn + unreadable })
}

impl Search {
    /// Whether a message fits, apart from its words.
    fn wants(&self, message: &SearchedMessage<'_>) -> bool {
        self.from.as_ref().is_none_or(|from| message.from == from.as_str())
            && self.thread.as_ref().is_none_or(|thread| message.thread == *thread)
            && self.since.is_none_or(|since| message.at >= since)
    }
}
