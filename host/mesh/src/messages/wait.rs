//! Waiting for mail.

use std::time::Duration;

use store::Watch;

use crate::Mesh;
use crate::messages::fetch::{Fetch, FetchError};
use crate::names::AgentName;
use crate::storage::keys;

/// Wakes when an agent's mail is worth fetching again. Create it, fetch, and await it if the fetch gave nothing: in
/// this order no message is missed.
pub struct MailWatch<'a> {
    mesh: &'a Mesh,
    agent: AgentName,
    watch: Box<dyn Watch>,
}

impl MailWatch<'_> {
    /// Returns when this fetch may give more than it did: a message was stored, a receipt was added, or the lease of
    /// another presenter lapsed. Cancel-safe.
    pub async fn may_have_come(&mut self, ask: &Fetch) -> Result<(), FetchError> {
        // A lease that lapses changes nothing in the store, so a timer waits for it.
        let lapse = {
            let inbox = self.mesh.inboxes.of(&self.agent);
            let inbox = inbox.lock().await;
            let now = self.mesh.core.machine.now();
            let slots = inbox.open.leased(now).filter(|slot| ask.takes(slot, now));
            slots.filter_map(|slot| slot.history.lease.as_ref()).map(|lease| lease.until.since(now)).min()
        };
        match lapse {
            Some(lapse) => {
                tokio::select! {
                    changed = self.watch.changed() => changed?,
                    () = tokio::time::sleep(Duration::from_millis(lapse.max(1))) => {}
                }
            }
            None => self.watch.changed().await?,
        }
        Ok(())
    }
}

impl Mesh {
    /// Watches an agent's mail from now on.
    pub async fn watch_mail(&self, agent: &AgentName) -> Result<MailWatch<'_>, FetchError> {
        let watch = self.core.shared.watch(&[keys::inbox(agent), keys::receipts(agent)]).await?;
        Ok(MailWatch { mesh: self, agent: agent.clone(), watch })
    }

    /// Returns when a message waits without a lease: at once, or as soon as one is stored. Cancel-safe. It leases
    /// nothing; fetch the message with a [`MailWatch`].
    pub async fn mail_waits(&self, agent: &AgentName) -> Result<(), FetchError> {
        let ask = Fetch::default();
        // Watching begins before looking, so that no message is missed in between.
        let mut watch = self.watch_mail(agent).await?;
        loop {
            {
                let inbox = self.inboxes.of(agent);
                let mut inbox = inbox.lock().await;
                inbox.refresh(self.core.shared.as_ref(), agent).await?;
                let now = self.core.machine.now();
                if inbox.open.presentable(now).any(|slot| ask.takes(slot, now)) {
                    return Ok(());
                }
            }
            watch.may_have_come(&ask).await?;
        }
    }
}
