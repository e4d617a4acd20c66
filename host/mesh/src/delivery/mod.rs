//! Delivery: how stored messages reach live sessions, by which routes, and what holds them back.

pub(crate) mod backoff;
pub(crate) mod chain;
pub(crate) mod hook;
pub(crate) mod invitation;
pub(crate) mod invite;
pub(crate) mod loop_guard;
pub(crate) mod next_route;
pub(crate) mod pass;
pub(crate) mod scheduler;
pub(crate) mod serve;
pub(crate) mod wake_file;

use std::sync::Mutex;

use tokio::sync::Notify;

use crate::delivery::backoff::Rests;
use crate::ports::machine::Instant;
use crate::sessions::{SessionRecord, SessionRef};

/// What delivery remembers while this process runs.
#[derive(Default)]
pub(crate) struct Delivery {
    /// The routes that this process leaves alone for a while, by session and name. An empty name stands for an adapter
    /// that names no routes. A std mutex: nothing is awaited while it is held.
    resting: Mutex<Rests<(SessionRef, String)>>,
    /// Notified when an agent registered in this process, so that delivery looks for new agents.
    pub(crate) joined: Notify,
}

impl Delivery {
    /// For how many milliseconds a route of a session is still to be left alone.
    fn resting(&self, record: &SessionRecord, route: &str, now: Instant) -> Option<u64> {
        let key = (record.session.clone(), route.to_owned());
        self.resting.lock().expect("no holder of this lock panics").left(&key, now, record.heard)
    }

    /// Notes that a route took nothing just now. Gives for how many milliseconds it is left alone.
    fn rest(&self, record: &SessionRecord, route: &str, now: Instant, first: u64) -> u64 {
        let key = (record.session.clone(), route.to_owned());
        self.resting.lock().expect("no holder of this lock panics").failed(key, now, first)
    }

    /// Notes that a route answered, whatever it said.
    fn rested(&self, record: &SessionRecord, route: &str) {
        let key = (record.session.clone(), route.to_owned());
        self.resting.lock().expect("no holder of this lock panics").ended(&key);
    }
}
