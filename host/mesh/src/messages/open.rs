//! The open messages of an inbox: those that are not settled, in the orders in which they are looked for. What a fetch
//! costs depends on what it takes, and not on how many messages wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use store::Position;

use crate::messages::Priority;
use crate::messages::slot::Slot;
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;

/// Open messages by id, with indexes.
#[derive(Default)]
pub(crate) struct OpenMessages {
    slots: BTreeMap<MessageId, Slot>,
    /// As they lie in the inbox.
    placed: BTreeMap<Position, MessageId>,
    /// As they are presented: the most urgent first, then the oldest.
    ranked: BTreeSet<(Reverse<Priority>, Position, MessageId)>,
    /// Those that were leased once, or handed over.
    engaged: BTreeSet<MessageId>,
    /// Where the first receipt of each is that has one, and where the message is.
    receipts: BTreeSet<(Position, Position)>,
}

impl OpenMessages {
    pub(crate) fn insert(&mut self, slot: Slot) {
        let id = slot.header.id;
        self.remove(id);
        self.placed.insert(slot.at, id);
        self.ranked.insert(rank(&slot));
        self.index(&slot);
        self.slots.insert(id, slot);
    }

    pub(crate) fn remove(&mut self, id: MessageId) -> Option<Slot> {
        let slot = self.slots.remove(&id)?;
        self.placed.remove(&slot.at);
        self.ranked.remove(&rank(&slot));
        self.leave_index(&slot);
        Some(slot)
    }

    /// Changes what is known of a message. Its place and its header stay.
    pub(crate) fn change<T>(&mut self, id: MessageId, change: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        let mut slot = self.slots.remove(&id)?;
        self.leave_index(&slot);
        let outcome = change(&mut slot);
        self.index(&slot);
        self.slots.insert(id, slot);
        Some(outcome)
    }

    /// The same for each of them.
    pub(crate) fn change_all(&mut self, change: impl Fn(&mut Slot)) {
        for mut slot in std::mem::take(self).slots.into_values() {
            change(&mut slot);
            self.insert(slot);
        }
    }

    pub(crate) fn get(&self, id: MessageId) -> Option<&Slot> {
        self.slots.get(&id)
    }

    pub(crate) fn contains(&self, id: MessageId) -> bool {
        self.slots.contains_key(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// All of them, by id.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Slot> {
        self.slots.values()
    }

    /// All of them, as they lie in the inbox.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &Slot> {
        self.placed.values().filter_map(|id| self.slots.get(id))
    }

    /// Those before a position, as they lie in the inbox.
    pub(crate) fn before(&self, end: Position) -> impl Iterator<Item = &Slot> {
        self.placed.range(..end).filter_map(|(_, id)| self.slots.get(id))
    }

    /// The first receipt of the messages at and after a position.
    pub(crate) fn first_receipt_from(&self, begin: Position) -> Option<Position> {
        self.receipts.iter().find(|(_, at)| *at >= begin).map(|(first, _)| *first)
    }

    /// Those that are being presented.
    pub(crate) fn leased(&self, now: Instant) -> impl Iterator<Item = &Slot> {
        self.engaged().filter(move |slot| slot.history.is_leased(now))
    }

    /// Those that were leased once, or handed over.
    pub(crate) fn engaged(&self) -> impl Iterator<Item = &Slot> {
        self.engaged.iter().filter_map(|id| self.slots.get(id))
    }

    /// Those that may be presented now, most urgent first, then oldest first. While one is leased, what the same sender
    /// wrote after it waits too, unless that is more urgent: what a sender writes is shown in order.
    pub(crate) fn presentable(&self, now: Instant) -> impl Iterator<Item = &Slot> {
        // Of each sender and priority, where the first leased one is.
        let mut leased: BTreeMap<&AgentName, BTreeMap<Priority, Position>> = BTreeMap::new();
        for slot in self.leased(now) {
            let first = leased.entry(&slot.header.from).or_default().entry(slot.header.priority).or_insert(slot.at);
            *first = slot.at.min(*first);
        }
        let overtakes = move |slot: &Slot| {
            let of_sender = leased.get(&slot.header.from);
            of_sender.is_some_and(|firsts| firsts.range(slot.header.priority..).any(|(_, first)| *first < slot.at))
        };
        let ranked = self.ranked.iter().filter_map(|(_, _, id)| self.slots.get(id));
        ranked.filter(move |slot| is_free(slot, now) && !overtakes(slot))
    }

    /// How many are not being presented and were handed to no session.
    pub(crate) fn free(&self, now: Instant) -> usize {
        self.slots.len() - self.engaged().filter(|slot| !is_free(slot, now)).count()
    }

    fn index(&mut self, slot: &Slot) {
        if slot.history.lease.is_some() || slot.history.handed.is_some() {
            self.engaged.insert(slot.header.id);
        }
        self.receipts.extend(slot.first_receipt.map(|first| (first, slot.at)));
    }

    fn leave_index(&mut self, slot: &Slot) {
        self.engaged.remove(&slot.header.id);
        if let Some(first) = slot.first_receipt {
            self.receipts.remove(&(first, slot.at));
        }
    }
}

fn rank(slot: &Slot) -> (Reverse<Priority>, Position, MessageId) {
    (Reverse(slot.header.priority), slot.at, slot.header.id)
}

fn is_free(slot: &Slot, now: Instant) -> bool {
    !slot.history.is_leased(now) && slot.history.handed.is_none()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::messages::Trace;
    use crate::messages::receipt::{DeliveryHistory, DisplayLease};
    use crate::messages::slot::Header;

    const NOW: Instant = Instant(1_000);

    #[derive(Clone, Debug)]
    enum Act {
        Insert { id: u64, at: u64, from: usize, priority: Priority },
        Lease { id: u64, until: u64, receipt: u64 },
        Remove { id: u64 },
    }

    fn act() -> impl Strategy<Value = Act> {
        let priority = prop_oneof![Just(Priority::Low), Just(Priority::Normal), Just(Priority::Urgent)];
        prop_oneof![
            4 => (0..12_u64, 0..3_usize, priority)
                .prop_map(|(id, from, priority)| Act::Insert { id, at: 100 - id, from, priority }),
            3 => (0..12_u64, 990..1_010_u64, 0..50_u64)
                .prop_map(|(id, until, receipt)| Act::Lease { id, until, receipt }),
            1 => (0..12_u64).prop_map(|id| Act::Remove { id }),
        ]
    }

    fn id(number: u64) -> MessageId {
        format!("{number:026}").parse().expect("an id")
    }

    fn slot(number: u64, at: u64, from: usize, priority: Priority) -> Slot {
        let trace = Trace { root: id(number), hops: 0 };
        let from = ["ann", "ben", "cid"][from].parse().expect("a name");
        let header = Header { id: id(number), at: NOW, from, thread: String::new(), priority, trace, held: None };
        let (history, folded_to) = (DeliveryHistory::default(), Position::START);
        Slot { at: Position(at), first_receipt: None, header, history, folded_to, text: None }
    }

    /// What may be presented, by looking at all of them.
    fn by_looking(all: &BTreeMap<MessageId, Slot>) -> Vec<MessageId> {
        let leased: Vec<&Slot> = all.values().filter(|slot| slot.history.is_leased(NOW)).collect();
        let overtakes = |slot: &Slot| {
            let earlier = |one: &&&Slot| one.header.from == slot.header.from && one.at < slot.at;
            leased.iter().filter(earlier).any(|one| one.header.priority >= slot.header.priority)
        };
        let free = all.values().filter(|slot| is_free(slot, NOW) && !overtakes(slot));
        let mut free: Vec<&Slot> = free.collect();
        free.sort_by_key(|slot| (Reverse(slot.header.priority), slot.at));
        free.into_iter().map(|slot| slot.header.id).collect()
    }

    proptest! {
        #[test]
        fn indexes_find_what_a_look_at_all_of_them_finds(acts in proptest::collection::vec(act(), 0..40)) {
            let (mut open, mut all): (OpenMessages, BTreeMap<MessageId, Slot>) = Default::default();
            for act in acts {
                match act {
                    Act::Insert { id, at, from, priority } => {
                        open.insert(slot(id, at, from, priority));
                        all.insert(self::id(id), slot(id, at, from, priority));
                    }
                    Act::Lease { id, until, receipt } => {
                        let lease = |slot: &mut Slot| {
                            slot.first_receipt.get_or_insert(Position(receipt));
                            let lease = DisplayLease { id: String::new(), since: Instant(980), until: Instant(until) };
                            slot.history.lease = Some(lease);
                        };
                        open.change(self::id(id), lease);
                        all.get_mut(&self::id(id)).map(lease);
                    }
                    Act::Remove { id } => {
                        open.remove(self::id(id));
                        all.remove(&self::id(id));
                    }
                }
                let ids = |slots: Vec<&Slot>| -> Vec<MessageId> { slots.iter().map(|slot| slot.header.id).collect() };
                prop_assert_eq!(ids(open.presentable(NOW).collect()), by_looking(&all));
                prop_assert_eq!(open.free(NOW), all.values().filter(|slot| is_free(slot, NOW)).count());
                let mut placed: Vec<&Slot> = all.values().collect();
                placed.sort_by_key(|slot| slot.at);
                prop_assert_eq!(ids(open.in_order().collect()), ids(placed.clone()));
                let from = Position(94);
                let first = placed.iter().filter(|slot| slot.at >= from).filter_map(|slot| slot.first_receipt).min();
                prop_assert_eq!(open.first_receipt_from(from), first);
                prop_assert_eq!(open.before(from).count(), placed.iter().filter(|slot| slot.at < from).count());
            }
        }
    }
}
