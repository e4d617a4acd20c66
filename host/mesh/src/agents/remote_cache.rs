//! What this process has just learned from the servers about agents, so that it need not ask again at once.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::agents::Presence;
use crate::names::AgentName;
use crate::ports::machine::Instant;

/// For how long an agent of another machine counts as being as it was, in milliseconds.
const PRESENCE_KEPT: u64 = 2_000;
/// For how long an agent counts as still this machine's, in milliseconds: less than a move takes.
const STILL_HERE: u64 = 3_000;

/// What was learned of agents, and when. Each lock is a std mutex: nothing is awaited while it is held.
#[derive(Default)]
pub(crate) struct RemoteCache {
    /// Agents of other machines to which this process has just written. Written by sending.
    presence: PresenceCache,
    /// Agents that were this machine's when this process looked last. Written by `unless_adopted`.
    still_here: Mutex<BTreeMap<AgentName, Instant>>,
}

type PresenceCache = Mutex<BTreeMap<AgentName, (Instant, Presence)>>;

impl RemoteCache {
    /// How present an agent of another machine was a moment ago, if this process has just looked.
    pub(crate) fn presence(&self, name: &AgentName, now: Instant) -> Option<Presence> {
        let known = self.presence.lock().expect("no holder of this lock panics");
        known.get(name).filter(|(at, _)| is_fresh(*at, now, PRESENCE_KEPT)).map(|(_, presence)| *presence)
    }

    pub(crate) fn note_presence(&self, name: &AgentName, now: Instant, presence: Presence) {
        self.presence.lock().expect("no holder of this lock panics").insert(name.clone(), (now, presence));
    }

    /// Whether an agent was this machine's a moment ago.
    pub(crate) fn was_here(&self, name: &AgentName, now: Instant) -> bool {
        let known = self.still_here.lock().expect("no holder of this lock panics");
        known.get(name).is_some_and(|at| is_fresh(*at, now, STILL_HERE))
    }

    pub(crate) fn note_here(&self, name: &AgentName, now: Instant) {
        self.still_here.lock().expect("no holder of this lock panics").insert(name.clone(), now);
    }
}

/// A clock that went backwards makes nothing fresh.
fn is_fresh(at: Instant, now: Instant, kept: u64) -> bool {
    at <= now && now.since(at) < kept
}
