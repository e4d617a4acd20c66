//! Delivery: brings stored messages to live sessions by routes; the loop guard limits wakes.

pub(crate) mod backoff;
pub(crate) mod chain;
pub(crate) mod evidence;
pub(crate) mod hook;
pub(crate) mod invitation;
pub(crate) mod invite;
pub(crate) mod loop_guard;
pub(crate) mod next_route;
pub(crate) mod notice;
pub(crate) mod pass;
pub(crate) mod scheduler;
pub(crate) mod serve;
pub(crate) mod wake_file;

use std::sync::Mutex;

use tokio::sync::Notify;

use crate::delivery::backoff::Rests;
use crate::ports::machine::Instant;
use crate::sessions::{SessionRecord, SessionRef};

/// The in-memory state of delivery.
#[derive(Default)]
pub(crate) struct Delivery {
    /// The routes in backoff, by session and name. An empty name stands for an adapter that failed to name its routes.
    /// A std mutex: nothing is awaited while it is held.
    resting: Mutex<Rests<(SessionRef, String)>>,
    /// Notified when an agent registers in this process, so that delivery looks for new agents.
    pub(crate) joined: Notify,
}

impl Delivery {
    /// How many milliseconds of backoff remain for a route of a session.
    fn resting(&self, record: &SessionRecord, route: &str, now: Instant) -> Option<u64> {
        let key = (record.session.clone(), route.to_owned());
        self.resting.lock().expect("no holder of this lock panics").left(&key, now, record.heard)
    }

    /// Notes that a route failed. Returns its backoff in milliseconds.
    fn rest(&self, record: &SessionRecord, route: &str, now: Instant, first: u64) -> u64 {
        let key = (record.session.clone(), route.to_owned());
        self.resting.lock().expect("no holder of this lock panics").failed(key, now, first)
    }

    /// Ends a route's backoff, since it answered.
    fn rested(&self, record: &SessionRecord, route: &str) {
        let key = (record.session.clone(), route.to_owned());
        self.resting.lock().expect("no holder of this lock panics").ended(&key);
    }
}
