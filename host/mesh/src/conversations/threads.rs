//! The list of threads, and who talks to whom.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::pin::pin;
use std::sync::Mutex;

use futures::StreamExt as _;
use serde::Deserialize;
use store::StoreError;

use super::MailReader;
use super::reader::Sight;
use super::scan::{ScanFrom, scan};
use crate::agents::list::of_each;
use crate::core::Core;
use crate::messages::inboxes::Inboxes;
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;

/// Which threads to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadFilter {
    /// Only threads in which this agent wrote or was written to.
    pub with: Option<AgentName>,
    /// Only messages of then or later.
    pub since: Option<Instant>,
}

/// The threads of a mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// The threads, that of the newest message first.
    pub threads: Vec<ThreadSummary>,
    /// Who wrote to whom, most messages first.
    pub pairs: Vec<Pair>,
    /// Damaged stretches and lines of inboxes that were skipped.
    pub damaged: usize,
}

/// A thread in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSummary {
    /// Its name: the id of its first message, or a word.
    pub thread: String,
    /// The subject of its first message that is kept.
    pub subject: String,
    /// Everybody who wrote in it or was written to.
    pub agents: BTreeSet<AgentName>,
    /// How many messages it has. A message to several agents is one.
    pub messages: usize,
    /// When the first of them was stored.
    pub first: Instant,
    /// When the last of them was stored.
    pub last: Instant,
    /// Who wrote the last one.
    pub last_from: AgentName,
    /// How many of its messages some recipient has not got yet, a message to several agents once for each.
    pub waiting: usize,
}

/// A sender and a recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Who wrote.
    pub from: AgentName,
    pub to: AgentName,
    /// How many messages.
    pub messages: usize,
    /// When the last one was stored.
    pub last: Instant,
}

/// What the list reads of a message.
#[derive(Deserialize)]
pub(super) struct ListedMessage<'a> {
    pub(super) id: MessageId,
    pub(super) at: Instant,
    #[serde(borrow)]
    pub(super) from: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) thread: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) subject: Cow<'a, str>,
}

/// A thread while it is put together. Agents are numbers of [`Names`].
#[derive(Clone)]
pub(super) struct Building {
    messages: usize,
    agents: BTreeSet<usize>,
    first: (Instant, MessageId),
    subject: String,
    pub(super) last: (Instant, MessageId),
    last_from: usize,
    pub(super) waiting: usize,
}

/// Each name once, by a number: a busy mesh has few names and many messages.
#[derive(Default)]
pub(super) struct Names {
    numbers: HashMap<String, usize>,
    pub(super) names: Vec<AgentName>,
}

impl Names {
    /// The number of a name; none if it is not one.
    pub(super) fn number(&mut self, name: &str) -> Option<usize> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let known = AgentName::try_from(name.to_owned()).ok()?;
        self.names.push(known);
        self.numbers.insert(name.to_owned(), self.names.len() - 1);
        Some(self.names.len() - 1)
    }
}

pub(crate) async fn threads(
    core: &Core,
    inboxes: &Inboxes,
    reader: &MailReader,
    filter: &ThreadFilter,
) -> Result<Threads, StoreError> {
    let sight = Sight::of(core, reader, filter.since).await?;
    let mut building: HashMap<String, Building> = HashMap::new();
    let mut pairs: HashMap<(usize, usize), (usize, Instant)> = HashMap::new();
    let (mut names, mut ids, mut unreadable) = (Names::default(), HashSet::new(), 0);
    let torn = scan(core, &sight, ScanFrom::Time(filter.since), |owner, entry| {
        let Ok(line) = serde_json::from_slice::<ListedMessage<'_>>(&entry.bytes) else {
            unreadable += 1;
            return;
        };
        if !sight.shows(owner, line.id) || filter.since.is_some_and(|since| line.at < since) {
            return;
        }
        let (Some(from), Some(to)) = (names.number(&line.from), names.number(owner.as_str())) else {
            unreadable += 1;
            return;
        };
        let pair = pairs.entry((from, to)).or_insert((0, line.at));
        *pair = (pair.0 + 1, pair.1.max(line.at));
        let is_new = ids.insert(line.id);
        let place = (line.at, line.id);
        match building.get_mut(line.thread.as_ref()) {
            Some(thread) => thread.take(place, (from, to), &line.subject, is_new),
            None => {
                building.insert(line.thread.into_owned(), Building::of(place, (from, to), &line.subject));
            }
        }
    })
    .await?;
    each_waiting(core, inboxes, &sight, |thread: &str| {
        if let Some(thread) = building.get_mut(thread) {
            thread.waiting += 1;
        }
    })
    .await?;
    let names = names.names;
    let is_wanted = |thread: &ThreadSummary| filter.with.as_ref().is_none_or(|with| thread.agents.contains(with));
    let summaries = building.into_iter().map(|(thread, one)| one.summary(thread, &names));
    let mut threads: Vec<ThreadSummary> = summaries.filter(is_wanted).collect();
    threads.sort_by(|one, other| other.last.cmp(&one.last).then_with(|| one.thread.cmp(&other.thread)));
    let of_pair = |((from, to), (messages, last)): ((usize, usize), (usize, Instant))| {
        let (from, to) = (names[from].clone(), names[to].clone());
        Pair { from, to, messages, last }
    };
    let mut pairs: Vec<Pair> = pairs.into_iter().map(of_pair).collect();
    pairs.retain(|pair| filter.with.as_ref().is_none_or(|with| pair.from == *with || pair.to == *with));
    pairs.sort_by(|one, other| {
        let key = |pair: &Pair| (std::cmp::Reverse((pair.messages, pair.last)), pair.from.clone(), pair.to.clone());
        key(one).cmp(&key(other))
    });
    Ok(Threads { threads, pairs, damaged: torn + unreadable })
}

/// Passes the thread of each message that its recipient has not got yet to `take`. Costs what is open, and not what was
/// ever said.
pub(super) async fn each_waiting(
    core: &Core,
    inboxes: &Inboxes,
    sight: &Sight,
    take: impl FnMut(&str) + Send,
) -> Result<(), StoreError> {
    // A std mutex: nothing is awaited while it is held.
    let take = Mutex::new(take);
    let take = &take;
    let mut looks = pin!(of_each(core, sight.owners.iter().collect(), |owner: &AgentName| async move {
        let inbox = inboxes.of(owner);
        let mut inbox = inbox.lock().await;
        inbox.refresh(core.shared.as_ref(), owner).await?;
        let mut take = take.lock().expect("no holder of this lock panics");
        for slot in inbox.open.all().filter(|slot| sight.shows(owner, slot.header.id)) {
            (*take)(&slot.header.thread);
        }
        Ok::<_, StoreError>(())
    }));
    while let Some(look) = looks.next().await {
        look?;
    }
    Ok(())
}

impl Building {
    pub(super) fn of(place: (Instant, MessageId), (from, to): (usize, usize), subject: &str) -> Building {
        Building {
            messages: 1,
            agents: BTreeSet::from([from, to]),
            first: place,
            subject: subject.to_owned(),
            last: place,
            last_from: from,
            waiting: 0,
        }
    }

    /// Takes a further copy of a message, which may be the first of it.
    pub(super) fn take(
        &mut self,
        place: (Instant, MessageId),
        (from, to): (usize, usize),
        subject: &str,
        is_new: bool,
    ) {
        self.messages += usize::from(is_new);
        self.agents.extend([from, to]);
        if place < self.first {
            self.first = place;
            subject.clone_into(&mut self.subject);
        }
        if place > self.last {
            (self.last, self.last_from) = (place, from);
        }
    }

    pub(super) fn summary(self, thread: String, names: &[AgentName]) -> ThreadSummary {
        let Building { messages, agents, first, subject, last, last_from, waiting } = self;
        let agents = agents.into_iter().map(|agent| names[agent].clone()).collect();
        let last_from = names[last_from].clone();
        ThreadSummary { thread, subject, agents, messages, first: first.0, last: last.0, last_from, waiting }
    }
}
