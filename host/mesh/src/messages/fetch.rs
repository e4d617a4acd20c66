//! Fetching and acknowledging: how an agent reads its mail itself.

use std::collections::{BTreeMap, BTreeSet};

use store::{Durability, Position, StoreError};

use crate::agents::presence;
use crate::core::Core;
use crate::delivery::chain;
use crate::messages::envelope::{Enveloped, envelope};
use crate::messages::hand_over;
use crate::messages::inbox;
use crate::messages::inbox::{Header, Inbox, Slot};
use crate::messages::inboxes::Inboxes;
use crate::messages::kept::{self, KeptMessage};
use crate::messages::receipt::{Cut, DeliveryHistory, DeliveryStatus, Event, Receipt};
use crate::messages::texts;
use crate::messages::{Message, Priority, Trace};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::sessions::Activity;
use crate::storage::keys;

/// The holder of a lease that is known by nothing but its id.
pub(crate) const UNNAMED: &str = "";

/// Which messages of an inbox to fetch, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Maximum number of messages.
    pub limit: usize,
    /// Longest body in bytes; longer ones are cut at a character boundary and marked.
    pub max_length: usize,
    /// Only this message, also if it is settled.
    pub one: Option<MessageId>,
    /// Bytes of the body to leave out.
    pub offset: usize,
    /// Look without leasing: nothing counts as read.
    pub peek: bool,
    /// Also messages that were shown, read or acknowledged before.
    pub include_settled: bool,
    /// Only from this sender.
    pub from: Option<AgentName>,
    /// Only of this thread.
    pub thread: Option<String>,
    /// Only messages stored at or after this time.
    pub since: Option<Instant>,
    /// The newest `limit` messages instead of the oldest.
    pub newest: bool,
    /// Only messages that may interrupt a session with this activity.
    pub interrupting: Option<Activity>,
}

impl Default for Fetch {
    fn default() -> Fetch {
        Fetch {
            limit: 10,
            max_length: 4096,
            one: None,
            offset: 0,
            peek: false,
            include_settled: false,
            from: None,
            thread: None,
            since: None,
            newest: false,
            interrupting: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct FetchedMessage {
    /// Its place in the inbox, which tells what was stored first: senders' clocks differ.
    pub at: Position,
    /// The message, its body cut if it was too long.
    pub message: Message,
    /// The part of the body that this is, if it is not all of it.
    pub part: Option<BodyRange>,
    /// Its delivery history before this fetch.
    pub history: DeliveryHistory,
}

/// A part of a message's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyRange {
    /// Where it begins, in bytes.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// The length of the whole body.
    pub of: usize,
}

/// The right to present some messages for a limited time. Confirm it after presenting them; if it is dropped
/// instead, it lapses by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "what was presented and is not confirmed is presented again"]
pub struct Lease {
    /// The owner of the inbox.
    pub agent: AgentName,
    /// The id of the lease in the receipts.
    pub(crate) id: String,
    /// The leased messages.
    pub messages: Vec<MessageId>,
    /// Those of which only a part is presented, or the rest.
    pub(crate) cut: Vec<(MessageId, Cut)>,
    /// The longest chain among them. The agent works on it once they are presented.
    pub(crate) trace: Option<Trace>,
}

/// The result of a fetch.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// The messages: urgent first, then by time.
    pub messages: Vec<FetchedMessage>,
    /// How many more messages wait that were left out.
    pub waiting: usize,
    /// The lease on them; none after a peek, or if all of them are settled.
    pub lease: Option<Lease>,
    /// Whether the store has no room to note that they were read: they stay unread, and are shown again.
    pub unnoted: bool,
}

/// Why an inbox could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The message is not in this inbox.
    #[error("no message `{id}` was sent to `{agent}`")]
    Unknown {
        /// The message.
        id: MessageId,
        /// The owner of the inbox.
        agent: AgentName,
    },
    /// The store failed.
    #[error("the inbox could not be read")]
    Store(#[from] store::StoreError),
}

/// The result of acknowledging one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The message.
    pub id: MessageId,
    /// Whether it had been acknowledged before.
    pub again: bool,
}

/// Why nothing was acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum AckError {
    /// The message is not in this inbox.
    #[error("no message `{id}` was sent to `{agent}`")]
    Unknown {
        /// The message.
        id: MessageId,
        /// The owner of the inbox.
        agent: AgentName,
    },
    /// The store failed.
    #[error("the receipt could not be stored")]
    Store(#[from] store::StoreError),
}

impl Fetch {
    /// Whether a message passes the filters.
    pub(crate) fn wants(&self, header: &Header) -> bool {
        self.from.as_ref().is_none_or(|from| header.from == *from)
            && self.thread.as_ref().is_none_or(|thread| header.thread == *thread)
            && self.since.is_none_or(|since| header.at >= since)
    }

    /// Whether an unsettled message passes the filters in its present state.
    pub(crate) fn takes(&self, slot: &Slot, now: Instant) -> bool {
        self.wants(&slot.header) && self.interrupting.is_none_or(|activity| may_interrupt(slot, activity, now))
    }
}

/// Whether a message may be delivered to a session with this activity. Every priority but low wakes an idle
/// session; only urgent mail interrupts a busy one; nothing interrupts a session that waits for its user.
/// A message that the loop guard holds interrupts no session.
fn may_interrupt(slot: &Slot, activity: Activity, now: Instant) -> bool {
    let priority = slot.header.priority;
    let may = match activity {
        Activity::Idle => priority > Priority::Low,
        Activity::Busy => priority == Priority::Urgent,
        Activity::NeedsInput | Activity::Ended => false,
    };
    may && slot.history.held(now).is_none()
}

impl Lease {
    /// The lease, with what is presented under it.
    fn presenting(self, messages: &[FetchedMessage]) -> Lease {
        let cut = messages.iter().filter_map(|fetched| {
            let (id, part) = (fetched.message.id, fetched.part?);
            self.messages.contains(&id).then_some((id, Cut { shown: part.to, of: part.of }))
        });
        let cut = cut.collect();
        Lease { cut, ..self }
    }

    /// The lease, where of this message only so much is presented.
    pub(crate) fn cutting(mut self, cut: Option<Cut>) -> Lease {
        self.cut = self.messages.first().copied().zip(cut).into_iter().collect();
        self
    }

    /// Splits the lease into one per message, so that each can be confirmed or released alone.
    pub fn each(self) -> Vec<Lease> {
        let Lease { agent, id, messages, cut, trace } = self;
        let of = |message| cut.iter().filter(|(id, _)| *id == message).copied().collect();
        let one =
            |message| Lease { agent: agent.clone(), id: id.clone(), messages: vec![message], cut: of(message), trace };
        messages.into_iter().map(one).collect()
    }
}

pub(crate) async fn fetch(
    core: &Core,
    inboxes: &Inboxes,
    agent: &AgentName,
    ask: &Fetch,
) -> Result<Fetched, FetchError> {
    if let Some(id) = ask.one {
        return fetch_one(core, inboxes, agent, id, ask).await;
    }
    match self::fetch_once(core, inboxes, agent, ask).await {
        // Mail that cannot be leased can still be looked at.
        Err(FetchError::Store(error)) if !ask.peek && error.is_full() => {
            tracing::debug!(%agent, %error, "the mail is shown without a lease");
            let looked = fetch_once(core, inboxes, agent, &Fetch { peek: true, ..ask.clone() }).await?;
            Ok(Fetched { unnoted: true, ..looked })
        }
        outcome => outcome,
    }
}

async fn fetch_once(core: &Core, inboxes: &Inboxes, agent: &AgentName, ask: &Fetch) -> Result<Fetched, FetchError> {
    if ask.include_settled {
        return fetch_history(core, inboxes, agent, ask).await;
    }
    let pick =
        |inbox: &Inbox, now: Instant| choose(inbox.open.presentable(now).filter(|slot| ask.takes(slot, now)), ask);
    let (found, lease, waiting) = if ask.peek {
        let (slots, waiting) = {
            let inbox = inboxes.of(agent);
            let mut inbox = inbox.lock().await;
            hand_over::refresh(core, &mut inbox, agent).await?;
            let now = core.machine.now();
            (pick(&inbox, now), inbox.open.free(now))
        };
        (texts::with_texts(core, inboxes, agent, slots).await?, None, waiting)
    } else {
        lease_messages(core, inboxes, agent, UNNAMED, pick).await?
    };
    let cut = |(slot, message): (Slot, Message)| self::cut(slot.at, message, slot.history, ask);
    let messages: Vec<FetchedMessage> = found.into_iter().map(cut).collect();
    let lease = lease.map(|lease| lease.presenting(&messages));
    Ok(Fetched { waiting: waiting.saturating_sub(messages.len()), messages, lease, unnoted: false })
}

pub(crate) async fn confirm(
    core: &Core,
    inboxes: &Inboxes,
    lease: &Lease,
    status: DeliveryStatus,
    route: &str,
    evidence: Option<serde_json::Value>,
) -> Result<(), StoreError> {
    let event = Event::Status { status, route: route.to_owned(), evidence };
    inbox::receipt(core, &lease.agent, &lease.messages, &event, Durability::Process).await?;
    note_cut(core, lease).await?;
    if status >= DeliveryStatus::Accepted {
        note_chain(core, lease).await?;
    }
    if status.settles() {
        tidy(core, inboxes, &lease.agent).await?;
    }
    Ok(())
}

/// Notes that the agent works on what is given to it under a lease. Noted before its harness gets that, and not once it
/// has taken it: its model may have answered by then, and the answer would begin a chain that the loop guard does not know.
pub(crate) async fn note_chain(core: &Core, lease: &Lease) -> Result<(), StoreError> {
    match lease.trace {
        Some(trace) => chain::works_on(core, &lease.agent, trace).await,
        None => Ok(()),
    }
}

pub(crate) async fn confirm_late(
    core: &Core,
    inboxes: &Inboxes,
    agent: &AgentName,
    id: MessageId,
    status: DeliveryStatus,
    route: &str,
    evidence: Option<serde_json::Value>,
) -> Result<bool, StoreError> {
    let trace = {
        let inbox = inboxes.of(agent);
        let mut inbox = inbox.lock().await;
        inbox.refresh(core.shared.as_ref(), agent).await?;
        inbox.open.get(id).map(|slot| slot.header.trace)
    };
    let Some(trace) = trace else { return Ok(false) };
    let lease =
        Lease { agent: agent.clone(), id: String::new(), messages: vec![id], cut: Vec::new(), trace: Some(trace) };
    confirm(core, inboxes, &lease, status, route, evidence).await?;
    Ok(true)
}

pub(crate) async fn release(core: &Core, lease: Lease) -> Result<(), StoreError> {
    end_lease(core, lease, false).await
}

/// Gives up a lease on messages whose text was passed on: they are presented again as perhaps repeated.
pub(crate) async fn release_passed_on(core: &Core, lease: Lease) -> Result<(), StoreError> {
    end_lease(core, lease, true).await
}

async fn end_lease(core: &Core, lease: Lease, went_out: bool) -> Result<(), StoreError> {
    let event = Event::Released { lease: lease.id, went_out };
    inbox::receipt(core, &lease.agent, &lease.messages, &event, Durability::Process).await
}

pub(crate) async fn acknowledge(
    core: &Core,
    inboxes: &Inboxes,
    agent: &AgentName,
    ids: &[MessageId],
) -> Result<Vec<Acknowledged>, AckError> {
    // What this process has just fetched is known: looking it up would read the logs for each call.
    let known: BTreeMap<MessageId, bool> = {
        let inbox = inboxes.of(agent);
        let mut inbox = inbox.lock().await;
        inbox.refresh(core.shared.as_ref(), agent).await?;
        ids.iter().filter_map(|id| inbox.is_acknowledged(*id).map(|again| (*id, again))).collect()
    };
    let others: Vec<MessageId> = ids.iter().filter(|id| !known.contains_key(id)).copied().collect();
    let found = if others.is_empty() { Vec::new() } else { kept::these(core, agent, &others).await? };
    let found: BTreeMap<MessageId, bool> = found
        .into_iter()
        .map(|kept| (kept.message.id, kept.history.status() == DeliveryStatus::Acknowledged))
        .chain(known)
        .collect();
    let mut outcomes = Vec::new();
    for id in ids {
        match found.get(id) {
            Some(again) => outcomes.push(Acknowledged { id: *id, again: *again }),
            None => return Err(AckError::Unknown { id: *id, agent: agent.clone() }),
        }
    }
    let fresh: Vec<MessageId> = outcomes.iter().filter(|outcome| !outcome.again).map(|outcome| outcome.id).collect();
    let event = Event::Status { status: DeliveryStatus::Acknowledged, route: "acknowledge".to_owned(), evidence: None };
    inbox::receipt(core, agent, &fresh, &event, Durability::Synced).await?;
    tidy(core, inboxes, agent).await?;
    Ok(outcomes)
}

/// Leases what `pick` chooses. Safe against concurrent callers: the choice is made from the receipts and written
/// back only if none was added since. Also returns how many messages were presentable. The id of the lease begins with
/// `holder`, so that a process that replaces the holder knows its leases; [`UNNAMED`] if none does.
pub(crate) async fn lease(
    core: &Core,
    inboxes: &Inboxes,
    agent: &AgentName,
    holder: &str,
    pick: impl Fn(&Inbox, Instant) -> Vec<Slot> + Send,
) -> Result<(Vec<Slot>, Option<Lease>, usize), StoreError> {
    let inbox = inboxes.of(agent);
    let mut inbox = inbox.lock().await;
    for _ in 0..inbox::TRIES {
        hand_over::refresh(core, &mut inbox, agent).await?;
        let now = core.machine.now();
        let waiting = inbox.open.free(now);
        let slots = pick(&inbox, now);
        if slots.is_empty() {
            return Ok((slots, None, waiting));
        }
        let id = format!("{holder}{}", hex::encode(core.machine.random()));
        let event = Event::Leased { lease: id.clone(), until: now.plus(core.limits.lease) };
        let receipts: Vec<Receipt> =
            slots.iter().map(|slot| Receipt { message: slot.header.id, at: now, event: event.clone() }).collect();
        if inbox.append_if_unmoved(core.shared.as_ref(), agent, &receipts).await? {
            let lease = Lease {
                agent: agent.clone(),
                id,
                messages: slots.iter().map(|slot| slot.header.id).collect(),
                cut: Vec::new(),
                trace: slots.iter().map(|slot| slot.header.trace).max_by_key(|trace| trace.hops),
            };
            return Ok((slots, Some(lease), waiting));
        }
    }
    Err(inbox::contended(&keys::receipts(agent)))
}

/// Leases what `pick` chooses, and reads it. See [`lease`].
pub(crate) async fn lease_messages(
    core: &Core,
    inboxes: &Inboxes,
    agent: &AgentName,
    holder: &str,
    pick: impl Fn(&Inbox, Instant) -> Vec<Slot> + Send,
) -> Result<(Vec<(Slot, Message)>, Option<Lease>, usize), StoreError> {
    let (slots, lease, waiting) = self::lease(core, inboxes, agent, holder, pick).await?;
    let found = texts::with_texts(core, inboxes, agent, slots).await?;
    let lease = lease.and_then(|mut lease| {
        lease.messages.retain(|id| found.iter().any(|(slot, _)| slot.header.id == *id));
        (!lease.messages.is_empty()).then_some(lease)
    });
    Ok((found, lease, waiting))
}

/// Messages that are leased, in their envelopes.
pub(crate) struct EnvelopedLease {
    pub(crate) messages: Vec<FetchedMessage>,
    pub(crate) text: String,
    pub(crate) lease: Lease,
}

/// Leases what `pick` chooses, and puts as much of it into envelopes as fits into `max_bytes`. The rest is released.
pub(crate) async fn lease_enveloped(
    core: &Core,
    inboxes: &Inboxes,
    agent: &AgentName,
    (holder, max_bytes): (&str, usize),
    pick: impl Fn(&Inbox, Instant) -> Vec<Slot> + Send,
) -> Result<Option<EnvelopedLease>, StoreError> {
    let (found, lease, _) = lease_messages(core, inboxes, agent, holder, pick).await?;
    let Some(mut lease) = lease else { return Ok(None) };
    let mut messages: Vec<FetchedMessage> = found.into_iter().map(inbox::presented).collect();
    let Enveloped { text, taken, cut } = envelope(&messages, max_bytes);
    if taken < messages.len() {
        let rest = Lease { messages: lease.messages.split_off(taken), ..lease.clone() };
        release(core, rest).await?;
        messages.truncate(taken);
    }
    Ok(Some(EnvelopedLease { messages, text, lease: lease.cutting(cut) }))
}

/// Fetches from everything that is kept; unsettled messages are leased like any other mail.
async fn fetch_history(core: &Core, inboxes: &Inboxes, agent: &AgentName, ask: &Fetch) -> Result<Fetched, FetchError> {
    let kept = if ask.newest { kept::newest(core, agent, ask).await? } else { kept::oldest(core, agent, ask).await? };
    let chosen: BTreeSet<MessageId> = kept.iter().map(|kept| kept.message.id).collect();
    let lease = if ask.peek {
        None
    } else {
        let pick = |inbox: &Inbox, now: Instant| {
            let slots = inbox.open.presentable(now);
            slots.filter(|slot| chosen.contains(&slot.header.id)).cloned().collect()
        };
        self::lease(core, inboxes, agent, UNNAMED, pick).await?.1
    };
    // A message that is only peeked at does not count as left out, just as a leased one does not.
    let unread = kept.iter().filter(|kept| !kept.history.is_settled()).count();
    let waiting = presence::waiting(core, inboxes, agent).await?.saturating_sub(unread);
    let cut = |KeptMessage { at, message, history }| self::cut(at, message, history, ask);
    let messages: Vec<FetchedMessage> = kept.into_iter().map(cut).collect();
    let lease = lease.map(|lease| lease.presenting(&messages));
    Ok(Fetched { messages, waiting, lease, unnoted: false })
}

/// Fetches one message, or a part of it, whatever became of it before.
async fn fetch_one(
    core: &Core,
    inboxes: &Inboxes,
    agent: &AgentName,
    id: MessageId,
    ask: &Fetch,
) -> Result<Fetched, FetchError> {
    let Some(KeptMessage { at, message, history }) = kept::one_of(core, agent, id).await? else {
        return Err(FetchError::Unknown { id, agent: agent.clone() });
    };
    let trace = message.trace;
    let was_cut = history.cut.is_some();
    let pick = |inbox: &Inbox, now: Instant| -> Vec<Slot> {
        inbox.open.presentable(now).filter(|slot| slot.header.id == id).cloned().collect()
    };
    let lease = match ask.peek {
        true => None,
        false => self::lease(core, inboxes, agent, UNNAMED, pick).await?.1,
    };
    let found = self::cut(at, message, history, ask);
    // What had been cut before is read with this, though no lease is due.
    let lease = lease.or_else(|| {
        let late =
            Lease { agent: agent.clone(), id: String::new(), messages: vec![id], cut: Vec::new(), trace: Some(trace) };
        (was_cut && !ask.peek).then_some(late)
    });
    let messages = vec![found];
    let lease = lease.map(|lease| lease.presenting(&messages));
    let waiting = presence::waiting(core, inboxes, agent).await?;
    Ok(Fetched { messages, waiting, lease, unnoted: false })
}

/// Records of which messages only a part was presented, or the rest.
pub(crate) async fn note_cut(core: &Core, lease: &Lease) -> Result<(), StoreError> {
    for (id, cut) in &lease.cut {
        inbox::receipt(core, &lease.agent, &[*id], &Event::Cut(*cut), Durability::Process).await?;
    }
    Ok(())
}

/// Reads the new receipts and moves the cursor past the settled messages.
pub(crate) async fn tidy(core: &Core, inboxes: &Inboxes, agent: &AgentName) -> Result<(), StoreError> {
    let inbox = inboxes.of(agent);
    let mut inbox = inbox.lock().await;
    inbox.refresh(core.shared.as_ref(), agent).await?;
    inbox.leave_cursor(core.shared.as_ref(), agent).await;
    Ok(())
}

/// The messages that a fetch takes from those that pass its filters.
fn choose<'a>(slots: impl Iterator<Item = &'a Slot>, ask: &Fetch) -> Vec<Slot> {
    if !ask.newest {
        return slots.take(ask.limit).cloned().collect();
    }
    let mut slots: Vec<&Slot> = slots.collect();
    slots.sort_by_key(|slot| slot.at);
    let first = slots.len().saturating_sub(ask.limit);
    slots.drain(first..).cloned().collect()
}

/// The part of a message that was asked for, cut at character boundaries.
fn cut(at: Position, mut message: Message, history: DeliveryHistory, ask: &Fetch) -> FetchedMessage {
    let of = message.body.len();
    let boundary = |mut byte: usize| {
        while !message.body.is_char_boundary(byte) {
            byte -= 1;
        }
        byte
    };
    let from = boundary(ask.offset.min(of));
    let to = boundary(from.saturating_add(ask.max_length).min(of));
    let part = BodyRange { from, to, of };
    message.body.truncate(to);
    message.body.drain(..from);
    FetchedMessage { at, message, part: (part.from > 0 || part.to < of).then_some(part), history }
}
