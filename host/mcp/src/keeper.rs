//! Settles claims once it is known whether their messages left us.

use std::sync::Arc;

use mesh::Mesh;
use mesh::receipt::Rung;
use tokio_util::task::TaskTracker;

/// Mail that an answer carries, from the moment when the tool has it until its bytes have left.
#[derive(Debug)]
#[must_use = "mail that is neither confirmed nor released is kept from everybody until its claim lapses"]
pub(crate) struct Carried {
    /// The right to present it.
    pub(crate) claim: Box<mesh::Claim>,
    /// What its arrival means.
    pub(crate) meaning: Meaning,
}

/// What it means that mail arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The agent was given it.
    Fetched,
    /// The agent asked for it with the word that it has it then.
    Acknowledged,
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its bytes were written and flushed.
    Sent,
    /// It went nowhere: the client was gone, or had given up on it.
    Lost,
}

/// Confirms and releases claims, and knows what is still being written about them.
#[derive(Clone)]
pub(crate) struct Keeper {
    mesh: Arc<Mesh>,
    tasks: TaskTracker,
}

impl Keeper {
    /// A keeper for this mesh.
    pub(crate) fn new(mesh: Arc<Mesh>) -> Keeper {
        Keeper { mesh, tasks: TaskTracker::new() }
    }

    /// Writes down what became of carried mail. A failure costs a receipt and never the answer: the
    /// claim lapses, and the mail is shown once more.
    pub(crate) async fn settle(&self, carried: Carried, fate: Fate) {
        let Carried { claim, meaning } = carried;
        let outcome = match fate {
            Fate::Sent => self.mesh.confirm(&claim, Rung::Fetched, "fetch", None).await,
            Fate::Lost => return self.release(*claim).await,
        };
        if let Err(error) = outcome {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, agent = %claim.agent, "fetched mail is not marked and will be shown again");
            return;
        }
        match meaning {
            Meaning::Fetched => {}
            Meaning::Acknowledged => {
                if let Err(error) = self.mesh.acknowledge(&claim.agent, &claim.messages).await {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, agent = %claim.agent, "an acknowledgement was not stored");
                }
            }
        }
    }

    /// The same from where nothing can be awaited.
    pub(crate) fn settle_soon(&self, carried: Carried, fate: Fate) {
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let keeper = self.clone();
                self.tasks.spawn_on(async move { keeper.settle(carried, fate).await }, &runtime);
            }
            // The process is on its way out; the claim lapses by itself.
            Err(_) => tracing::debug!(agent = %carried.claim.agent, "a claim is left to lapse"),
        }
    }

    /// Waits for everything that is still being written.
    pub(crate) async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn release(&self, claim: mesh::Claim) {
        let agent = claim.agent.clone();
        if let Err(error) = self.mesh.release(claim).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, %agent, "a claim was not released; it lapses by itself");
        }
    }
}
