//! A short-lived cache of what the servers said about agents.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::agents::Presence;
use crate::names::AgentName;
use crate::ports::machine::Instant;

/// How long the presence of another machine's agent is cached, in milliseconds.
const PRESENCE_KEPT: u64 = 2_000;
/// How long an agent counts as still this machine's, in milliseconds: less than an adoption takes.
const STILL_HERE: u64 = 3_000;

/// Cached answers, each with its time. Each lock is a std mutex: nothing is awaited while it is held.
#[derive(Default)]
pub(crate) struct RemoteCache {
    /// The presence of other machines' agents that this process has just sent to. Written by `send`.
    presence: PresenceCache,
    /// When an agent was last seen to belong to this machine. Written by `unless_adopted`.
    still_here: Mutex<BTreeMap<AgentName, Instant>>,
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

    pub(crate) fn note_here(&self, name: &AgentName, now: Instant) {
        self.still_here.lock().expect("no holder of this lock panics").insert(name.clone(), now);
    }
}

/// An entry from the future is not fresh: the clock went backwards.
fn is_fresh(at: Instant, now: Instant, kept: u64) -> bool {
    at <= now && now.since(at) < kept
}
