//! The mail of a driven agent: leased for a turn, noted as the harness tells of it, and taken back if it tells that it
//! was lost.

use store::{Durability, StoreError};

use crate::Mesh;
use crate::delivery::chain;
use crate::driven::DrivenId;
use crate::messages::fetch::{self, EnvelopedLease, Fetch, Lease};
use crate::messages::inbox::{self, Inbox, Slot};
use crate::messages::receipt::{DeliveryStatus, Event};
use crate::messages::{LONGEST_BODY, hand_over};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::sessions::{Activity, SessionRef};

/// The most messages of one turn.
const MOST: usize = 20;
/// The longest text of a turn's mail, in bytes: one message of any length fits.
const ROOM: usize = 2 * LONGEST_BODY;

/// Mail for one turn, all of one sender.
#[derive(Debug)]
pub struct TurnMail {
    /// The messages, in their envelopes.
    pub text: String,
    /// Who sent them.
    pub from: AgentName,
    /// The right to present them.
    pub lease: Lease,
}

impl Mesh {
    /// Leases the next mail for a turn: the first message that may interrupt a session with this activity, and what the
    /// same sender has sent since.
    pub async fn take_turn_mail(
        &self,
        (agent, id): (&AgentName, DrivenId),
        activity: Activity,
    ) -> Result<Option<TurnMail>, StoreError> {
        let ask = Fetch { interrupting: Some(activity), ..Fetch::default() };
        let pick = |inbox: &Inbox, now: Instant| -> Vec<Slot> {
            let mut slots = inbox.open.presentable(now).filter(|slot| ask.takes(slot, now));
            let Some(first) = slots.next() else { return Vec::new() };
            let from = first.header.from.clone();
            let rest = slots.filter(|slot| slot.header.from == from);
            std::iter::once(first).chain(rest).take(MOST).cloned().collect()
        };
        let leased = fetch::lease_enveloped(&self.core, &self.inboxes, agent, (&holder_of(id), ROOM), pick).await?;
        let Some(EnvelopedLease { messages, text, lease }) = leased else { return Ok(None) };
        let Some(first) = messages.first() else { return Ok(None) };
        fetch::note_chain(&self.core, &lease).await?;
        Ok(Some(TurnMail { text, from: first.message.from.clone(), lease }))
    }

    /// Gives back what an earlier process has leased for a driven agent and never given: it is in none of these leases of
    /// the ledger. Its text has gone nowhere.
    pub async fn forsaken_turn_mail(
        &self,
        (agent, id): (&AgentName, DrivenId),
        ledger: &[&str],
    ) -> Result<(), StoreError> {
        let holder = holder_of(id);
        let forsaken: Vec<(MessageId, String)> = {
            let inbox = self.inboxes.of(agent);
            let mut inbox = inbox.lock().await;
            inbox.refresh(self.core.shared.as_ref(), agent).await?;
            let leased = inbox.open.leased(self.core.machine.now());
            let of_it = leased.filter_map(|slot| Some((slot.header.id, slot.history.lease.as_ref()?.id.clone())));
            of_it.filter(|(_, lease)| lease.starts_with(&holder) && !ledger.contains(&lease.as_str())).collect()
        };
        for (message, lease) in forsaken {
            let released = Event::Released { lease, went_out: false };
            inbox::receipt(&self.core, agent, &[message], &released, Durability::Process).await?;
        }
        Ok(())
    }

    /// Notes that the harness has taken leased mail into a session. From now on it is that session's until more is known.
    pub async fn turn_mail_taken(&self, lease: &Lease, session: &SessionRef, route: &str) -> Result<(), StoreError> {
        hand_over::hand_over(&self.core, lease, session, route).await
    }

    /// Notes that a model request held these messages, by the harness's own evidence.
    pub async fn turn_mail_shown(
        &self,
        agent: &AgentName,
        ids: &[MessageId],
        route: &str,
        evidence: &str,
    ) -> Result<(), StoreError> {
        let event = Event::Status {
            status: DeliveryStatus::Shown,
            route: route.to_owned(),
            evidence: Some(serde_json::json!({ "prompt": evidence })),
        };
        inbox::receipt(&self.core, agent, ids, &event, Durability::Process).await?;
        fetch::tidy(&self.core, &self.inboxes, agent).await
    }

    /// Gives back mail that the harness did not show, or of which nobody knows. `passed_on` if its text may have been read:
    /// then it is presented again marked so.
    pub async fn turn_mail_back(
        &self,
        agent: &AgentName,
        (ids, lease): (&[MessageId], &str),
        passed_on: bool,
        reason: &str,
    ) -> Result<(), StoreError> {
        let released = Event::Released { lease: lease.to_owned(), went_out: passed_on };
        inbox::receipt(&self.core, agent, ids, &released, Durability::Process).await?;
        hand_over::take_back(&self.core, agent, ids, reason).await
    }

    /// Lets a lease last as long as a new one.
    pub async fn renew_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let until = self.core.machine.now().plus(self.core.limits.lease);
        let event = Event::Leased { lease: lease.id.clone(), until };
        inbox::receipt(&self.core, &lease.agent, &lease.messages, &event, Durability::Process).await
    }

    /// How long a lease lasts, in milliseconds.
    pub fn lease_time(&self) -> u64 {
        self.core.limits.lease
    }

    /// Notes that an agent's user spoke to it: its next message begins a new chain, and held mail may wake it again.
    pub async fn user_spoke(&self, agent: &AgentName) -> Result<(), StoreError> {
        chain::person_spoke(&self.core, &self.inboxes, agent).await
    }
}

/// What the ids of the leases of a driven agent begin with.
fn holder_of(id: DrivenId) -> String {
    format!("{id}-")
}

impl Lease {
    /// Its id in the receipts.
    pub fn id(&self) -> &str {
        &self.id
    }
}
