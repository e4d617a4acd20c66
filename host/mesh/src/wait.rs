//! Waiting for mail.

use std::time::Duration;

use crate::fetch::{Fetch, FetchError};
use crate::names::AgentName;
use crate::{Mesh, keys};

impl Mesh {
    /// Returns when mail waits that nobody presents: at once, or as soon as some is stored.
    /// Cancel it to stop waiting.
    pub async fn mail_waits(&self, agent: &AgentName) -> Result<(), FetchError> {
        self.mail_waits_for(agent, &Fetch::default()).await
    }

    /// Returns when mail waits that nobody presents and that this fetch would give: at once, or as
    /// soon as some is stored. Cancel it to stop waiting.
    pub async fn mail_waits_for(&self, agent: &AgentName, ask: &Fetch) -> Result<(), FetchError> {
        // Watching begins before looking, so that nothing can come in between.
        let mut watch = self.shared.watch(&[keys::inbox(agent), keys::receipts(agent)]).await?;
        loop {
            let lapse = {
                let inbox = self.inbox_of(agent);
                let mut inbox = inbox.lock().await;
                inbox.refresh(self.shared.as_ref(), agent).await?;
                let now = self.machine.now();
                if inbox.presentable(now).into_iter().any(|slot| ask.takes(slot)) {
                    return Ok(());
                }
                // A claim that lapses changes nothing in the store, so it is waited for by time.
                let slots = inbox.unsettled.values().filter(|slot| slot.ladder.is_claimed(now) && ask.takes(slot));
                slots.filter_map(|slot| slot.ladder.claim.as_ref()).map(|(_, until)| until.since(now)).min()
            };
            match lapse {
                Some(lapse) => {
                    let lapse = Duration::from_millis(lapse.max(1));
                    tokio::select! {
                        changed = watch.changed() => changed?,
                        () = tokio::time::sleep(lapse) => {}
                    }
                }
                None => watch.changed().await?,
            }
        }
    }
}
