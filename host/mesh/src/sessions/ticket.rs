//! Tickets: proof that one of this machine's own hooks named a session.

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use store::Durability;

use crate::core::Core;
use crate::sessions::{SessionRef, Ticket};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// Why a ticket is refused.
#[derive(Debug, thiserror::Error)]
pub enum TicketError {
    /// This machine did not issue it.
    #[error("the proof does not fit the session")]
    Forged,
    /// The machine's key could not be read.
    #[error("the key for tickets could not be read")]
    Store(#[from] store::StoreError),
}

/// The machine's signing key, as stored.
#[derive(Clone, Serialize, Deserialize)]
struct Secret {
    /// 32 random bytes, in hexadecimal.
    key: String,
}

pub(crate) async fn ticket(core: &Core, session: &SessionRef) -> Result<Ticket, TicketError> {
    let key = ticket_key(core).await?;
    Ok(Ticket { session: session.clone(), proof: hex::encode(mac(&key, session).finalize().into_bytes()) })
}

pub(crate) async fn check_ticket(core: &Core, ticket: &Ticket) -> Result<(), TicketError> {
    let key = ticket_key(core).await?;
    let proof = hex::decode(&ticket.proof).map_err(|_| TicketError::Forged)?;
    // `verify_slice` compares in constant time.
    mac(&key, &ticket.session).verify_slice(&proof).map_err(|_| TicketError::Forged)
}

async fn ticket_key(core: &Core) -> Result<String, store::StoreError> {
    let fresh = Secret { key: hex::encode([core.machine.random(), core.machine.random()].concat()) };
    // Synced: losing the key would invalidate every issued ticket.
    records::update(core.local.as_ref(), &keys::ticket_key(), Durability::Synced, |kept: Option<Secret>| match kept {
        Some(secret) => (Next::Keep, secret.key),
        None => (Next::Put(fresh.clone()), fresh.key.clone()),
    })
    .await
}

/// The harness and the id are separated by a byte that neither may contain, so that no two sessions have the same
/// input.
fn mac(key: &str, session: &SessionRef) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(session.harness.as_bytes());
    mac.update(&[0]);
    mac.update(session.id.as_bytes());
    mac
}
