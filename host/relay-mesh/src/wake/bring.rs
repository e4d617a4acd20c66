//! Delivering a message from this process, for those who wait until its recipient is woken.

use std::sync::Arc;
use std::time::Duration;

use mesh::messages::receipt::DeliveryStatus;
use mesh::names::MessageId;
use mesh::sessions::Principal;
use mesh::{MessageStatus, Served};
use tokio_util::sync::CancellationToken;

use crate::compose::Open;
use crate::errors::CommandError;

/// How often to check whether a route took the message.
const LOOK: Duration = Duration::from_millis(25);

/// Delivers from this process until every recipient's harness has taken the message, or for `timeout`. Returns
/// the message's status.
pub(crate) async fn bring(
    open: &Open,
    caller: &Principal,
    id: MessageId,
    timeout: Duration,
) -> Result<MessageStatus, CommandError> {
    let stop = CancellationToken::new();
    let deliver = Arc::clone(&open.mesh).deliver(Served::Everyone, stop.clone());
    let watch = async {
        let mut look = tokio::time::interval(LOOK);
        loop {
            look.tick().await;
            if is_taken(&open.mesh.message_status(caller, id).await?) {
                return Ok::<(), mesh::StatusError>(());
            }
        }
    };
    tokio::select! {
        outcome = tokio::time::timeout(timeout, watch) => {
            if let Ok(taken) = outcome {
                taken?;
            }
        }
        // Delivery runs until it is stopped, which only happens below.
        () = deliver => {}
    }
    stop.cancel();
    open.mesh.write_minutes().await?;
    Ok(open.mesh.message_status(caller, id).await?)
}

/// Whether each recipient's harness has taken a message.
pub(crate) fn is_taken(status: &MessageStatus) -> bool {
    status.recipients.iter().all(|recipient| recipient.history.status() >= DeliveryStatus::Accepted)
}
