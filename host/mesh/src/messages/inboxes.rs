//! Every inbox as far as this process has read it, so that a second look reads only what is new.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::messages::idempotency::{Keyed, There};
use crate::messages::inbox::Inbox;
use crate::names::AgentName;

/// One view of each inbox. The view has an async lock of its own, since the store is read under it.
type Views<T> = Mutex<BTreeMap<AgentName, Arc<tokio::sync::Mutex<T>>>>;

/// What this process has read of each inbox.
#[derive(Default)]
pub(crate) struct Inboxes {
    /// Unsettled messages. Written by whoever refreshes the view.
    inboxes: Views<Inbox>,
    /// Which idempotency keys were used. Written by `store_once`.
    keyed: Views<Keyed>,
    /// What lies there, read to send what had waited. Written by `store_unless_there`, dropped when nothing waits.
    there: Views<There>,
}

impl Inboxes {
    /// The view of an inbox.
    pub(crate) fn of(&self, name: &AgentName) -> Arc<tokio::sync::Mutex<Inbox>> {
        view(&self.inboxes, name)
    }

    pub(crate) fn keyed(&self, name: &AgentName) -> Arc<tokio::sync::Mutex<Keyed>> {
        view(&self.keyed, name)
    }

    pub(crate) fn there(&self, name: &AgentName) -> Arc<tokio::sync::Mutex<There>> {
        view(&self.there, name)
    }

    /// Drops what was read to send what had waited.
    pub(crate) fn forget_what_is_there(&self) {
        self.there.lock().expect("no holder of this lock panics").clear();
    }
}

/// A std mutex guards the map: nothing is awaited while it is held, and the section is a map insert.
fn view<T: Default>(views: &Views<T>, name: &AgentName) -> Arc<tokio::sync::Mutex<T>> {
    let mut views = views.lock().expect("no holder of this lock panics");
    Arc::clone(views.entry(name.clone()).or_default())
}
