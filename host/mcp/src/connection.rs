//! One MCP connection: its name in the mesh, its open calls, and the mail in their answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mesh::sessions::ConnectionId;
use rmcp::model::RequestId;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::http::reply::Reply;
use crate::lease_tracker::{Fate, LeaseTracker, PendingLease};

/// A connection, as its calls see it. Cheap to clone: every request has a copy.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) ledger: Arc<CallLedger>,
    /// Cancelled once its client can send nothing more, so that no call keeps waiting for mail.
    pub(crate) closing: CancellationToken,
    /// The folder that the client named as its root. Written by the first call that asks for it,
    /// cleared when the client says that its roots have changed.
    pub(crate) root: Arc<Mutex<Option<Option<String>>>>,
    /// Cancelled once the last call so far that says who speaks has ended. Written by every such call. A std mutex:
    /// nothing is awaited while it is held.
    speaks: Arc<Mutex<CancellationToken>>,
}

impl Connection {
    pub(crate) fn new(id: ConnectionId, leases: LeaseTracker) -> Connection {
        Connection {
            id,
            ledger: Arc::new(CallLedger { leases, calls: Mutex::default() }),
            closing: CancellationToken::new(),
            root: Arc::default(),
            speaks: Arc::new(Mutex::new(ended())),
        }
    }

    /// The turn of a call that has just been read. Calls run side by side, but one that says who speaks on this
    /// connection runs before all that were read after it.
    pub(crate) fn line_up(&self, tool: &str) -> Turn {
        let mut last = self.speaks.lock().expect("no holder of this lock panics");
        let after = last.clone();
        let ends = SAYS_WHO.contains(&tool).then(|| {
            *last = CancellationToken::new();
            Arc::new(last.clone().drop_guard())
        });
        Turn { after, _ends: ends }
    }
}

/// The tools after which the connection speaks for another agent or session.
const SAYS_WHO: [&str; 2] = ["register_agent", "bind_session"];

fn ended() -> CancellationToken {
    let token = CancellationToken::new();
    token.cancel();
    token
}

/// When a call may run. It travels with its request.
#[derive(Clone)]
pub(crate) struct Turn {
    after: CancellationToken,
    /// Lets later calls run once the request is dropped, however it ends.
    _ends: Option<Arc<DropGuard>>,
}

impl Turn {
    /// Waits for the turn, or until the call is cancelled.
    pub(crate) async fn comes(&self, cancelled: &CancellationToken) {
        tokio::select! {
            () = self.after.cancelled() => {}
            () = cancelled.cancelled() => {}
        }
    }
}

/// The calls of one connection that have not been answered yet, and the mail in their answers.
///
/// A call begins when its request is read. It ends when its answer is handed to the transport, or, if
/// the client cancelled it, when its tool ends: rmcp drops such an answer.
pub(crate) struct CallLedger {
    leases: LeaseTracker,
    /// A std mutex: nothing is awaited while it is held.
    calls: Mutex<HashMap<RequestId, CallState>>,
}

/// The progress of a call.
enum CallState {
    /// Its tool runs.
    Running,
    /// Its tool has ended, and this mail is in the answer.
    Answered(OutgoingMail),
    /// The client cancelled it.
    Cancelled,
}

/// Mail in an answer that is not sent yet.
pub(crate) struct OutgoingMail {
    pub(crate) lease: PendingLease,
    /// The HTTP response that will hold the answer; none over standard output.
    pub(crate) reply: Option<Reply>,
}

impl CallLedger {
    pub(crate) fn began(&self, id: RequestId) {
        self.calls().insert(id, CallState::Running);
    }

    /// The client cancelled a call. A call that was answered is unknown here by then: some clients
    /// cancel every call after its answer.
    pub(crate) fn cancelled(&self, id: &RequestId) {
        let mut calls = self.calls();
        let Some(state) = calls.get_mut(id) else { return };
        match std::mem::replace(state, CallState::Cancelled) {
            CallState::Running | CallState::Cancelled => {}
            CallState::Answered(mail) => {
                calls.remove(id);
                self.leases.settle_soon(mail.lease, Fate::Lost);
            }
        }
    }

    /// A tool ended, with or without mail in its answer.
    pub(crate) fn answered(&self, id: &RequestId, mail: Option<OutgoingMail>) {
        let mut calls = self.calls();
        let lost = match (calls.remove(id), mail) {
            (Some(CallState::Running), Some(mail)) => {
                calls.insert(id.clone(), CallState::Answered(mail));
                None
            }
            (Some(CallState::Running), None) => None,
            // Cancelled meanwhile, or the connection is closed: rmcp drops the answer.
            (Some(CallState::Cancelled | CallState::Answered(_)) | None, mail) => mail,
        };
        if let Some(mail) = lost {
            self.leases.settle_soon(mail.lease, Fate::Lost);
        }
    }

    /// The mail in an answer that is handed to the transport now.
    pub(crate) fn take_mail(&self, id: &RequestId) -> Option<OutgoingMail> {
        match self.calls().remove(id) {
            Some(CallState::Answered(mail)) => Some(mail),
            Some(CallState::Running | CallState::Cancelled) | None => None,
        }
    }

    /// Whether every call has been answered.
    pub(crate) fn is_quiet(&self) -> bool {
        self.calls().is_empty()
    }

    /// Gives back all mail: the connection is closed, and nothing more can be sent.
    pub(crate) fn close(&self) {
        let calls = std::mem::take(&mut *self.calls());
        for state in calls.into_values() {
            match state {
                CallState::Answered(mail) => self.leases.settle_soon(mail.lease, Fate::Lost),
                CallState::Running | CallState::Cancelled => {}
            }
        }
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, CallState>> {
        self.calls.lock().expect("no holder of this lock panics")
    }
}
