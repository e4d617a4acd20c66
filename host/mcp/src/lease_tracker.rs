//! Settles what an answer hands over, once it is known whether the answer reached the client.

use std::sync::Arc;

use mesh::Mesh;
use mesh::messages::receipt::DeliveryStatus;
use mesh::names::MessageId;
use tokio_util::task::TaskTracker;

/// Mail or a command in an answer, from the time the tool has it until its bytes are flushed.
#[derive(Debug)]
#[must_use = "what is neither confirmed nor released stays hidden from everybody until its lease lapses"]
pub(crate) enum PendingLease {
    /// Messages.
    Mail {
        lease: Box<mesh::Lease>,
        /// What to record once they have arrived.
        on_arrival: OnArrival,
    },
    /// A command that was taken.
    Command(MessageId),
}

/// What the arrival of mail means for its delivery status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnArrival {
    /// The agent has read it.
    MarkRead,
    /// The agent has also acknowledged it, because the call asked for that.
    MarkAcknowledged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its bytes were written and flushed.
    Sent,
    /// The client was gone, or had cancelled the call.
    Lost,
}

/// Confirms and releases leases, and waits at shutdown until all of that is stored.
#[derive(Clone)]
pub(crate) struct LeaseTracker {
    mesh: Arc<Mesh>,
    tasks: TaskTracker,
}

impl LeaseTracker {
    pub(crate) fn new(mesh: Arc<Mesh>) -> LeaseTracker {
        LeaseTracker { mesh, tasks: TaskTracker::new() }
    }

    /// Records the fate of mail or of a command. A failure costs a receipt but never the answer: the lease
    /// lapses, and the mail is shown once more.
    pub(crate) async fn settle(&self, lease: PendingLease, fate: Fate) {
        match (lease, fate) {
            (PendingLease::Mail { lease, on_arrival }, Fate::Sent) => self.arrived(&lease, on_arrival).await,
            (PendingLease::Mail { lease, .. }, Fate::Lost) => self.release(*lease).await,
            (PendingLease::Command(id), Fate::Sent) => told(id, self.mesh.confirm_command(id).await),
            (PendingLease::Command(id), Fate::Lost) => told(id, self.mesh.give_command_back(id).await),
        }
    }

    async fn arrived(&self, lease: &mesh::Lease, on_arrival: OnArrival) {
        if let Err(error) = self.mesh.confirm(lease, DeliveryStatus::Read, "fetch", None).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, agent = %lease.agent, "mail could not be marked as read and will be shown again");
            return;
        }
        match on_arrival {
            OnArrival::MarkRead => {}
            OnArrival::MarkAcknowledged => {
                if let Err(error) = self.mesh.acknowledge(&lease.agent, &lease.messages).await {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, agent = %lease.agent, "an acknowledgement was not stored");
                }
            }
        }
    }

    /// [`LeaseTracker::settle`] for callers that cannot await.
    pub(crate) fn settle_soon(&self, lease: PendingLease, fate: Fate) {
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let leases = self.clone();
                self.tasks.spawn_on(async move { leases.settle(lease, fate).await }, &runtime);
            }
            // The process is about to end; the lease lapses by itself.
            Err(_) => tracing::debug!(?lease, "a lease is left to lapse"),
        }
    }

    /// Waits until everything is stored.
    pub(crate) async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn release(&self, lease: mesh::Lease) {
        let agent = lease.agent.clone();
        if let Err(error) = self.mesh.release(lease).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, %agent, "a lease was not released; it lapses by itself");
        }
    }
}

/// A command that could not be confirmed ends as failed by itself.
fn told(id: MessageId, outcome: Result<(), mesh::TakeError>) {
    if let Err(error) = outcome {
        let error: &dyn std::error::Error = &error;
        tracing::warn!(error, %id, "whether a command was handed over could not be stored");
    }
}
