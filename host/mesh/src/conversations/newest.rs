//! The newest threads, as a view that stays open lists them: what it has read stays in memory, so that a further
//! reading costs what is new.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::pin::pin;
use std::sync::Mutex;

use futures::StreamExt as _;
use store::{Entry, Position, StoreError};

use super::MailReader;
use super::reader::Sight;
use super::threads::{Building, ListedMessage, Names, ThreadSummary, each_waiting};
use crate::agents::list::of_each;
use crate::core::Core;
use crate::messages::checkpoint::{EntryMark, read_on};
use crate::messages::inboxes::Inboxes;
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::storage::keys;

/// Everything is read again after so long, in milliseconds. On servers an entry counts by who may write for its sender,
/// and a change of that leaves no trace in the inbox.
const ANEW: u64 = 60 * 60 * 1000;

/// The newest threads of a mesh, as far as they were read for one view.
///
/// Memory holds as many threads as are listed and the ids of their messages, and a hash of the name of each older one.
pub struct NewestThreads {
    /// So many are listed.
    most: usize,
    /// What was read. Written by `newest_threads` alone; nothing after a reading that failed or was given up.
    known: Known,
}

/// What was read of all inboxes.
#[derive(Default)]
struct Known {
    /// When the reading began that this goes on from; none if nothing was read.
    begun: Option<Instant>,
    /// How far each inbox was read that has entries. Written by `read_on`.
    inboxes: BTreeMap<AgentName, InboxMarks>,
    fold: Fold,
}

/// How far an inbox was read, and what shows that it is still the same.
#[derive(Clone, Copy)]
struct InboxMarks {
    /// The first entry. Another one is first after retention, or if the inbox was removed and begun anew.
    first: EntryMark,
    /// The last entry that was read. It is missing if the inbox lost its end.
    last: EntryMark,
    end: Position,
}

/// An inbox after it was read.
enum InboxState {
    /// It has no entries.
    Empty,
    Read(InboxMarks),
    /// Something is missing that was read before.
    Shortened,
}

/// The threads that the entries make. It only grows: if an entry is deleted, it is made anew.
#[derive(Default)]
struct Fold {
    threads: HashMap<String, ReadThread>,
    names: Names,
    /// Hashes of the names of the threads that are too old to be listed. If two names have one hash, everything is read
    /// once more, and nothing else happens.
    older: HashSet<u64>,
    hasher: RandomState,
    /// Whether one of the older threads has got a message: only its earlier messages say what it is.
    misses_older: bool,
}

/// A thread with the ids of its messages: one to several agents is in several inboxes and counts once.
struct ReadThread {
    ids: HashSet<MessageId>,
    building: Building,
}

impl NewestThreads {
    /// At most so many. Nothing is read yet.
    pub fn of(most: usize) -> NewestThreads {
        NewestThreads { most, known: Known::default() }
    }
}

/// The newest threads of the whole mesh, as `threads` lists them for its user.
pub(crate) async fn newest_threads(
    core: &Core,
    inboxes: &Inboxes,
    newest: &mut NewestThreads,
) -> Result<Vec<ThreadSummary>, StoreError> {
    let sight = Sight::of(core, &MailReader::User, None).await?;
    let now = core.machine.now();
    // Taken, because after a reading that breaks off it is not known what of it was counted.
    let mut known = std::mem::take(&mut newest.known);
    if !known.can_go_on(&sight.owners, now) || !known.read_on(core, &sight.owners).await? {
        known = Known { begun: Some(now), ..Known::default() };
        known.read_on(core, &sight.owners).await?;
    }
    known.fold.count_waiting(core, inboxes, &sight).await?;
    let listed = known.fold.list(newest.most);
    newest.known = known;
    Ok(listed)
}

impl Known {
    /// Whether a reading can go on from here: everybody whose mail was read is still there.
    fn can_go_on(&self, owners: &[AgentName], now: Instant) -> bool {
        let owners: HashSet<&AgentName> = owners.iter().collect();
        self.begun.is_some_and(|begun| now.since(begun) < ANEW)
            && self.inboxes.keys().all(|owner| owners.contains(owner))
    }

    /// Reads what is new in these inboxes. False if that does not say what the threads are now.
    async fn read_on(&mut self, core: &Core, owners: &[AgentName]) -> Result<bool, StoreError> {
        let asked = owners.iter().map(|owner| (owner, self.inboxes.get(owner).copied())).collect();
        let read = read_inboxes(core, asked, &mut self.fold).await?;
        let Some(inboxes) = read else { return Ok(false) };
        self.inboxes = inboxes;
        Ok(!self.fold.misses_older)
    }
}

/// Passes what is new in each inbox to `fold`. Returns how far each was read; none if something is missing that was
/// read before.
async fn read_inboxes(
    core: &Core,
    asked: Vec<(&AgentName, Option<InboxMarks>)>,
    fold: &mut Fold,
) -> Result<Option<BTreeMap<AgentName, InboxMarks>>, StoreError> {
    // A std mutex: nothing is awaited while it is held.
    let fold = Mutex::new(fold);
    let fold = &fold;
    let mut reads = pin!(of_each(core, asked, |(owner, before): (&AgentName, Option<InboxMarks>)| async move {
        let take = |entry: &Entry| fold.lock().expect("no holder of this lock panics").take_entry(owner, entry);
        Ok::<_, StoreError>((owner, read_inbox(core, owner, before, take).await?))
    }));
    let mut inboxes = BTreeMap::new();
    while let Some(read) = reads.next().await {
        match read? {
            (_, InboxState::Empty) => {}
            (owner, InboxState::Read(marks)) => {
                inboxes.insert(owner.clone(), marks);
            }
            (_, InboxState::Shortened) => return Ok(None),
        }
    }
    Ok(Some(inboxes))
}

/// Passes what is new in an inbox to `take`; all of it if nothing was read before.
async fn read_inbox(
    core: &Core,
    owner: &AgentName,
    before: Option<InboxMarks>,
    mut take: impl FnMut(&Entry) + Send,
) -> Result<InboxState, StoreError> {
    let (store, log) = (core.shared.as_ref(), keys::inbox(owner));
    let Some(before) = before else {
        let mut first = None;
        let each = |entry: &Entry| {
            first.get_or_insert_with(|| EntryMark::of(entry));
            take(entry);
        };
        let read = read_on(store, &log, Position::START, None, each).await?;
        return Ok(match first.zip(read.last) {
            Some((first, last)) => InboxState::Read(InboxMarks { first, last, end: read.end }),
            None => InboxState::Empty,
        });
    };
    let read = read_on(store, &log, before.end, Some(before.last), take).await?;
    // Looked at last: what is deleted from now on is noticed by the next reading.
    let first = store.read(&log, Position::START, 1).await?.entries.first().map(EntryMark::of);
    if !read.is_same || first != Some(before.first) {
        return Ok(InboxState::Shortened);
    }
    let last = read.last.unwrap_or(before.last);
    Ok(InboxState::Read(InboxMarks { last, end: read.end, ..before }))
}

impl Fold {
    /// Takes a further entry of an inbox.
    fn take_entry(&mut self, owner: &AgentName, entry: &Entry) {
        let Ok(line) = serde_json::from_slice::<ListedMessage<'_>>(&entry.bytes) else { return };
        let (Some(from), Some(to)) = (self.names.number(&line.from), self.names.number(owner.as_str())) else { return };
        let place = (line.at, line.id);
        if let Some(thread) = self.threads.get_mut(line.thread.as_ref()) {
            let is_new = thread.ids.insert(line.id);
            thread.building.take(place, (from, to), &line.subject, is_new);
            return;
        }
        if self.older.contains(&self.hasher.hash_one(&*line.thread)) {
            self.misses_older = true;
            return;
        }
        let building = Building::of(place, (from, to), &line.subject);
        let thread = ReadThread { ids: HashSet::from([line.id]), building };
        self.threads.insert(line.thread.into_owned(), thread);
    }

    /// Counts anew how many messages of each thread wait.
    async fn count_waiting(&mut self, core: &Core, inboxes: &Inboxes, sight: &Sight) -> Result<(), StoreError> {
        self.threads.values_mut().for_each(|thread| thread.building.waiting = 0);
        let threads = &mut self.threads;
        each_waiting(core, inboxes, sight, |thread: &str| {
            if let Some(thread) = threads.get_mut(thread) {
                thread.building.waiting += 1;
            }
        })
        .await
    }

    /// The newest threads, that of the newest message first. Of the others only the hashes of their names are kept.
    fn list(&mut self, most: usize) -> Vec<ThreadSummary> {
        let mut all: Vec<(&String, &ReadThread)> = self.threads.iter().collect();
        all.sort_unstable_by_key(|(name, thread)| (Reverse(thread.building.last.0), *name));
        let older: Vec<String> = all.iter().skip(most).map(|(name, _)| (*name).clone()).collect();
        let newest = all.into_iter().take(most);
        let listed = newest.map(|(name, thread)| thread.building.clone().summary(name.clone(), &self.names.names));
        let listed: Vec<ThreadSummary> = listed.collect();
        for name in older {
            self.older.insert(self.hasher.hash_one(name.as_str()));
            self.threads.remove(&name);
        }
        // The first reading has had all of them.
        if self.threads.capacity() / 8 > most {
            self.threads.shrink_to_fit();
        }
        listed
    }
}
