//! Settles what an answer hands over, once it is known whether the answer reached the client.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mesh::Mesh;
use mesh::names::{AgentName, MessageId};
use mesh::sessions::SessionRef;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// Mail or a command in an answer, from the time the tool has it until its bytes are flushed.
#[derive(Debug)]
#[must_use = "what is neither confirmed nor released stays hidden from everybody until its lease lapses"]
pub(crate) struct PendingLease {
    leased: Box<Leased>,
    /// What becomes of it: the answer may be asked for once more.
    fate: MailFate,
}

/// What is on loan to an answer.
#[derive(Debug)]
pub(crate) enum Leased {
    /// Messages.
    Mail {
        lease: Box<mesh::Lease>,
        /// The session that gets them, if it is known.
        by: Option<SessionRef>,
        /// What to record once they have arrived.
        on_arrival: OnArrival,
        /// Ends when that is recorded.
        on_its_way: OnItsWay,
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
    /// The client was gone, or had cancelled the call: nothing of it went out.
    Lost,
    /// Its bytes were handed to a connection that broke: they may have arrived.
    Unclear,
}

/// The fate of what is in one answer. The first decision holds for all.
#[derive(Clone, Debug, Default)]
pub(crate) struct MailFate(Arc<OnceLock<Fate>>);

impl MailFate {
    /// Decides, unless that has happened. Returns what holds.
    pub(crate) fn decide(&self, fate: Fate) -> Fate {
        *self.0.get_or_init(|| fate)
    }
}

impl From<Leased> for PendingLease {
    fn from(leased: Leased) -> PendingLease {
        PendingLease { leased: Box::new(leased), fate: MailFate::default() }
    }
}

impl PendingLease {
    pub(crate) fn fate(&self) -> MailFate {
        self.fate.clone()
    }
}

/// The longest that a call waits for the answer to another one to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(2);

/// How many answers with mail are on their way, by agent. A call that comes before the answer to the last one is noted
/// would find that mail leased, and what the same senders wrote after it waiting behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MailOnItsWay(Arc<watch::Sender<BTreeMap<AgentName, usize>>>);

/// One such answer, until it is dropped.
#[derive(Debug)]
pub(crate) struct OnItsWay {
    all: MailOnItsWay,
    agent: AgentName,
}

impl MailOnItsWay {
    pub(crate) fn begin(&self, agent: &AgentName) -> OnItsWay {
        self.0.send_modify(|counts| *counts.entry(agent.clone()).or_default() += 1);
        OnItsWay { all: self.clone(), agent: agent.clone() }
    }

    /// Waits until none is on its way to this agent, or for as long as that is worth a wait.
    pub(crate) async fn arrived(&self, agent: &AgentName) {
        let mut counts = self.0.subscribe();
        let none = counts.wait_for(|counts| !counts.contains_key(agent));
        // Later than that, the caller is told that more waits.
        let _in_time = tokio::time::timeout(ARRIVES_WITHIN, none).await;
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.all.0.send_modify(|counts| {
            if let Some(count) = counts.get_mut(&self.agent) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&self.agent);
                }
            }
        });
    }
}

/// Confirms and releases leases, and waits at shutdown until all of that is stored.
#[derive(Clone)]
pub(crate) struct LeaseTracker {
    mesh: Arc<Mesh>,
    tasks: TaskTracker,
    mail: MailOnItsWay,
}

impl LeaseTracker {
    pub(crate) fn new(mesh: Arc<Mesh>) -> LeaseTracker {
        LeaseTracker { mesh, tasks: TaskTracker::new(), mail: MailOnItsWay::default() }
    }

    /// The answers with mail that are on their way.
    pub(crate) fn mail(&self) -> MailOnItsWay {
        self.mail.clone()
    }

    /// Records the fate of mail or of a command. A failure costs a receipt but never the answer: the lease
    /// lapses, and the mail is shown once more.
    pub(crate) async fn settle(&self, lease: PendingLease, fate: Fate) {
        match (*lease.leased, lease.fate.decide(fate)) {
            (Leased::Mail { lease, by, on_arrival, on_its_way: _until_here }, Fate::Sent) => {
                self.arrived(&lease, by.as_ref(), on_arrival).await;
            }
            (Leased::Mail { lease, .. }, fate) => self.release(*lease, fate).await,
            (Leased::Command(id), Fate::Sent) => told(id, self.mesh.confirm_command(id).await),
            (Leased::Command(id), Fate::Lost) => told(id, self.mesh.give_command_back(id).await),
            // Given back, it would be carried out twice if the answer arrived. Its taker may still end it, and if
            // nobody does in time it ends as failed.
            (Leased::Command(id), Fate::Unclear) => {
                tracing::debug!(%id, "whether a command was handed over is unknown");
            }
        }
    }

    async fn arrived(&self, lease: &mesh::Lease, by: Option<&SessionRef>, on_arrival: OnArrival) {
        if let Err(error) = self.mesh.fetched(lease, by).await {
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

    async fn release(&self, lease: mesh::Lease, fate: Fate) {
        let agent = lease.agent.clone();
        let released = match fate {
            Fate::Sent | Fate::Unclear => self.mesh.release_passed_on(lease).await,
            Fate::Lost => self.mesh.release(lease).await,
        };
        if let Err(error) = released {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_the_mail_of_its_own_agent_alone() {
        let (mail, bob, carol) =
            (MailOnItsWay::default(), "bob".parse().expect("a name"), "carol".parse().expect("a name"));
        let (first, second) = (mail.begin(&bob), mail.begin(&bob));
        let waited = async |agent: &AgentName| {
            let began = tokio::time::Instant::now();
            mail.arrived(agent).await;
            began.elapsed()
        };
        assert_eq!(waited(&carol).await, Duration::ZERO);
        assert_eq!(waited(&bob).await, ARRIVES_WITHIN, "an answer that never arrives stops nobody");
        drop(first);
        let (took, ()) = tokio::join!(waited(&bob), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(second);
        });
        assert_eq!(took, Duration::from_millis(300));
    }
}
