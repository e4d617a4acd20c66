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
    Ok(Ticket { session: session.clone(), proof: hex(&mac(&key, session).finalize().into_bytes()) })
}

pub(crate) async fn check_ticket(core: &Core, ticket: &Ticket) -> Result<(), TicketError> {
    let key = ticket_key(core).await?;
    let proof = unhex(&ticket.proof).ok_or(TicketError::Forged)?;
    // `verify_slice` compares in constant time.
    mac(&key, &ticket.session).verify_slice(&proof).map_err(|_| TicketError::Forged)
}

async fn ticket_key(core: &Core) -> Result<String, store::StoreError> {
    let fresh = Secret { key: format!("{}{}", hex(&core.machine.random()), hex(&core.machine.random())) };
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

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}
