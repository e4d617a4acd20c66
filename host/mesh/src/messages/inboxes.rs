//! The inboxes as far as this process has read them, so that a second look reads only new entries.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::messages::idempotency::{Keyed, There};
use crate::messages::inbox::Inbox;
use crate::names::AgentName;

/// One view of each inbox. Each has its own async lock, because the store is read while it is held.
type Views<T> = Mutex<BTreeMap<AgentName, Arc<tokio::sync::Mutex<T>>>>;

#[derive(Default)]
pub(crate) struct Inboxes {
    /// Unsettled messages. Written by `Inbox::refresh` and `Inbox::append_if_unmoved`.
    inboxes: Views<Inbox>,
    /// Used idempotency keys. Written by `store_once`.
    keyed: Views<Keyed>,
    /// Inbox contents, read while the outbox is emptied. Written by `store_unless_there`, dropped after each round.
    there: Views<There>,
}

impl Inboxes {
    pub(crate) fn of(&self, name: &AgentName) -> Arc<tokio::sync::Mutex<Inbox>> {
        view(&self.inboxes, name)
    }

    pub(crate) fn keyed(&self, name: &AgentName) -> Arc<tokio::sync::Mutex<Keyed>> {
        view(&self.keyed, name)
    }

    pub(crate) fn there(&self, name: &AgentName) -> Arc<tokio::sync::Mutex<There>> {
        view(&self.there, name)
    }

    /// Drops all views: the store is another one.
    pub(crate) fn forget_all(&self) {
        self.inboxes.lock().expect("no holder of this lock panics").clear();
        self.keyed.lock().expect("no holder of this lock panics").clear();
        self.forget_what_is_there();
    }

    /// Drops the inbox contents that were read while emptying the outbox.
    pub(crate) fn forget_what_is_there(&self) {
        self.there.lock().expect("no holder of this lock panics").clear();
    }
}

/// A std mutex guards the map: nothing is awaited while it is held, and the section is a map insert.
fn view<T: Default>(views: &Views<T>, name: &AgentName) -> Arc<tokio::sync::Mutex<T>> {
    let mut views = views.lock().expect("no holder of this lock panics");
    Arc::clone(views.entry(name.clone()).or_default())
}
