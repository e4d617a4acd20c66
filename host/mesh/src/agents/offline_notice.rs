//! Offline notices: instead of waiting for an agent, a caller can ask for a message once that agent is away or offline.
//! The first process that notices sends it, once.

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError};

use crate::agents;
use crate::agents::presence;
use crate::agents::presence::is_here;
use crate::core::Core;
use crate::messages::Draft;
use crate::names::{AgentName, MessageId};
use crate::sessions::{Evidence, Principal, Transport};
use crate::storage::keys;
use crate::storage::records::{self, Next};
use crate::{Mesh, SendError};

/// Why a notice could not be requested.
#[derive(Debug, thiserror::Error)]
pub enum OfflineNoticeError {
    /// The caller is not registered, so there is no agent to notify.
    #[error("you have not registered")]
    NotRegistered,
    /// The store failed.
    #[error("the request for an offline notice could not be stored")]
    Store(#[from] StoreError),
}

/// An agent's request to be told when another agent is no longer here, stored under `offline-notices/AGENT`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OfflineNotice {
    /// Makes the idempotency key of the message, so that it is sent once.
    id: MessageId,
    by: AgentName,
}

impl Mesh {
    /// Sends the notices about agents that are no longer here.
    pub(crate) async fn send_offline_notices(&self) -> Result<(), StoreError> {
        for key in self.core.local.list(&keys::offline_notices()).await? {
            let Ok(of) = key.leaf().parse::<AgentName>() else { continue };
            let because = match agents::list::load_agent(&self.core, &of).await? {
                Some(agent) => match presence::judged(&self.core, &agent).await? {
                    (_, presence, _) if is_here(presence) => continue,
                    (_, presence, because) => format!("is {}: {because}", presence.as_str()),
                },
                None => "was deleted".to_owned(),
            };
            let notices =
                records::load::<Vec<OfflineNotice>>(self.core.local.as_ref(), &key).await?.map(|(_, notices)| notices);
            let mut told = Vec::new();
            for OfflineNotice { id, by } in notices.unwrap_or_default() {
                let draft = Draft {
                    body: format!("{of} {because}. You asked to be told when it is no longer here."),
                    idempotency_key: Some(format!("no-longer-here-{id}")),
                    ..Draft::default()
                };
                let outcome = match agents::list::load_agent(&self.core, &by).await? {
                    Some(_) => self.tell(&nobody(), &AgentName::shell(), &by, draft).await,
                    // The requester is no longer registered.
                    None => Ok(()),
                };
                match outcome {
                    // Sent before with another text; not sent again.
                    Ok(()) | Err(SendError::OtherUnderKey { .. }) => told.push(id),
                    Err(SendError::Store { source, .. } | SendError::Unreadable(source)) => return Err(source),
                    Err(error) => tracing::warn!(%of, %by, %error, "an offline notice was not sent"),
                }
            }
            let rest = |notices: Option<Vec<OfflineNotice>>| {
                let rest: Vec<OfflineNotice> =
                    notices.unwrap_or_default().into_iter().filter(|notice| !told.contains(&notice.id)).collect();
                (if rest.is_empty() { Next::Remove } else { Next::Put(rest) }, ())
            };
            records::update(self.core.local.as_ref(), &key, Durability::Process, rest).await?;
        }
        Ok(())
    }
}

pub(crate) async fn notify_when_offline(
    core: &Core,
    caller: &Principal,
    agents: &[AgentName],
) -> Result<(), OfflineNoticeError> {
    let by = caller.agent().ok_or(OfflineNoticeError::NotRegistered)?;
    for agent in agents {
        let id = core.new_id(core.machine.now());
        let add = |notices: Option<Vec<OfflineNotice>>| {
            let mut notices = notices.unwrap_or_default();
            if notices.iter().any(|notice| notice.by == *by) {
                return (Next::Keep, ());
            }
            notices.push(OfflineNotice { id, by: by.clone() });
            (Next::Put(notices), ())
        };
        records::update(core.local.as_ref(), &keys::offline_notice(agent), Durability::Synced, add).await?;
    }
    Ok(())
}

/// A caller that acts for no agent.
fn nobody() -> Principal {
    Principal {
        session: None,
        connection: None,
        agent: None,
        evidence: Evidence::None,
        owns_connection: false,
        transport: Transport::CommandLine,
        profile: crate::agents::Profile::default(),
    }
}
