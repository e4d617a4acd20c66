//! One MCP connection: who it is, and which of its calls carry mail that has not left yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mesh::session::ConnectionId;
use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

use crate::http::reply::Reply;
use crate::keeper::{Carried, Fate, Keeper};

/// A connection, as its calls see it. Cheap to clone: every request carries one.
#[derive(Clone)]
pub(crate) struct Link {
    /// Its name in the mesh.
    pub(crate) id: ConnectionId,
    /// Its calls.
    pub(crate) ledger: Arc<Ledger>,
    /// Cancelled once its client sends nothing more, so that nobody waits for mail on its behalf.
    pub(crate) closing: CancellationToken,
    /// The folder that the client named as its root. Written by the first call that asks for it,
    /// taken out when the client says that its roots have changed.
    pub(crate) root: Arc<Mutex<Option<Option<String>>>>,
}

impl Link {
    /// A connection of that name.
    pub(crate) fn new(id: ConnectionId, keeper: Keeper) -> Link {
        Link {
            id,
            ledger: Arc::new(Ledger { keeper, calls: Mutex::default() }),
            closing: CancellationToken::new(),
            root: Arc::default(),
        }
    }
}

/// The calls of one connection that have not been answered yet, and the mail in their answers.
///
/// A call begins when its request is read. It ends when its answer is handed to the transport, or,
/// where the client cancelled it, when its tool has come to an end: rmcp drops such an answer.
pub(crate) struct Ledger {
    keeper: Keeper,
    /// A std mutex: nothing is awaited while it is held.
    calls: Mutex<HashMap<RequestId, State>>,
}

/// Where a call stands.
enum State {
    /// Its tool is at work.
    Running,
    /// Its tool has come to an end, and this is in the answer.
    Answered(Shipment),
    /// The client no longer wants to know.
    Cancelled,
}

/// Mail in an answer that is on its way.
pub(crate) struct Shipment {
    /// The mail.
    pub(crate) carried: Carried,
    /// The HTTP response that will hold the answer, where there is one.
    pub(crate) reply: Option<Reply>,
}

impl Ledger {
    /// A call was read.
    pub(crate) fn began(&self, id: RequestId) {
        self.calls().insert(id, State::Running);
    }

    /// The client cancelled a call. One that has been answered is none of ours any more: some
    /// clients cancel every call after its answer.
    pub(crate) fn cancelled(&self, id: &RequestId) {
        let mut calls = self.calls();
        let Some(state) = calls.get_mut(id) else { return };
        match std::mem::replace(state, State::Cancelled) {
            State::Running | State::Cancelled => {}
            State::Answered(shipment) => {
                calls.remove(id);
                self.keeper.settle_soon(shipment.carried, Fate::Lost);
            }
        }
    }

    /// A tool came to an end, with or without mail in its answer.
    pub(crate) fn answered(&self, id: &RequestId, shipment: Option<Shipment>) {
        let mut calls = self.calls();
        let lost = match (calls.remove(id), shipment) {
            (Some(State::Running), Some(shipment)) => {
                calls.insert(id.clone(), State::Answered(shipment));
                None
            }
            (Some(State::Running), None) => None,
            // Cancelled meanwhile, or the connection is closed: the answer goes nowhere.
            (Some(State::Cancelled | State::Answered(_)) | None, shipment) => shipment,
        };
        if let Some(shipment) = lost {
            self.keeper.settle_soon(shipment.carried, Fate::Lost);
        }
    }

    /// An answer is handed to the transport: what is in it.
    pub(crate) fn ship(&self, id: &RequestId) -> Option<Shipment> {
        match self.calls().remove(id) {
            Some(State::Answered(shipment)) => Some(shipment),
            Some(State::Running | State::Cancelled) | None => None,
        }
    }

    /// Whether no call waits for its answer.
    pub(crate) fn is_quiet(&self) -> bool {
        self.calls().is_empty()
    }

    /// Nothing can be sent any more.
    pub(crate) fn close(&self) {
        let calls = std::mem::take(&mut *self.calls());
        for state in calls.into_values() {
            match state {
                State::Answered(shipment) => self.keeper.settle_soon(shipment.carried, Fate::Lost),
                State::Running | State::Cancelled => {}
            }
        }
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, State>> {
        self.calls.lock().expect("no holder of this lock panics")
    }
}
