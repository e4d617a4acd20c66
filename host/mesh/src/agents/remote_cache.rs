//! A short-lived cache of what the servers said about agents.

use std::collections::BTreeMap;
use std::sync::Mutex;

use store::StoreIdentity;

use crate::agents::Presence;
use crate::names::AgentName;
use crate::ports::machine::Instant;

/// How long the presence of another machine's agent is cached, in milliseconds.
const PRESENCE_KEPT: u64 = 2_000;
/// How long an agent counts as still this machine's, in milliseconds: less than an adoption takes.
const STILL_HERE: u64 = 3_000;

/// Whether a process has met a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    Before,
    /// It is the first one at its place.
    First,
    /// There was another one at its place: what this process has read is of that one.
    AnotherOne,
}

/// Cached answers, each with its time. Each lock is a std mutex: nothing is awaited while it is held.
#[derive(Default)]
pub(crate) struct RemoteCache {
    /// The presence of other machines' agents that this process has just sent to. Written by `send`.
    presence: PresenceCache,
    /// When an agent was last seen to belong to this machine. Written by `unless_adopted`.
    still_here: Mutex<BTreeMap<AgentName, Instant>>,
    /// The stores that this process has compared with those that the machine knows, by place. Written by
    /// `notice_stores`.
    stores: Mutex<BTreeMap<String, u64>>,
}

type PresenceCache = Mutex<BTreeMap<AgentName, (Instant, Presence)>>;

impl RemoteCache {
    /// The cached presence of another machine's agent, if it is fresh.
    pub(crate) fn presence(&self, name: &AgentName, now: Instant) -> Option<Presence> {
        let known = self.presence.lock().expect("no holder of this lock panics");
        known.get(name).filter(|(at, _)| is_fresh(*at, now, PRESENCE_KEPT)).map(|(_, presence)| *presence)
    }

    pub(crate) fn note_presence(&self, name: &AgentName, now: Instant, presence: Presence) {
        self.presence.lock().expect("no holder of this lock panics").insert(name.clone(), (now, presence));
    }

    /// Whether an agent belonged to this machine a moment ago.
    pub(crate) fn was_here(&self, name: &AgentName, now: Instant) -> bool {
        let known = self.still_here.lock().expect("no holder of this lock panics");
        known.get(name).is_some_and(|at| is_fresh(*at, now, STILL_HERE))
    }

    /// What this process knows of a store. From now on it knows this one.
    pub(crate) fn met(&self, identity: &StoreIdentity) -> Met {
        let mut known = self.stores.lock().expect("no holder of this lock panics");
        match known.insert(identity.place.clone(), identity.made) {
            Some(made) if made == identity.made => Met::Before,
            Some(_) => Met::AnotherOne,
            None => Met::First,
        }
    }

    pub(crate) fn note_here(&self, name: &AgentName, now: Instant) {
        self.still_here.lock().expect("no holder of this lock panics").insert(name.clone(), now);
    }
}

/// An entry from the future is not fresh: the clock went backwards.
fn is_fresh(at: Instant, now: Instant, kept: u64) -> bool {
    at <= now && now.since(at) < kept
}
